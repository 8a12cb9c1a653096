"""The alerts GPUExporterDown (it does not answer or is no scrape target), GPUWatcherDown and GPUDeviceLabelsMissing.

GPUWatcherDown fires where no cluster watcher answers or is a scrape target, and where all that answer are standbys.
"""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

EXPORTER_DOWN = """
(
  max by (cluster, node) (up{job="gpugauge-node"}) == 0
  or
  (
    max by (cluster, node) (gpugauge_node_gpu_allocatable) > 0
    unless on (cluster, node) up{job="gpugauge-node"}
    unless on (cluster, node) gpugauge_device_info
  )
)
unless on (cluster, node) gpugauge_node_maintenance
"""
"""A scrape target that does not answer, or a node with GPUs that is no target and whose devices no exporter exposes.

Nodes under maintenance are left out: a driver upgrade evicts the exporter on purpose.
"""

WATCHER_DOWN = """
group by (cluster) (present_over_time(up{job=~"gpugauge-node|gpugauge-cluster"}[1h]))
unless on (cluster)
(
  max by (cluster) (up{job="gpugauge-cluster"}) == 1
  unless on (cluster)
  (
    max by (cluster) (gpugauge_leader) == 0
    unless on (cluster)
    group by (cluster) (gpugauge_watch_last_sync_timestamp_seconds)
  )
)
"""
"""A cluster that had any gpugauge target within the last hour, and where no watcher answers or all are standbys.

One of two is enough. While a lease is introduced, a watcher without one, which exposes no `gpugauge_leader`, may be
beside standbys.
"""

LABELS_MISSING = """
count by (cluster, job) (
  gpugauge_device_info{UUID="", adapter=""}
  or gpugauge_device_info{node="", adapter=""}
  or {__name__=~"DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_TEMP_CELSIUS", UUID="", uuid=""}
) > 0
"""
"""Devices without a label that identifies them: rules leave them out, because they would take several for one."""

GROUP = Group(
    "gpugauge-exporters",
    (
        Alert(
            "GPUExporterDown",
            EXPORTER_DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The GPUs of node {{ $labels.node }} are not monitored.",
            description=(
                "No GPU exporter on node {{ $labels.node }} has answered for 10 minutes: utilization, hardware errors "
                "and allocations of its GPUs are unknown."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUWatcherDown",
            WATCHER_DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="No GPU watcher answers or leads{{ with $labels.cluster }} in cluster {{ . }}{{ end }}.",
            description=(
                "No cluster watcher has answered, or led its replicas, for 10 minutes: pending reasons, owners, "
                "workload classes and exemptions of GPU pods are unknown, and alerts that depend on them do not fire."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.WATCHER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUDeviceLabelsMissing",
            LABELS_MISSING,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="Series of GPUs from job {{ $labels.job }} lack the label UUID or node.",
            description=(
                "{{ $value }} GPUs and MIG devices from job {{ $labels.job }} have no label UUID or no label node, so "
                "that they cannot be told apart. They are missing from all panels and alerts. Relabeling of the scrape "
                "has dropped or renamed the label."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
