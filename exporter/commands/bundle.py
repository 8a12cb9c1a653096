"""`gpugauge bundle DIR`: writes rules, dashboards, manifests and the chart, for whoever installed without a checkout.

The package has them as data; in a checkout they are in the folder `deploy`. The layout in DIR is that of this folder,
so `kubectl apply --server-side -k DIR` and `helm install gpugauge DIR/helm/gpugauge` work.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from exporter.config import Arguments, ConfigError

_PACKAGED = "deployment"
"""The folder of the package in which a wheel has what a checkout has in `deploy`."""
_SEARCH = "generated/cluster-label.txt"
"""The regular expression that finds the label that tells clusters apart, written by the generator of the rules."""
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RENAMED = ("generated/rules/", "generated/dashboards/", "generated/prometheusrule", "generated/mimir.yaml")
"""Where the label is. The chart renames it in its own copies, by a value."""
_CHART_VALUES = "helm/gpugauge/values.yaml"
_CHART_LABEL = re.compile(r"^clusterLabel: .*$", re.MULTILINE)


def bundle(arguments: Arguments) -> str:
    """Write the files below the folder that is the operand, and return what was written. Raises ConfigError."""
    if len(arguments.operands) != 1:
        raise ConfigError("bundle needs one folder; see gpugauge bundle --help")
    label = arguments.cluster_label
    if label and not _LABEL_NAME.fullmatch(label):
        raise ConfigError(f"--cluster-label: {label!r} is no name of a label")
    target = Path(arguments.operands[0])
    written = dict(contents(data_folder(), label))
    try:
        for name, content in written.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if name.endswith(".sh"):
                path.chmod(0o755)
    except OSError as error:
        raise ConfigError(f"{error.filename or target}: cannot be written: {error.strerror or error}") from error
    return _told(target, len(written))


def data_folder() -> Path:
    """Where the files are: in the package, or beside it in a checkout. Raises ConfigError."""
    package = Path(str(files("exporter")))
    for folder in (package / _PACKAGED, package.parent / "deploy"):
        if (folder / _SEARCH).is_file():
            return folder
    raise ConfigError(f"{package / _PACKAGED}: is not there: this installation has no files for a cluster")


def contents(folder: Path, label: str) -> Iterator[tuple[str, bytes]]:
    """Each file by its path below the folder, links as files, with the label that tells clusters apart renamed."""
    search = re.compile((folder / _SEARCH).read_text(encoding="utf-8").rstrip("\n"), re.MULTILINE)
    for path in _below(folder):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if label and name.startswith(_RENAMED):
            content = search.sub(label, content.decode()).encode()
        elif label and name == _CHART_VALUES:
            content = _CHART_LABEL.sub(f"clusterLabel: {label}", content.decode()).encode()
        yield name, content


def _below(folder: Path) -> Iterator[Path]:
    """The files below a folder, in an order that is the same everywhere; `rglob` would not enter links to folders."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _below(path)
        elif path.is_file():
            yield path


def _told(target: Path, number: int) -> str:
    rows = (
        ("rules, for Prometheus", "generated/rules/*.yaml"),
        ("rules, for the Prometheus Operator", "generated/prometheusrule.yaml"),
        ("dashboards", "generated/dashboards/*.json"),
        ("routes, for Alertmanager", "generated/alertmanager/fragment.yaml"),
        ("everything, by kustomize", f"kubectl apply --server-side -k {target}"),
        ("everything, by Helm", f"helm install gpugauge {target / 'helm' / 'gpugauge'}"),
    )
    lines = [f"{number} files in {target}", *(f"  {about:36}{where}" for about, where in rows)]
    return "\n".join(lines) + "\n"
