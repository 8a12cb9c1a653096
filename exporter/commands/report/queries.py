"""The PromQL of reports: one answer for each part of the time.

`$range` is the length of the part. `$steps` is the same as a subquery, one second shorter, so that Prometheus 2 and 3
take as many samples of it: those at its end and at every step before, back to its begin, which belongs to the part
before. Values are sums and counts of steps; a caller multiplies them by the length of a step.
"""

GPUS = """
count_over_time(
  (
    group by (cluster, node, UUID) (last_over_time(gpugauge_device_up{cluster=~"$cluster", UUID!=""}[1h]))
    or
    group by (cluster, node, UUID) (last_over_time(gpugauge_device_info{cluster=~"$cluster", UUID!=""}[1h]))
  )[$steps]
)
"""
"""A GPU belongs to the fleet for an hour after it was seen last: in that time it is unobserved, then it is gone."""

DEVICES = """
count_over_time(
  (
    group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
      last_over_time(gpugauge_device_info{cluster=~"$cluster", UUID!=""}[1h])
    )
  )[$steps]
)
"""

STATES = """
max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, state) (
  increase(gpugauge_device_state_seconds_total{cluster=~"$cluster", UUID!=""}[$range])
)
"""
"""Seconds, counted by the exporter itself between scrapes."""

DOWN = """
count_over_time(
  (max by (cluster, node, UUID) (gpugauge_device_up{cluster=~"$cluster", UUID!=""}) == 0)[$steps]
)
"""

UNHEALTHY = """
count_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      gpugauge_device_allocatable{cluster=~"$cluster", UUID!=""}
    ) == 0
    unless on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods{cluster=~"$cluster"} > 0)
  )[$steps]
)
"""
"""Devices that the kubelet does not offer and no pod has."""

ALLOCATED = """
sum_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      gpugauge_device_allocated_pods{cluster=~"$cluster", UUID!=""}
    ) > bool 0
  )[$steps]
)
"""

ALLOCATION_KNOWN = """
count_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      gpugauge_device_allocated_pods{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

STRANDED = """
sum_over_time(
  (max by (cluster, node) (gpugauge_node_gpu_stranded{cluster=~"$cluster", resource="nvidia_com_gpu"}))[$steps]
)
"""

SHARES = """
sum_over_time(
  (
    sum by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_replicas{cluster=~"$cluster", UUID!=""}
    )
    / on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left ()
    sum by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      gpugauge_allocation_replicas{cluster=~"$cluster", UUID!=""}
    )
    or
    group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_info{cluster=~"$cluster", UUID!=""}
    )
    / on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left ()
    count by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
        gpugauge_allocation_info{cluster=~"$cluster", UUID!=""}
      )
    )
  )[$steps]
)
"""
"""How much of each device each pod has: of a shared one its part of the replicas that are allocated."""

HAD = """
count_over_time(
  (
    group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_info{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

BUSY_SUM = """
sum_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

BUSY_COUNT = """
count_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

BUSY_P95 = """
quantile_over_time(0.95,
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

IDLE = """
sum_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    ) < bool 0.01
  )[$steps]
)
"""

MEMORY_SUM = """
sum_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    ) * 0
    + on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left ()
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      gpugauge_device_memory_used_bytes{cluster=~"$cluster", UUID!=""}
    )
  )[$steps]
)
"""

MEMORY_COUNT = """
count_over_time(
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    )
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    gpugauge_device_memory_used_bytes{cluster=~"$cluster", UUID!=""}
  )[$steps]
)
"""

MEMORY_P99 = """
quantile_over_time(0.99,
  (
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
      gpugauge_allocation_busy_ratio{cluster=~"$cluster", UUID!=""}
    ) * 0
    + on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left ()
    max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
      max_over_time(gpugauge_device_memory_used_bytes{cluster=~"$cluster", UUID!=""}[5m])
    )
  )[$steps]
)
"""

MEMORY_TOTAL = """
max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
  last_over_time(gpugauge_device_memory_total_bytes{cluster=~"$cluster", UUID!=""}[$range])
)
"""

ENERGY = """
sum by (cluster) (
  max by (cluster, node, UUID) (increase(gpugauge_gpu_energy_joules_total{cluster=~"$cluster", UUID!=""}[$range]))
)
"""

POWER = """
sum_over_time(
  (
    sum by (cluster) (max by (cluster, node, UUID) (gpugauge_gpu_power_watts{cluster=~"$cluster", UUID!=""}))
  )[$steps]
)
"""

POWER_IDLE = """
sum_over_time(
  (
    sum by (cluster) (
      max by (cluster, node, UUID) (gpugauge_gpu_power_watts{cluster=~"$cluster", UUID!=""})
      and on (cluster, node, UUID)
      (max by (cluster, node, UUID) (gpugauge_device_busy_ratio{cluster=~"$cluster", UUID!=""}) < 0.01)
    )
  )[$steps]
)
"""

PENDING_PODS = """
sum_over_time((sum by (cluster, gpu_namespace) (gpugauge_pending_pods{cluster=~"$cluster"}))[$steps])
"""

PENDING_DEVICES = """
sum_over_time((sum by (cluster, gpu_namespace) (gpugauge_pending_devices{cluster=~"$cluster"}))[$steps])
"""

WORKLOADS = """
group by (cluster, gpu_namespace, gpu_pod, workload, workload_type, workload_class) (
  last_over_time(gpugauge_gpu_pod_info{cluster=~"$cluster"}[$range])
)
"""

NODE_WORKLOADS = """
group by (cluster, gpu_namespace, gpu_pod, workload, workload_type) (
  last_over_time(gpugauge_allocation_info{cluster=~"$cluster", workload!=""}[$range])
)
"""
"""What the node exporter knows of workloads, where no watcher does."""

OWNERS = """
group by (cluster, gpu_namespace, team, cost_center) (
  last_over_time(gpugauge_namespace_info{cluster=~"$cluster"}[$range])
)
"""

POOLS = """
group by (cluster, node, pool) (last_over_time(gpugauge_node_info{cluster=~"$cluster", pool!=""}[$range]))
"""

PRICES = """
max by (model, pool, capacity_type, currency) (
  last_over_time(gpugauge_price_per_hour{cluster=~"$cluster"}[$range])
)
"""
