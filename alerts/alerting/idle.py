"""Alerts on GPUs that do nothing: whole pods, devices of a busy pod, pods of a busy workload, and shared devices.

A pod is idle while its devices are busy less than 1 %, on average. How long it may be follows from its workload class.
"""

from alerts.alerting.efficiency import KNOWN_DEVICES
from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Recording, Severity

WINDOW = """
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class=~"training|unknown"})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdleSecondsOfTraining"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 7200
)
or on (cluster, namespace, pod)
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class="interactive"})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdleSecondsOfInteractive"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 7200
)
or on (cluster, namespace, pod)
max by (cluster, namespace, pod) (pod:gpu_workload:info{workload_class=~"serving|"})
* on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdleSecondsOfServing"})
  or on (cluster)
  group by (cluster) (pod:gpu_workload:info) * 86400
)
"""
"""How long a pod may be idle, in seconds: the longest time for pods whose class the watcher does not know."""

IDLE = """
(
  (
    time() - pod:gpu_idle_since_timestamp:seconds < on (cluster, namespace, pod) pod:gpu_running:seconds
    or on (cluster, namespace, pod)
    pod:gpu_running:seconds and on (cluster, namespace, pod) pod:gpu_idle_since_timestamp:seconds
  )
  > on (cluster, namespace, pod)
  pod:gpu_idle_window:seconds
  and on (cluster, namespace, pod)
  (
    count_over_time(pod:gpu_busy:ratio[1h])
    >= on () group_left ()
    0.7 * max(count_over_time(global:gpu_pod_activity:info[1h]))
  )
  and on (cluster, namespace, pod)
  pod:gpu_judged:info
)
* on (cluster, namespace, pod) group_left (node, workload, workload_type)
pod:gpu_workload:info
"""
"""Since the pod is idle, or since its start, whichever is later: an earlier pod of the same name does not count. Of the
last hour, most must be known."""

PARTLY_IDLE = """
(
  sum by (cluster, namespace, pod) (pod:gpu_idle_devices:count15m)
  < on (cluster, namespace, pod)
  pod:gpu_busy:count
  and on (cluster, namespace, pod)
  pod:gpu_judged:info
)
* on (cluster, namespace, pod) group_left (node, workload, workload_type)
pod:gpu_workload:info
"""

IDLE_PODS = """
count by (cluster, namespace, workload, workload_type) (
  (
    max_over_time(pod:gpu_busy:ratio[30m])
    < on (cluster) group_left ()
    (
      max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
      or on (cluster)
      group by (cluster) (pod:gpu_workload:info) * 0.01
    )
    and on (cluster, namespace, pod)
    pod:gpu_judged:info
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info{workload_class="training"}
)
and on (cluster, namespace, workload, workload_type)
(
  count by (cluster, namespace, workload, workload_type) (
    (
      avg_over_time(pod:gpu_busy:ratio[30m])
      >= on (cluster) group_left ()
      (
        max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodLowUtilization"})
        or on (cluster)
        group by (cluster) (pod:gpu_workload:info) * 0.3
      )
    )
    * on (cluster, namespace, pod) group_left (workload, workload_type)
    pod:gpu_workload:info{workload_class="training"}
  )
  >= 0.5 * workload:gpu_pods:count
)
"""
"""Idle pods of a workload of which at least half of the pods are busy."""

SHORT_PODS = """
max by (cluster, namespace, workload, workload_type) (
  (
    pod:gpu_busy:ratio
    and on (cluster, namespace, pod)
    (pod:gpu_running:seconds < 2700)
    unless on (cluster, namespace, pod)
    pod:gpu_exempt:info
    unless on (cluster, namespace)
    namespace:gpu_exempt:info
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info{workload_class="training"}
)
"""
"""Pods that run for less than 45 minutes: too short for the alerts on single pods."""

SHORT_PODS_IDLE = """
max_over_time(workload:gpu_short_pods_busy:max[2h])
< on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
  or on (cluster)
  group by (cluster) (cluster:gpu_devices:count) * 0.01
)
and on (cluster, namespace, workload, workload_type)
(
  count_over_time(workload:gpu_short_pods_busy:max[2h])
  >= on () group_left ()
  0.4 * max(count_over_time(global:gpu_pod_activity:info[2h]))
)
and on () (count_over_time(global:gpu_pod_activity:info[2h:10m]) >= 12)
"""
"""One pod that runs on is in the series for 45 of the 120 minutes, less than four tenths: only pods that come again and
again make more."""

SHARED_IDLE = """
max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
  max_over_time(gpugauge_device_busy_ratio{UUID!="", node!=""}[30m])
)
< on (cluster) group_left ()
(
  max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
  or on (cluster)
  group by (cluster) (cluster:gpu_devices:count) * 0.01
)
and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
(
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
    last_over_time(gpugauge_device_allocated_pods{UUID!="", node!=""}[10m])
  )
  > 1
)
"""

_NAMES = (
    """{{ range $i, $s := printf "topk(3, max_over_time(pod:gpu_busy:ratio{cluster=%q,namespace=%q}[30m]) < 0.01 """
    """and on (pod) pod:gpu_workload:info{cluster=%q,namespace=%q,workload=%q,workload_type=%q})" """
    """$labels.cluster $labels.namespace $labels.cluster $labels.namespace $labels.workload $labels.workload_type """
    """| query | sortByLabel "pod" }}{{ if $i }}, {{ end }}{{ .Labels.pod }}{{ end }}"""
)
_OWNER = "{{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }}"
_POD = f"{_OWNER} (pod {{{{ $labels.pod }}}} on node {{{{ $labels.node }}}})"
_DEVICES = (
    """{{ with printf "pod:gpu_devices:count{cluster=%q,namespace=%q,pod=%q}" """
    """$labels.cluster $labels.namespace $labels.pod | query }}{{ . | first | value }}{{ end }}"""
)

GROUP = Group(
    "gpugauge-idle",
    (
        Recording("pod:gpu_idle_window:seconds", WINDOW),
        Alert(
            "GPUPodIdle",
            IDLE,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="Pod {{ $labels.namespace }}/{{ $labels.pod }} has used no GPU for {{ $value | asDuration }}.",
            description=(
                f"The GPUs of {_POD} have been idle, busy less than 1 %, for {{{{ $value | asDuration }}}}. "
                f"Nobody else can use them meanwhile.{KNOWN_DEVICES}"
            ),
            for_="10m",
            keep_firing_for="18m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
        Alert(
            "GPUPodPartlyIdle",
            PARTLY_IDLE,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="Pod {{ $labels.namespace }}/{{ $labels.pod }} uses only some of its GPUs.",
            description=(
                f"{{{{ $value }}}} of {_DEVICES} devices of {_POD} have been idle for more than 30 minutes, while "
                "others are busy."
            ),
            for_="30m",
            keep_firing_for="18m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
        Alert(
            "GPUWorkloadPartlyIdle",
            IDLE_PODS,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary=f"{_OWNER} has idle pods beside busy ones.",
            description=(
                f"{{{{ $value }}}} pods of {_OWNER} have been idle for 30 minutes, while at least half of its pods are "
                f"busy: {_NAMES}."
            ),
            for_="15m",
            keep_firing_for="18m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
        Recording("workload:gpu_short_pods_busy:max", SHORT_PODS),
        Alert(
            "GPUWorkloadShortPodsIdle",
            SHORT_PODS_IDLE,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary=f"The short pods of {_OWNER} do not use their GPUs.",
            description=(
                f"Pods of {_OWNER} come again and again, and none was busy more than {{{{ $value | asPercent }}}} "
                "at any time within 2 hours, though they had GPUs for much of that time."
            ),
            for_="10m",
            keep_firing_for="30m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.WORKLOAD,
        ),
        Alert(
            "GPUSharedDeviceIdle",
            SHARED_IDLE,
            Severity.WARNING,
            Area.EFFICIENCY,
            Notify.DIGEST,
            summary="No pod uses the shared GPU {{ $labels.UUID }} of node {{ $labels.node }}.",
            description=(
                "GPU {{ $labels.UUID }}{{ with $labels.GPU_I_ID }}, GPU instance {{ . }},{{ end }} of node "
                "{{ $labels.node }} is allocated to several pods and has been idle for 2 hours."
            ),
            for_="90m",
            keep_firing_for="18m",
            family=AlertFamily.UTILIZATION,
            dashboard=DashboardUid.DEVICE,
        ),
    ),
)
"""In the digest, as low utilization: an idle GPU harms nobody tonight."""
