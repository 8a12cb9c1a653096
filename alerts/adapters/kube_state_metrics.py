"""The adapter for kube-state-metrics: start and phase of GPU pods that no cluster watcher exposes, under its names.

Which pods have GPUs follows from their allocations, so that a cluster's other pods cost no series. What is recorded
here has the label `adapter`. Class and owner of a pod are not known: it has low utilization only when it is idle.
"""

from alerts.rules.rule import Group, Recording

ADAPTER = "kube-state-metrics"

_START = """
label_replace(
  label_replace(
    max by (cluster, namespace, pod) (kube_pod_start_time),
    "gpu_namespace", "$1", "namespace", "(.*)"
  ),
  "gpu_pod", "$1", "pod", "(.*)"
)
and on (cluster, gpu_namespace, gpu_pod) gpugauge_allocation_info
unless on (cluster, gpu_namespace, gpu_pod) gpugauge_gpu_pod_start_timestamp_seconds{adapter=""}
"""

_RUNNING = """
label_replace(
  label_replace(
    max by (cluster, namespace, pod, phase) (kube_pod_status_phase{phase="Running"} == 1),
    "gpu_namespace", "$1", "namespace", "(.*)"
  ),
  "gpu_pod", "$1", "pod", "(.*)"
)
and on (cluster, gpu_namespace, gpu_pod) gpugauge_allocation_info
unless on (cluster, gpu_namespace, gpu_pod) gpugauge_gpu_pod_phase{adapter=""}
"""

GROUP = Group(
    "gpugauge-kube-state-metrics",
    (
        Recording("gpugauge_gpu_pod_start_timestamp_seconds", _START, (("adapter", ADAPTER),)),
        Recording("gpugauge_gpu_pod_phase", _RUNNING, (("adapter", ADAPTER),)),
    ),
)
