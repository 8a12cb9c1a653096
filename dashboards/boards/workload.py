"""The Grafana dashboard `gpu-workload`: whether the pods of a workload use their GPUs, and which of them differ.

Its lower rows, devices of the pods and what happened to them, are in `workload_devices.py`.
"""

from dashboards import queries as q
from dashboards.boards import workload_devices
from dashboards.boards.workload_devices import ALLOCATED
from dashboards.layout import PanelRow, sized
from dashboards.links import panel_link
from dashboards.panels import bars, datasource, graph, stat, variable
from dashboards.queries import NAMESPACE
from dashboards.states import NONE_OR_IDLE, NONE_OR_SOME, VALUE_OR_CAUSE
from dashboards.style import Color, Dashboard, Query, Unit

PODS = f'{NAMESPACE}, pod=~"$pod"'
"""For recorded series of pods."""
WORKLOAD = f'{NAMESPACE}, workload=~"$workload"'
BUSY = f"avg_over_time(pod:gpu_busy:ratio{{{PODS}}}[15m])"
_DEVICES = f"pod:gpu_devices:count{{{PODS}}}"
_THRESHOLD = f"pod:gpu_low_utilization_threshold:ratio{{{PODS}}}"
SHARED = f'gpugauge_allocation_info{{{ALLOCATED}, sharing!~"exclusive|"}}'

VERDICT = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "Busy, 15 minutes",
            "Mean activity of the GPUs and MIG devices of the chosen pods over 15 minutes. In words where it is not "
            "known and why: devices shared with other pods, a field that the GPU does not support, or a source that "
            "does not answer. No data: nothing is allocated to the pods.",
            Unit.RATIO,
            q.value_or_cause(
                f"sum({BUSY} * on ({q.POD}) {_DEVICES}) / sum({_DEVICES} and on ({q.POD}) {BUSY})",
                shared=SHARED,
                broken=q.SOURCE_DOWN,
                unsupported=q.unsupported("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
            ),
            VALUE_OR_CAUSE,
        ),
        stat(
            "Below threshold",
            "Pods whose utilization of 15 minutes is below the threshold of their workload class or their override; "
            "those that are starting or exempt too. No data: no pod has a threshold, as with serving and interactive "
            "workloads.",
            Unit.COUNT,
            f"sum({BUSY} < bool on ({q.POD}) {_THRESHOLD})",
            NONE_OR_SOME,
            panel_link("gpu-fleet", panel="Low-utilization pods"),
        ),
        stat(
            "Idle GPUs",
            q.ALLOCATED_BUT_IDLE,
            Unit.COUNT,
            f"sum(pod:gpu_idle_devices:count15m{{{PODS}}}) or 0 * count({BUSY})",
            NONE_OR_IDLE,
        ),
        stat(
            "Tensor activity",
            "Mean share of time in which tensor cores were active, over the devices of the chosen pods; that of a "
            "shared device belongs to all of its pods.",
            Unit.RATIO,
            q.value_or_cause(
                f"avg({workload_devices.of_pods('gpugauge_device_tensor_active_ratio')})",
                broken=q.SOURCE_DOWN,
                unsupported=q.unsupported("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
            ),
            VALUE_OR_CAUSE,
        ),
        stat(
            "GPUs",
            "GPUs and MIG devices that are allocated to the chosen pods; a shared one counts once per pod.",
            Unit.COUNT,
            f"sum({_DEVICES})",
            link=panel_link("gpu-workload", "namespace", "workload", "pod", panel=workload_devices.PLACES),
        ),
        stat(
            "Pending pods",
            "Pods of the workload that could be scheduled and do not run: a gang waits for all of its pods.",
            Unit.COUNT,
            f"sum(workload:gpu_pending_pods:count{{{WORKLOAD}}}) or {q.WATCHER_UP}",
            NONE_OR_SOME,
            panel_link("gpu-capacity", panel="Pending workloads by resource and model"),
        ),
    ),
)

USE = PanelRow(
    "Utilization",
    sized(
        12,
        8,
        graph(
            "Utilization per pod",
            "Mean activity of the GPUs of each pod, and the threshold below which the alert on low utilization looks "
            "at it. Pods of shared devices are missing: their activity is not known.",
            Unit.RATIO,
            Query(f"pod:gpu_busy:ratio{{{PODS}}}", "{{pod}}"),
            Query(f"max({_THRESHOLD})", "threshold", Color.CRITICAL, dashed=True),
        ),
        graph(
            "Slowest, mean and busiest pod",
            "The ranks of one job should be equally busy. A slowest pod far below the mean makes the others wait; all "
            "three low together hint at data loading or communication.",
            Unit.RATIO,
            Query(f"max(pod:gpu_busy:ratio{{{PODS}}})", "busiest", Color.OK),
            Query(f"avg(pod:gpu_busy:ratio{{{PODS}}})", "mean", Color.BUSY),
            Query(f"min(pod:gpu_busy:ratio{{{PODS}}})", "slowest", Color.CRITICAL),
        ),
        bars(
            "Pods side by side",
            "Utilization of 15 minutes of each pod, least busy first: a straggler stands out. At most 50 pods.",
            Unit.RATIO,
            Query(f"sort(bottomk(50, {BUSY}))", "{{pod}}"),
        ),
        graph(
            "Tensor activity per pod",
            "Mean share of time in which tensor cores of the devices of each pod were active. Near zero on a busy "
            "pod: its work uses no tensor cores, or waits for data.",
            Unit.RATIO,
            Query(
                f"avg by (gpu_pod) ({workload_devices.of_pods('gpugauge_device_tensor_active_ratio')})", "{{gpu_pod}}"
            ),
        ),
        graph(
            "Memory bandwidth per pod",
            "Mean share of time in which the memory interface of the devices of each pod was busy. High with low "
            "tensor activity: memory is the limit.",
            Unit.RATIO,
            Query(f"avg by (gpu_pod) ({workload_devices.of_pods('gpugauge_device_dram_active_ratio')})", "{{gpu_pod}}"),
        ),
        graph(
            "Framebuffer used per pod",
            "Framebuffer in use on the devices of each pod, and what pods can use of the devices altogether. On a "
            "shared device it is that of all of its pods.",
            Unit.BYTES,
            Query(f"sum by (gpu_pod) ({workload_devices.of_pods('gpugauge_device_memory_used_bytes')})", "{{gpu_pod}}"),
            Query(
                f"max(sum by (gpu_pod) ({workload_devices.of_pods('gpugauge_device_memory_total_bytes')}))",
                "most that one pod can use",
                Color.WARNING,
                dashed=True,
            ),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-workload",
    title="GPU workload and its pods",
    description=(
        "Whether the pods of a workload use their GPUs, which of them differ from the others, where they run, and what "
        "happened to their GPUs."
    ),
    tags=("workload",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to choose from.", "label_values(cluster:gpus:count, cluster)"),
        variable(
            "namespace",
            "Namespace",
            "Namespaces with GPU pods, running or pending.",
            f"label_values({q.WITH_NAMESPACES}, namespace)",
            all=False,
        ),
        variable(
            "workload",
            "Workload",
            "Workloads of the namespace.",
            f"label_values(pod:gpu_workload:info{{{NAMESPACE}}}, workload)",
        ),
        variable(
            "pod",
            "Pod",
            "Pods of the workload that have or had GPUs in the time range.",
            f"label_values(pod:gpu_workload:info{{{WORKLOAD}}}, pod)",
            listed=True,
        ),
        variable(
            "node",
            "Node",
            "Nodes of the chosen pods; all of them are chosen.",
            f"label_values(pod:gpu_workload:info{{{PODS}}}, node)",
            listed=True,
            hidden=True,
        ),
    ),
    rows=(VERDICT, USE, *workload_devices.ROWS),
    since="now-3h",
)
