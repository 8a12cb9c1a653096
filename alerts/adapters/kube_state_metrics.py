"""The adapter for kube-state-metrics: start, phase and owner of GPU pods that no cluster watcher exposes, by its names.

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

_OWNER = """
max by (cluster, node, gpu_namespace, gpu_pod) (
  gpugauge_allocation_info
  unless on (cluster, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_info{adapter=""}
)
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
                label_replace(
                  gpugauge_allocation_info
                  unless on (cluster, gpu_namespace, gpu_pod)
                  gpugauge_gpu_pod_info{adapter=""},
                  "namespace", "$1", "gpu_namespace", "(.*)"
                ),
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
"""
"""A Deployment names its ReplicaSets and a CronJob its Jobs after itself. A pod without a controller is its own
workload. Pods that a watcher exposes are left out first, so that the rest costs nothing where there is one."""

GROUP = Group(
    "gpugauge-kube-state-metrics",
    (
        Recording("gpugauge_gpu_pod_start_timestamp_seconds", _START, (("adapter", ADAPTER),)),
        Recording("gpugauge_gpu_pod_info", _OWNER, (("adapter", ADAPTER),)),
        Recording("gpugauge_gpu_pod_phase", _RUNNING, (("adapter", ADAPTER),)),
    ),
)
