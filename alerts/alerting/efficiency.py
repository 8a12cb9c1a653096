"""The alert GPUPodLowUtilization, and the threshold of each pod.

It reads how busy each pod is from `pods.py`, and start, phase, overrides and exemptions from the watcher.
"""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Recording, Severity

THRESHOLD = """
max by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, gpu_namespace, gpu_pod) (gpugauge_pod_low_utilization_threshold_ratio),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
  and on (cluster, namespace, pod)
  pod:gpu_workload:info{workload_class="training"}
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
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class=""})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 0.01
)
"""
"""By workload class. Training: the override of the pod, else the recorded threshold. Serving and interactive: none,
because their load comes in bursts. Unknown workload class: the idle threshold."""

LOW = """
max by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      avg_over_time(pod:gpu_busy:ratio[15m])
      < on (cluster, namespace, pod) group_left ()
      pod:gpu_low_utilization_threshold:ratio
      and on (cluster, namespace, pod)
      (count_over_time(pod:gpu_busy:ratio[15m]) >= 12),
      "gpu_namespace", "$1", "namespace", "(.*)"
    ),
    "gpu_pod", "$1", "pod", "(.*)"
  )
  and on (cluster, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_start_timestamp_seconds
  unless on (cluster, gpu_namespace, gpu_pod)
  (time() - gpugauge_gpu_pod_start_timestamp_seconds <= 1800)
  and on (cluster, gpu_namespace, gpu_pod)
  gpugauge_gpu_pod_phase{phase="Running"}
  unless on (cluster, gpu_namespace, gpu_pod)
  gpugauge_pod_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}
  unless on (cluster, gpu_namespace)
  gpugauge_namespace_alert_exemption{alert=~"GPUPodLowUtilization|low-utilization"}
)
* on (cluster, namespace, pod) group_left (node, workload, workload_type)
pod:gpu_workload:info
"""
"""The mean of 15 minutes in which there are at least 12 samples, four fifths of all: with fewer it may not be the
mean of that time. A pod first pulls images, reads data and compiles: it is left alone for 30 minutes, twice that time,
after which no sample of an earlier pod with the same name is left. Exemptions name the alert by the key that the
watcher exposes, or by its name."""

_THRESHOLD_OF_POD = (
    """{{ with printf "pod:gpu_low_utilization_threshold:ratio{cluster=%q,namespace=%q,pod=%q}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}"""
    """, below the threshold of {{ . | first | value | humanizePercentage }}{{ end }}"""
)

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
                "{{ $labels.pod }} on node {{ $labels.node }}) were busy {{ $value | humanizePercentage }} of the "
                f"last 15 minutes{_THRESHOLD_OF_POD}."
            ),
            for_="5m",
            keep_firing_for="10m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
    ),
)
