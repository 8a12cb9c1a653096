"""The alert GPUWatcherDown: no cluster watcher answers, leads, and knows the cluster as it is now."""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

DOWN = """
group by (cluster) (
  present_over_time(up{job=~"gpugauge-node|gpugauge-cluster"}[1h])
  or present_over_time(gpugauge_build_info[1h])
)
unless on (cluster)
(
  max by (cluster) (
    avg_over_time(up[10m])
    and present_over_time(up[5m])
    and on (cluster, job, instance)
    (
      present_over_time(up{job="gpugauge-cluster"}[10m])
      or present_over_time(gpugauge_watch_last_sync_timestamp_seconds[1h])
      or present_over_time(gpugauge_leader[1h])
    )
  ) >= 0.5
  unless on (cluster)
  (
    max by (cluster) (max_over_time(gpugauge_leader[5m])) == 0
    unless on (cluster)
    group by (cluster) (gpugauge_watch_last_sync_timestamp_seconds)
  )
  unless on (cluster)
  (
    max by (cluster) (
      min by (cluster, job, instance) (gpugauge_watch_last_sync_timestamp_seconds{object=~"pods|nodes"})
    )
    < time() - 300
  )
)
"""
"""A cluster that had any gpugauge target within the last hour, and where no watcher answers half of the scrapes, all
are standbys, or what the best one knows of pods and nodes is five minutes old. A watcher is known by its own series or
by the job name that our monitors set. One that is replaced has five minutes to start, and replicas to choose a leader.
One of two is enough. While a lease is introduced, a watcher without one, which exposes no `gpugauge_leader`, may be
beside standbys.
"""

GROUP = Group(
    "gpugauge-watcher",
    (
        Alert(
            "GPUWatcherDown",
            DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="No GPU watcher answers or leads{{ with $labels.cluster }} in cluster {{ . }}{{ end }}.",
            description=(
                "For 10 minutes no cluster watcher has answered most of its scrapes, led its replicas, and heard from "
                "the API server: pending reasons, owners, workload classes and exemptions of GPU pods are unknown or "
                "old, and alerts that depend on them do not fire."
            ),
            for_="5m",
            keep_firing_for="5m",
            family=AlertFamily.WATCHER,
            dashboard=DashboardUid.EXPORTER,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
