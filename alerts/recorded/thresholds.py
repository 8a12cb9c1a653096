"""The thresholds of the alerts, recorded as constants, and which of them is in force in each cluster.

Whoever wants another value records it elsewhere as `global:gpugauge_threshold_override:value` with the label `alert`,
and with the label `cluster` for one cluster alone. It takes precedence whether it is higher or lower. An alert reads
`cluster:gpugauge_threshold:value`, and uses the default that its expression has where that is not recorded.
"""

from dataclasses import dataclass

from alerts.rules.rule import Group, Recording

LOW_UTILIZATION = 0.3
IDLE = 0.01
PENDING_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold. `alert` is the value of the label `alert`: the alert's name, or begins with it."""

    alert: str
    value: float
    meaning: str
    """What it is compared with, and its unit."""


THRESHOLDS = (
    Threshold(
        "GPUPodLowUtilization",
        LOW_UTILIZATION,
        "share of 15 minutes that the GPUs of a training pod were busy, below which its utilization is low",
    ),
    Threshold(
        "GPUPodLowUtilizationUnknownOwner",
        LOW_UTILIZATION,
        "the same of a pod of which nothing says whose it is; 0 leaves such pods out",
    ),
    Threshold(
        "GPUPodIdle",
        IDLE,
        "share of time below which a GPU is idle; not 0, because on some systems engine activity never falls to 0",
    ),
    Threshold("GPUPodIdleSecondsOfTraining", 7200, "seconds that a pod of workload class training may be idle"),
    Threshold("GPUPodIdleSecondsOfInteractive", 7200, "seconds that a pod of workload class interactive may be idle"),
    Threshold("GPUPodIdleSecondsOfServing", 86400, "seconds that a pod of workload class serving may be idle"),
    Threshold(
        "GPUWorkloadPending",
        PENDING_SECONDS,
        "seconds that a workload may have a GPU pod that could be scheduled and does not run",
    ),
    Threshold("GPUWorkloadStuckStarting", 1800, "seconds that a GPU pod may be bound to a node and not run"),
    Threshold("GPUClusterSaturated", 10, "workloads pending for a full resource from which on one alert is enough"),
    Threshold("GPUWorkloadCrashLooping", 3, "restarts of containers of a pod within an hour from which on it loops"),
    Threshold(
        "GPUSharedDeviceContended", 0.95, "share of 15 minutes that a shared device is busy, above which it is full"
    ),
    Threshold(
        "GPUNamespaceLowUtilization",
        0.2,
        "share of a day that the devices of a namespace were busy, at least 8 of them",
    ),
    Threshold("GPUQuotaNearlyUsed", 0.9, "share of a namespace's quota of GPUs that is used"),
)

CLUSTERS = """
group by (cluster) (up)
or on (cluster)
group by (cluster) (
  {__name__=~"gpugauge_watch_last_sync_timestamp_seconds|gpugauge_node_gpu_allocatable|gpugauge_gpu_pod_info"}
)
or on (cluster)
group by (cluster) (
  {__name__=~"gpugauge_device_info|gpugauge_allocation_info|gpugauge_pending_pod_since_timestamp_seconds"}
)
"""
"""Every cluster of which anything is known, whichever of the exporters it has."""


def _constant(threshold: Threshold) -> Recording:
    return Recording("global:gpugauge_threshold:value", f"vector({threshold.value:g})", (("alert", threshold.alert),))


def _in_force(threshold: Threshold) -> Recording:
    """The override of the cluster, else the one without a cluster, else the constant; recorded twice, the larger."""
    expression = """
max by (cluster) (
  global:gpugauge_threshold_override:value{alert="ALERT", cluster=~".+", namespace="", priority_class=""}
)
or on (cluster)
cluster:gpu_monitored:info
* on () group_left ()
(
  max(global:gpugauge_threshold_override:value{alert="ALERT", cluster="", namespace="", priority_class=""})
  or
  max(global:gpugauge_threshold:value{alert="ALERT"})
)
""".replace("ALERT", threshold.alert)
    return Recording("cluster:gpugauge_threshold:value", expression, (("alert", threshold.alert),))


GROUP = Group("gpugauge-thresholds", tuple(_constant(threshold) for threshold in THRESHOLDS))

IN_FORCE = Group(
    "gpugauge-thresholds-in-force",
    (Recording("cluster:gpu_monitored:info", CLUSTERS), *(_in_force(threshold) for threshold in THRESHOLDS)),
)
"""A group of its own: it works without the constants, too, for alerts of which only an override is recorded."""
