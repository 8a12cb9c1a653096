"""GPUs that are held and little used: the headline alert, and the recorded judgement it rests on."""

from alerts.attribution import GPU_POD
from alerts.expression import POD, by, inside, named, threshold
from alerts.rule import INTERVAL_SECONDS, Alert, Area, Group, Notify, Recording, Severity
from alerts.thresholds import IDLE, LOW_UTILIZATION

WINDOW_SECONDS = 900
COVERAGE = WINDOW_SECONDS * 8 // 10 // INTERVAL_SECONDS
"""Samples that a window must hold, four fifths: fewer, and what was seen may not be what happened."""

WARM_UP_SECONDS = 1800
"""Images, data and compilation come first. Twice the window, so that a pod recreated under its name starts clean."""

OPT_OUT = 'alert=~"GPUPodLowUtilization|low-utilization"'

START = f"""{by(POD, named("gpugauge_gpu_pod_start_timestamp_seconds", "pod"))}
or
(max by ({POD}) (kube_pod_start_time) and on ({POD}) pod:gpu_devices:count)"""
"""From the watcher; from kube-state-metrics for pods that no watcher speaks of."""

_PHASE_ELSEWHERE = f"""max by ({POD}) (kube_pod_status_phase{{phase="Running"}} == 1)
and on ({POD})
pod:gpu_devices:count
unless on ({POD})
{by(POD, named("gpugauge_gpu_pod_phase", "pod"))}"""

RUNNING = f"""{by(POD, named('gpugauge_gpu_pod_phase{phase="Running"}', "pod"))}
or
{inside(_PHASE_ELSEWHERE)}"""

TRAINING = f'{GPU_POD}{{class="training"}}'

_OVERRIDE = f"""{by(POD, named("gpugauge_pod_low_utilization_threshold_ratio", "pod"))}
and on ({POD})
{TRAINING}"""

LIMIT = f"""{inside(_OVERRIDE)}
or
max by ({POD}) ({TRAINING})
* on () group_left ()
{threshold("GPUPodLowUtilization", LOW_UTILIZATION)}
or
(pod:gpu_devices:count * 0 + 1 unless on ({POD}) {GPU_POD}{{class!=""}})
* on () group_left ()
{threshold("GPUPodIdle", IDLE)}"""
"""Pods of class training are judged by their own limit or the common one; serving and interactive pods have none
here, their bursts are normal; a pod whose class nobody knows is judged only as idle."""

LOW = f"""(
  avg_over_time(pod:gpu_busy:ratio[{WINDOW_SECONDS // 60}m])
  < on ({POD})
  pod:gpu_low_utilization_threshold:ratio
)
and on ({POD})
(count_over_time(pod:gpu_busy:ratio[{WINDOW_SECONDS // 60}m]) >= {COVERAGE})
and on ({POD})
(time() - pod:gpu_start_timestamp:seconds > {WARM_UP_SECONDS})
and on ({POD})
pod:gpu_running:info
unless on ({POD})
{by(POD, named(f"gpugauge_pod_alert_optout{{{OPT_OUT}}}", "pod"))}
unless on (cluster, namespace)
{by("cluster, namespace", named(f"gpugauge_namespace_alert_optout{{{OPT_OUT}}}"))}"""

NAMED = f"""{inside(LOW)}
* on ({POD}) group_left (node, workload, workload_type)
pod:gpu_workload:info"""

_LIMIT_OF_POD = (
    """{{ with printf "pod:gpu_low_utilization_threshold:ratio{cluster='%s',namespace='%s',pod='%s'}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}"""
    """, below its limit of {{ . | first | value | humanizePercentage }}{{ end }}"""
)

GROUP = Group(
    "gpugauge-efficiency",
    (
        Recording("pod:gpu_start_timestamp:seconds", START),
        Recording("pod:gpu_running:info", RUNNING),
        Recording("pod:gpu_low_utilization_threshold:ratio", LIMIT),
        Alert(
            "GPUPodLowUtilization",
            NAMED,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="Pod {{ $labels.namespace }}/{{ $labels.pod }} holds GPUs and hardly uses them.",
            description=(
                "The GPUs of {{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }} (pod "
                "{{ $labels.pod }} on node {{ $labels.node }}) were busy {{ $value | humanizePercentage }} of the "
                f"last 15 minutes{_LIMIT_OF_POD}."
            ),
            wait="5m",
            keep="10m",
        ),
    ),
)
