"""Reads the rows of a counters file in YAML, the list `fields` of dcgm-exporter's configuration file. No I/O, no state.

    fields:
      - name: DCGM_FI_DEV_GPU_TEMP
        prometheusType: gauge
        help: Temperature of the GPU, in degrees Celsius.

The list may also stand alone, without the key. A mistake in one item costs that item.
"""

from collections.abc import Iterator
from pathlib import Path

from exporter.config import ConfigFileError
from exporter.config_node import ConfigNode, parse
from exporter.node.devices.counters.raw_row import RawRow, shown

KEYS = ("name", "prometheusType", "help")


def rows(text: str, file: str) -> list[RawRow]:
    """The rows of a text. Raises ConfigFileError where it has no list of fields."""
    root = parse(text, Path(file))
    if root.is_list():
        return list(rows_of(root))
    section = root.sections("fields").get("fields")
    return [] if section is None else list(rows_of(section))


def rows_of(fields: ConfigNode) -> Iterator[RawRow]:
    """The rows of a list of fields. Raises ConfigFileError where it is no list."""
    for item in fields.items():
        try:
            yield _row(item)
        except ConfigFileError as error:
            yield RawRow(error.line or item.line, problem=error.problem)


def _row(item: ConfigNode) -> RawRow:
    entries = item.sections(*KEYS)
    missing = [key for key in KEYS[:2] if key not in entries or entries[key].empty]
    if missing:
        name = entries["name"].text() if "name" not in missing else ""
        raise item.error(f"{' and '.join(missing)} missing{f' of {shown(name)}' if name else ''}")
    texts = {key: entry.text().strip() for key, entry in entries.items() if not entry.empty}
    return RawRow(item.line, texts["name"], texts["prometheusType"], texts.get("help", ""))
