"""The schemas of the objects of operators, from their modules in the Go module proxy, or from the folder `crds`."""

import functools
import json
import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache/tools/crds"
LIMIT_SECONDS = 90


class _Loader(yaml.CSafeLoader):
    """Reads a bare `=`, which is a text in YAML 1.2."""


_Loader.add_constructor("tag:yaml.org,2002:value", yaml.CSafeLoader.construct_yaml_str)


@dataclass(frozen=True)
class Module:
    """A Go module with definitions of resources, and where in it they are."""

    path: str
    version: str
    sum: str
    folder: str

    def definition(self, group: str, plural: str) -> dict:
        """The CustomResourceDefinition; skips with the reason where the module cannot be had."""
        cached = CACHE / f"{plural}.{group}-{self.version}.yaml"
        if not cached.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(self._download()) as archive:
                content = archive.read(f"{self.path}@{self.version}/{self.folder}/{group}_{plural}.yaml")
            # Renamed when it is whole: another test may read it at the same time.
            whole = cached.with_suffix(f".{os.getpid()}")
            whole.write_bytes(content)
            whole.rename(cached)
        return yaml.load(cached.read_text(), _Loader)

    def _download(self) -> Path:
        go = shutil.which("go")
        if not go:
            pytest.skip(f"go is not installed: the schemas of {self.path} cannot be fetched")
        environment = {**os.environ, "GOFLAGS": "-mod=mod"}
        command = [go, "mod", "download", "-json", f"{self.path}@{self.version}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment, cwd=CACHE
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{self.path} could not be downloaded within {LIMIT_SECONDS} s")
        answer = json.loads(done.stdout or "{}")
        if "Zip" not in answer:
            pytest.skip(f"{self.path} cannot be fetched: {answer.get('Error', done.stderr)}")
        assert answer["Sum"] == self.sum
        return Path(answer["Zip"])


PROMETHEUS_OPERATOR = Module(
    "github.com/prometheus-operator/prometheus-operator",
    "v0.85.0",
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
    "example/prometheus-operator-crd",
)
CERT_MANAGER = Module(
    "github.com/cert-manager/cert-manager",
    "v1.21.2",
    "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    "deploy/crds",
)
KINDS = {
    "PodMonitor": (PROMETHEUS_OPERATOR, "monitoring.coreos.com", "podmonitors"),
    "ServiceMonitor": (PROMETHEUS_OPERATOR, "monitoring.coreos.com", "servicemonitors"),
    "PrometheusRule": (PROMETHEUS_OPERATOR, "monitoring.coreos.com", "prometheusrules"),
    "AlertmanagerConfig": (PROMETHEUS_OPERATOR, "monitoring.coreos.com", "alertmanagerconfigs"),
    "Certificate": (CERT_MANAGER, "cert-manager.io", "certificates"),
}
"""Where the definition of a kind is."""
WRITTEN = Path(__file__).parent / "crds"
"""Definitions of operators whose module the proxy does not have, with the fields that are used."""


@functools.cache
def definition(kind: str) -> dict:
    """The CustomResourceDefinition of a kind."""
    if kind in KINDS:
        module, group, plural = KINDS[kind]
        return module.definition(group, plural)
    return yaml.safe_load((WRITTEN / f"{kind}.yaml").read_text())


def custom_kinds() -> set[str]:
    """The kinds that are defined by operators."""
    return {*KINDS, *(path.stem for path in WRITTEN.glob("*.yaml"))}


@functools.cache
def schema(kind: str, version: str = "v1") -> dict:
    """The schema of a kind such as `PodMonitor`, closed: a field that it does not name is an error."""
    versions = {each["name"]: each for each in definition(kind)["spec"]["versions"]}
    return _closed(versions[version]["schema"]["openAPIV3Schema"], top=True)


def _closed(node, *, top=False):
    """Make unknown fields errors, as the API server does with strict validation; `metadata` has a schema of its own."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    if isinstance(node.get("pattern"), str):
        closed["pattern"] = node["pattern"].replace("(?i)", "")  # Go allows it inside; what is checked is in lower case
    if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
        closed["additionalProperties"] = False
    if top:
        closed["properties"]["metadata"] = {"type": "object"}
    return closed
