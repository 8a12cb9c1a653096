"""Recorded series per pod: its workload, how many devices are allocated to it, and how busy they are on average.

They read the allocations of the node exporter (`gpugauge_allocation_…`) and the pods of the cluster watcher, or what
the adapter rules record of other exporters under the same names.
"""

from alerts.rules.rule import Group, Recording

ELSEWHERE = """
group by (cluster, node, gpu_namespace, gpu_pod, workload, workload_type) (
  gpugauge_allocation_info
  unless on (cluster, node, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_info{adapter=""}
)
"""
"""Allocations to pods that no watcher has on that node: with a watcher none or few, so that what reads them costs
little. Prometheus evaluates no join of which one side is empty."""

MOVED = """
group by (cluster, node, gpu_namespace, gpu_pod) (
  pod:gpu_elsewhere:info
  and on (cluster, gpu_namespace, gpu_pod)
  (
    gpugauge_gpu_pod_info{adapter=""}
    and on (cluster, gpu_namespace, gpu_pod)
    pod:gpu_elsewhere:info
    and on (cluster, node, gpu_namespace, gpu_pod)
    gpugauge_allocation_info
  )
)
"""
"""Allocations on another node than the watcher's, of a pod that has devices on the watcher's node too."""

WORKLOAD = """
topk by (cluster, namespace, pod) (1,
  group by (cluster, node, namespace, pod, workload, workload_type, workload_class) (
    label_replace(
      label_replace(
        gpugauge_gpu_pod_info{adapter="", node!=""}
        or on (cluster, gpu_namespace, gpu_pod)
        (
          last_over_time(gpugauge_gpu_pod_info{adapter="", node!=""}[30m])
          and on (cluster, node, gpu_namespace, gpu_pod)
          pod:gpu_elsewhere:info
          or on (cluster, gpu_namespace, gpu_pod)
          label_replace(
            label_replace(
              label_replace(
                pod:gpu_elsewhere:info{workload!=""},
                "workload_class", "training", "", ""
              ),
              "workload_class", "serving", "workload_type",
              "(?i)(deployment|statefulset|leaderworkerset|inferenceservice|rayservice)"
            ),
            "workload_class", "interactive", "workload_type", "(?i)notebook"
          )
          or on (cluster, gpu_namespace, gpu_pod)
          gpugauge_gpu_pod_info{adapter!="", node!=""}
          or on (cluster, gpu_namespace, gpu_pod)
          label_replace(
            label_replace(
              label_replace(
                pod:gpu_elsewhere:info,
                "workload", "$1", "gpu_pod", "(.*)"
              ),
              "workload_type", "pod", "", ""
            ),
            "workload_class", "unknown", "", ""
          )
        ),
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
"""
"""The workload as the watcher exposes it for a pod that is bound to a node, or exposed it within 30 minutes, so that an
outage of the watcher changes no alert; else as the allocation has it; else as an adapter records it; else the pod
itself, of workload class `unknown`. Two watchers may differ for a moment: one of the two series is selected."""

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

BUSY_DEVICES = """
count by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_busy_ratio{UUID!="", node!=""} >= 0 <= 1
        unless on (cluster, node, gpu_namespace, gpu_pod)
        pod:gpu_moved:info
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""
"""How many devices of a pod have a known activity; not a shared device, and none whose value is no ratio."""

BUSY = """
avg by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_busy_ratio{UUID!="", node!=""} >= 0 <= 1
        unless on (cluster, node, gpu_namespace, gpu_pod)
        pod:gpu_moved:info
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
and on (cluster, namespace, pod)
(pod:gpu_busy:count >= on (cluster, namespace, pod) 0.8 * pod:gpu_devices:count)
"""
"""The mean over the devices of a pod whose activity is known; absent unless these are four fifths of its devices, so
that one lost GPU of eight does not hide the others."""

GROUPS = (
    Group(
        "gpugauge-pods",
        (
            Recording("pod:gpu_elsewhere:info", ELSEWHERE),
            Recording("pod:gpu_moved:info", MOVED),
            Recording("pod:gpu_devices:count", DEVICES),
        ),
    ),
    Group(
        "gpugauge-pod-activity",
        (
            Recording("global:gpu_pod_activity:info", "vector(1)"),
            Recording("pod:gpu_busy:count", BUSY_DEVICES),
            Recording("pod:gpu_busy:ratio", BUSY),
        ),
    ),
    Group("gpugauge-pod-workloads", (Recording("pod:gpu_workload:info", WORKLOAD),)),
)
"""Several, because Prometheus evaluates groups side by side and the rules of one group after each other.

`global:gpu_pod_activity:info` is recorded at every evaluation: with it, alerts count how many there were, whatever the
interval is."""
