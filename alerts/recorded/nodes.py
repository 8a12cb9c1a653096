"""Recorded sums per node: GPUs, devices by state, activity, memory, power and temperature, and the model of its GPUs.

Series of one node that two scrapes expose count once: `without` adds up what one of them has, and `max` takes one of
the sums. A device that lacks a label which identifies it (UUID, node) is left out: GPUDeviceLabelsMissing names it.
"""

from alerts.rules.rule import Group, Recording

GPUS = """
count by (cluster, node) (
  group by (cluster, node, UUID) (gpugauge_device_info{UUID!="", node!=""})
)
"""

ALLOCATED_GPUS = """
sum by (cluster, node) (
  max by (cluster, node, UUID) (gpugauge_device_allocated_pods{UUID!="", node!=""}) > bool 0
)
"""

UNALLOCATED_GPUS = """
sum by (cluster, node) (
  max by (cluster, node, UUID) (gpugauge_device_allocated_pods{UUID!="", node!="", adapter=""}) == bool 0
)
"""
"""Absent where no allocation is known, and so for a stock dcgm-exporter, which names pods or does not."""

DEVICES = """
count by (cluster, node) (
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_info{UUID!="", node!="", GPU_CI_ID!=""})
  or
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID!="", GPU_CI_ID=""}
    unless on (cluster, node, UUID, GPU_I_ID)
    gpugauge_device_info{GPU_CI_ID!=""}
  )
  or
  group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_info{UUID!="", node!="", GPU_I_ID=""}
    unless on (cluster, node, UUID)
    gpugauge_device_info{GPU_I_ID!=""}
  )
)
"""
"""The devices that can be allocated: of each GPU the smallest ones that it consists of."""

ALLOCATED_DEVICES = """
max by (cluster, node) (
  sum without (gpu, UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_allocated_pods{UUID!="", node!=""} > bool 0)
)
"""

UNALLOCATED_DEVICES = """
max by (cluster, node) (
  sum without (gpu, UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_allocated_pods{UUID!="", node!="", adapter=""} == bool 0
  )
)
"""

BUSY_SUM = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_busy_ratio{UUID!="", node!=""})
)
"""

BUSY_COUNT = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_busy_ratio{UUID!="", node!=""})
)
"""

TENSOR_SUM = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_tensor_active_ratio{UUID!="", node!=""})
)
"""

TENSOR_COUNT = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_tensor_active_ratio{UUID!="", node!=""})
)
"""

ALLOCATED_BUSY_SUM = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_busy_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

ALLOCATED_BUSY_COUNT = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_busy_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

ALLOCATED_IDLE_NOW = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_busy_ratio{UUID!="", node!=""}
    < scalar(max(cluster:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))
    < on (cluster) group_left ()
    (
      max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
      or on (cluster)
      group by (cluster) (node:gpus:count) * 0.01
    )
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
or on (cluster, node)
node:gpu_allocated_busy:count * 0
"""
"""The threshold of each cluster joins only the few devices that are below the highest: the join is what costs time."""

ALLOCATED_IDLE = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (
    avg_over_time(gpugauge_device_busy_ratio{UUID!="", node!=""}[15m])
    < scalar(max(cluster:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))
    < on (cluster) group_left ()
    (
      max by (cluster) (cluster:gpugauge_threshold:value{alert="GPUPodIdle"})
      or on (cluster)
      group by (cluster) (node:gpus:count) * 0.01
    )
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
or on (cluster, node)
node:gpu_allocated_busy:count * 0
"""

ALLOCATED_TENSOR_SUM = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_tensor_active_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

ALLOCATED_TENSOR_COUNT = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_tensor_active_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

ALLOCATED_DRAM_SUM = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_dram_active_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

ALLOCATED_DRAM_COUNT = """
max by (cluster, node) (
  count without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_dram_active_ratio{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    (gpugauge_device_allocated_pods > 0)
  )
)
"""

MEMORY_USED = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (
    gpugauge_device_memory_used_bytes{UUID!="", node!=""}
    and on (cluster, node, UUID, GPU_I_ID, GPU_CI_ID)
    gpugauge_device_memory_total_bytes
  )
)
"""
"""Of the devices whose total is known, so that the share is one of the same devices."""

MEMORY_TOTAL = """
max by (cluster, node) (
  sum without (UUID, GPU_I_ID, GPU_CI_ID) (gpugauge_device_memory_total_bytes{UUID!="", node!=""})
)
"""
"""Wherever it is known, the used part is too: it is their sum."""

POWER = """
max by (cluster, node) (
  sum without (UUID) (gpugauge_gpu_power_watts{UUID!="", node!=""})
)
"""

TEMPERATURE = """
max by (cluster, node) (gpugauge_gpu_temperature_celsius{UUID!="", node!=""})
"""

MODEL = """
(
  group by (cluster, node, model) (gpugauge_device_info{model!="", node!=""})
  unless on (cluster, node)
  count by (cluster, node) (group by (cluster, node, model) (gpugauge_device_info{model!="", node!=""})) > 1
)
or on (cluster, node)
label_replace(
  group by (cluster, node) (gpugauge_device_info{model!="", node!=""}),
  "model", "mixed", "", ""
)
"""
"""The model of a node's GPUs; `mixed` where it has several, so that what is summed by model adds up to all."""

GROUPS = (
    Group(
        "gpugauge-nodes",
        (
            Recording("node:gpus:count", GPUS),
            Recording("node:gpus_allocated:count", ALLOCATED_GPUS),
            Recording("node:gpus_unallocated:count", UNALLOCATED_GPUS),
            Recording("node:gpu_devices:count", DEVICES),
            Recording("node:gpu_devices_allocated:count", ALLOCATED_DEVICES),
            Recording("node:gpu_devices_unallocated:count", UNALLOCATED_DEVICES),
            Recording("node:gpu_model:info", MODEL),
        ),
    ),
    Group(
        "gpugauge-node-activity",
        (
            Recording("node:gpu_busy:sum", BUSY_SUM),
            Recording("node:gpu_busy:count", BUSY_COUNT),
            Recording("node:gpu_tensor_active:sum", TENSOR_SUM),
            Recording("node:gpu_tensor_active:count", TENSOR_COUNT),
            Recording("node:gpu_memory_used_bytes:sum", MEMORY_USED),
            Recording("node:gpu_memory_total_bytes:sum", MEMORY_TOTAL),
            Recording("node:gpu_power_watts:sum", POWER),
            Recording("node:gpu_temperature_celsius:max", TEMPERATURE),
        ),
    ),
    Group(
        "gpugauge-node-allocated",
        (
            Recording("node:gpu_allocated_busy:sum", ALLOCATED_BUSY_SUM),
            Recording("node:gpu_allocated_busy:count", ALLOCATED_BUSY_COUNT),
            Recording("node:gpu_allocated_tensor_active:sum", ALLOCATED_TENSOR_SUM),
            Recording("node:gpu_allocated_tensor_active:count", ALLOCATED_TENSOR_COUNT),
            Recording("node:gpu_allocated_dram_active:sum", ALLOCATED_DRAM_SUM),
            Recording("node:gpu_allocated_dram_active:count", ALLOCATED_DRAM_COUNT),
        ),
    ),
    Group(
        "gpugauge-node-idle",
        (
            Recording("node:gpu_idle_devices:count", ALLOCATED_IDLE_NOW),
            Recording("node:gpu_idle_devices:count15m", ALLOCATED_IDLE),
        ),
    ),
)
"""Several, because Prometheus evaluates groups side by side and the rules of one group after each other."""
