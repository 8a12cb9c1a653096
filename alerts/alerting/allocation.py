"""Alerts on GPUs that pods use without an allocation, on containers that restart, and on shared GPUs that are full."""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

USED_WITHOUT_ALLOCATION = """
count by (cluster, node, namespace, pod) (
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, namespace, pod) (
    label_replace(
      label_replace(
        gpugauge_pod_gpu_unallocated_use,
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
"""

CRASH_LOOPING = """
max by (cluster, namespace, workload, workload_type) (
  round(
    max by (cluster, namespace, pod) (increase(kube_pod_container_status_restarts_total[1h]))
    * on (cluster, namespace, pod) group_left (workload, workload_type)
    pod:gpu_workload:info
  )
)
>= on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUWorkloadCrashLooping"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 3
)
"""

CONTENDED = """
max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
  avg_over_time(gpugauge_device_busy_ratio{UUID!="", node!=""}[15m])
)
> on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUSharedDeviceContended"})
  or on (cluster)
  group by (cluster) (cluster:gpus:count) * 0.95
)
and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
(max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_allocated_pods) > 1)
and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
  gpugauge_allocation_info
  and on (cluster, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_info{workload_class="serving"}
)
"""

_POD = "Pod {{ $labels.namespace }}/{{ $labels.pod }}"
_DEVICE = "GPU {{ $labels.UUID }}{{ with $labels.GPU_I_ID }} (GPU instance {{ . }}){{ end }} of node {{ $labels.node }}"
_OWNER = "{{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }}"

GROUP = Group(
    "gpugauge-allocation",
    (
        Alert(
            "GPUUsedWithoutAllocation",
            USED_WITHOUT_ALLOCATION,
            Severity.WARNING,
            Area.REGISTRATION,
            Notify.TICKET,
            summary=f"{_POD} uses GPUs that are not allocated to it.",
            description=(
                f"{_POD} on node {{{{ $labels.node }}}} has had processes on {{{{ $value }}}} devices for 10 minutes "
                "that the kubelet has not given to it. Whoever the devices are allocated to has less of them."
            ),
            for_="10m",
            keep_firing_for="10m",
            family=AlertFamily.WORKLOAD,
            dashboard=DashboardUid.NODE,
        ),
        Alert(
            "GPUWorkloadCrashLooping",
            CRASH_LOOPING,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary=f"Containers of {_OWNER} restart again and again with GPUs allocated.",
            description=(
                f"A container of {_OWNER} restarted {{{{ $value }}}} times within an hour. Its GPUs stay allocated and "
                "do little meanwhile: low utilization has this cause."
            ),
            for_="5m",
            keep_firing_for="15m",
            family=AlertFamily.WORKLOAD,
            dashboard=DashboardUid.WORKLOAD,
        ),
        Alert(
            "GPUSharedDeviceContended",
            CONTENDED,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary=f"{_DEVICE} is full, and shared with a serving pod.",
            description=(
                f"{_DEVICE} was busy {{{{ $value | asPercent }}}} of the last 15 minutes. Several pods share it, a "
                "serving pod among them, whose answers take longer."
            ),
            for_="15m",
            keep_firing_for="15m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.DEVICE,
        ),
    ),
)
