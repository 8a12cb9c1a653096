"""The PromQL that explains pods. `$uuids` is a regular expression of UUIDs, the others are as their names say."""

IDLE = """
group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod, resource) (
  gpugauge_allocation_info{cluster=~"$cluster"}
)
and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod)
(
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod) (
    max_over_time(gpugauge_allocation_busy_ratio{cluster=~"$cluster"}[1h])
  ) < 0.01
  and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, gpu_namespace, gpu_pod)
  gpugauge_allocation_busy_ratio{cluster=~"$cluster"} offset 1h
)
"""
"""Devices that a pod has had alone for an hour and in which they never were busy for 1 % of a collection."""

MODELS = """
group by (cluster, node, UUID, model) (gpugauge_device_info{cluster=~"$cluster", UUID=~"$uuids", model!=""})
"""

WAITED = """
histogram_quantile($quantile,
  sum by (le) (
    increase(gpugauge_pod_scheduling_wait_seconds_bucket{
      cluster=~"$cluster", gpu_namespace=~"$namespace", resource="$resource", size="$size"
    }[7d])
  )
)
"""

WAITS = """
sum(
  increase(gpugauge_pod_scheduling_wait_seconds_count{
    cluster=~"$cluster", gpu_namespace=~"$namespace", resource="$resource", size="$size"
  }[7d])
)
"""

ALLOCATIONS = """
group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, sharing) (
  last_over_time(gpugauge_allocation_info{cluster=~"$cluster", gpu_namespace="$namespace", gpu_pod="$pod"}[15m])
)
"""

ALLOCATED_PODS = """
max by (UUID, GPU_I_ID, GPU_CI_ID) (
  last_over_time(gpugauge_device_allocated_pods{cluster=~"$cluster", UUID=~"$uuids"}[15m])
)
"""

BUSY_MEAN = """
max by (UUID, GPU_I_ID, GPU_CI_ID) (
  avg_over_time(gpugauge_allocation_busy_ratio{cluster=~"$cluster", gpu_namespace="$namespace", gpu_pod="$pod"}[1h])
)
"""

BUSY_MAX = """
max by (UUID, GPU_I_ID, GPU_CI_ID) (
  max_over_time(gpugauge_allocation_busy_ratio{cluster=~"$cluster", gpu_namespace="$namespace", gpu_pod="$pod"}[1h])
)
"""

TENSOR = """
max by (UUID, GPU_I_ID, GPU_CI_ID) (
  avg_over_time(gpugauge_device_tensor_active_ratio{cluster=~"$cluster", UUID=~"$uuids"}[1h])
)
"""

PCIE = """
max by (UUID) (avg_over_time(DCGM_FI_PROF_PCIE_RX_BYTES{cluster=~"$cluster", UUID=~"$uuids"}[1h]))
+ on (UUID)
max by (UUID) (avg_over_time(DCGM_FI_PROF_PCIE_TX_BYTES{cluster=~"$cluster", UUID=~"$uuids"}[1h]))
"""

CLOCK_EVENTS = """
max by (UUID, reason) (avg_over_time(gpugauge_clock_event{cluster=~"$cluster", UUID=~"$uuids"}[1h]))
"""

CPU_THROTTLED = """
sum(
  increase(container_cpu_cfs_throttled_periods_total{
    cluster=~"$cluster", namespace="$namespace", pod="$pod", container!=""
  }[1h])
)
/
sum(
  increase(container_cpu_cfs_periods_total{
    cluster=~"$cluster", namespace="$namespace", pod="$pod", container!=""
  }[1h])
)
"""
"""Of cAdvisor, which the kubelet serves; absent for a pod without a CPU limit, which cannot be throttled."""

CPU_SEEN = """
sum(
  rate(container_cpu_usage_seconds_total{cluster=~"$cluster", namespace="$namespace", pod="$pod", container!=""}[1h])
)
"""

IO_WAITING = """
max(
  rate(container_pressure_io_waiting_seconds_total{cluster=~"$cluster", namespace="$namespace", pod="$pod"}[1h])
)
"""
"""Of cAdvisor, where the node has pressure stall information."""

RESTARTS = """
sum(
  increase(kube_pod_container_status_restarts_total{cluster=~"$cluster", namespace="$namespace", pod="$pod"}[1h])
)
"""
"""Of kube-state-metrics."""
