"""Alerts on nodes: they stop offering GPUs, reject pods, stay in maintenance, or have GPUs used outside Kubernetes."""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

NOT_REGISTERED = """
max by (cluster, node) (gpugauge_node_device_plugin_registered) == 0
and on (cluster, node)
(
  max by (cluster, node) (gpugauge_node_gpu_schedulable) == 1
  or
  max by (cluster, node) (gpugauge_gpu_pod_info{node!=""})
)
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down|planned"}
"""
"""A node that is cordoned or not ready matters only while pods with GPUs run there."""

UNHEALTHY = """
sum by (cluster, node) (
  max by (cluster, node, resource) (gpugauge_node_gpu_capacity)
  - on (cluster, node, resource)
  max by (cluster, node, resource) (gpugauge_node_gpu_allocatable)
) > 0
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down|planned"}
"""

FEWER_THAN_SEEN = """
(
  max by (cluster, node) (gpugauge_devices_observed{node!=""})
  - on (cluster, node)
  sum by (cluster, node) (max by (cluster, node, resource) (gpugauge_node_gpu_capacity))
)
> 0
unless on (cluster, node)
gpugauge_node_info{sharing=~"time-slicing|mps"}
unless on (cluster, node)
gpugauge_device_info{mig_mode="enabled"}
unless on (cluster, node)
(max by (cluster, node) (gpugauge_node_device_plugin_registered) == 0)
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down|planned"}
"""
"""Neither shared nor MIG-enabled GPUs: of those the node offers another number by design."""

FINISHED = """
count by (cluster, node, namespace, pod) (
  label_replace(
    label_replace(
      group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_info{node!=""}
      )
      and on (cluster, gpu_namespace, gpu_pod)
      gpugauge_gpu_pod_phase{phase=~"Succeeded|Failed"}
      unless on (cluster, gpu_namespace, gpu_pod)
      gpugauge_gpu_pod_phase{phase=~"Running|Pending"},
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""

ADMISSION = """
sum by (cluster, node) (
  max by (cluster, gpu_namespace, node, workload) (gpugauge_pod_admission_failures_total)
  - on (cluster, gpu_namespace, node, workload)
  (
    max by (cluster, gpu_namespace, node, workload) (
      last_over_time(gpugauge_pod_admission_failures_total[30m] offset 1h)
    )
    or on (cluster, gpu_namespace, node, workload)
    0 * max by (cluster, gpu_namespace, node, workload) (gpugauge_pod_admission_failures_total)
  )
) >= 3
"""
"""A series begins with its first rejection, which has no increase; a hole an hour ago is none. One or two happen
when a kubelet restarts."""

OUTSIDE = """
count by (cluster, node) (
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_memory_used_bytes{UUID!="", node!=""}
  ) > 1073741824
  and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_allocated_pods{node!="", adapter=""}) == 0
)
and on (cluster, node)
(
  sum by (cluster, node) (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_allocated_pods{node!="", adapter=""})
  )
  >= on (cluster, node)
  sum by (cluster, node) (max by (cluster, node, resource) (gpugauge_node_gpu_requested))
)
unless on (cluster, node)
max by (cluster, node) (gpugauge_unmatched_device_ids{node!=""}) > 0
"""
"""Devices in use that no pod has. Only where at least as many are allocated as the scheduler counts on the node, and
every id is matched: else the pod is there, and only its allocation is not known."""

FAILING = """
max by (cluster, node) (gpugauge_node_failed_workloads{node!=""}) >= 3
"""

CORDONED = """
sum by (cluster, node) (max by (cluster, node, resource) (gpugauge_node_gpu_free)) > 0
and on (cluster, node)
gpugauge_node_maintenance{reason="cordon"}
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down|planned"}
"""

MIG_STUCK = """
max by (cluster, node) (gpugauge_node_maintenance{reason="mig_reconfig"})
"""


def _alert(name: str, expr: str, notify: Notify, area: Area, for_: str, summary: str, description: str) -> Alert:
    return Alert(
        name,
        expr,
        Severity.WARNING,
        area,
        notify,
        summary=summary,
        description=description,
        for_=for_,
        keep_firing_for="10m",
        family=AlertFamily.REGISTRATION if area is Area.REGISTRATION else AlertFamily.NODE,
        dashboard=DashboardUid.NODE,
    )


GROUP = Group(
    "gpugauge-node-registration",
    (
        _alert(
            "GPUDevicePluginNotRegistered",
            NOT_REGISTERED,
            Notify.TICKET,
            Area.REGISTRATION,
            "15m",
            "Node {{ $labels.node }} has GPUs and offers none.",
            "By its labels node {{ $labels.node }} has GPUs, and the kubelet offers none to pods: the device plugin "
            "has not registered, or has gone.",
        ),
        _alert(
            "GPUNodeDevicesUnhealthy",
            UNHEALTHY,
            Notify.TICKET,
            Area.REGISTRATION,
            "10m",
            "Node {{ $labels.node }} offers {{ $value }} devices fewer than it has.",
            "The device plugin of node {{ $labels.node }} calls {{ $value }} devices unhealthy, or they have gone: "
            "pods cannot be given them.",
        ),
        _alert(
            "GPUNodeCapacityMismatch",
            FEWER_THAN_SEEN,
            Notify.TICKET,
            Area.REGISTRATION,
            "15m",
            "Node {{ $labels.node }} registers {{ $value }} GPUs fewer than its exporter reads.",
            "The exporter of node {{ $labels.node }} reads {{ $value }} GPUs more than the kubelet has as capacity: "
            "the device plugin did not find them when it started.",
        ),
        _alert(
            "GPUAllocatedToFinishedPod",
            FINISHED,
            Notify.DIGEST,
            Area.REGISTRATION,
            "15m",
            "Node {{ $labels.node }} keeps {{ $value }} devices for the finished pod "
            "{{ $labels.namespace }}/{{ $labels.pod }}.",
            "Pod {{ $labels.namespace }}/{{ $labels.pod }} has ended, and the kubelet of node {{ $labels.node }} still "
            "lists {{ $value }} devices for it.",
        ),
        _alert(
            "GPUPodAdmissionFailures",
            ADMISSION,
            Notify.TICKET,
            Area.REGISTRATION,
            "1m",
            "The kubelet of node {{ $labels.node }} rejected {{ $value }} GPU pods within an hour.",
            "The kubelet of node {{ $labels.node }} rejected {{ $value }} GPU pods that the scheduler had bound to it, "
            "within an hour: it cannot give them the devices that it offers.",
        ),
        _alert(
            "GPUMemoryUsedUnallocated",
            OUTSIDE,
            Notify.DIGEST,
            Area.REGISTRATION,
            "30m",
            "{{ $value }} GPUs of node {{ $labels.node }} are in use and allocated to no pod.",
            "{{ $value }} devices of node {{ $labels.node }} have more than 1 GiB of memory in use for 30 minutes, and "
            "no pod has them: a process was left behind, or somebody works outside of Kubernetes.",
        ),
        _alert(
            "GPUNodeWorkloadsFailing",
            FAILING,
            Notify.DIGEST,
            Area.REGISTRATION,
            "5m",
            "{{ $value }} workloads have failed on node {{ $labels.node }} within 7 days.",
            "GPU pods of {{ $value }} workloads ended with an error on node {{ $labels.node }}, or were lost with it, "
            "within 7 days. Programs of different owners seldom fail in one place by chance: the node may be at fault.",
        ),
        _alert(
            "GPUNodeCordonedWithGPUs",
            CORDONED,
            Notify.DIGEST,
            Area.CAPACITY,
            "1d",
            "Node {{ $labels.node }} has been cordoned for a day with {{ $value }} free GPUs.",
            "Node {{ $labels.node }} has been cordoned for a day, and {{ $value }} of its GPUs are free. Nothing says "
            "that work on it is planned.",
        ),
        _alert(
            "GPUMIGReconfigStuck",
            MIG_STUCK,
            Notify.TICKET,
            Area.REGISTRATION,
            "30m",
            "The MIG layout of node {{ $labels.node }} is not done.",
            "For 30 minutes the MIG manager has been changing the MIG layout of node {{ $labels.node }}. Other alerts "
            "on the node are silent meanwhile.",
        ),
    ),
)
