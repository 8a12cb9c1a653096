"""The adapter for kube-state-metrics: start, phase, owner and waiting of GPU pods that no cluster watcher exposes.

Which pods have GPUs follows from their allocations, so that a cluster's other pods cost no series. What is recorded
here has the label `adapter`. The workload class follows from the kind of the owner, as the watcher has it.
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

_ALLOCATED = """
max by (cluster, node, gpu_namespace, gpu_pod) (
  gpugauge_allocation_info
  unless on (cluster, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_info{adapter=""}
)
"""

_PENDING = """
label_replace(
  label_replace(
    max by (cluster, namespace, pod) (kube_pod_status_phase{phase="Pending"} == 1)
    and on (cluster, namespace, pod)
    (
      {
        __name__=~"kube_pod_container_resource_requests|kube_pod_init_container_resource_requests",
        resource=~"nvidia_com_(gpu.*|mig_.+)|amd_com_gpu"
      }
      > 0
    )
    unless on (cluster, namespace, pod)
    (kube_pod_status_reason{reason="SchedulingGated"} == 1)
    unless on (cluster, namespace, pod)
    kube_pod_deletion_timestamp
    unless on (cluster)
    last_over_time(gpugauge_pending_workloads_untracked[30m]),
    "gpu_namespace", "$1", "namespace", "(.*)"
  ),
  "gpu_pod", "$1", "pod", "(.*)"
)
"""
"""GPU pods that are pending, of clusters without a watcher: whatever a pod waits for, and so one that is bound."""


def _with_owner(pods: str) -> str:
    """Give the workload, its type and its class to pods, which have the labels gpu_namespace and gpu_pod.

    A Deployment names its ReplicaSets and a CronJob its Jobs after itself. A pod without a controller is its own
    workload.
    """
    return """
max by (cluster, node, gpu_namespace, gpu_pod) (PODS)
* on (cluster, gpu_namespace, gpu_pod) group_left (workload, workload_type, workload_class)
topk by (cluster, gpu_namespace, gpu_pod) (1,
  label_replace(label_replace(label_replace(
    label_replace(label_replace(label_replace(label_replace(label_replace(label_replace(label_replace(
      label_replace(label_replace(label_replace(label_replace(
        label_replace(label_replace(
          label_join(
            group by (cluster, namespace, pod, owner_kind, owner_name) (
              kube_pod_owner{owner_is_controller!="false"}
              and on (cluster, namespace, pod)
              label_replace(
                label_replace(PODS, "namespace", "$1", "gpu_namespace", "(.*)"),
                "pod", "$1", "gpu_pod", "(.*)"
              )
            ),
            "owner", "/", "owner_kind", "owner_name", "pod"
          ),
        "gpu_namespace", "$1", "namespace", "(.*)"),
        "gpu_pod", "$1", "pod", "(.*)"),
      "workload", "$1", "owner_name", "(.*)"),
      "workload", "$1", "owner", "ReplicaSet/(.+)-[a-z0-9]+/.*"),
      "workload", "$1", "owner", "Job/(.+)-[0-9]{8,9}/.*"),
      "workload", "$1", "owner", "(?:|Node|<none>)/[^/]*/(.+)"),
    "workload_type", "$1", "owner_kind", "(.*)"),
    "workload_type", "deployment", "owner_kind", "ReplicaSet"),
    "workload_type", "statefulset", "owner_kind", "StatefulSet"),
    "workload_type", "daemonset", "owner_kind", "DaemonSet"),
    "workload_type", "job", "owner_kind", "Job"),
    "workload_type", "cronjob", "owner", "Job/.+-[0-9]{8,9}/.*"),
    "workload_type", "pod", "owner_kind", "|Node|<none>"),
  "workload_class", "training", "", ""),
  "workload_class", "serving", "workload_type", "deployment|statefulset|LeaderWorkerSet|InferenceService|RayService"),
  "workload_class", "interactive", "workload_type", "Notebook")
)
""".replace("PODS", pods)


_SINCE = """
max by (cluster, gpu_namespace, gpu_pod, workload, workload_type) (
  label_replace(
    label_replace(
      max by (cluster, namespace, pod) (kube_pod_created),
      "gpu_namespace", "$1", "namespace", "(.*)"
    ),
    "gpu_pod", "$1", "pod", "(.*)"
  )
  * on (cluster, gpu_namespace, gpu_pod) group_left (workload, workload_type)
  (
    max by (cluster, gpu_namespace, gpu_pod, workload, workload_type) (
      gpugauge_gpu_pod_info{adapter="kube-state-metrics", node=""}
    )
    or on (cluster, gpu_namespace, gpu_pod)
    label_replace(
      label_replace(
        PENDING,
        "workload", "$1", "pod", "(.*)"
      ),
      "workload_type", "pod", "", ""
    )
  )
)
""".replace("PENDING", _PENDING)

_REASON = """
label_replace(
  gpugauge_pending_pod_since_timestamp_seconds{adapter="kube-state-metrics"} * 0 + 1
  and on (cluster, gpu_namespace, gpu_pod)
  label_replace(
    label_replace(
      kube_pod_status_scheduled{condition="true"} == 1,
      "gpu_namespace", "$1", "namespace", "(.*)"
    ),
    "gpu_pod", "$1", "pod", "(.*)"
  ),
  "reason", "starting", "", ""
)
or on (cluster, gpu_namespace, gpu_pod)
label_replace(
  gpugauge_pending_pod_since_timestamp_seconds{adapter="kube-state-metrics"} * 0 + 1
  and on (cluster, gpu_namespace, gpu_pod)
  label_replace(
    label_replace(
      kube_pod_status_unschedulable == 1,
      "gpu_namespace", "$1", "namespace", "(.*)"
    ),
    "gpu_pod", "$1", "pod", "(.*)"
  ),
  "reason", "other", "", ""
)
or on (cluster, gpu_namespace, gpu_pod)
label_replace(
  gpugauge_pending_pod_since_timestamp_seconds{adapter="kube-state-metrics"} * 0 + 1,
  "reason", "not_tried", "", ""
)
"""
"""kube-state-metrics does not know why a pod is pending: bound, rejected by the scheduler, or not tried yet."""

GROUP = Group(
    "gpugauge-kube-state-metrics",
    (
        Recording("gpugauge_gpu_pod_start_timestamp_seconds", _START, (("adapter", ADAPTER),)),
        Recording(
            "gpugauge_gpu_pod_info",
            f"{_with_owner(_ALLOCATED)} or {_with_owner(_PENDING)}",
            (("adapter", ADAPTER),),
        ),
        Recording("gpugauge_pending_pod_since_timestamp_seconds", _SINCE, (("adapter", ADAPTER),)),
        Recording("gpugauge_pending_pod_reason", _REASON, (("adapter", ADAPTER),)),
        Recording("gpugauge_gpu_pod_phase", _RUNNING, (("adapter", ADAPTER),)),
    ),
)
