"""Recorded series per pod: its workload, how many devices are allocated to it, and how busy they are on average.

They read the allocations of the node exporter (`gpugauge_allocation_…`) and the pods of the cluster watcher, or what
the adapter rules record of other exporters under the same names.
"""

from alerts.rules.rule import Group, Recording

MOVED = """
group by (cluster, node, gpu_namespace, gpu_pod) (
  gpugauge_allocation_info
  unless on (cluster, node, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_info
  and on (cluster, gpu_namespace, gpu_pod)
  (
    gpugauge_allocation_info
    and on (cluster, node, gpu_namespace, gpu_pod)
    gpugauge_gpu_pod_info
  )
)
"""
"""Allocations on another node than the watcher's, of a pod that has devices on the watcher's node too."""

WORKLOAD = """
topk by (cluster, namespace, pod) (1,
  max by (cluster, node, namespace, pod, workload, workload_type, workload_class) (
    label_replace(
      label_replace(
        max by (cluster, node, gpu_namespace, gpu_pod, workload, workload_type, workload_class) (
          gpugauge_gpu_pod_info
          and on (cluster, gpu_namespace, gpu_pod)
          gpugauge_allocation_info
        )
        or on (cluster, gpu_namespace, gpu_pod)
        max by (cluster, node, gpu_namespace, gpu_pod, workload, workload_type) (
          gpugauge_allocation_info{workload!=""}
          unless on (cluster, gpu_namespace, gpu_pod)
          gpugauge_gpu_pod_info
        )
        or on (cluster, gpu_namespace, gpu_pod)
        label_replace(
          label_replace(
            max by (cluster, node, gpu_namespace, gpu_pod) (
              gpugauge_allocation_info
              unless on (cluster, gpu_namespace, gpu_pod)
              gpugauge_gpu_pod_info
            ),
            "workload", "$1", "gpu_pod", "(.*)"
          ),
          "workload_type", "pod", "", ""
        ),
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
"""
"""The workload as the watcher exposes it, else as the allocation has it, else the pod itself. Two watchers may differ
for a moment: one of the two series is selected."""

DEVICES = """
count by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_info{UUID!="", node!=""}
        unless on (cluster, node, gpu_namespace, gpu_pod)
        pod:gpu_moved:info
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""

BUSY = """
avg by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_busy_ratio{UUID!="", node!=""}
        unless on (cluster, node, gpu_namespace, gpu_pod)
        pod:gpu_moved:info
        unless on (cluster, gpu_namespace, gpu_pod)
        (
          gpugauge_allocation_info{UUID!="", node!=""}
          unless on (cluster, node, gpu_namespace, gpu_pod)
          pod:gpu_moved:info
          unless on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod)
          gpugauge_allocation_busy_ratio
        )
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""
"""The mean over all devices of a pod; absent unless each of them has a value, and so for every shared device."""

GROUPS = (
    Group(
        "gpugauge-pods",
        (Recording("pod:gpu_moved:info", MOVED), Recording("pod:gpu_devices:count", DEVICES)),
    ),
    Group("gpugauge-pod-activity", (Recording("pod:gpu_busy:ratio", BUSY),)),
    Group("gpugauge-pod-workloads", (Recording("pod:gpu_workload:info", WORKLOAD),)),
)
"""Several, because Prometheus evaluates groups side by side and the rules of one group after each other."""
