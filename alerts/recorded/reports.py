"""What reports sum up over days, recorded every 5 minutes: energy, memory, and devices by how busy they were.

Each value is of the 5 minutes before, so that `sum_over_time` of energy is the energy of the whole time. Energy belongs
to a pod where a whole GPU is allocated to it alone; what MIG devices and shared GPUs draw is one sum per cluster.
"""

from alerts.rules.rule import Group, Recording

REPORT_INTERVAL_SECONDS = 300

ENERGY_OF_NODE = """
max by (cluster, node) (
  sum without (UUID) (increase(gpugauge_gpu_energy_joules_total{UUID!="", node!=""}[5m]))
)
"""

ENERGY_OF_POD = """
sum by (cluster, namespace, pod) (
  label_replace(
    label_replace(
      max by (cluster, node, UUID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_info{UUID!="", node!="", GPU_I_ID="", sharing=~"|exclusive"}
        unless on (cluster, node, gpu_namespace, gpu_pod)
        pod:gpu_moved:info
      )
      * on (cluster, node, UUID) group_left ()
      (
        max by (cluster, node, UUID) (increase(gpugauge_gpu_energy_joules_total{UUID!="", node!=""}[5m]))
        and on (cluster, node, UUID)
        (gpugauge_device_allocated_pods{GPU_I_ID=""} == 1)
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
)
"""

ENERGY_OF_WORKLOAD = """
sum by (cluster, namespace, workload, workload_type) (
  pod:gpu_energy_joules:increase5m
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""

ENERGY_OF_MODEL = """
sum by (cluster, model) (
  node:gpu_energy_joules:increase5m * on (cluster, node) group_left (model) node:gpu_model:info
)
"""

SHARED_ENERGY = """
sum by (cluster) (
  max by (cluster, node, UUID) (increase(gpugauge_gpu_energy_joules_total{UUID!="", node!=""}[5m]))
  and on (cluster, node, UUID)
  (gpugauge_device_allocated_pods > 0)
  unless on (cluster, node, UUID)
  (
    gpugauge_allocation_info{GPU_I_ID="", sharing=~"|exclusive"}
    and on (cluster, node, UUID)
    (gpugauge_device_allocated_pods{GPU_I_ID=""} == 1)
  )
)
"""
"""Of GPUs that are allocated and not to one pod alone."""

MEMORY = """
max by (cluster, namespace, workload, workload_type) (
  label_replace(
    label_replace(
      max by (cluster, gpu_namespace, gpu_pod) (
        max_over_time(gpugauge_allocation_memory_used_bytes{UUID!="", node!=""}[5m])
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""
"""The most that one device of the workload had in use."""

MEMORY_SUM = """
sum by (cluster, namespace, workload, workload_type) (
  label_replace(
    label_replace(
      sum by (cluster, gpu_namespace, gpu_pod) (
        max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
          avg_over_time(gpugauge_allocation_memory_used_bytes{UUID!="", node!=""}[5m])
        )
      ),
      "namespace", "$1", "gpu_namespace", "(.*)"
    ),
    "pod", "$1", "gpu_pod", "(.*)"
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""

ACTIVITY = """
sum by (cluster, namespace, workload, workload_type) (
  (
    pod:gpu_devices:count
    and on (cluster, namespace, pod)
    (avg_over_time(pod:gpu_busy:ratio[5m]) >= LEAST < MOST)
  )
  * on (cluster, namespace, pod) group_left (workload, workload_type)
  pod:gpu_workload:info
)
"""

"""How many devices of the workload were so busy, by the mean of their pod."""

HOURS = """
sum_over_time(workload:gpu_devices:sum[299s:1m]) / 60
"""

UNUSED_HOURS = """
sum_over_time((workload:gpu_busy:count - workload:gpu_busy:sum)[299s:1m]) / 60
"""
"""GPU-hours of the last 5 minutes, from a value per minute: those that were allocated, and those of devices that are
not shared in which no engine was active. A second less than 5 minutes has at most five of them."""

_BUCKETS = (("0-1", "0", "0.01"), ("1-10", "0.01", "0.1"), ("10-30", "0.1", "0.3"), ("30-60", "0.3", "0.6"))
_LAST_BUCKET = ("60-100", "0.6", "+Inf")


def _activity(percent: str, least: str, most: str) -> Recording:
    expression = ACTIVITY.replace("LEAST", least).replace("MOST", most)
    return Recording("workload:gpu_devices_by_activity:count5m", expression, (("percent", percent),))


GROUP = Group(
    "gpugauge-reports",
    (
        Recording("node:gpu_energy_joules:increase5m", ENERGY_OF_NODE),
        Recording("model:gpu_energy_joules:increase5m", ENERGY_OF_MODEL),
        Recording("cluster:gpu_energy_joules:increase5m", "sum by (cluster) (node:gpu_energy_joules:increase5m)"),
        Recording("cluster:gpu_shared_energy_joules:increase5m", SHARED_ENERGY),
        Recording("pod:gpu_energy_joules:increase5m", ENERGY_OF_POD),
        Recording("workload:gpu_energy_joules:increase5m", ENERGY_OF_WORKLOAD),
        Recording(
            "namespace:gpu_energy_joules:increase5m",
            "sum by (cluster, namespace) (pod:gpu_energy_joules:increase5m)",
        ),
        Recording("workload:gpu_memory_used_bytes:avg5m", MEMORY_SUM),
        Recording("workload:gpu_memory_used_bytes:max5m", MEMORY),
        Recording("workload:gpu_hours:sum5m", HOURS),
        Recording("workload:gpu_unused_hours:sum5m", UNUSED_HOURS),
        *(_activity(*bucket) for bucket in (*_BUCKETS, _LAST_BUCKET)),
    ),
    interval=REPORT_INTERVAL_SECONDS,
)
