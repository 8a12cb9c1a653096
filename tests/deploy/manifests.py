"""The manifests as data, and as `kubectl apply -k` would send them."""

import functools
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy/manifests"


@functools.cache
def documents() -> tuple[dict, ...]:
    """Every object of deploy/manifests and the PrometheusRule, in the order of the files."""
    paths = [path for path in sorted(MANIFESTS.glob("*.yaml")) if path.name != "kustomization.yaml"]
    paths.append(ROOT / "deploy/generated/prometheusrule.yaml")
    return tuple(each for path in paths for each in yaml.safe_load_all(path.read_text()))


def one(kind: str, name: str) -> dict:
    """The only object of this kind and name."""
    found = [each for each in documents() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, (kind, name)
    return found[0]


def container(kind: str, name: str) -> dict:
    """The only container of a workload."""
    (only,) = one(kind, name)["spec"]["template"]["spec"]["containers"]
    return only


def kustomized(folder: Path) -> list[dict]:
    """The objects that `kubectl kustomize` renders from a folder; skips where there is no kubectl."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not installed")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def offered_components(folder: Path) -> list[Path]:
    """The folders of the options that a set names in a comment."""
    lines = (folder / "kustomization.yaml").read_text().splitlines()
    after = lines[lines.index("# components:") + 1 :]
    names = [line[6:] for line in takewhile(lambda line: line.startswith("# "), after) if line.startswith("#   - ")]
    return [(folder / name).resolve() for name in names]
