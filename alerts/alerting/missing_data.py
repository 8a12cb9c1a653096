"""Alerts on data that other alerts need and nobody exposes: profiling fields, series of pods, and scrapes in time."""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

NO_PROFILING = """
(
  group by (cluster, node) (gpugauge_gpu_temperature_celsius{node!="", adapter=""})
  and on (cluster)
  group by (cluster) (
    gpugauge_device_tensor_active_ratio
    or gpugauge_device_dram_active_ratio
    or gpugauge_device_sm_active_ratio
  )
  unless on (cluster, node)
  gpugauge_device_tensor_active_ratio
  unless on (cluster, node)
  gpugauge_device_dram_active_ratio
  unless on (cluster, node)
  gpugauge_device_sm_active_ratio
  unless on (cluster, node)
  gpugauge_field_unsupported_devices{field=~"DCGM_FI_PROF_.+"} > 0
  or
  group by (cluster, node) (
    gpugauge_source_problem{
      node!="",
      reason=~"profiling_(in_use|module_not_loaded|no_permission|requires_root|paused|blank|engine_error)"
    }
  )
)
unless on (cluster, node)
gpugauge_source_problem{reason="profiling_paused_by_file"}
"""
"""Other nodes of the cluster expose profiling fields, and this one none and does not say that its GPUs have none; or
its engine says what is wrong with them. Where no node has any, the counters file may leave them out."""

NO_PODS = """
label_replace(
  group by (cluster) (gpugauge_device_allocated_pods{adapter=""} > 0)
  unless on (cluster)
  gpugauge_gpu_pod_start_timestamp_seconds,
  "problem", "no_start_times", "", ""
)
or
label_replace(
  group by (cluster) (gpugauge_device_allocated_pods{adapter=""} > 0)
  unless on (cluster)
  gpugauge_gpu_pod_phase,
  "problem", "no_phases", "", ""
)
"""
"""Whether a watcher or the adapter for kube-state-metrics exposes them is all the same."""

SLOW = """
max by (cluster, node) (
  avg_over_time(scrape_duration_seconds[15m])
  * on (cluster, job, instance) group_left (node)
  node:gpu_exporter_target:info
)
> 8
or
max by (cluster, node) (
  avg_over_time(gpugauge_source_read_duration_seconds{node!=""}[15m])
)
> 8
"""
"""Seconds: 80 % of 10, the scrape timeout that Prometheus has by default. Rules cannot read the one in use."""


def _alert(name: str, expr: str, for_: str, summary: str, description: str, dashboard: DashboardUid) -> Alert:
    return Alert(
        name,
        expr,
        Severity.WARNING,
        Area.EXPORTER,
        Notify.DIGEST if name != "GPUMonitoringDependencyMissing" else Notify.TICKET,
        summary=summary,
        description=description,
        for_=for_,
        keep_firing_for="15m",
        family=AlertFamily.EXPORTER,
        dashboard=dashboard,
    )


GROUP = Group(
    "gpugauge-missing-data",
    (
        _alert(
            "GPUProfilingMetricsMissing",
            NO_PROFILING,
            "30m",
            "The exporter of node {{ $labels.node }} reads no profiling field of its GPUs.",
            "For 30 minutes node {{ $labels.node }} has exposed no activity of tensor cores, memory or "
            "multiprocessors, or its engine has said that it cannot: the utilization of MIG devices is unknown, and "
            "that of GPUs is the coarser one.",
            DashboardUid.EXPORTER,
        ),
        _alert(
            "GPUMonitoringDependencyMissing",
            NO_PODS,
            "15m",
            "Nobody exposes the "
            '{{ if eq $labels.problem "no_phases" }}phases{{ else }}start times{{ end }} of GPU pods'
            "{{ with $labels.cluster }} of cluster {{ . }}{{ end }}.",
            "GPUs are allocated to pods, and neither a cluster watcher nor the adapter for kube-state-metrics exposes "
            'the {{ if eq $labels.problem "no_phases" }}phases{{ else }}start times{{ end }} of those pods: alerts on '
            "low utilization and on pending workloads cannot fire.",
            DashboardUid.HEALTH,
        ),
        _alert(
            "GPUExporterSlow",
            SLOW,
            "15m",
            "The GPU exporter of node {{ $labels.node }} takes {{ $value | printf "
            '"%.0f" }} seconds to answer or to read its GPUs.',
            "For 15 minutes a scrape of the GPU exporter of node {{ $labels.node }}, or a read of one of its sources, "
            'has taken {{ $value | printf "%.0f" }} seconds on average. Prometheus gives up after 10 seconds unless '
            "told otherwise: then data have holes.",
            DashboardUid.EXPORTER,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
