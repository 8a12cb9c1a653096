"""The alert GPUWorkloadPending, and recorded series about GPU pods that could be scheduled and do not run.

The watcher exposes, for each pending pod, since when and for which reason; here they are summed up per workload.
"""

from alerts.rules.rule import (
    QUICK_INTERVAL_SECONDS,
    Alert,
    AlertFamily,
    Area,
    DashboardUid,
    Group,
    Notify,
    Recording,
    Severity,
)

SINCE_OF_POD = """
min by (cluster, namespace, pod, workload, workload_type) (
  label_replace(
    label_replace(
      gpugauge_pending_pod_since_timestamp_seconds,
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""

PODS = """
count by (cluster, namespace, workload, workload_type) (namespace_pod:gpu_pending_since_timestamp:seconds)
"""

SINCE = """
min by (cluster, namespace, workload, workload_type) (namespace_pod:gpu_pending_since_timestamp:seconds)
"""

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

PENDING = """
(time() - workload:gpu_pending_since_timestamp:seconds)
> on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUWorkloadPending"})
  or on (cluster)
  group by (cluster) (workload:gpu_pending_since_timestamp:seconds) * 900
)
"""

_PODS = (
    """{{ with printf "workload:gpu_pending_pods:count{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | value }}{{ end }}"""
)
_REASON = (
    """{{ with printf "workload:gpu_pending_oldest:info{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | label "reason" }}{{ end }}"""
)
_POD = (
    """{{ with printf "workload:gpu_pending_oldest:info{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | label "pod" }}{{ end }}"""
)
_COUNTS = (
    """{{ range $i, $s := printf """
    """"workload:gpu_pending_pods_by_reason:count{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query | sortByLabel "reason" }}"""
    """{{ if $i }}, {{ end }}{{ .Value }} {{ .Labels.reason }}{{ end }}"""
)

GROUP = Group(
    "gpugauge-pending",
    (
        Recording("namespace_pod:gpu_pending_since_timestamp:seconds", SINCE_OF_POD),
        Recording("workload:gpu_pending_pods:count", PODS),
        Recording("workload:gpu_pending_since_timestamp:seconds", SINCE),
        Recording("workload:gpu_pending_pods_by_reason:count", PODS_BY_REASON),
        Recording("workload:gpu_pending_oldest:info", OLDEST),
        Alert(
            "GPUWorkloadPending",
            PENDING,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.TICKET,
            summary=(
                "{{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }} has been pending "
                "for {{ $value | asDuration }}."
            ),
            description=(
                f"{_PODS} GPU pods of {{{{ $labels.workload_type }}}} {{{{ $labels.namespace }}}}/"
                "{{ $labels.workload }} could be scheduled and do not run. The oldest, "
                f"{_POD}, has been pending for {{{{ $value | asDuration }}}}: {_REASON}. All: {_COUNTS}."
            ),
            for_="1m",
            keep_firing_for="5m",
            family=AlertFamily.PENDING,
            dashboard=DashboardUid.WORKLOAD,
            annotations=(("reason", _REASON), ("pods", _PODS)),
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
