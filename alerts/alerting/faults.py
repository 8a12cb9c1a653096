"""Alerts on what a GPU reports of its own hardware: memory, links, temperature, power limits, and its driver's verdict.

The faults are recorded in `alerts/recorded/faults.py`; each alert is about one of them.
"""

from alerts.alerting.gpu_texts import GPU, PLACE
from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

POWER_CAPPED = """
max by (cluster, node, UUID) (
  avg_over_time(gpugauge_clock_event{UUID!="", node!="", reason="power_cap"}[30m])
) > 0.9
and on (cluster, node, UUID)
node:gpu_fault:info{fault="power_limit_lowered"}
"""
"""At the power limit that the GPU came with this is plain full load."""

_ACTION = (
    "{{ if eq $value 1.0 }}reset the GPU{{ else if eq $value 2.0 }}restart the node"
    "{{ else if eq $value 3.0 }}end the work that uses peer-to-peer access, then reset"
    "{{ else if eq $value 4.0 }}drain the node and reset the GPU{{ else }}action {{ $value }}{{ end }}"
)


def _alert(name: str, fault: str, notify: Notify, family: AlertFamily, for_: str, what: str, do: str) -> Alert:
    return Alert(
        name,
        POWER_CAPPED if fault == "power_limit_lowered" else f'node:gpu_fault:info{{fault="{fault}"}}',
        Severity.CRITICAL if notify is Notify.PAGE else Severity.WARNING,
        Area.HARDWARE,
        notify,
        summary=f"GPU {{{{ $labels.UUID }}}} of node {{{{ $labels.node }}}} {what}.",
        description=f"{GPU}{PLACE} {what}. {do}",
        for_=for_,
        keep_firing_for="15m",
        family=family,
        dashboard=DashboardUid.DEVICE,
    )


GROUP = Group(
    "gpugauge-hardware-faults",
    (
        _alert(
            "GPURecoveryActionRequired",
            "recovery_action",
            Notify.PAGE,
            AlertFamily.LOST,
            "2m",
            f"needs what its driver asks for: {_ACTION}",
            "It cannot be used before.",
        ),
        _alert(
            "GPUEccUncorrectable",
            "ecc_uncorrectable",
            Notify.PAGE,
            AlertFamily.MEMORY,
            "",
            "has had {{ $value }} memory errors that could not be corrected since its driver was loaded",
            "Programs on it may have failed or computed wrong results. Drain the node and reset the GPU.",
        ),
        _alert(
            "GPURowRemapFailed",
            "row_remap_failed",
            Notify.PAGE,
            AlertFamily.MEMORY,
            "",
            "could not replace a row of its memory that is broken",
            "Drain the node and replace the GPU.",
        ),
        _alert(
            "GPURowRemapPending",
            "row_remap_pending",
            Notify.TICKET,
            AlertFamily.MEMORY,
            "15m",
            "will replace a broken row of its memory at its next reset",
            "Reset it when it is free.",
        ),
        _alert(
            "GPURowRemapExhausting",
            "row_remap_exhausting",
            Notify.TICKET,
            AlertFamily.MEMORY,
            "1h",
            "has {{ $value }} memory banks with few spare rows or none",
            "The next broken row there cannot be replaced: plan to replace the GPU.",
        ),
        _alert(
            "GPURetiredPagesPending",
            "retired_pages_pending",
            Notify.TICKET,
            AlertFamily.MEMORY,
            "15m",
            "will retire {{ $value }} pages of its memory at its next reset",
            "Reset it when it is free.",
        ),
        _alert(
            "GPUHealthCheckFailed",
            "health_failed",
            Notify.PAGE,
            AlertFamily.LOST,
            "5m",
            "has failed a health check of DCGM",
            "The exporter's series DCGM_EXP_GPU_HEALTH_STATUS names the check.",
        ),
        _alert(
            "GPUHealthCheckWarning",
            "health_warning",
            Notify.TICKET,
            AlertFamily.LOST,
            "5m",
            "has a warning of a health check of DCGM",
            "The exporter's series DCGM_EXP_GPU_HEALTH_STATUS names the check.",
        ),
        _alert(
            "GPUFabricUnhealthy",
            "fabric",
            Notify.PAGE,
            AlertFamily.LINK,
            "5m",
            "is not registered at its NVLink fabric, or the fabric is unhealthy",
            "Jobs on several GPUs fail or hang. Look at the fabric manager.",
        ),
        _alert(
            "GPUNVLinkErrors",
            "nvlink_errors",
            Notify.TICKET,
            AlertFamily.LINK,
            "15m",
            'has {{ $value | printf "%.1f" }} NVLink replays or recoveries per second',
            "A link, a bridge or the baseboard is bad.",
        ),
        _alert(
            "GPUPCIeReplaysHigh",
            "pcie_replays",
            Notify.TICKET,
            AlertFamily.LINK,
            "15m",
            'sends {{ $value | printf "%.0f" }} PCIe packets per minute again',
            "A slot, a riser or a retimer is bad.",
        ),
        _alert(
            "GPUPCIeLinkDegraded",
            "pcie_link_narrow",
            Notify.TICKET,
            AlertFamily.LINK,
            "15m",
            "uses {{ $value }} PCIe lanes, fewer than GPU and slot have",
            "Transfers to and from the host are slow.",
        ),
        _alert(
            "GPUTemperatureNearLimit",
            "near_slowdown_temperature",
            Notify.TICKET,
            AlertFamily.THERMAL,
            "10m",
            "is less than 5 °C below the temperature at which it slows down",
            "Check its cooling.",
        ),
        _alert(
            "GPUMemoryTemperatureNearLimit",
            "near_memory_temperature_limit",
            Notify.TICKET,
            AlertFamily.THERMAL,
            "10m",
            "has memory less than 5 °C below its highest temperature in use",
            "Check its cooling.",
        ),
        _alert(
            "GPUPowerCapped",
            "power_limit_lowered",
            Notify.DIGEST,
            AlertFamily.POWER,
            "30m",
            "is held down by a power limit that somebody has lowered",
            "It has been at the limit for {{ $value | asPercent }} of 30 minutes.",
        ),
    ),
)
