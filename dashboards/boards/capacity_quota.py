"""Lower rows of the Grafana dashboard `gpu-capacity`: quotas, work that queues hold, and the trend."""

from dashboards import queries as q
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, RESOURCE_COLUMN, count, share
from dashboards.layout import PanelRow, SizedPanel
from dashboards.links import panel_link
from dashboards.panels import bars, graph, stat, table
from dashboards.queries import CLUSTER
from dashboards.style import Color, Query, Unit

_QUOTA = f'{CLUSTER}, resource=~"$resource"'
_QUOTA_RANK = f"""
max by (cluster, gpu_namespace, resource) (gpugauge_quota_used{{{_QUOTA}}})
/ max by (cluster, gpu_namespace, resource) (gpugauge_quota_hard{{{_QUOTA}}} > 0)
"""
_QUOTA_QUERIES = (
    f"max by (cluster, gpu_namespace, resource) (gpugauge_quota_used{{{_QUOTA}}})",
    f"max by (cluster, gpu_namespace, resource) (gpugauge_quota_hard{{{_QUOTA}}})",
    _QUOTA_RANK,
)

QUOTA = PanelRow(
    "Quota and queues",
    (
        SizedPanel(
            table(
                "Quota by namespace",
                "GPUs that the pods of a namespace request, of those that its quota allows. From 90 % on, the next "
                "pod may be refused. Nearest to the limit first, at most 100 rows; empty where no namespace has a "
                "quota.",
                (
                    NAMESPACE_COLUMN,
                    CLUSTER_COLUMN,
                    RESOURCE_COLUMN,
                    count("Value #A", "Used", 70),
                    count("Value #B", "Quota", 70),
                    share("Value #C", "Share"),
                ),
                *(
                    f"label_replace({q.of_first_rows(each, 'cluster, gpu_namespace, resource', _QUOTA_RANK)}, "
                    f'"namespace", "$1", "gpu_namespace", "(.*)")'
                    for each in _QUOTA_QUERIES
                ),
                sort="Share",
            ),
            12,
            8,
        ),
        SizedPanel(
            bars(
                "Work without pods, by queue",
                "GPUs that work asks for which has no pods yet, or too few: held by a queue such as Kueue, or refused "
                "by a quota. The 20 largest. No data: there is none, or no such objects are watched.",
                Unit.COUNT,
                Query(
                    f"""
                    sort_desc(topk(20, sum by (queue, reason) (
                      gpugauge_pending_workload_devices{{{CLUSTER}, resource=~"$resource"}}
                    )))
                    """,
                    "{{queue}} · {{reason}}",
                ),
            ),
            12,
            8,
        ),
    ),
)

FUTURE = PanelRow(
    "Trend",
    (
        SizedPanel(
            graph(
                "Allocated GPUs and all GPUs",
                "GPUs that are allocated as a whole or in part, and all GPUs that exporters expose.",
                Unit.COUNT,
                Query(q.total("cluster:gpus:count"), "all", Color.OK, dashed=True),
                Query(q.total("cluster:gpus_allocated:count"), "allocated", Color.BUSY),
            ),
            18,
            8,
        ),
        SizedPanel(
            stat(
                "Allocated GPUs in 7 days, if it goes on",
                "What a straight line through the allocated GPUs of the last 7 days reaches in 7 days: a projection, "
                "not a plan. With less history it goes through what there is.",
                Unit.COUNT,
                f"clamp_min(sum(predict_linear(cluster:gpus_allocated:count{{{CLUSTER}}}[7d], 604800)), 0)",
                link=panel_link("gpu-fleet"),
            ),
            6,
            8,
        ),
    ),
    collapsed=True,
)

ROWS = (QUOTA, FUTURE)
