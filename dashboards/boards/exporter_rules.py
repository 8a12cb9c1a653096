"""The lower rows of the Grafana dashboard `gpu-exporter`: the watcher, the rules in Prometheus, and versions.

The series of Prometheus itself are there where it scrapes itself, as in most installations.
"""

from dashboards.columns import CLUSTER_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import graph, stat, table
from dashboards.queries import CLUSTER, NODE
from dashboards.states import NONE_OR_SOME
from dashboards.style import Color, Column, Query, Unit, ValueState

_GROUP = f'rule_group=~".*gpugauge.*", {CLUSTER}'
_SYNC = f"time() - max by (cluster, object) (gpugauge_watch_last_sync_timestamp_seconds{{{CLUSTER}}})"
_BUILD = f'gpugauge_build_info{{{NODE}, source!=""}}'

WATCHER = PanelRow(
    "Watcher",
    (
        *sized(
            12,
            3,
            stat(
                "Oldest view",
                "How long ago the API server last confirmed what the watcher knows of any kind of object. No data "
                "means that the watcher does not answer.",
                Unit.SECONDS,
                f"max({_SYNC})",
                (ValueState(0, "", Color.OK), ValueState(300, "", Color.WARNING)),
            ),
            stat(
                "Workloads not tracked",
                "Pending workloads of which no pod has series of its own, because there are too many.",
                Unit.COUNT,
                f"sum(max by (cluster) (gpugauge_pending_workloads_untracked{{{CLUSTER}}}))",
                NONE_OR_SOME,
            ),
        ),
        SizedPanel(
            graph(
                "Age of the watcher's view",
                "How long ago the API server last confirmed what is known of each kind of object.",
                Unit.SECONDS,
                Query(f"max by (object) ({_SYNC})", "{{object}}"),
            ),
            12,
            8,
        ),
        SizedPanel(
            table(
                "Watches that failed or are off",
                "Failures within an hour after which objects had to be listed again, and optional objects that are not "
                "read, with the reason. Empty when there are none.",
                (
                    Column("object", "Objects", width=170),
                    Column("reason", "Reason"),
                    CLUSTER_COLUMN,
                    count("Value #A", "Failures"),
                    count("Value #B", "Off", 60),
                ),
                "topk(50, sum by (cluster, object, reason) "
                f"(increase(gpugauge_watch_restarts_total{{{CLUSTER}}}[1h])) > 0)",
                f"topk(50, max by (cluster, object, reason) (gpugauge_watch_off{{{CLUSTER}}}))",
                sort="Failures",
            ),
            12,
            8,
        ),
    ),
)

RULES = PanelRow(
    "Rules",
    sized(
        8,
        8,
        graph(
            "Evaluation time of rule groups",
            "How long Prometheus takes for each group. Above the interval, 1 m, evaluations are left out.",
            Unit.SECONDS,
            Query(
                f"max by (rule_group) (label_replace(prometheus_rule_group_last_duration_seconds{{{_GROUP}}}, "
                '"rule_group", "$1", "rule_group", ".*;(.*)"))',
                "{{rule_group}}",
            ),
        ),
        graph(
            "Failed and left out evaluations",
            "Evaluations of our rules that failed, or were left out because the one before took too long. Either makes "
            "numbers and alerts disappear. No data where Prometheus does not scrape itself.",
            Unit.PER_SECOND,
            Query(
                f"sum(rate(prometheus_rule_evaluation_failures_total{{{_GROUP}}}[$__rate_interval]))",
                "failed",
                Color.CRITICAL,
            ),
            Query(
                f"sum(rate(prometheus_rule_group_iterations_missed_total{{{_GROUP}}}[$__rate_interval]))",
                "left out",
                Color.WARNING,
            ),
        ),
        graph(
            "Samples per scrape, by job",
            "Samples that the last scrape of all targets of a job gave. A sudden fall means that data are missing.",
            Unit.COUNT,
            Query(f'sum by (job) (scrape_samples_scraped{{job=~"gpugauge-.*", {CLUSTER}}})', "{{job}}"),
        ),
    ),
)

VERSIONS = PanelRow(
    "Versions",
    (
        SizedPanel(
            table(
                "Exporters by version",
                "How many exporters run which version with which libraries. `simulated` means that there is no real "
                "hardware.",
                (
                    Column("version", "Exporter"),
                    Column("source", "Source"),
                    Column("dcgm_version", "DCGM"),
                    Column("nvml_version", "NVML"),
                    Column("contract", "Contract"),
                    count("Value", "Exporters"),
                ),
                "topk(50, count by (version, source, dcgm_version, nvml_version, contract) "
                f"(max by (cluster, node, version, source, dcgm_version, nvml_version, contract) ({_BUILD})))",
                sort="Exporters",
            ),
            12,
            6,
        ),
        SizedPanel(
            table(
                "GPUs by driver",
                "How many GPUs run with which driver. More than one version is usual during an upgrade, and a trap "
                "afterwards.",
                (Column("driver_version", "Driver"), Column("model", "Model"), count("Value", "GPUs")),
                "topk(50, count by (driver_version, model) "
                "(group by (cluster, node, UUID, driver_version, model) "
                f'(gpugauge_device_info{{{NODE}, GPU_I_ID=""}})))',
                sort="GPUs",
            ),
            12,
            6,
        ),
    ),
)
