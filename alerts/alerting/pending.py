"""Alerts on GPU workloads that are pending, or bound and not running, and the series that they read.

The watcher exposes, for each pending pod, since when and for which reason; here they are summed up per workload.
"""

from alerts.alerting.pending_texts import COUNTS, IDLE, OWNER, POD, PODS, REASON, STRANDED
from alerts.recorded.pending import RECORDINGS
from alerts.rules.rule import (
    QUICK_INTERVAL_SECONDS,
    Alert,
    AlertFamily,
    Area,
    DashboardUid,
    Group,
    Notify,
    Severity,
)

PENDING = """
workload:gpu_pending_over_objective:seconds
unless on (cluster, namespace, workload, workload_type)
(
  count by (cluster, namespace, workload, workload_type) (namespace_pod:gpu_pending_starting_since_timestamp:seconds)
  == on (cluster, namespace, workload, workload_type)
  workload:gpu_pending_pods:count
)
unless on (cluster, namespace, workload, workload_type)
(
  workload:gpu_pending_queued:info
  and on (cluster, resource)
  (
    count by (cluster, resource) (workload:gpu_pending_queued:info)
    >= on (cluster) group_left ()
    (
      max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUClusterSaturated"})
      or on (cluster)
      group by (cluster) (workload:gpu_pending_queued:info) * 10
    )
  )
)
unless on (cluster, namespace)
label_replace(
  gpugauge_namespace_alert_exemption{alert=~"GPUWorkloadPending|pending"},
  "namespace", "$1", "gpu_namespace", "(.*)"
)
"""
"""Not where all pods are bound: their GPUs are allocated, they do not wait for any. Not where so many workloads wait
for the same full resource that one alert about the cluster says it."""

SATURATED = """
count by (cluster, resource) (workload:gpu_pending_queued:info)
>= on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUClusterSaturated"})
  or on (cluster)
  group by (cluster) (workload:gpu_pending_queued:info) * 10
)
"""

STUCK = """
max by (cluster, namespace, workload, workload_type) (
  time() - namespace_pod:gpu_pending_starting_since_timestamp:seconds
)
> on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUWorkloadStuckStarting"})
  or on (cluster)
  group by (cluster) (namespace_pod:gpu_pending_starting_since_timestamp:seconds) * 1800
)
"""

UNSATISFIABLE = """
sum by (cluster, namespace, workload, workload_type) (
  workload:gpu_pending_pods_by_reason:count{reason=~"unsatisfiable_size|unknown_resource"}
)
"""

UNTRACKED = """
max by (cluster) (gpugauge_pending_workloads_untracked) > 0
"""

GROUP = Group(
    "gpugauge-pending",
    (
        *RECORDINGS,
        Alert(
            "GPUWorkloadPending",
            PENDING,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.TICKET,
            summary=f"{OWNER} has been pending for {{{{ $value | asDuration }}}}.",
            description=(
                f"{PODS} GPU pods of {OWNER} could be scheduled and do not run. The oldest, {POD}, is pending: "
                f"{REASON}. All: {COUNTS}. The workload has been pending for {{{{ $value | asDuration }}}}."
                f"{IDLE}{STRANDED}"
            ),
            for_="1m",
            keep_firing_for="5m",
            family=AlertFamily.PENDING,
            dashboard=DashboardUid.WORKLOAD,
            annotations=(("reason", REASON), ("pods", PODS)),
        ),
        Alert(
            "GPUClusterSaturated",
            SATURATED,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.DIGEST,
            summary="{{ $value }} workloads wait for {{ $labels.resource }}, of which none is free.",
            description=(
                "{{ $value }} workloads{{ with $labels.cluster }} of cluster {{ . }}{{ end }} have been pending for "
                "longer than their objective, because no {{ $labels.resource }} is free. No alert names each of them."
            ),
            for_="1m",
            keep_firing_for="18m",
            family=AlertFamily.CAPACITY,
            dashboard=DashboardUid.CAPACITY,
        ),
        Alert(
            "GPUWorkloadStuckStarting",
            STUCK,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.TICKET,
            summary=f"{OWNER} has not started for {{{{ $value | asDuration }}}}.",
            description=(
                f"A pod of {OWNER} has been bound to a node for {{{{ $value | asDuration }}}} and does not run. Its "
                f"GPUs are allocated meanwhile. All: {COUNTS}."
            ),
            for_="5m",
            keep_firing_for="18m",
            family=AlertFamily.PENDING,
            dashboard=DashboardUid.WORKLOAD,
            annotations=(("reason", REASON),),
        ),
        Alert(
            "GPUWorkloadUnsatisfiable",
            UNSATISFIABLE,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.TICKET,
            summary=f"{OWNER} requests GPUs that no node could ever give it.",
            description=(
                f"{{{{ $value }}}} pods of {OWNER} ask for more GPUs than any node has, or for a resource that no node "
                f"offers and none is going to: {REASON}."
            ),
            for_="5m",
            keep_firing_for="18m",
            family=AlertFamily.PENDING,
            dashboard=DashboardUid.WORKLOAD,
            annotations=(("reason", REASON),),
        ),
        Alert(
            "GPUPendingWorkloadsUntracked",
            UNTRACKED,
            Severity.WARNING,
            Area.CAPACITY,
            Notify.DIGEST,
            summary="{{ $value }} pending workloads have no series of their pods.",
            description=(
                "So many GPU workloads{{ with $labels.cluster }} of cluster {{ . }}{{ end }} are pending that "
                "{{ $value }} of them have no series of their pods: why they are pending is not in any alert."
            ),
            for_="15m",
            keep_firing_for="18m",
            family=AlertFamily.PENDING,
            dashboard=DashboardUid.CAPACITY,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
