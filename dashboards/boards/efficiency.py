"""The Grafana dashboard `gpu-efficiency`: how much of what was allocated was used, by whom, and what it cost.

Its lower rows, models with prices and workloads in detail, are in `efficiency_lists.py`.
"""

from dashboards import queries as q
from dashboards.boards import efficiency_lists
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, count, share
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, NAMESPACE
from dashboards.states import NONE_OR_IDLE
from dashboards.style import TABLE_ROWS, Color, Column, Dashboard, Query, Unit

_HOURS = f"sum({q.over_range('workload:gpu_hours:sum5m', NAMESPACE)})"
_UNUSED = f"sum({q.over_range('workload:gpu_unused_hours:sum5m', NAMESPACE)})"
NAMESPACES = "Namespaces by GPU-hours that were not used"


def _list(panel: str) -> str:
    return panel_link("gpu-efficiency", "namespace", panel=panel)


SUMS = PanelRow(
    "In the time range",
    sized(
        4,
        4,
        stat(
            "Allocated GPU-hours",
            "Time that GPUs and MIG devices were allocated to workloads, added up; a shared one counts once per pod. "
            "Times in which nothing was recorded count as nothing.",
            Unit.HOURS,
            _HOURS,
            link=_list(NAMESPACES),
        ),
        stat(
            "GPU-hours not used",
            "Of the devices that are not shared, the time in which no engine was active: an hour at 30 % counts as "
            "0.7. What shared devices did is not known per workload.",
            Unit.HOURS,
            _UNUSED,
            link=_list(efficiency_lists.WORKLOADS),
        ),
        stat(
            "Not used",
            "The GPU-hours that were not used as a share of all that were allocated. With shared devices it is too "
            "low, because what they did not use is not known.",
            Unit.RATIO,
            f"{_UNUSED} / {_HOURS}",
            link=_list(NAMESPACES),
        ),
        stat(
            "Idle now",
            q.ALLOCATED_BUT_IDLE + " Only those that one pod has alone.",
            Unit.COUNT,
            f"sum(namespace:gpu_idle_devices:count15m{{{NAMESPACE}}})",
            NONE_OR_IDLE,
            panel_link("gpu-capacity", panel="Idle workloads by resource and model"),
        ),
        stat(
            "Energy",
            "Energy that GPUs drew which one pod has alone. Energy of MIG devices and of shared GPUs is not known per "
            "workload and not in it.",
            Unit.WATT_HOURS,
            f"sum({q.over_range('namespace:gpu_energy_joules:increase5m', NAMESPACE)}) / 3600",
            link=_list(NAMESPACES),
        ),
        stat(
            "Energy of shared GPUs",
            "Energy that MIG-enabled GPUs and GPUs shared by several pods drew while any of them was allocated, in the "
            "chosen clusters.",
            Unit.WATT_HOURS,
            f"sum({q.over_range('cluster:gpu_shared_energy_joules:increase5m', CLUSTER)}) / 3600",
            link=panel_link("gpu-fleet", panel="Power by model"),
        ),
    ),
)

_RANK = q.over_range("workload:gpu_unused_hours:sum5m", NAMESPACE, "cluster", "namespace")
_ALL = q.over_range("workload:gpu_hours:sum5m", NAMESPACE, "cluster", "namespace")

WHO = PanelRow(
    "Who",
    (
        SizedPanel(
            table(
                NAMESPACES,
                "GPU-hours of the time range that the workloads of a namespace had allocated, those that were not "
                "used, energy, and how many devices are idle now. Most unused ones first, at most 100 rows. Ask the "
                "owners of the first few; open a namespace for its workloads.",
                (
                    NAMESPACE_COLUMN,
                    CLUSTER_COLUMN,
                    Column("Value #A", "Not used", Unit.HOURS, width=100),
                    Column("Value #B", "Allocated", Unit.HOURS, width=100),
                    share("Value #C", "Share not used"),
                    Column("Value #D", "Energy", Unit.WATT_HOURS, width=100),
                    count("Value #E", "Idle now"),
                ),
                f"topk({TABLE_ROWS}, {_RANK})",
                *(
                    q.of_first_rows(each, "cluster, namespace", _RANK)
                    for each in (
                        _ALL,
                        f"{_RANK} / {_ALL}",
                        f"{q.over_range('namespace:gpu_energy_joules:increase5m', NAMESPACE)} / 3600",
                        f"namespace:gpu_idle_devices:count15m{{{NAMESPACE}}}",
                    )
                ),
                sort="Not used",
            ),
            12,
            9,
        ),
        SizedPanel(
            graph(
                "Allocated, busy and a week ago",
                "Allocated GPUs and MIG devices of the chosen namespaces, the sum of the activity of those that are "
                "not shared, and both seven days earlier, dashed. A growing gap means falling utilization.",
                Unit.COUNT,
                Query(f"sum(namespace:gpu_devices:sum{{{NAMESPACE}}})", "allocated", Color.IDLE),
                Query(f"sum(namespace:gpu_busy:sum{{{NAMESPACE}}})", "busy", Color.BUSY),
                Query(
                    f"sum(namespace:gpu_devices:sum{{{NAMESPACE}}} offset 1w)",
                    "allocated, a week ago",
                    Color.IDLE,
                    dashed=True,
                ),
                Query(
                    f"sum(namespace:gpu_busy:sum{{{NAMESPACE}}} offset 1w)", "busy, a week ago", Color.BUSY, dashed=True
                ),
            ),
            12,
            9,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-efficiency",
    title="GPU efficiency",
    description=(
        "How many of the allocated GPU-hours were used, which namespaces and workloads did not use theirs, what that "
        "cost, and which exemptions are in force."
    ),
    tags=("efficiency",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to count.", "label_values(cluster:gpus:count, cluster)"),
        variable(
            "namespace",
            "Namespace",
            "Namespaces with GPU pods.",
            f"label_values(namespace:gpu_pods:count{{{CLUSTER}}}, namespace)",
        ),
    ),
    rows=(SUMS, WHO, *efficiency_lists.ROWS),
    since="now-24h",
    refresh="",
)
