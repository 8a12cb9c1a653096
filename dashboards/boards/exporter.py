"""The Grafana dashboard `gpu-exporter`: whether the exporters, the watcher and the rules can be trusted.

Of exporters it reads what each exposes once. Its rows on the watcher and the rules are in `exporter_rules.py`.
"""

from dashboards import queries as q
from dashboards.boards.exporter_rules import RULES, VERSIONS, WATCHER
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, NODE
from dashboards.states import NONE_OR_CRITICAL, NONE_OR_SOME
from dashboards.style import TABLE_ROWS, Color, Column, Dashboard, Query, Unit

STALE_SECONDS = 120
UP = f'max by (cluster, node) (up{{job="gpugauge-node", {NODE}}})'
OBSERVED = f"max by (cluster, node) (gpugauge_devices_observed{{{NODE}}})"
EXPECTED = f"max by (cluster, node) (gpugauge_devices_expected{{{NODE}}})"
AGE = f"time() - max by (cluster, node) (gpugauge_last_collection_timestamp_seconds{{{NODE}}})"
WITHOUT = f"group by (cluster, node) (gpugauge_node_info{{{NODE}}}) unless on (cluster, node) {OBSERVED}"
DOWN_SOURCES = f"max by (cluster, node, source) (gpugauge_source_up{{{NODE}}}) == 0"

NOW = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "Exporters that answer",
            "Node exporters that answered the last scrape. No data means that Prometheus has none as a scrape target.",
            Unit.COUNT,
            f"sum({UP})",
        ),
        stat(
            "Exporters down",
            "Node exporters that are scrape targets and did not answer: the GPUs of their nodes are missing from every "
            "number.",
            Unit.COUNT,
            f"sum({UP} == bool 0)",
            NONE_OR_CRITICAL,
            link=panel_link("gpu-exporter", "node", panel="Exporters with problems"),
        ),
        stat(
            "Nodes without exporter",
            "Nodes that have GPUs by their labels and whose exporter exposes nothing. No data means that the watcher "
            "does not answer.",
            Unit.COUNT,
            q.count_or_zero(WITHOUT, f"gpugauge_node_info{{{NODE}}}"),
            NONE_OR_SOME,
            link=panel_link("gpu-exporter", "node", panel="Nodes without data of an exporter"),
        ),
        stat(
            "Exporters without GPU",
            "Exporters that answer and observe no GPU at all: their driver or their source does not work.",
            Unit.COUNT,
            f"sum({OBSERVED} == bool 0)",
            NONE_OR_CRITICAL,
            link=panel_link("gpu-exporter", "node", panel="Nodes with fewer GPUs than expected"),
        ),
        stat(
            "Exporters with old data",
            f"Exporters whose data are older than {STALE_SECONDS} seconds: their collection hangs, though they answer.",
            Unit.COUNT,
            f"sum({AGE} > bool {STALE_SECONDS})",
            NONE_OR_SOME,
            link=panel_link("gpu-exporter", "node", panel="Age of the data"),
        ),
        stat(
            "Sources down",
            "Sources that do not answer their exporter: the device library, the kubelet or the API server. Only their "
            "own data are missing.",
            Unit.COUNT,
            q.count_or_zero(DOWN_SOURCES, f"gpugauge_source_up{{{NODE}}}"),
            NONE_OR_SOME,
            link=panel_link("gpu-exporter", "node", panel="Exporters with problems"),
        ),
    ),
)

TRUST = PanelRow(
    "What is known",
    sized(
        6,
        4,
        stat(
            "Activity known",
            "Allocated GPUs and MIG devices whose activity is known, as a share of all allocated ones. Of MIG "
            "devices it needs profiling fields.",
            Unit.RATIO,
            q.share("cluster:gpu_allocated_busy:count", "cluster:gpu_devices_allocated:count"),
        ),
        stat(
            "Allocation known",
            "GPUs and MIG devices of which it is known whether they are allocated, as a share of all. The rest has an "
            "exporter that does not reach its kubelet, or does not ask it.",
            Unit.RATIO,
            f"({q.total('cluster:gpu_devices_allocated:count')} + {q.total('cluster:gpu_devices_unallocated:count')}) "
            f"/ {q.total('cluster:gpu_devices:count')}",
        ),
        stat(
            "Device ids without match",
            "Device ids that kubelets list and that match no device: attribution of these is missing.",
            Unit.COUNT,
            f"sum(max by (cluster, node, resource, reason) (gpugauge_unmatched_device_ids{{{NODE}}})) "
            f"or 0 * count({OBSERVED})",
            NONE_OR_SOME,
        ),
        stat(
            "Counters files rejected",
            "Exporters whose last attempt to read their counters file failed: they go on with the one before.",
            Unit.COUNT,
            q.count_or_zero(
                f"max by (cluster, node) (gpugauge_config_last_reload_successful{{{NODE}}}) == 0",
                f"gpugauge_config_last_reload_successful{{{NODE}}}",
            ),
            NONE_OR_SOME,
        ),
    ),
)

PROBLEMS = PanelRow(
    "Problems",
    (
        SizedPanel(
            table(
                "Exporters with problems",
                "Problems that a source reports while it answers, and sources that do not answer, in which case Up "
                f"is 0. The troubleshooting document has a remedy for each reason. At most {TABLE_ROWS} rows of either "
                "kind.",
                (
                    NODE_COLUMN,
                    CLUSTER_COLUMN,
                    Column("source", "Source", width=130),
                    Column("reason", "Problem"),
                    Column("Value #B", "Up", Unit.COUNT, width=70),
                ),
                f"topk({TABLE_ROWS}, max by (cluster, node, source, reason) (gpugauge_source_problem{{{NODE}}}))",
                f"topk({TABLE_ROWS}, {DOWN_SOURCES})",
            ),
            12,
            8,
        ),
        SizedPanel(
            table(
                "Nodes with fewer GPUs than expected",
                "GPUs that a node should have, by option, by the PCI bus or because they were there before, and those "
                f"that are observed. Empty when none is missing; at most {TABLE_ROWS} rows.",
                (NODE_COLUMN, CLUSTER_COLUMN, count("Value #A", "Expected"), count("Value #B", "Observed")),
                f"topk({TABLE_ROWS}, {EXPECTED} > {OBSERVED})",
                f"topk({TABLE_ROWS}, {OBSERVED} < {EXPECTED})",
                sort="Expected",
            ),
            6,
            8,
        ),
        SizedPanel(
            table(
                "Nodes without data of an exporter",
                "Nodes that have GPUs by their labels and whose exporter exposes nothing: it does not run there, or "
                f"Prometheus does not scrape it. Empty when there are none; at most {TABLE_ROWS} rows.",
                (NODE_COLUMN, CLUSTER_COLUMN),
                f"topk({TABLE_ROWS}, {WITHOUT})",
            ),
            6,
            8,
        ),
        SizedPanel(
            table(
                "Fields without a value",
                "Configured fields that GPUs or MIG devices have no value of, and why: on how many. not_supported "
                f"is no fault of the exporter. At most {TABLE_ROWS} rows.",
                (Column("field", "Field"), Column("reason", "Reason", width=160), count("Value", "Devices")),
                f"topk({TABLE_ROWS}, sum by (field, reason) "
                f"(max by (cluster, node, field, reason) (gpugauge_field_unsupported_devices{{{NODE}}})))",
                sort="Devices",
            ),
            12,
            8,
        ),
        SizedPanel(
            graph(
                "Rejected values, by reason",
                "Values that cannot be true or current, which are not exposed.",
                Unit.PER_SECOND,
                Query(
                    f"sum by (reason) (rate(gpugauge_rejected_values_total{{{NODE}}}[$__rate_interval])) > 0",
                    "{{reason}}",
                ),
            ),
            12,
            8,
        ),
    ),
)

TIME = PanelRow(
    "Collection and scrape",
    sized(
        8,
        8,
        graph(
            "Age of the data",
            "The oldest data of any node exporter, and the median. Usually below the collection interval, 30 s.",
            Unit.SECONDS,
            Query(f"max({AGE})", "oldest", Color.CRITICAL),
            Query(f"quantile(0.5, {AGE})", "median", Color.BUSY),
        ),
        graph(
            "Slowest read, by source",
            "How long the slowest exporter took to read each source. If it comes near the collection interval, look at "
            "the driver of that node.",
            Unit.SECONDS,
            Query(f"max by (source) (gpugauge_source_read_duration_seconds{{{NODE}}})", "{{source}}"),
        ),
        graph(
            "Failed reads, by source and reason",
            "Reads that failed, over all exporters; the data of that source are missing for one collection each.",
            Unit.PER_SECOND,
            Query(
                f"sum by (source, reason) (rate(gpugauge_source_errors_total{{{NODE}}}[$__rate_interval])) > 0",
                "{{source}} · {{reason}}",
            ),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-exporter",
    title="GPU monitoring health",
    description="Whether exporters, the watcher and the rules work, and how much of what they should know they know.",
    tags=("exporter",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to show.", "label_values(cluster:gpus:count, cluster)"),
        variable("node", "Node", "Nodes to show.", f"label_values(node:gpus:count{{{CLUSTER}}}, node)"),
    ),
    rows=(NOW, TRUST, PROBLEMS, TIME, WATCHER, RULES, VERSIONS),
    since="now-3h",
)
