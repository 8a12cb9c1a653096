"""Alerts about node exporters that do not answer: GPUExporterDown for each node, GPUFleetBlind for many at once.

Which exporters answer is recorded in `alerts/recorded/exporters.py`.
"""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

DOWN = "node:gpu_exporter_down:ratio"

FLEET_BLIND = """
round(
  count by (cluster) (node:gpu_exporter_down:ratio)
  / on (cluster)
  count by (cluster) (node:gpu_exporter_up:ratio or node:gpu_exporter_down:ratio),
  0.01
) > 0.2
and on (cluster)
count by (cluster) (node:gpu_exporter_down:ratio) >= 2
"""
"""A common cause: a rollout, a certificate, a network policy. One exporter is never a fleet."""

_WHERE = "{{ if $labels.node }}node {{ $labels.node }}{{ else }}{{ $labels.instance }}{{ end }}"
_SEEN_BY_ANOTHER = (
    """{{ with printf "gpugauge_device_info{adapter='dcgm-exporter',cluster=%q,node=%q}" """
    """$labels.cluster $labels.node | query }}Its GPUs are still exposed by dcgm-exporter"""
    """{{ else }}Utilization, hardware errors and allocations of its GPUs are unknown{{ end }}"""
)
_NODES = """{{ with printf "count(node:gpu_exporter_down:ratio{cluster=%q})" $labels.cluster | query }}"""
_COUNT = _NODES + "{{ . | first | value }}{{ end }}"

GROUP = Group(
    "gpugauge-exporters",
    (
        Alert(
            "GPUExporterDown",
            DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary=f"The GPU exporter of {_WHERE} does not answer.",
            description=(
                f"The GPU exporter of {_WHERE} has answered {{{{ $value | asPercent }}}} of the scrapes of "
                f"the last 10 minutes, or is no scrape target. {_SEEN_BY_ANOTHER}."
            ),
            for_="5m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUFleetBlind",
            FLEET_BLIND,
            Severity.CRITICAL,
            Area.EXPORTER,
            Notify.PAGE,
            summary=(
                "{{ $value | asPercent }} of the GPU exporters do not answer"
                "{{ with $labels.cluster }} in cluster {{ . }}{{ end }}."
            ),
            description=(
                f"{_COUNT} GPU exporters do not answer: {{{{ $value | asPercent }}}} of all. Utilization, "
                "hardware errors and allocations on their nodes are unknown, and no alert on them can fire."
            ),
            for_="5m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
