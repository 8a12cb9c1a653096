"""The last row of the Grafana dashboard `gpu-node`: the health of the node's exporter.

From the exporter metrics (metrics about the exporter itself) as they are exposed; the rules record none of them.
"""

from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import graph, table, timeline
from dashboards.queries import CLUSTER
from dashboards.states import UP
from dashboards.style import Column, Query, Unit

EXPORTER = f'{CLUSTER}, node=~"$node"'
"""Selects exporter metrics of the chosen nodes."""

_REJECTED = f"sum by (node, field, reason) (rate(gpugauge_rejected_values_total{{{EXPORTER}}}[$__rate_interval])) > 0"

ROW = PanelRow(
    "Health of the exporter",
    (
        SizedPanel(
            timeline(
                "Sources",
                "Whether each source answered: the device library, the kubelet. Values of a source that is down are "
                "absent above, never zero.",
                Query(f"min by (node, source) (gpugauge_source_up{{{EXPORTER}}})", "{{node}} · {{source}}"),
                UP,
            ),
            8,
            7,
        ),
        SizedPanel(
            timeline(
                "GPUs that can be read",
                "Down: the GPU is known and cannot be read, because it was lost, requires a reset or hangs.",
                Query(f"min by (node, gpu, UUID) (gpugauge_device_up{{{EXPORTER}}})", "{{node}} · GPU {{gpu}}"),
                UP,
            ),
            8,
            7,
        ),
        SizedPanel(
            table(
                "Problems",
                "Problems that a source reports now, while it still answers. Empty when there are none.",
                (
                    Column("node", "Node"),
                    Column("source", "Source", width=120),
                    Column("reason", "Problem"),
                ),
                f"max by (node, source, reason) (gpugauge_source_problem{{{EXPORTER}}})",
            ),
            8,
            7,
        ),
        SizedPanel(
            graph(
                "Read duration per source",
                "How long a read of each source takes. If it comes near the collection interval, check the driver.",
                Unit.SECONDS,
                Query(
                    f"max by (node, source) (gpugauge_source_read_duration_seconds{{{EXPORTER}}})",
                    "{{node}} · {{source}}",
                ),
            ),
            8,
            7,
        ),
        SizedPanel(
            graph(
                "Rejected values",
                "Values of the device library that cannot be true or current, by field and reason. They are not "
                "exposed.",
                Unit.PER_SECOND,
                Query(_REJECTED, "{{field}} · {{reason}}"),
            ),
            8,
            7,
        ),
        SizedPanel(
            table(
                "Versions",
                "Versions of the exporter and the libraries, and the source in use. `simulated` means that there is no "
                "real hardware.",
                (
                    Column("node", "Node"),
                    Column("version", "Exporter", width=90),
                    Column("source", "Source", width=100),
                    Column("dcgm_version", "DCGM", width=90),
                    Column("nvml_version", "NVML"),
                ),
                f"max by (node, version, source, dcgm_version, nvml_version) (gpugauge_build_info{{{EXPORTER}}})",
            ),
            8,
            7,
        ),
    ),
)
