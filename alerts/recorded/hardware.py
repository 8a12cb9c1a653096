"""Recorded aggregates of the hardware: GPUs whose clocks are held down, power limits, and MIG devices by profile.

Only what panels draw over time for a whole fleet; what they list once, such as XIDs, they read from the exporters.
"""

from alerts.rules.rule import Group, Recording

CLOCK_EVENTS = """
count by (cluster, node, reason) (
  group by (cluster, node, UUID, reason) (gpugauge_clock_event{UUID!="", node!=""} == 1)
)
"""
"""Only where there are any: most GPUs have none, and there are several reasons for each."""

POWER_LIMIT = """
max by (cluster, node) (
  sum without (UUID) (gpugauge_gpu_power_limit_watts{UUID!="", node!=""})
)
"""

MIG_DEVICES = """
count by (cluster, model, GPU_I_PROFILE) (
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
    gpugauge_device_info{UUID!="", node!="", GPU_CI_ID!=""}
  )
  or
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID!="", GPU_CI_ID=""}
    unless on (cluster, node, UUID, GPU_I_ID)
    gpugauge_device_info{GPU_CI_ID!=""}
  )
)
"""
"""Those that can be allocated: compute instances in place of a GPU instance that they divide."""

MIG_ALLOCATED = """
sum by (cluster, model, GPU_I_PROFILE) (
  (max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_allocated_pods{GPU_I_ID!=""}) > bool 0)
  * on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left (model, GPU_I_PROFILE)
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID!=""}
  )
)
"""

MIG_BUSY_SUM = """
sum by (cluster, model, GPU_I_PROFILE) (
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_busy_ratio{GPU_I_ID!=""})
  * on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left (model, GPU_I_PROFILE)
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID!=""}
  )
)
"""

MIG_BUSY_COUNT = """
count by (cluster, model, GPU_I_PROFILE) (
  max by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_busy_ratio{GPU_I_ID!=""})
  * on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) group_left (model, GPU_I_PROFILE)
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID, model, GPU_I_PROFILE) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID!=""}
  )
)
"""

GROUP = Group(
    "gpugauge-hardware",
    (
        Recording("node:gpu_clock_events:count", CLOCK_EVENTS),
        Recording("node:gpu_power_limit_watts:sum", POWER_LIMIT),
        Recording("model:gpu_mig_devices:count", MIG_DEVICES),
        Recording("model:gpu_mig_devices_allocated:count", MIG_ALLOCATED),
        Recording("model:gpu_mig_busy:sum", MIG_BUSY_SUM),
        Recording("model:gpu_mig_busy:count", MIG_BUSY_COUNT),
    ),
)
