"""The last row of the Grafana dashboard `gpu-device`: what the chosen GPUs reported, and the traffic of their links."""

from dashboards import hardware
from dashboards import queries as q
from dashboards.boards.device_tables import XID_COLUMN
from dashboards.columns import count
from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import graph, table
from dashboards.queries import GPU, NODE
from dashboards.states import NO_OR_YES, RECOVERY
from dashboards.style import Column, Query, Unit

_CHOSEN = f'{NODE}, UUID=~"$uuid"'


def _named(values: str) -> str:
    names = f"max by ({GPU}, gpu) ({q.INFO}{{{_CHOSEN}}})"
    return f"{values} * on ({GPU}) group_left (gpu) {names}"


_FIELDS = (
    hardware.remapped(_CHOSEN, corrected=False),
    hardware.remapped(_CHOSEN, corrected=True),
    hardware.remap_failed(_CHOSEN),
    hardware.remap_pending(_CHOSEN),
    hardware.ecc_errors(_CHOSEN),
    hardware.recovery_action(_CHOSEN),
)

ERRORS = PanelRow(
    "Errors and links",
    (
        SizedPanel(
            table(
                "XIDs of the GPU",
                "The last XID of each code, and how often it came since the exporter started. Empty when there was "
                "none.",
                (
                    Column("Value #A", "Last", Unit.AGE, width=140),
                    XID_COLUMN,
                    Column("gpu", "GPU", width=60),
                    count("Value #B", "Count", 80),
                ),
                f"max by ({GPU}, gpu, xid) (gpugauge_xid_last_timestamp_seconds{{{_CHOSEN}}}) * 1000",
                f"max by ({GPU}, gpu, xid) (gpugauge_xid_errors_total{{{_CHOSEN}}}) > 0",
                sort="Last",
            ),
            10,
            8,
        ),
        SizedPanel(
            table(
                "Memory of the GPU",
                "Replaced memory rows, whether a replacement failed or is pending, errors that could not be corrected "
                "since the driver was loaded, and what makes the GPU usable again. Empty cells: the counters file does "
                "not have the field, or the GPU does not.",
                (
                    Column("gpu", "GPU", width=60),
                    count("Value #A", "Rows, uncorrected", 140),
                    count("Value #B", "Rows, corrected", 130),
                    Column("Value #C", "Failed", Unit.COUNT, states=NO_OR_YES, width=80),
                    Column("Value #D", "Pending", Unit.COUNT, states=NO_OR_YES, width=80),
                    count("Value #E", "Errors", 80),
                    Column("Value #F", "Recovery", Unit.COUNT, states=RECOVERY),
                ),
                *(_named(f"({expression})") for expression in _FIELDS),
            ),
            14,
            8,
        ),
        SizedPanel(
            graph(
                "PCIe traffic",
                "Bytes per second sent and received. High with low tensor activity: the work waits for data of the "
                "host. It needs profiling fields.",
                Unit.BYTES_PER_SECOND,
                Query(_named(hardware.pcie_sent(_CHOSEN)), "GPU {{gpu}} sent"),
                Query(_named(hardware.pcie_received(_CHOSEN)), "GPU {{gpu}} received"),
            ),
            12,
            8,
        ),
        SizedPanel(
            graph(
                "NVLink traffic",
                "Bytes per second over all NVLinks, in both directions. No data for GPUs without NVLink.",
                Unit.BYTES_PER_SECOND,
                Query(_named(hardware.nvlink_bytes(_CHOSEN)), "GPU {{gpu}}"),
            ),
            12,
            8,
        ),
    ),
)
