"""docs/audit.md names every event and every key of an audit log, and its examples are lines of one."""

import re
from pathlib import Path
from typing import get_args

from exporter.node.audit.lines import AllocationUsage, AnyLine, MeasuredValue, decode

TEXT = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_]+)`", TEXT))


def test_every_event_and_every_key_is_named():
    types = get_args(AnyLine)
    events = {each.__struct_config__.tag for each in types}
    keys = {key for each in (*types, AllocationUsage, MeasuredValue) for key in each.__struct_fields__}
    assert events | keys | {"event"} <= NAMED


def test_the_examples_are_lines():
    (block,) = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    lines = [decode(line.encode()) for line in block.splitlines()]
    assert None not in lines
    assert [line.allocation for line in lines] == [101, 101]
