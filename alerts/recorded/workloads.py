"""Recorded series per workload: allocated devices, how busy they are, and how many are idle, by resource and model.

A device counts as idle by its mean over 15 minutes, as in the alerts. Shared devices are in neither: how busy they are
is not known per pod. A device whose exporter does not say by which resource it was allocated has no `resource`.
"""

from alerts.rules.rule import Group, Recording

PODS = """
count by (cluster, namespace, workload, workload_type) (pod:gpu_workload:info)
"""

DEVICES = """
sum by (cluster, namespace, workload, workload_type) (
  pod:gpu_devices:count
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""

BUSY_SUM = """
sum by (cluster, namespace, workload, workload_type) (
  pod:gpu_busy:ratio
  * on (cluster, namespace, pod)
  pod:gpu_busy:count
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""

BUSY_COUNT = """
sum by (cluster, namespace, workload, workload_type) (
  (
    pod:gpu_busy:count
    and on (cluster, namespace, pod)
    pod:gpu_busy:ratio
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""
"""The number of devices of the pods whose activity is known: the sum divided by it is the mean over devices."""

POD_IDLE = """
count by (cluster, node, namespace, pod, resource) (
  label_replace(
    label_replace(
      group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod, resource) (
        gpugauge_allocation_info{UUID!="", node!=""}
        and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod)
        (
          avg_over_time(gpugauge_allocation_busy_ratio{UUID!="", node!=""}[15m])
          < scalar(max(cluster:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))
          < on (cluster) group_left ()
          (
            max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
            or on (cluster)
            group by (cluster) (node:gpus:count) * 0.01
          )
        )
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""
"""Only pods that have idle devices: on a busy fleet that is a small part of all. What is idle is selected before it is
joined and relabeled, which is what costs time."""

WORKLOAD_IDLE = """
sum by (cluster, namespace, workload, workload_type, model, resource) (
  pod:gpu_idle_devices:count15m
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
  * on (cluster, node) group_left (model)
  node:gpu_model:info
)
"""

MODEL_IDLE = """
sum by (cluster, model, resource) (workload:gpu_idle_devices:count15m)
"""

GROUP = Group(
    "gpugauge-workloads",
    (
        Recording("workload:gpu_pods:count", PODS),
        Recording("workload:gpu_devices:sum", DEVICES),
        Recording("workload:gpu_busy:sum", BUSY_SUM),
        Recording("workload:gpu_busy:count", BUSY_COUNT),
        Recording("pod:gpu_idle_devices:count15m", POD_IDLE),
        Recording("workload:gpu_idle_devices:count15m", WORKLOAD_IDLE),
        Recording("model:gpu_idle_devices:count15m", MODEL_IDLE),
    ),
)
