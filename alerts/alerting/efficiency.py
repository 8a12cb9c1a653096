"""The alert GPUPodLowUtilization, and the threshold of each pod.

It reads how busy each pod is from `pods.py`, and which pods are judged from `pod_states.py`.
"""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Recording, Severity

THRESHOLD = """
max by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, gpu_namespace, gpu_pod) (
        gpugauge_pod_low_utilization_threshold_ratio
        or
        last_over_time(gpugauge_pod_low_utilization_threshold_ratio[30m])
        unless on (cluster, gpu_namespace, gpu_pod)
        gpugauge_gpu_pod_info{adapter=""}
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
  and on (cluster, namespace, pod)
  pod:gpu_workload:info
)
or on (cluster, namespace, pod)
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class="training"})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodLowUtilization"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 0.3
)
or on (cluster, namespace, pod)
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class="unknown"})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodLowUtilizationUnknownOwner"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 0.3
)
or on (cluster, namespace, pod)
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class=""})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 0.01
)
"""
"""An explicit threshold of the pod, or of its namespace, counts for every workload class. Else by workload class.
Training: the common threshold. Serving and interactive: none, because their load comes in bursts. No owner data at
all: the common threshold too, under a name of its own. A watcher that does not know the class: the idle threshold."""

LOW = """
(
  avg_over_time(pod:gpu_busy:ratio[15m])
  < on (cluster, namespace, pod)
  pod:gpu_low_utilization_threshold:ratio
  and on (cluster, namespace, pod)
  (
    count_over_time(pod:gpu_busy:ratio[15m])
    >= on () group_left ()
    0.8 * max(count_over_time(global:gpu_pod_activity:info[15m]))
    or
    count_over_time(pod:gpu_busy:ratio[15m])
    >= on () group_left ()
    0.4 * max(count_over_time(global:gpu_pod_activity:info[15m]))
    and on (cluster, namespace, pod)
    ALERTS{alertname="GPUPodLowUtilization", alertstate="firing"}
  )
  and on ()
  (count_over_time(global:gpu_pod_activity:info[15m:1m]) >= 12)
  and on (cluster, namespace, pod)
  pod:gpu_judged:info
)
* on (cluster, namespace, pod) group_left (node, workload, workload_type)
pod:gpu_workload:info
"""
"""The mean of 15 minutes of which four fifths were evaluated and had a value: of less it may not be the mean of that
time. How many evaluations there were is counted, so that any interval of evaluation works. While the alert fires, half
of that is enough, so that a hole of some minutes does not end it."""

_THRESHOLD_OF_POD = (
    """{{ with printf "pod:gpu_low_utilization_threshold:ratio{cluster=%q,namespace=%q,pod=%q}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}"""
    """, below the threshold of {{ . | first | value | asPercent }}{{ end }}"""
)

KNOWN_DEVICES = (
    """{{ with printf "pod:gpu_busy:count{cluster=%q,namespace=%q,pod=%q} < pod:gpu_devices:count" """
    """$labels.cluster $labels.namespace $labels.pod | query }}"""
    """ Known are {{ . | first | value }} of """
    """{{ with printf "pod:gpu_devices:count{cluster=%q,namespace=%q,pod=%q}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}{{ . | first | value }}{{ end }}"""
    """ devices of the pod.{{ end }}"""
)
"""A text that stands only where the activity of some device of the pod is not known."""

GROUP = Group(
    "gpugauge-efficiency",
    (
        Recording("pod:gpu_low_utilization_threshold:ratio", THRESHOLD),
        Alert(
            "GPUPodLowUtilization",
            LOW,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="The GPUs of pod {{ $labels.namespace }}/{{ $labels.pod }} have low utilization.",
            description=(
                "The GPUs of {{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }} (pod "
                "{{ $labels.pod }} on node {{ $labels.node }}) were busy {{ $value | asPercent }} of the "
                f"last 15 minutes{_THRESHOLD_OF_POD}.{KNOWN_DEVICES}"
            ),
            for_="5m",
            keep_firing_for="18m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
    ),
)
"""The alert fires on through a hole of some minutes and an outage of the watcher of 15, in which its condition is
unknown. It must end within 20 minutes of a pod's replacement by another of the same name."""
