"""The further PromQL of the receipt of one workload, with the same places as that of reports."""

MEMORY_MAX = """
max_over_time(
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

XIDS = """
max by (cluster, node, UUID, xid) (
  increase(gpugauge_xid_errors_total{cluster=~"$cluster", UUID!=""}[$range])
) > 0.5
"""

STARTS = """
max by (cluster, gpu_namespace, gpu_pod) (
  last_over_time(gpugauge_gpu_pod_start_timestamp_seconds{cluster=~"$cluster"}[$range])
)
"""

PENDING_SINCE = """
min by (cluster, gpu_namespace, gpu_pod) (
  last_over_time(gpugauge_pending_pod_since_timestamp_seconds{cluster=~"$cluster"}[$range])
)
"""
