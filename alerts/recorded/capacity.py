"""Recorded series of what the cluster watcher exposes of nodes and pending pods, by GPU model and resource.

`max by` first: two replicas of the watcher that both expose this for a moment count once. The model of pending pods is
`any` where they ask for no certain one.
"""

from alerts.rules.rule import Group, Recording

ALLOCATABLE = """
sum by (cluster, model, resource) (
  max by (cluster, node, model, resource) (gpugauge_node_gpu_allocatable)
)
"""

REQUESTED = """
sum by (cluster, model, resource) (
  max by (cluster, node, model, resource) (gpugauge_node_gpu_requested)
)
"""

FREE = """
sum by (cluster, model, resource) (
  max by (cluster, node, model, resource) (gpugauge_node_gpu_free)
  * on (cluster, node) group_left ()
  max by (cluster, node) (gpugauge_node_gpu_schedulable)
)
"""
"""Only on nodes to which pods can be scheduled."""

CAPACITY = """
sum by (cluster, model, resource) (
  max by (cluster, node, model, resource) (gpugauge_node_gpu_capacity)
)
"""

STRANDED = """
sum by (cluster, resource, blocker) (
  max by (cluster, node, resource, blocker) (gpugauge_node_gpu_stranded)
)
"""
"""Of free GPUs, those that no pod can use because something else of their node is used up."""

PENDING = """
sum by (cluster, model, resource) (
  max by (cluster, gpu_namespace, model, resource, reason) (gpugauge_pending_devices)
)
"""

PENDING_BY_REASON = """
sum by (cluster, reason) (
  max by (cluster, gpu_namespace, model, resource, reason) (gpugauge_pending_devices)
)
"""

WAIT = """
sum by (cluster, le) (
  max by (cluster, gpu_namespace, resource, size, le) (
    increase(gpugauge_pod_scheduling_wait_seconds_bucket[1h])
  )
)
"""

GROUP = Group(
    "gpugauge-capacity",
    (
        Recording("model:gpu_capacity:sum", CAPACITY),
        Recording("model:gpu_allocatable:sum", ALLOCATABLE),
        Recording("model:gpu_requested:sum", REQUESTED),
        Recording("model:gpu_free:sum", FREE),
        Recording("cluster:gpu_capacity:sum", "sum by (cluster, resource) (model:gpu_capacity:sum)"),
        Recording("cluster:gpu_allocatable:sum", "sum by (cluster, resource) (model:gpu_allocatable:sum)"),
        Recording("cluster:gpu_requested:sum", "sum by (cluster, resource) (model:gpu_requested:sum)"),
        Recording("cluster:gpu_free:sum", "sum by (cluster, resource) (model:gpu_free:sum)"),
        Recording("cluster:gpu_stranded:sum", STRANDED),
        Recording("model:gpu_pending_devices:sum", PENDING),
        Recording("cluster:gpu_pending_devices_by_reason:sum", PENDING_BY_REASON),
        Recording("cluster:gpu_pod_scheduling_wait_seconds_bucket:increase1h", WAIT),
    ),
)
