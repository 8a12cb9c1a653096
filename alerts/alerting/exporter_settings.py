"""Alerts on how node exporters are set up: counters files, the audit log, versions of exporters and drivers."""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

REJECTED = """
max by (cluster, node) (gpugauge_config_rejected_rows{node!=""}) > 0
or
max by (cluster, node) (gpugauge_config_last_reload_successful{node!=""} == bool 0) > 0
"""

DIFFERS = """
count by (cluster, pool) (
  group by (cluster, pool, sha256) (
    group by (cluster, node, sha256) (gpugauge_config_info{node!=""})
    * on (cluster, node) group_left (pool)
    topk by (cluster, node) (1, max by (cluster, node, pool) (gpugauge_node_info))
    or
    group by (cluster, node, sha256) (gpugauge_config_info{node!=""})
    unless on (cluster, node)
    gpugauge_node_info
  )
) > 1
"""
"""Nodes that no watcher knows count as one pool."""

AUDIT_BROKEN = """
max by (cluster, node) (increase(gpugauge_audit_write_failures_total{node!=""}[15m])) > 0
or
(time() - max by (cluster, node) (gpugauge_audit_last_write_timestamp_seconds{node!=""})) > 600
"""
"""A line is written at least every two minutes."""

VERSIONS = """
count by (cluster) (group by (cluster, version) (gpugauge_build_info{version!=""})) > 1
"""

DRIVERS = """
count by (cluster, pool) (
  group by (cluster, pool, driver_version) (
    group by (cluster, node, driver_version) (gpugauge_device_info{node!="", driver_version!="", adapter=""})
    * on (cluster, node) group_left (pool)
    topk by (cluster, node) (1, max by (cluster, node, pool) (gpugauge_node_info))
  )
) > 1
"""

_POOL = "{{ with $labels.pool }} of pool {{ . }}{{ end }}{{ with $labels.cluster }} in cluster {{ . }}{{ end }}"

GROUP = Group(
    "gpugauge-exporter-settings",
    (
        Alert(
            "GPUExporterConfigRejected",
            REJECTED,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The counters file of the GPU exporter of node {{ $labels.node }} is rejected in whole or in part.",
            description=(
                "The GPU exporter of node {{ $labels.node }} cannot use its counters file, and goes on with the one "
                "before, or leaves out {{ $value }} of its rows. Its log names file, line and value."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUExporterConfigDiffers",
            DIFFERS,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.DIGEST,
            summary=f"GPU exporters{_POOL} use {{{{ $value }}}} different counters files.",
            description=(
                f"For a day GPU exporters{_POOL} have used {{{{ $value }}}} different counters files: metrics of some "
                "nodes are missing."
            ),
            for_="1d",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUAuditLogBroken",
            AUDIT_BROKEN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The audit log of node {{ $labels.node }} is not written.",
            description=(
                "The GPU exporter of node {{ $labels.node }} failed to write its audit log, or has not written it for "
                "10 minutes. Who was allocated which GPU meanwhile will be missing from it."
            ),
            for_="1m",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUExporterVersionSkew",
            VERSIONS,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.DIGEST,
            summary="{{ $value }} versions of gpugauge run{{ with $labels.cluster }} in cluster {{ . }}{{ end }}.",
            description=(
                "For six hours {{ $value }} versions of gpugauge have run: a rollout has not ended. The rules work "
                "with the version before theirs and the one after."
            ),
            for_="6h",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUDriverVersionMixed",
            DRIVERS,
            Severity.WARNING,
            Area.HARDWARE,
            Notify.DIGEST,
            summary=f"GPUs{_POOL} have {{{{ $value }}}} versions of the driver.",
            description=(
                f"For a day GPUs{_POOL} have had {{{{ $value }}}} versions of the driver: an upgrade has not ended. "
                "Jobs across nodes may fail or be slow."
            ),
            for_="1d",
            keep_firing_for="15m",
            family=AlertFamily.NODE,
            dashboard=DashboardUid.HEALTH,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
