"""The last row of `gpu-node`: whether the exporter of the node can be trusted. Its own series are read as they are."""

from dashboards.layout import Row, Sized
from dashboards.panels import graph, table, timeline
from dashboards.queries import CLUSTER
from dashboards.style import Colour, Column, Query, State, Unit

PAGE = f'{CLUSTER}, hostname=~"$node"'
"""For the exporter's series about itself: they are not recorded, and its pages say `hostname`."""

UP = (State(0, "down", Colour.CRITICAL), State(1, "up", Colour.OK))
_REJECTED = f"sum by (hostname, field, reason) (rate(gpugauge_rejected_values_total{{{PAGE}}}[$__rate_interval])) > 0"

ROW = Row(
    "Health of the exporter",
    (
        Sized(
            timeline(
                "What the exporter reads",
                "Whether each source answered: the device library, the kubelet. What a source does not say is absent "
                "above, never zero.",
                Query(f"min by (hostname, source) (gpugauge_source_up{{{PAGE}}})", "{{hostname}} · {{source}}"),
                UP,
            ),
            8,
            7,
        ),
        Sized(
            timeline(
                "Cards that can be read",
                "Down: the card is known and cannot be read, because it was lost, needs a reset or hangs.",
                Query(f"min by (hostname, gpu, UUID) (gpugauge_device_up{{{PAGE}}})", "{{hostname}} · GPU {{gpu}}"),
                UP,
            ),
            8,
            7,
        ),
        Sized(
            table(
                "Problems",
                "What a source has to complain about now. Empty is well, as long as the exporter answers.",
                (
                    Column("hostname", "Node"),
                    Column("source", "Source", width=120),
                    Column("reason", "Problem"),
                ),
                f"max by (hostname, source, reason) (gpugauge_source_problem{{{PAGE}}})",
            ),
            8,
            7,
        ),
        Sized(
            graph(
                "Time per reading",
                "How long each source takes to answer. Near the interval, data grow old: look at the driver.",
                Unit.SECONDS,
                Query(
                    f"max by (hostname, source) (gpugauge_source_read_duration_seconds{{{PAGE}}})",
                    "{{hostname}} · {{source}}",
                ),
            ),
            8,
            7,
        ),
        Sized(
            graph(
                "Rejected values",
                "Values that a library gave and that cannot be true or current, by field and reason. None of them is "
                "shown.",
                Unit.PER_SECOND,
                Query(_REJECTED, "{{field}} · {{reason}}"),
            ),
            8,
            7,
        ),
        Sized(
            table(
                "Versions",
                "Exporter and libraries, and which source is in use. `simulated` never stands for real hardware.",
                (
                    Column("hostname", "Node"),
                    Column("version", "Exporter", width=90),
                    Column("source", "Source", width=100),
                    Column("dcgm_version", "DCGM", width=90),
                    Column("nvml_version", "NVML"),
                ),
                f"max by (hostname, version, source, dcgm_version, nvml_version) (gpugauge_build_info{{{PAGE}}})",
            ),
            8,
            7,
        ),
    ),
)
