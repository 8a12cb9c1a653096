"""Recorded sums per namespace: pods, allocated devices, and of the exclusive ones activity, memory and power.

Sums and counts are recorded apart, because a mean of means is wrong. Series of one node that two scrapes expose count
once: `without` adds up what one of them has, and `max` takes one of the sums. Without `honor_labels`, the plain pod
labels are those of the scrape target, and the exposed ones are `exported_…`.
"""

from alerts.rules.rule import Group, Recording

BUSY_SUM = """
sum by (cluster, namespace) (
  label_replace(
    max by (cluster, node, gpu_namespace) (
      sum without (
        UUID, GPU_I_ID, GPU_CI_ID, gpu_pod, gpu_container, gpu_pod_uid,
        namespace, pod, container, exported_namespace, exported_pod, exported_container
      ) (
        gpugauge_allocation_busy_ratio{UUID!="", node!=""}
      )
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
"""

BUSY_COUNT = """
sum by (cluster, namespace) (
  label_replace(
    max by (cluster, node, gpu_namespace) (
      count without (
        UUID, GPU_I_ID, GPU_CI_ID, gpu_pod, gpu_container, gpu_pod_uid,
        namespace, pod, container, exported_namespace, exported_pod, exported_container
      ) (
        gpugauge_allocation_busy_ratio{UUID!="", node!=""}
      )
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
"""

IDLE = """
sum by (cluster, namespace) (
  label_replace(
    max by (cluster, node, gpu_namespace) (
      count without (
        UUID, GPU_I_ID, GPU_CI_ID, gpu_pod, gpu_container, gpu_pod_uid,
        namespace, pod, container, exported_namespace, exported_pod, exported_container
      ) (
        avg_over_time(gpugauge_allocation_busy_ratio{UUID!="", node!=""}[15m])
        < scalar(max(cluster:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))
        < on (cluster) group_left ()
        (
          max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
          or on (cluster)
          group by (cluster) (node:gpus:count) * 0.01
        )
      )
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
or on (cluster, namespace)
namespace:gpu_busy:count * 0
"""

MEMORY = """
sum by (cluster, namespace) (
  label_replace(
    max by (cluster, node, gpu_namespace) (
      sum without (
        UUID, GPU_I_ID, GPU_CI_ID, gpu_pod, gpu_container, gpu_pod_uid,
        namespace, pod, container, exported_namespace, exported_pod, exported_container
      ) (
        gpugauge_allocation_memory_used_bytes{UUID!="", node!=""}
      )
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
"""

POWER = """
sum by (cluster, namespace) (
  label_replace(
    max by (cluster, node, UUID, gpu_namespace) (
      gpugauge_allocation_info{UUID!="", node!="", GPU_I_ID="", sharing=~"|exclusive"}
    )
    * on (cluster, node, UUID) group_left ()
    (
      max by (cluster, node, UUID) (gpugauge_gpu_power_watts{UUID!="", node!=""})
      and on (cluster, node, UUID)
      (gpugauge_device_allocated_pods{GPU_I_ID=""} == 1)
    ),
    "namespace", "$1", "gpu_namespace", "(.*)"
  )
)
"""
"""Of whole GPUs that are allocated to one pod alone: what a MIG device or a pod on a shared GPU draws is not known."""

GROUP = Group(
    "gpugauge-namespaces",
    (
        Recording("namespace:gpu_pods:count", "count by (cluster, namespace) (pod:gpu_devices:count)"),
        Recording("namespace:gpu_devices:sum", "sum by (cluster, namespace) (pod:gpu_devices:count)"),
        Recording("namespace:gpu_busy:sum", BUSY_SUM),
        Recording("namespace:gpu_busy:count", BUSY_COUNT),
        Recording("namespace:gpu_idle_devices:count15m", IDLE),
        Recording("namespace:gpu_memory_used_bytes:sum", MEMORY),
        Recording("namespace:gpu_power_watts:sum", POWER),
    ),
)
