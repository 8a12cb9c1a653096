"""The thresholds of the alerts, as recorded constants. To use others, change them here or record them elsewhere.

Alerts read them with the default below where they are not recorded; dashboards show nothing there.
"""

from alerts.rule import Group, Recording

LOW_UTILIZATION = 0.3
"""Share of 15 minutes that the GPUs of a pod were busy, below which the pod has low utilization."""

IDLE = 0.01
"""The same share below which a GPU is idle. Not 0: on some systems engine activity never falls to 0."""

PENDING_SECONDS = 900.0
"""How long a GPU pod may be schedulable and not run."""


def _constant(alert: str, value: float) -> Recording:
    return Recording("global:gpugauge_threshold:value", f"vector({value:g})", (("alert", alert),))


GROUP = Group(
    "gpugauge-thresholds",
    (
        _constant("GPUPodLowUtilization", LOW_UTILIZATION),
        _constant("GPUPodIdle", IDLE),
        _constant("GPUWorkloadPending", PENDING_SECONDS),
    ),
)
