"""Reads the configuration file of dcgm-exporter (`--config-file`): which fields, and how often. Versions 1 and 2.

Keys and values are those of dcgm-exporter 4.8.3 (version 1) and of its main branch of September 2026 (version 2). An
unknown key is an error, as there. Keys for what is not here are accepted, and `warnings` name them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from exporter import regular_file
from exporter.config import MAX_INTERVAL_SECONDS, ConfigFileError
from exporter.config_node import ConfigNode, parse
from exporter.duration import parse_duration
from exporter.node.config_file.content import FieldList, NodeConfigFile
from exporter.node.devices.counters import counters_yaml
from exporter.node.devices.counters.raw_row import shown
from exporter.node.devices.counters.watch_intervals import WatchInterval
from exporter.regular_file import UnreadableFileError

MAX_BYTES = 1 << 20
"""The largest configuration file: as much as a ConfigMap can hold."""
_EVERY_FIELD = ("*",)
"""The patterns of the collection of version 2 that has the interval of all other fields."""


def load(path: Path) -> NodeConfigFile:
    """Read the file. Raises ConfigFileError."""
    try:
        content = regular_file.read(path, MAX_BYTES)
        text = content.decode("utf-8-sig")
    except UnreadableFileError as error:
        raise ConfigFileError(path, None, f"cannot be read: {error}") from None
    except UnicodeDecodeError:
        raise ConfigFileError(path, None, "is not UTF-8 text") from None
    return _config(parse(text, path), hashlib.sha256(content).hexdigest())


def _config(root: ConfigNode, sha256: str) -> NodeConfigFile:
    first = {entry.key: entry for entry in root.entries()}.get("version")
    version = "" if first is None or first.empty else first.text()
    if version not in ("1", "2"):
        raise (first or root).error(f"must be 1 or 2, not {shown(version)}" if first else "the key version is missing")
    sections = root.sections(
        "version", "metrics", "collection" if version == "1" else "collections", "sources", "server"
    )
    warnings: list[str] = []
    counters_file, fields = _metrics(sections["metrics"], sha256, warnings) if "metrics" in sections else (None, None)
    interval, groups = _intervals(sections, warnings)
    for key, known in (("sources", ("dcgm",)), ("server", ("maxConcurrentScrapes",))):
        if key in sections:
            sections[key].sections(*known)
            warnings.append(_ignored(sections[key]))
    return NodeConfigFile(counters_file, fields, interval, groups, tuple(warnings))


def _metrics(section: ConfigNode, sha256: str, warnings: list[str]) -> tuple[Path | None, FieldList | None]:
    keys = section.sections("file", "fields", "enableExporterMetrics")
    if "enableExporterMetrics" in keys:
        keys["enableExporterMetrics"].boolean()
        warnings.append(_ignored(keys["enableExporterMetrics"]))
    given = [keys[key] for key in ("file", "fields") if key in keys and not keys[key].empty]
    if len(given) > 1:
        raise given[1].error("file and fields cannot both be given")
    if not given:
        return None, None
    if given[0].key == "file":
        return Path(given[0].text()), None
    return None, FieldList(str(section.path), tuple(counters_yaml.rows_of(given[0])), sha256)


def _intervals(sections: dict[str, ConfigNode], warnings: list[str]) -> tuple[float | None, tuple[WatchInterval, ...]]:
    if "collections" in sections:
        return _collections(sections["collections"], warnings)
    if "collection" not in sections:
        return None, ()
    keys = sections["collection"].sections("interval", "watchGroups", "retention")
    interval = _seconds(keys["interval"]) if "interval" in keys and not keys["interval"].empty else None
    if "retention" in keys:
        warnings.append(_ignored(keys["retention"]))
    groups = keys["watchGroups"].items() if "watchGroups" in keys else ()
    return interval, _require_unique([(item, _watch_group(item, warnings)) for item in groups])


def _watch_group(item: ConfigNode, warnings: list[str]) -> WatchInterval:
    keys = _required(item, ("name", "interval", "fields"), ("retention",))
    if "retention" in keys:
        warnings.append(_ignored(keys["retention"]))
    return WatchInterval(keys["name"].text(), _seconds(keys["interval"]), _patterns(keys["fields"]), item.place)


def _collections(section: ConfigNode, warnings: list[str]) -> tuple[float | None, tuple[WatchInterval, ...]]:
    groups = _require_unique([(item, _collection(item, warnings)) for item in section.items()])
    every = [group for group in groups if group.patterns == _EVERY_FIELD]
    if len(every) > 1:
        raise section.error(f"{' and '.join(repr(group.name) for group in every)} both include every field")
    return (every[0].seconds if every else None), tuple(group for group in groups if group not in every)


def _collection(item: ConfigNode, warnings: list[str]) -> WatchInterval:
    keys = _required(item, ("name", "every", "metrics"), ("sources",))
    if "sources" in keys:
        warnings.append(_ignored(keys["sources"]))
    include = _required(keys["metrics"], ("include",), ())["include"]
    return WatchInterval(keys["name"].text(), _seconds(keys["every"]), _patterns(include), item.place)


def _required(section: ConfigNode, required: tuple[str, ...], more: tuple[str, ...]) -> dict[str, ConfigNode]:
    keys = section.sections(*required, *more)
    missing = [key for key in required if key not in keys or keys[key].empty]
    if missing:
        raise section.error(f"{' and '.join(missing)} missing")
    return keys


def _patterns(section: ConfigNode) -> tuple[str, ...]:
    patterns = tuple(item.text().strip() for item in section.items())
    if not patterns or "" in patterns:
        raise section.error("must name fields")
    return patterns


def _require_unique(groups: Sequence[tuple[ConfigNode, WatchInterval]]) -> tuple[WatchInterval, ...]:
    names: set[str] = set()
    for item, group in groups:
        if group.name in names:
            raise item.error(f"the name {shown(group.name)} is given twice")
        names.add(group.name)
    return tuple(group for _, group in groups)


def _seconds(entry: ConfigNode) -> float:
    try:
        seconds = parse_duration(entry.text().strip())
    except ValueError as error:
        raise entry.error(str(error)) from None
    milliseconds = round(seconds * 1000, 6)
    if milliseconds < 1 or not milliseconds.is_integer():
        raise entry.error(f"{shown(entry.text())} is not a whole number of milliseconds, at least 1")
    if seconds > MAX_INTERVAL_SECONDS:
        raise entry.error(f"{shown(entry.text())} is more than {MAX_INTERVAL_SECONDS} seconds")
    return milliseconds / 1000


def _ignored(entry: ConfigNode) -> str:
    return f"{entry.place}: {entry.key}: ignored for compatibility"
