"""The alert GPUWorkloadPending, and recorded series about GPU pods that could be scheduled and do not run.

The watcher exposes, for each pending pod, since when and for which reason; here they are summed up per workload.
"""

from alerts.recorded.thresholds import PENDING_SECONDS
from alerts.rules.expression import POD, WORKLOAD, by, one_by, threshold, with_pod_labels
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, Area, Group, Notify, Recording, Severity

SINCE = "namespace_pod:gpu_pending_since_timestamp:seconds"
OLDEST = "workload:gpu_pending_oldest:info"
BY_REASON = "workload:gpu_pending_pods_by_reason:count"
REASON = by(f"{POD}, workload, workload_type, reason", with_pod_labels("gpugauge_pending_pod_reason", "pod"))

OLDEST_REASON = one_by(
    WORKLOAD,
    f"{REASON}\n* on ({POD}) group_left ()\n(time() - min by ({POD}) ({SINCE}))",
)
"""The pod of each workload that is pending longest, with its reason. The value is how long, in seconds."""


def _of_workload(series: str) -> str:
    """A template pipeline that queries the series for the workload of the alert."""
    selection = f"{series}{{cluster=%q,namespace=%q,workload=%q,workload_type=%q}}"
    labels = " ".join(f"$labels.{label}" for label in WORKLOAD.split(", "))
    return f'printf "{selection}" {labels} | query'


_PODS = f"{{{{ with {_of_workload('workload:gpu_pending_pods:count')} }}}}{{{{ . | first | value }}}}{{{{ end }}}}"
_REASON = f'{{{{ with {_of_workload(OLDEST)} }}}}{{{{ . | first | label "reason" }}}}{{{{ end }}}}'
_POD = f'{{{{ with {_of_workload(OLDEST)} }}}}{{{{ . | first | label "pod" }}}}{{{{ end }}}}'
_COUNTS = (
    f'{{{{ range $i, $s := {_of_workload(BY_REASON)} | sortByLabel "reason" }}}}'
    "{{ if $i }}, {{ end }}{{ .Value }} {{ .Labels.reason }}{{ end }}"
)

GROUP = Group(
    "gpugauge-pending",
    (
        Recording(
            SINCE,
            by(
                f"{POD}, workload, workload_type",
                with_pod_labels("gpugauge_pending_pod_since_timestamp_seconds", "pod"),
                "min",
            ),
        ),
        Recording("workload:gpu_pending_pods:count", f"count by ({WORKLOAD}) ({SINCE})"),
        Recording("workload:gpu_pending_since_timestamp:seconds", f"min by ({WORKLOAD}) ({SINCE})"),
        Recording(BY_REASON, f"count by ({WORKLOAD}, reason) (\n  {REASON}\n)"),
        Recording(OLDEST, OLDEST_REASON),
        Alert(
            "GPUWorkloadPending",
            f"(time() - workload:gpu_pending_since_timestamp:seconds) > on () group_left () "
            f"{threshold('GPUWorkloadPending', PENDING_SECONDS)}",
            Severity.WARNING,
            Area.CAPACITY,
            Notify.TICKET,
            summary=(
                "{{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }} has been pending "
                "for {{ $value | humanizeDuration }}."
            ),
            description=(
                f"{_PODS} GPU pods of {{{{ $labels.workload_type }}}} {{{{ $labels.namespace }}}}/"
                "{{ $labels.workload }} could be scheduled and do not run. The oldest, "
                f"{_POD}, has been pending for {{{{ $value | humanizeDuration }}}}: {_REASON}. All: {_COUNTS}."
            ),
            for_="1m",
            keep_firing_for="5m",
            annotations=(("reason", _REASON), ("pods", _PODS)),
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
