"""Alerts for those who plan capacity: demand beside free GPUs, stranded GPUs, work without pods, quotas, namespaces."""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

WHILE_FREE = """
sum by (cluster, resource) (
  max by (cluster, gpu_namespace, model, resource, reason) (
    gpugauge_pending_devices{
      model="any",
      reason!~"insufficient_gpu|gated|queued|not_tried|preempting|scaling_up|starting|image_pull|start_failed|admission_failed"
    }
  )
  and on (cluster, resource)
  (cluster:gpu_free:sum > 0)
  or
  max by (cluster, gpu_namespace, model, resource, reason) (
    gpugauge_pending_devices{model="any", reason="insufficient_gpu"}
  )
  <= on (cluster, resource) group_left ()
  cluster:gpu_free:sum
  or
  max by (cluster, gpu_namespace, model, resource, reason) (
    gpugauge_pending_devices{
      model!="any",
      reason!~"insufficient_gpu|gated|queued|not_tried|preempting|scaling_up|starting|image_pull|start_failed|admission_failed"
    }
  )
  and on (cluster, model, resource)
  (model:gpu_free:sum > 0)
  or
  max by (cluster, gpu_namespace, model, resource, reason) (
    gpugauge_pending_devices{model!="any", reason="insufficient_gpu"}
  )
  <= on (cluster, model, resource) group_left ()
  model:gpu_free:sum
)
> 0
"""
"""Devices that pods wait for while some of the same resource, and of the model that they demand, are free on nodes to
which pods can be scheduled. Not what waits by design, and not pods that are bound. Pods that find too few free devices
in all count only where as many are free as they wait for: the scheduler is wrong about those."""

STRANDED = """
sum by (cluster, node, resource, blocker) (
  max by (cluster, node, resource, blocker) (gpugauge_node_gpu_stranded)
)
> 0
"""

REFUSED = """
sum by (cluster, namespace, resource) (
  max by (cluster, namespace, queue, resource, reason) (
    label_replace(
      gpugauge_pending_workloads{reason=~"quota|admission_failed"},
      "namespace", "$1", "gpu_namespace", "(.*)"
    )
  )
)
> 0
"""

QUEUE_STALLED = """
sum by (cluster, resource) (
  max by (cluster, gpu_namespace, queue, resource) (
    min_over_time(gpugauge_pending_workloads{reason="queued"}[30m])
  )
)
> 0
and on (cluster, resource)
(min_over_time(cluster:gpu_free:sum[30m]) > 0)
"""

QUOTA = """
max by (cluster, namespace, resource) (
  label_replace(
    gpugauge_quota_used / (gpugauge_quota_hard > 0),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
>= on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUQuotaNearlyUsed"})
  or on (cluster)
  group by (cluster) (gpugauge_quota_used) * 0.9
)
"""

NAMESPACE_LOW = """
(
  sum_over_time(namespace:gpu_busy:sum[1d]) / sum_over_time(namespace:gpu_busy:count[1d])
  and on (cluster, namespace)
  (avg_over_time(namespace:gpu_devices:sum[1d]) >= 8)
  and on (cluster, namespace)
  (namespace:gpu_devices:sum offset 20h)
  unless on (cluster, namespace)
  namespace:gpu_exempt:info
)
< on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUNamespaceLowUtilization"})
  or on (cluster)
  group by (cluster) (namespace:gpu_devices:sum) * 0.2
)
"""

HOARDED = """
max by (cluster, namespace, resource) (
  label_replace(
    gpugauge_quota_used / (gpugauge_quota_hard > 0),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
) >= 0.9
and on (cluster, namespace)
(sum_over_time(namespace:gpu_busy:sum[6h]) / sum_over_time(namespace:gpu_busy:count[6h]) < 0.1)
and on (cluster, namespace)
(namespace:gpu_devices:sum offset 5h)
unless on (cluster, namespace)
namespace:gpu_exempt:info
"""

_REASONS = (
    """{{ range $i, $s := printf """
    """"topk(3, sum by (reason) (gpugauge_pending_devices{cluster=%q,resource=%q}))" """
    """$labels.cluster $labels.resource | query }}"""
    """{{ if $i }}, {{ end }}{{ .Value }} {{ .Labels.reason }}{{ end }}"""
)
_IN_CLUSTER = "{{ with $labels.cluster }} in cluster {{ . }}{{ end }}"


def _alert(name: str, expr: str, summary: str, description: str, for_: str, notify: Notify = Notify.DIGEST) -> Alert:
    return Alert(
        name,
        expr,
        Severity.WARNING,
        Area.CAPACITY,
        notify,
        summary=summary,
        description=description,
        for_=for_,
        keep_firing_for="18m",
        family=AlertFamily.CAPACITY,
        dashboard=DashboardUid.CAPACITY,
    )


GROUP = Group(
    "gpugauge-capacity-alerts",
    (
        _alert(
            "GPUPendingDemandWhileFree",
            WHILE_FREE,
            f"Pods wait for {{{{ $labels.resource }}}} while some are free{_IN_CLUSTER}.",
            "Pods have asked for {{ $value }} of {{ $labels.resource }} for 15 minutes, while some are free on nodes "
            f"that take pods. All that is pending: {_REASONS}.",
            "15m",
            Notify.TICKET,
        ),
        _alert(
            "GPUStranded",
            STRANDED,
            "Free GPUs of node {{ $labels.node }} are of no use to any pod.",
            "{{ $value }} free {{ $labels.resource }} of node {{ $labels.node }} have been of no use for 2 hours: the "
            "node lacks {{ $labels.blocker }}.",
            "2h",
        ),
        _alert(
            "GPUWorkRefused",
            REFUSED,
            "GPU work of namespace {{ $labels.namespace }} gets no pods.",
            "For 30 minutes, {{ $value }} workloads of namespace {{ $labels.namespace }} that ask for "
            "{{ $labels.resource }} have had too few pods: a quota is used up, or the API server rejects them.",
            "30m",
        ),
        _alert(
            "GPUAdmissionQueueStalled",
            QUEUE_STALLED,
            f"Queues hold work back although {{{{ $labels.resource }}}} are free{_IN_CLUSTER}.",
            "At least {{ $value }} workloads have been held by queues for 30 minutes, while some "
            "{{ $labels.resource }} were free all the time.",
            "5m",
            Notify.TICKET,
        ),
        _alert(
            "GPUQuotaNearlyUsed",
            QUOTA,
            "The GPU quota of namespace {{ $labels.namespace }} is nearly used up.",
            "Namespace {{ $labels.namespace }} uses {{ $value | asPercent }} of its quota of {{ $labels.resource }}.",
            "15m",
        ),
        _alert(
            "GPUNamespaceLowUtilization",
            NAMESPACE_LOW,
            "The GPUs of namespace {{ $labels.namespace }} are hardly used.",
            "The GPUs of namespace {{ $labels.namespace }}, at least 8, were busy {{ $value | asPercent }} of a day.",
            "1h",
        ),
        _alert(
            "GPUQuotaHoardedIdle",
            HOARDED,
            "Namespace {{ $labels.namespace }} has used its quota up and hardly uses the GPUs.",
            "Namespace {{ $labels.namespace }} has {{ $value | asPercent }} of its quota of {{ $labels.resource }} "
            "allocated, and its GPUs were busy less than 10 % of the last 6 hours.",
            "1h",
        ),
    ),
)
