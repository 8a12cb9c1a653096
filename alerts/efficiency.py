"""The alert GPUPodLowUtilization, and the recorded series that only it needs: start, phase and threshold of each pod.

It reads how busy each pod is from `attribution.py`, and workload classes, thresholds and exemptions from the watcher.
"""

from alerts.attribution import GPU_POD
from alerts.expression import POD, by, parenthesized, threshold, with_pod_labels
from alerts.rule import INTERVAL_SECONDS, Alert, Area, Group, Notify, Recording, Severity
from alerts.thresholds import IDLE, LOW_UTILIZATION

WINDOW_SECONDS = 900
"""Utilization is the mean of this window."""
_WINDOW_MINUTES = WINDOW_SECONDS // 60
COVERAGE = WINDOW_SECONDS * 8 // 10 // INTERVAL_SECONDS
"""Samples that a window must have, four fifths of all: with fewer, the mean may not be the mean of the window."""

WARM_UP_SECONDS = 1800
"""A pod first pulls images, reads data and compiles. Twice the window, so that none of the samples of an earlier pod
with the same name is left."""

EXEMPT_FROM = 'alert=~"GPUPodLowUtilization|low-utilization"'
"""Selects exemptions from this alert: by the key that the watcher exposes, or by the name of the alert."""

START = f"""{by(POD, with_pod_labels("gpugauge_gpu_pod_start_timestamp_seconds", "pod"))}
or
(max by ({POD}) (kube_pod_start_time) and on ({POD}) pod:gpu_devices:count)"""
"""Start time of each pod: from the watcher; from kube-state-metrics for pods that no watcher exposes."""

_RUNNING_WITHOUT_WATCHER = f"""max by ({POD}) (kube_pod_status_phase{{phase="Running"}} == 1)
and on ({POD})
pod:gpu_devices:count
unless on ({POD})
{by(POD, with_pod_labels("gpugauge_gpu_pod_phase", "pod"))}"""

RUNNING = f"""{by(POD, with_pod_labels('gpugauge_gpu_pod_phase{phase="Running"}', "pod"))}
or
{parenthesized(_RUNNING_WITHOUT_WATCHER)}"""

TRAINING = f'{GPU_POD}{{workload_class="training"}}'

_OVERRIDE = f"""{by(POD, with_pod_labels("gpugauge_pod_low_utilization_threshold_ratio", "pod"))}
and on ({POD})
{TRAINING}"""

THRESHOLD = f"""{parenthesized(_OVERRIDE)}
or
max by ({POD}) ({TRAINING})
* on () group_left ()
{threshold("GPUPodLowUtilization", LOW_UTILIZATION)}
or
(pod:gpu_devices:count * 0 + 1 unless on ({POD}) {GPU_POD}{{workload_class!=""}})
* on () group_left ()
{threshold("GPUPodIdle", IDLE)}"""
"""By workload class. Training: the override of the pod, else the recorded threshold. Serving and interactive: none,
because their load comes in bursts. Unknown workload class: the idle threshold."""

LOW = f"""(
  avg_over_time(pod:gpu_busy:ratio[{_WINDOW_MINUTES}m])
  < on ({POD})
  pod:gpu_low_utilization_threshold:ratio
)
and on ({POD})
(count_over_time(pod:gpu_busy:ratio[{_WINDOW_MINUTES}m]) >= {COVERAGE})
and on ({POD})
(time() - pod:gpu_start_timestamp:seconds > {WARM_UP_SECONDS})
and on ({POD})
pod:gpu_running:info
unless on ({POD})
{by(POD, with_pod_labels(f"gpugauge_pod_alert_exemption{{{EXEMPT_FROM}}}", "pod"))}
unless on (cluster, namespace)
{by("cluster, namespace", with_pod_labels(f"gpugauge_namespace_alert_exemption{{{EXEMPT_FROM}}}"))}"""

LOW_WITH_WORKLOAD = f"""{parenthesized(LOW)}
* on ({POD}) group_left (node, workload, workload_type)
pod:gpu_workload:info"""

_THRESHOLD_OF_POD = (
    """{{ with printf "pod:gpu_low_utilization_threshold:ratio{cluster=%q,namespace=%q,pod=%q}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}"""
    """, below the threshold of {{ . | first | value | humanizePercentage }}{{ end }}"""
)

GROUP = Group(
    "gpugauge-efficiency",
    (
        Recording("pod:gpu_start_timestamp:seconds", START),
        Recording("pod:gpu_running:info", RUNNING),
        Recording("pod:gpu_low_utilization_threshold:ratio", THRESHOLD),
        Alert(
            "GPUPodLowUtilization",
            LOW_WITH_WORKLOAD,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="The GPUs of pod {{ $labels.namespace }}/{{ $labels.pod }} have low utilization.",
            description=(
                "The GPUs of {{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }} (pod "
                "{{ $labels.pod }} on node {{ $labels.node }}) were busy {{ $value | humanizePercentage }} of the "
                f"last {_WINDOW_MINUTES} minutes{_THRESHOLD_OF_POD}."
            ),
            for_="5m",
            keep_firing_for="10m",
        ),
    ),
)
