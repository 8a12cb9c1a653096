"""Columns and queries of tables with a row for each GPU, which several dashboards have. No I/O, no state."""

from dashboards import queries as q
from dashboards.columns import NODE_COLUMN
from dashboards.links import row_link
from dashboards.queries import GPU, NODE
from dashboards.style import TABLE_ROWS, Color, Column, Word
from dashboards.xids import CRITICAL, WORDS

GPU_LINK = row_link("gpu-device", node="Node", uuid="UUID")
GPU_COLUMNS = (
    NODE_COLUMN,
    Column("gpu", "GPU", width=60),
    Column("UUID", "UUID", link=GPU_LINK, width=330),
)
XID_COLUMN = Column(
    "xid",
    "XID",
    words=tuple(
        Word(code, f"{code} · {words}", Color.CRITICAL if code in CRITICAL else Color.BUSY)
        for code, words in WORDS.items()
    ),
)

_LAST = f"max by ({GPU}, gpu, xid) (gpugauge_xid_last_timestamp_seconds{{{NODE}}})"
XIDS = (
    f"topk({TABLE_ROWS}, {_LAST} * 1000)",
    q.of_first_rows(f"max by ({GPU}, gpu, xid) (gpugauge_xid_errors_total{{{NODE}}}) > 0", f"{GPU}, gpu, xid", _LAST),
)
"""When each XID came last, in milliseconds, and how often since the exporter started."""


def named(values: str, selection: str = NODE) -> str:
    """Add `gpu` to series of GPUs, from the info series."""
    names = f"max by ({GPU}, gpu) ({q.INFO}{{{selection}}})"
    return f"{values} * on ({GPU}) group_left (gpu) {names}"
