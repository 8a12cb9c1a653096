"""Reads the configuration of NVIDIA's MIG manager (mig-parted), or a ConfigMap that has one. No I/O beside the file.

version: v1
mig-configs:
  all-balanced:
    - device-filter: ["0x233010DE"]   # optional: PCI device and vendor
      devices: all                    # or a list of indices
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exporter import config_node
from exporter.commands.mig.placement import Geometry
from exporter.config import ConfigFileError
from exporter.config_node import ConfigNode

_COUNT = re.compile(r"\d{1,3}", re.ASCII)
_PROFILE = re.compile(r"(?:(\d)c\.)?((\d)g\.\d{1,4}gb(?:[+-][a-z.]+)*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class MigConfigEntry:
    """What a named configuration asks of some GPUs of a node."""

    name: str
    line: int
    filters: tuple[str, ...]
    """PCI devices; empty for any."""
    enabled: bool
    geometry: Geometry


def entries(path: Path) -> list[MigConfigEntry]:
    """Read the file. Raises ConfigFileError, with the line and the key of the first mistake."""
    root = _root(config_node.read(path))
    known = {each.key: each for each in root.entries()}
    if "mig-configs" not in known:
        raise root.error("has no mig-configs: it is no configuration of the MIG manager")
    found = [entry for named in known["mig-configs"].entries() for entry in _named(named)]
    if not found:
        raise known["mig-configs"].error("has no configuration")
    return found


def _root(given: ConfigNode) -> ConfigNode:
    """The configuration itself, which may be the only text of a ConfigMap."""
    parts = {each.key: each for each in given.entries()}
    if "kind" not in parts or parts["kind"].text() != "ConfigMap":
        return given
    texts = list(parts["data"].entries()) if "data" in parts else []
    if len(texts) != 1:
        raise given.error(f"the ConfigMap has {len(texts)} texts, not one")
    # Empty lines before it keep the line numbers those of the file: a text of several lines begins below its key.
    content = "\n" * texts[0].line + texts[0].text()
    return config_node.parse(content, given.path)


def _named(named: ConfigNode) -> Iterator[MigConfigEntry]:
    for item in named.items():
        yield _entry(named.key, item)


def _entry(name: str, item: ConfigNode) -> MigConfigEntry:
    parts = item.sections("device-filter", "devices", "mig-enabled", "mig-devices")
    if "mig-enabled" not in parts:
        raise item.error("has no mig-enabled")
    enabled = parts["mig-enabled"].boolean()
    geometry = _geometry(parts["mig-devices"]) if "mig-devices" in parts else {}
    if geometry and not enabled:
        raise parts["mig-devices"].error("has GPU instances although mig-enabled is false")
    return MigConfigEntry(name, item.line, _filters(parts.get("device-filter")), enabled, geometry)


def _filters(given: ConfigNode | None) -> tuple[str, ...]:
    if given is None or given.empty:
        return ()
    return tuple(each.text() for each in given.items()) if given.is_list() else (given.text(),)


def _geometry(given: ConfigNode) -> Geometry:
    found: dict[str, int] = {}
    for entry in given.entries():
        text = entry.text()
        profile = _PROFILE.fullmatch(entry.key)
        if profile is None:
            raise entry.error("is not a profile such as 3g.40gb")
        if not _COUNT.fullmatch(text):
            raise entry.error(f"{text[:20]!r} is not a number of GPU instances")
        count = int(text)
        if profile[1]:  # compute instances: as many as fit share a GPU instance
            count = -(-count // max(1, int(profile[3]) // max(1, int(profile[1]))))
        found[profile[2]] = found.get(profile[2], 0) + count
    return found


def geometry_of(text: str, path: Path) -> Geometry:
    """Read a geometry of the command line, such as `3g.40gb=2,1g.10gb=1`. Raises ConfigFileError."""
    lines = "\n".join(f"{name}: {count or 1}" for name, _, count in (part.partition("=") for part in text.split(",")))
    try:
        return _geometry(config_node.parse(lines, path))
    except ConfigFileError as error:
        raise ConfigFileError(path, None, error.problem) from None
