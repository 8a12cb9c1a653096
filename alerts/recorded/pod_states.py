"""Recorded series per pod that the alerts on utilization share: which pods are exempt or judged, and since when idle.

They read overrides, start and phase from the cluster watcher, or what the adapter for kube-state-metrics records.
"""

from alerts.rules.rule import Group, Recording

EXEMPT_PODS = """
label_replace(
  label_replace(
    group by (cluster, gpu_namespace, gpu_pod) (
      gpugauge_pod_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}
      or
      last_over_time(gpugauge_pod_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}[30m])
      unless on (cluster, gpu_namespace, gpu_pod)
      gpugauge_gpu_pod_info{adapter=""}
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  ),
  "pod", "$1", "gpu_pod", "(.*)"
)
"""
"""Exemptions name the alert by the key that the watcher exposes, or by its name. During an outage of the watcher those
of the last 30 minutes stay in force."""

EXEMPT_NAMESPACES = """
label_replace(
  group by (cluster, gpu_namespace) (
    gpugauge_namespace_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}
    or
    last_over_time(gpugauge_namespace_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}[30m])
    unless on (cluster, gpu_namespace)
    gpugauge_gpu_pod_info{adapter=""}
  ),
  "namespace", "$1", "gpu_namespace", "(.*)"
)
"""

RUNNING = """
min by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      time() - gpugauge_gpu_pod_start_timestamp_seconds
      and on (cluster, gpu_namespace, gpu_pod)
      gpugauge_gpu_pod_phase{phase="Running"},
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""
"""How long a GPU pod has been running, in seconds. Of two pods of one name, the younger."""

JUDGED = """
(pod:gpu_running:seconds > 1800)
and on (cluster, namespace, pod)
present_over_time(pod:gpu_devices:count[30m] offset 30m)
unless on (cluster, namespace, pod)
pod:gpu_exempt:info
unless on (cluster, namespace)
namespace:gpu_exempt:info
"""
"""A pod first pulls images, reads data and compiles: it is left alone for 30 minutes, twice the window of the alert,
after which no sample of an earlier pod with the same name is left. Its start and its first series must both be that
long ago, because the clock of the API server may be wrong."""

IDLE_SINCE = """
last_over_time(pod:gpu_idle_since_timestamp:seconds[30m])
and on (cluster, namespace, pod)
(
  pod:gpu_busy:ratio
  < scalar(max(cluster:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))
  < on (cluster) group_left ()
  (
    max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
    or on (cluster)
    group by (cluster) (pod:gpu_busy:ratio) * 0.01
  )
)
or on (cluster, namespace, pod)
pod:gpu_busy:ratio * 0 + time()
"""
"""Carried from one evaluation to the next while the pod is idle, else now. So a window of a day costs no more than one
of an hour. After 30 minutes without a sample it starts again."""

GROUP = Group(
    "gpugauge-pod-states",
    (
        Recording("pod:gpu_exempt:info", EXEMPT_PODS),
        Recording("namespace:gpu_exempt:info", EXEMPT_NAMESPACES),
        Recording("pod:gpu_running:seconds", RUNNING),
        Recording("pod:gpu_judged:info", JUDGED),
        Recording("pod:gpu_idle_since_timestamp:seconds", IDLE_SINCE),
    ),
)
