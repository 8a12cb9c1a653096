"""Alerts on XIDs, by class: for those who repair hardware, and for the owners of programs.

They go by the age of the last event: a counter that begins with its first event has no increase, and a GPU that is lost
has no counter any more. Where only the counter is exposed, its first value counts. The codes are those of
`xid_classes.py`, in which every code has one class.
"""

from alerts.alerting.gpu_texts import GPU, PLACE
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

CRITICAL = """
max by (cluster, node, UUID, xid) (
  gpugauge_xid_last_timestamp_seconds{
    UUID!="", node!="", xid=~"46|48|54|62|64|74|79|95|110|119|120|136|140|142|143|151|155|156|158"
  } > time() - 900
)
or
max by (cluster, node, UUID, xid) (
  gpugauge_xid_errors_total{
    UUID!="", node!="", xid=~"46|48|54|62|64|74|79|95|110|119|120|136|140|142|143|151|155|156|158"
  } > 0
)
unless on (cluster, node, UUID, xid) gpugauge_xid_last_timestamp_seconds
unless on (cluster, node, UUID, xid) (gpugauge_xid_errors_total offset 15m > 0)
"""

WARNING = """
max by (cluster, node, UUID, xid) (
  gpugauge_xid_last_timestamp_seconds{
    UUID!="", node!="",
    xid!~"0|46|48|54|62|64|74|79|95|110|119|120|136|140|142|143|151|155|156|158",
    xid!~"8|11|13|25|31|32|45|68|69|43|44|63|92|137|154|157|171|172"
  } > time() - 900
)
"""
"""Every code that no other class has, so that a new one is not overlooked."""

APPLICATION = """
max by (cluster, node, UUID, xid) (
  gpugauge_xid_last_timestamp_seconds{UUID!="", node!="", xid=~"8|11|13|25|31|32|45|68|69"} > time() - 900
)
"""

SAME_NAMESPACE = """
count by (cluster, gpu_namespace, xid) (
  group by (cluster, gpu_namespace, node, xid) (
    max by (cluster, node, UUID, xid) (
      gpugauge_xid_last_timestamp_seconds{UUID!="", node!="", xid=~"8|11|13|25|31|32|68|69"} > time() - 3600
    )
    * on (cluster, node, UUID) group_left (gpu_namespace)
    group by (cluster, node, UUID, gpu_namespace) (last_over_time(gpugauge_allocation_info{sharing="exclusive"}[10m]))
  )
) >= 3
"""
"""Without 45, which follows the end of any program."""

_CODE = "XID {{ $labels.xid }}"
_HOW_OFTEN = (
    """{{ with printf "sum(increase(gpugauge_xid_errors_total{cluster=%q,node=%q,UUID=%q,xid=%q}[1h]))" """
    """$labels.cluster $labels.node $labels.UUID $labels.xid | query }}{{ with . | first | value }}"""
    """{{ if gt . 1.0 }} {{ printf "%.0f" . }} times within an hour{{ end }}{{ end }}{{ end }}"""
)
_PODS = (
    """{{ range $i, $s := printf "last_over_time(gpugauge_allocation_info{cluster=%q,node=%q,UUID=%q}[15m])" """
    """$labels.cluster $labels.node $labels.UUID | query }}{{ if lt $i 5 }}{{ if $i }}, {{ else }} Allocated to pod """
    "{{ end }}{{ .Labels.gpu_namespace }}/{{ .Labels.gpu_pod }}{{ end }}{{ end }}"
)

GROUP = Group(
    "gpugauge-xids",
    (
        Alert(
            "GPUXidCritical",
            CRITICAL,
            Severity.CRITICAL,
            Area.HARDWARE,
            Notify.PAGE,
            summary=f"{_CODE} on GPU {{{{ $labels.UUID }}}} of node {{{{ $labels.node }}}}: it needs repair.",
            description=(
                f"{GPU}{PLACE} had {_CODE}{_HOW_OFTEN}: it cannot be used until it is reset, or its node restarted or "
                f"repaired.{_PODS}"
            ),
            for_="",
            keep_firing_for="30m",
            family=AlertFamily.XID,
            dashboard=DashboardUid.DEVICE,
        ),
        Alert(
            "GPUXidWarning",
            WARNING,
            Severity.WARNING,
            Area.HARDWARE,
            Notify.TICKET,
            summary=f"{_CODE} on GPU {{{{ $labels.UUID }}}} of node {{{{ $labels.node }}}}.",
            description=(
                f"{GPU}{PLACE} had {_CODE}{_HOW_OFTEN}. The GPU may go on working; reset it when it is free.{_PODS}"
            ),
            for_="",
            keep_firing_for="30m",
            family=AlertFamily.XID,
            dashboard=DashboardUid.DEVICE,
        ),
        Alert(
            "GPUXidApplication",
            APPLICATION,
            Severity.WARNING,
            Area.HARDWARE,
            Notify.DIGEST,
            summary=f"{_CODE} on GPU {{{{ $labels.UUID }}}} of node {{{{ $labels.node }}}}: a program failed.",
            description=(
                f"{GPU} had {_CODE}{_HOW_OFTEN}. A program that used it made a mistake or was ended; the hardware is "
                f"sound.{_PODS}"
            ),
            for_="",
            keep_firing_for="15m",
            family=AlertFamily.XID,
            dashboard=DashboardUid.DEVICE,
        ),
        Alert(
            "GPUXidSameNamespaceManyNodes",
            SAME_NAMESPACE,
            Severity.WARNING,
            Area.HARDWARE,
            Notify.DIGEST,
            summary=f"{_CODE} in pods of namespace {{{{ $labels.gpu_namespace }}}} on {{{{ $value }}}} nodes.",
            description=(
                f"Within an hour GPUs of {{{{ $value }}}} nodes had {_CODE} while pods of namespace "
                "{{ $labels.gpu_namespace }} used them: the program is at fault, not the hardware. Replace no GPU."
            ),
            for_="10m",
            keep_firing_for="15m",
            family=AlertFamily.XID,
            dashboard=DashboardUid.HEALTH,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
