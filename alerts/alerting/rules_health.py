"""Alerts about the rules themselves: series that they cannot use, that they do not record, and the watchdog."""

from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

LABELS_MISSING = """
count by (cluster, job) (
  gpugauge_device_info{UUID="", adapter=""}
  or gpugauge_device_info{node="", adapter=""}
  or {__name__=~"DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_TEMP_CELSIUS", UUID="", uuid=""}
) > 0
"""
"""Devices without a label that identifies them: rules leave them out, because they would take several for one."""

CLUSTERS_DISAGREE = """
count by (cluster, job) (
  up{job=~"gpugauge-node|gpugauge-cluster", cluster=""}
  or gpugauge_build_info{cluster=""}
)
and on ()
(
  up{job=~"gpugauge-node|gpugauge-cluster", cluster=~".+"}
  or gpugauge_build_info{cluster=~".+"}
)
or
count by (cluster, job) (
  group by (cluster, job, node) (gpugauge_device_info{node!="", adapter=""})
  unless on (cluster, node)
  gpugauge_node_info
  and on (node)
  gpugauge_node_info
)
"""
"""Targets without the label beside others that have it, and nodes that a watcher knows only under another cluster."""

NOT_RECORDED = """
label_replace(
  group by (cluster) (gpugauge_device_info{UUID!="", node!=""}) unless on (cluster) node:gpus:count,
  "recorded", "node:gpus:count", "", ""
)
or
label_replace(
  group by (cluster) (gpugauge_allocation_busy_ratio{UUID!="", node!=""}) unless on (cluster) pod:gpu_busy:ratio,
  "recorded", "pod:gpu_busy:ratio", "", ""
)
or
label_replace(
  group by (cluster) (gpugauge_gpu_pod_info) unless on (cluster) pod:gpu_workload:info
  and on (cluster)
  gpugauge_allocation_info,
  "recorded", "pod:gpu_workload:info", "", ""
)
or
label_replace(
  group by (cluster) (gpugauge_pending_pod_since_timestamp_seconds) unless on (cluster) workload:gpu_pending_pods:count,
  "recorded", "workload:gpu_pending_pods:count", "", ""
)
"""
"""What is exposed, and not recorded from it: a group is not loaded, or fails."""

EVALUATION_FAILS = """
sum by (cluster, rule_group) (
  increase(prometheus_rule_evaluation_failures_total{rule_group=~".*gpugauge-.*"}[15m])
) > 0
"""

GROUP = Group(
    "gpugauge-rules-health",
    (
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
        Alert(
            "GPUClusterLabelsDisagree",
            CLUSTERS_DISAGREE,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="Series of job {{ $labels.job }} have not the same cluster label as others of the same cluster.",
            description=(
                "Job {{ $labels.job }} has the cluster {{ with $labels.cluster }}{{ . }}{{ else }}label missing"
                "{{ end }}, and other series of the same nodes another one. Rules join by that label: alerts on pods "
                "stay silent, and GPUWatcherDown fires, until all scrapes of one cluster set the same value."
            ),
            for_="15m",
            keep_firing_for="5m",
            family=AlertFamily.RULES,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPURecordedSeriesMissing",
            NOT_RECORDED,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="Rules do not record {{ $labels.recorded }}{{ with $labels.cluster }} in cluster {{ . }}{{ end }}.",
            description=(
                "Exporters expose what {{ $labels.recorded }} is made of, and it is not recorded. Alerts and panels "
                "that read it are silent or empty."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.RULES,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPURuleEvaluationFailing",
            EVALUATION_FAILS,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The rule group {{ $labels.rule_group }} fails.",
            description=(
                "Prometheus could not evaluate a rule of the group {{ $labels.rule_group }} for 10 minutes. What it "
                "records is missing, and its alerts do not fire."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.RULES,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUAlertingWatchdog",
            "vector(1)",
            Severity.NONE,
            Area.EXPORTER,
            Notify.WATCHDOG,
            summary="Alerts about GPUs arrive.",
            description=(
                "This alert always fires. Whoever receives it raises an alarm when it stays away: then no alert about "
                "GPUs can arrive."
            ),
            for_="",
            family=AlertFamily.RULES,
            dashboard=DashboardUid.EXPORTER,
        ),
    ),
)
