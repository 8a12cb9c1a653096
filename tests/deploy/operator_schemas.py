"""The schemas of the Prometheus Operator's objects, from its module in the Go module proxy."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache/tools/prometheus-operator"
MODULE = "github.com/prometheus-operator/prometheus-operator"
VERSION = "v0.85.0"
SUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
LIMIT_SECONDS = 90


def _download() -> Path:
    """Download the module's archive; skips with the reason where that is not possible."""
    go = shutil.which("go")
    if not go:
        pytest.skip("go is not installed: the Prometheus Operator's schemas cannot be fetched")
    environment = {**os.environ, "GOMODCACHE": str(CACHE / "gomod"), "GOFLAGS": "-mod=mod -modcacherw"}
    command = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment, cwd=CACHE
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the Prometheus Operator's module could not be downloaded within {LIMIT_SECONDS} s")
    answer = json.loads(done.stdout or "{}")
    if "Zip" not in answer:
        pytest.skip(f"the Prometheus Operator's module cannot be fetched: {answer.get('Error', done.stderr)}")
    assert answer["Sum"] == SUM
    return Path(answer["Zip"])


def schema(plural: str) -> dict:
    """The schema of a resource such as `podmonitors`, closed: a field that it does not name is an error."""
    cached = CACHE / f"{plural}-{VERSION}.yaml"
    if not cached.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(_download()) as archive:
            name = f"{MODULE}@{VERSION}/example/prometheus-operator-crd/monitoring.coreos.com_{plural}.yaml"
            cached.write_bytes(archive.read(name))
        shutil.rmtree(CACHE / "gomod", ignore_errors=True)
    definition = yaml.safe_load(cached.read_text())
    (version,) = [each for each in definition["spec"]["versions"] if each["name"] == "v1"]
    return _closed(version["schema"]["openAPIV3Schema"], top=True)


def _closed(node, *, top=False):
    """Make unknown fields errors, as the API server does with strict validation; `metadata` has a schema of its own."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
        closed["additionalProperties"] = False
    if top:
        closed["properties"]["metadata"] = {"type": "object"}
    return closed
