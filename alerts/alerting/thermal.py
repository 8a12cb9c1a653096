"""Alerts on GPUs that heat or the power supply holds down, and one for a rack in which several nodes are.

Which clock event is a sign of what is in `throttles.py`.
"""

from alerts.alerting.gpu_texts import GPU, PLACE
from alerts.rules.rule import (
    Alert,
    AlertFamily,
    Area,
    DashboardUid,
    Group,
    Notify,
    Recording,
    Severity,
)

THROTTLED = """
group by (cluster, node, zone, rack) (
  group by (cluster, node) (
    max by (cluster, node, UUID, reason) (
      avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason=~"hw_thermal|hw_power_brake"}[10m]) > 0.5
    )
  )
  * on (cluster, node) group_left (zone, rack)
  topk by (cluster, node) (1, max by (cluster, node, zone, rack) (gpugauge_node_info{rack!=""}))
)
"""

RACK = """
count by (cluster, zone, rack) (node:gpu_throttled:info) >= 3
"""

HEAT = """
max by (cluster, node, UUID) (
  avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="hw_thermal"}[10m]) > 0.5
)
unless on (cluster, node)
(
  node:gpu_throttled:info
  and on (cluster, zone, rack)
  (count by (cluster, zone, rack) (node:gpu_throttled:info) >= 3)
)
"""
"""The mean over ten minutes: a moment of heat is none of anybody's business. Of a rack there is one alert."""

POWER_BRAKE = """
max by (cluster, node, UUID) (
  avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="hw_power_brake"}[10m]) > 0.5
)
unless on (cluster, node)
(
  node:gpu_throttled:info
  and on (cluster, zone, rack)
  (count by (cluster, zone, rack) (node:gpu_throttled:info) >= 3)
)
"""

SLOWDOWN = """
max by (cluster, node, UUID) (
  avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="hw_slowdown"}[10m]) > 0.5
)
unless on (cluster, node, UUID)
(
  max by (cluster, node, UUID, reason) (
    avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason=~"hw_thermal|hw_power_brake"}[10m]) > 0
  )
)
"""
"""Where the two causes that hardware tells apart do not explain it."""

WARMTH = """
max by (cluster, node, UUID) (
  avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="sw_thermal"}[30m]) > 0.9
)
unless on (cluster, node, UUID)
(
  max by (cluster, node, UUID) (
    avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="hw_thermal"}[10m]) > 0.5
  )
)
"""

ABSURD = """
max by (cluster, node, UUID) (gpugauge_gpu_power_watts{UUID!="", node!=""})
> on (cluster, node, UUID)
1.2 * max by (cluster, node, UUID) (gpugauge_gpu_power_limit_watts{UUID!="", node!=""})
or
max by (cluster, node, UUID) (gpugauge_gpu_temperature_celsius{UUID!="", node!=""}) > 150
"""

_TEMPERATURE = (
    """{{ with printf "max(gpugauge_gpu_temperature_celsius{cluster=%q,node=%q,UUID=%q})" """
    """$labels.cluster $labels.node $labels.UUID | query }} It has {{ . | first | value | printf "%.0f" }} °C."""
    "{{ end }}"
)
_NODES = (
    """{{ range $i, $s := printf "node:gpu_throttled:info{cluster=%q,zone=%q,rack=%q}" """
    """$labels.cluster $labels.zone $labels.rack | query | sortByLabel "node" }}"""
    "{{ if lt $i 10 }}{{ if $i }}, {{ end }}{{ .Labels.node }}{{ end }}{{ end }}"
)


def _gpu(name: str, expr: str, notify: Notify, family: AlertFamily, for_: str, cause: str, text: str) -> Alert:
    return Alert(
        name,
        expr,
        Severity.WARNING,
        Area.HARDWARE,
        notify,
        summary=f"GPU {{{{ $labels.UUID }}}} of node {{{{ $labels.node }}}} is slowed down by {cause}.",
        description=f"{GPU}{PLACE} {text}{_TEMPERATURE}",
        for_=for_,
        keep_firing_for="10m",
        family=family,
        dashboard=DashboardUid.DEVICE,
    )


GROUP = Group(
    "gpugauge-thermal",
    (
        Recording("node:gpu_throttled:info", THROTTLED),
        Alert(
            "GPURackThrottled",
            RACK,
            Severity.CRITICAL,
            Area.HARDWARE,
            Notify.PAGE,
            summary="Heat or power slows down GPUs of {{ $value }} nodes of rack {{ $labels.rack }}.",
            description=(
                "Rack {{ $labels.rack }}{{ with $labels.zone }} in zone {{ . }}{{ end }} has {{ $value }} nodes whose "
                f"GPUs are slowed down by heat or by the power supply: {_NODES}. The cause is in the rack or the "
                "room: cooling, air flow, power supply."
            ),
            for_="5m",
            keep_firing_for="10m",
            family=AlertFamily.THERMAL,
            dashboard=DashboardUid.HEALTH,
        ),
        _gpu(
            "GPUThermalThrottling",
            HEAT,
            Notify.TICKET,
            AlertFamily.THERMAL,
            "5m",
            "heat",
            "was slowed down by its hardware for {{ $value | asPercent }} of 10 minutes, because it is too hot.",
        ),
        _gpu(
            "GPUPowerBrake",
            POWER_BRAKE,
            Notify.TICKET,
            AlertFamily.POWER,
            "5m",
            "the power supply",
            "was slowed down for {{ $value | asPercent }} of 10 minutes, because the power supply of the "
            "node or rack asked for it.",
        ),
        _gpu(
            "GPUHardwareSlowdown",
            SLOWDOWN,
            Notify.TICKET,
            AlertFamily.CLOCK,
            "5m",
            "its hardware",
            "was slowed down by its hardware for {{ $value | asPercent }} of 10 minutes, and does not tell "
            "whether heat or power is the cause.",
        ),
        _gpu(
            "GPUSwThermalSlowdown",
            WARMTH,
            Notify.DIGEST,
            AlertFamily.THERMAL,
            "30m",
            "warmth",
            "was slowed down by its driver for {{ $value | asPercent }} of 30 minutes, because it is near "
            "the highest temperature that it may have in use.",
        ),
        Alert(
            "GPUReadingAbsurd",
            ABSURD,
            Severity.WARNING,
            Area.HARDWARE,
            Notify.DIGEST,
            summary="GPU {{ $labels.UUID }} of node {{ $labels.node }} reports a value that cannot be true.",
            description=(
                f"{GPU}{PLACE} reports a power draw above 1.2 times its limit, or a temperature above 150 °C: "
                '{{ $value | printf "%.0f" }}. The reading is wrong, and others of the GPU may be.'
            ),
            for_="5m",
            keep_firing_for="10m",
            family=AlertFamily.POWER,
            dashboard=DashboardUid.DEVICE,
        ),
    ),
)
