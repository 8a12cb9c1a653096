"""Recorded state of the node exporters: the share of scrapes that each answers, and which of them are down.

A node exporter is known by its own series, whatever its job is called; before it has ever answered, by the job name
that our monitors set. Without a label `node` on the target, what it exposed within the last hour names its node; where
nothing does, it keeps the label `instance`.
"""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Group, Recording

TARGET_NODE = """
group by (cluster, job, instance, node) (
  topk by (cluster, job, instance) (1,
    max by (cluster, job, instance, node) (
      max_over_time(
        (
          timestamp(gpugauge_build_info{node!=""}) or timestamp(gpugauge_devices_observed{node!=""})
        )[1h:5m]
      )
    )
  )
)
unless on (cluster, job, instance)
(
  present_over_time(gpugauge_watch_last_sync_timestamp_seconds[1h])
  or present_over_time(gpugauge_leader[1h])
)
"""
"""The node of each scrape target that is a node exporter. An address can be that of another node's exporter after a
while: the one that was seen last counts. What a watcher exposes about itself may have a `node` too."""

UP = """
max by (cluster, node) (
  avg_over_time(up[10m]) * on (cluster, job, instance) group_left (node) node:gpu_exporter_target:info
)
or
max by (cluster, node) (avg_over_time(up{job="gpugauge-node", node!=""}[10m]))
or
max by (cluster, instance) (
  avg_over_time(up{job="gpugauge-node", node=""}[10m])
  unless on (cluster, job, instance)
  node:gpu_exporter_target:info
)
"""
"""An average, so that an exporter which answers one scrape in five is not taken for one that answers. A pod of the
exporter that was replaced counts for ten more minutes, in which the new one may start."""

DOWN = """
(
  round(node:gpu_exporter_up:ratio, 0.01) < 0.5
  or
  0 * (
    max by (cluster, node) (gpugauge_node_gpu_allocatable{resource!~"nvidia_com_[A-Z].*"}) > 0
    and on (cluster, node)
    max by (cluster, node) (gpugauge_node_gpu_allocatable{resource!~"nvidia_com_[A-Z].*"} offset 5m) > 0
    unless on (cluster, node)
    node:gpu_exporter_up:ratio
    unless on (cluster, node)
    gpugauge_device_info
  )
)
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down|planned"}
"""
"""Targets that answer less than half of the scrapes, and nodes that offer GPUs, of which no exporter is a target and
whose devices no exporter exposes; a new node has five minutes. Resources of GPUs that virtual machines get are written
with capital letters: no exporter need run there. A cordon alone excuses nothing: work may run on."""

GROUP = Group(
    "gpugauge-exporter-targets",
    (
        Recording("node:gpu_exporter_target:info", TARGET_NODE),
        Recording("node:gpu_exporter_up:ratio", UP),
        Recording("node:gpu_exporter_down:ratio", DOWN),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
