"""Recorded series of GPU pods that could be scheduled and do not run, summed up per workload.

The watcher exposes, for each pending pod, since when and for which reason, and a clock for each workload.
"""

from alerts.rules.rule import Recording

AWAY = """
max by (cluster) (last_over_time(gpugauge_watch_last_sync_timestamp_seconds[20m]))
unless on (cluster)
gpugauge_watch_last_sync_timestamp_seconds
"""
"""Clusters whose watcher was there within 20 minutes and is not now: what it exposed last stays in use meanwhile."""

SINCE_OF_POD = """
topk by (cluster, namespace, pod) (1,
  min by (cluster, namespace, pod, workload, workload_type) (
    label_replace(
      label_replace(
        gpugauge_pending_pod_since_timestamp_seconds,
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
or on (cluster, namespace, pod)
last_over_time(namespace_pod:gpu_pending_since_timestamp:seconds[20m])
and on (cluster)
cluster:gpu_watcher_away:info
"""
"""Two watchers may give a pod different owners for a moment: one of them is selected."""

PODS = """
count by (cluster, namespace, workload, workload_type) (namespace_pod:gpu_pending_since_timestamp:seconds)
"""

SINCE = """
min by (cluster, namespace, workload, workload_type) (
  label_replace(
    gpugauge_pending_workload_since_timestamp_seconds,
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
  and on (cluster, namespace, workload, workload_type)
  workload:gpu_pending_pods:count
  or
  label_replace(
    gpugauge_pending_workload_since_timestamp_seconds,
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
  and on (cluster)
  (gpugauge_pending_workloads_untracked > 0)
)
or on (cluster, namespace, workload, workload_type)
last_over_time(workload:gpu_pending_since_timestamp:seconds[20m])
and on (cluster)
cluster:gpu_watcher_away:info
or on (cluster, namespace, workload, workload_type)
min by (cluster, namespace, workload, workload_type) (namespace_pod:gpu_pending_since_timestamp:seconds)
"""
"""The clock of the workload, which goes on while its controller makes its pods anew. Workloads of which no pod has
series of its own count where there are such."""

STARTING_SINCE = """
last_over_time(namespace_pod:gpu_pending_starting_since_timestamp:seconds[20m])
and on (cluster)
cluster:gpu_watcher_away:info
or on (cluster, namespace, pod)
last_over_time(namespace_pod:gpu_pending_starting_since_timestamp:seconds[15m])
and on (cluster, namespace, pod)
label_replace(
  label_replace(
    gpugauge_pending_pod_reason{reason=~"starting|image_pull|start_failed"},
    "namespace", "$1", "gpu_namespace", "(.*)"
  ),
  "pod", "$1", "gpu_pod", "(.*)"
)
or on (cluster, namespace, pod)
topk by (cluster, namespace, pod) (1,
  max by (cluster, namespace, pod, workload, workload_type) (
    label_replace(
      label_replace(
        gpugauge_pending_pod_reason{reason=~"starting|image_pull|start_failed"},
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
* 0 + time()
"""
"""Since when a pod is bound to a node and does not run, whichever of these reasons it has."""

OWN_OBJECTIVE = """
max by (cluster, namespace, workload, workload_type) (
  workload:gpu_pending_since_timestamp:seconds * 0
  + on (cluster, namespace) group_left ()
  max by (cluster, namespace) (
    global:gpugauge_threshold_override:value{alert="GPUWorkloadPending", namespace=~".+", cluster=~".+"}
  )
)
or on (cluster, namespace, workload, workload_type)
max by (cluster, namespace, workload, workload_type) (
  workload:gpu_pending_since_timestamp:seconds * 0
  + on (namespace) group_left ()
  max by (namespace) (
    global:gpugauge_threshold_override:value{alert="GPUWorkloadPending", namespace=~".+", cluster=""}
  )
)
or on (cluster, namespace, workload, workload_type)
max by (cluster, namespace, workload, workload_type) (
  label_replace(
    gpugauge_gpu_pod_info{priority_class=~".+"}
    * on (priority_class) group_left ()
    max by (priority_class) (
      global:gpugauge_threshold_override:value{alert="GPUWorkloadPending", priority_class=~".+", cluster=""}
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
  and on (cluster, namespace, workload, workload_type)
  workload:gpu_pending_since_timestamp:seconds
)
"""
"""How long the workload may be pending, where its namespace or its priority class has an objective."""

OVER = """
(
  time() - workload:gpu_pending_since_timestamp:seconds
  > on (cluster, namespace, workload, workload_type)
  workload:gpu_pending_own_objective:seconds
)
or on (cluster, namespace, workload, workload_type)
(
  time() - workload:gpu_pending_since_timestamp:seconds
  unless on (cluster, namespace, workload, workload_type)
  workload:gpu_pending_own_objective:seconds
)
> on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUWorkloadPending"})
  or on (cluster)
  group by (cluster) (workload:gpu_pending_since_timestamp:seconds) * 900
)
"""

QUEUED = """
max by (cluster, namespace, workload, workload_type, resource) (
  label_replace(
    gpugauge_pending_workload_since_timestamp_seconds,
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
and on (cluster, namespace, workload, workload_type)
workload:gpu_pending_over_objective:seconds
and on (cluster, namespace, workload, workload_type)
present_over_time(workload:gpu_pending_pods_by_reason:count{reason="insufficient_gpu"}[10m])
and on (cluster, resource)
(cluster:gpu_free:sum == 0)
unless on (cluster, namespace, workload, workload_type)
workload:gpu_pending_own_objective:seconds
"""
"""Workloads that wait because no GPU of their resource is free at all, and that have no objective of their own."""

PODS_BY_REASON = """
count by (cluster, namespace, workload, workload_type, reason) (
  max by (cluster, namespace, pod, workload, workload_type, reason) (
    label_replace(
      label_replace(
        gpugauge_pending_pod_reason,
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
)
"""

OLDEST = """
topk by (cluster, namespace, workload, workload_type) (1,
  max by (cluster, namespace, pod, workload, workload_type, reason) (
    label_replace(
      label_replace(
        gpugauge_pending_pod_reason,
        "namespace", "$1", "gpu_namespace", "(.*)"
      ),
      "pod", "$1", "gpu_pod", "(.*)"
    )
  )
  * on (cluster, namespace, pod) group_left ()
  (time() - min by (cluster, namespace, pod) (namespace_pod:gpu_pending_since_timestamp:seconds))
)
"""
"""The pod of each workload that is pending longest, with its reason. The value is how long, in seconds."""

WANTED_MODELS = """
group by (cluster, namespace, resource, model) (
  label_replace(gpugauge_pending_pods, "namespace", "$1", "gpu_namespace", "(.*)")
)
"""

IDLE_FOR = """
sum by (cluster, namespace, workload, workload_type) (
  max by (cluster, namespace, workload, workload_type, resource) (
    label_replace(
      gpugauge_pending_workload_since_timestamp_seconds * 0 + 1,
      "namespace", "$1", "gpu_namespace", "(.*)"
    )
  )
  * on (cluster, namespace, resource) group_left ()
  (
    namespace:gpu_pending_model:info{model="any"}
    * on (cluster, resource) group_left ()
    sum by (cluster, resource) (model:gpu_idle_devices:count15m)
    or on (cluster, namespace, resource)
    sum by (cluster, namespace, resource) (
      namespace:gpu_pending_model:info{model!="any"}
      * on (cluster, resource, model) group_left ()
      sum by (cluster, resource, model) (model:gpu_idle_devices:count15m)
    )
  )
)
"""
"""Allocated and idle devices of a resource that the workload waits for, and of a model that its namespace accepts."""

RECORDINGS = (
    Recording("cluster:gpu_watcher_away:info", AWAY),
    Recording("namespace_pod:gpu_pending_since_timestamp:seconds", SINCE_OF_POD),
    Recording("workload:gpu_pending_pods:count", PODS),
    Recording("workload:gpu_pending_since_timestamp:seconds", SINCE),
    Recording("workload:gpu_pending_pods_by_reason:count", PODS_BY_REASON),
    Recording("workload:gpu_pending_oldest:info", OLDEST),
    Recording("namespace_pod:gpu_pending_starting_since_timestamp:seconds", STARTING_SINCE),
    Recording("workload:gpu_pending_own_objective:seconds", OWN_OBJECTIVE),
    Recording("workload:gpu_pending_over_objective:seconds", OVER),
    Recording("workload:gpu_pending_queued:info", QUEUED),
    Recording("namespace:gpu_pending_model:info", WANTED_MODELS),
    Recording("workload:gpu_pending_idle_devices:sum", IDLE_FOR),
)
"""In the group of the alerts: each reads those before it."""
