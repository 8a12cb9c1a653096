"""The adapter for a stock (unmodified) dcgm-exporter: records what gpugauge's node exporter exposes, under its names.

It reads DCGM-named series of every naming generation: up to dcgm-exporter 4.8.2 the host is the label `Hostname`, since
then `hostname`; 4.9 renames fields and replaces percent by a ratio; with `--use-old-namespace` the UUID is `uuid` and
pods have labels of their own. The unit follows from the name of a field, never from the size of a value. Devices that
gpugauge exposes itself are left out, by UUID. What is recorded here has the label `adapter`.
"""

from alerts.rules.rule import Group, Recording

ADAPTER = "dcgm-exporter"


def _of_device(samples: str) -> str:
    """Give the series of an exporter the labels `node` and `UUID`, and one series to each device.

    The node is that of the scrape target where it has one, else the host: without a name of the node from Kubernetes,
    dcgm-exporter calls its own pod the host. `found_node` and `found_uuid` keep the series of two exporters of one node
    apart until `max` takes one of them.
    """
    return """
max by (cluster, node, UUID, GPU_I_ID) (
  label_replace(
    label_replace(
      max by (cluster, found_node, found_uuid, GPU_I_ID) (
        label_replace(
          label_join(
            label_join(
              SAMPLES,
              "found_uuid", "", "UUID", "uuid"
            ),
            "found_node", ";", "node", "hostname", "Hostname"
          ),
          "found_node", "$1", "found_node", ";*([^;]*).*"
        )
      ),
      "UUID", "$1", "found_uuid", "(.*)"
    ),
    "node", "$1", "found_node", "(.*)"
  )
  unless on (UUID) vector(0)
  unless on (node) vector(0)
  unless on (cluster, UUID) gpugauge_device_info{adapter=""}
)
""".replace("SAMPLES", samples)


def _of_gpu(samples: str) -> str:
    return f"max by (cluster, node, UUID) ({_of_device(samples)})"


_BUSY = """
(
  max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (
    {__name__=~"DCGM_FI_DEV_ENC_UTIL|DCGM_FI_DEV_DEC_UTIL", GPU_I_ID=""}
  ) / 100
  > on (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID)
  (
    max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)
    or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO)
    or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=""}) / 100
    or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_GPU_UTIL_RATIO{GPU_I_ID=""})
  )
)
or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)
or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO)
or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=""}) / 100
or max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_GPU_UTIL_RATIO{GPU_I_ID=""})
"""
"""The larger of compute and video activity, as the node exporter has it. NVML's utilization is 0 or missing for a MIG
device, so it is read for GPUs alone."""

_SM = """
max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (
  {__name__=~"DCGM_FI_PROF_SM_ACTIVE|DCGM_FI_PROF_SM_UTIL_RATIO"}
)
"""

_TENSOR = """
max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (
  {__name__=~"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE|DCGM_FI_PROF_TENSOR_UTIL_RATIO"}
)
"""

_DRAM = """
max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (
  {__name__=~"DCGM_FI_PROF_DRAM_ACTIVE|DCGM_FI_PROF_DRAM_UTIL_RATIO"}
)
"""

_MEMORY_USED = """
max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_FB_USED) * 1048576
"""

_MEMORY_TOTAL = """
(
  max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_FB_USED)
  + max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_FB_FREE)
  or
  max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_FB_TOTAL)
  - max by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID) (DCGM_FI_DEV_FB_RESERVED)
) * 1048576 > 0
"""
"""What can be allocated: used and free, or the total without the reserved part, which is the same."""

_POWER = """
max by (cluster, node, hostname, Hostname, UUID, uuid) (
  {__name__=~"DCGM_FI_DEV_POWER_USAGE|DCGM_FI_DEV_BOARD_POWER_WATTS"}
)
"""

_POWER_LIMIT = """
max by (cluster, node, hostname, Hostname, UUID, uuid) (
  {__name__=~"DCGM_FI_DEV_ENFORCED_POWER_LIMIT|DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"}
)
"""

_ENERGY = """
max by (cluster, node, hostname, Hostname, UUID, uuid) (DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION) / 1000
"""

_TEMPERATURE = """
max by (cluster, node, hostname, Hostname, UUID, uuid) (
  {__name__=~"DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_TEMP_CELSIUS"}
)
"""

_MEMORY_TEMPERATURE = """
max by (cluster, node, hostname, Hostname, UUID, uuid) (
  {__name__=~"DCGM_FI_DEV_MEMORY_TEMP|DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"}
)
"""

_INFO = """
topk by (cluster, node, UUID, GPU_I_ID) (1,
  max by (cluster, node, UUID, GPU_I_ID, GPU_I_PROFILE, gpu, model) (
    label_replace(label_replace(
      max by (cluster, found_node, found_uuid, GPU_I_ID, GPU_I_PROFILE, gpu, model) (
        label_replace(label_replace(label_replace(label_replace(label_replace(label_replace(label_replace(
          label_replace(
            label_join(
              label_join(
                group by (cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID, GPU_I_PROFILE, gpu, modelName) (
                  {__name__=~"DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_TEMP_CELSIUS"}
                  or {__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO"}
                  or {__name__=~"DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"}
                  or DCGM_FI_DEV_FB_USED
                ),
                "found_uuid", "", "UUID", "uuid"
              ),
              "found_node", ";", "node", "hostname", "Hostname"
            ),
            "found_node", "$1", "found_node", ";*([^;]*).*"
          ),
          "model", "$1", "modelName", "(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)"),
          "model", "$1-$2", "model", "([^ ]+) +(.*)")
      ),
      "UUID", "$1", "found_uuid", "(.*)"),
      "node", "$1", "found_node", "(.*)")
    unless on (UUID) vector(0)
    unless on (node) vector(0)
    unless on (cluster, UUID) gpugauge_device_info{adapter=""}
  )
)
"""
"""Every device has at least one of these fields in every generation. Each of the six steps replaces one blank of the
model, as the node exporter spells it."""

_ALLOCATION = """
group by (cluster, node, UUID, GPU_I_ID, gpu_namespace, gpu_pod, gpu_container, gpu_pod_uid) (
  label_replace(label_replace(
    max by (cluster, found_node, found_uuid, GPU_I_ID, gpu_namespace, gpu_pod, gpu_container, gpu_pod_uid) (
      label_replace(label_replace(
        label_join(
          label_join(
            label_replace(label_replace(label_replace(
              group by (
                cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID,
                exported_namespace, exported_pod, exported_container, pod_uid
              ) (
                {__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO", exported_pod!=""}
                or {__name__=~"DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", exported_pod!=""}
                or DCGM_FI_DEV_FB_USED{exported_pod!=""}
              ),
              "gpu_namespace", "$1", "exported_namespace", "(.*)"),
              "gpu_pod", "$1", "exported_pod", "(.*)"),
              "gpu_container", "$1", "exported_container", "(.*)")
            or
            label_replace(label_replace(label_replace(
              group by (
                cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID,
                pod_namespace, pod_name, container_name, pod_uid
              ) (
                {__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO", pod_name!=""}
                or {__name__=~"DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", pod_name!=""}
                or DCGM_FI_DEV_FB_USED{pod_name!=""}
              ),
              "gpu_namespace", "$1", "pod_namespace", "(.*)"),
              "gpu_pod", "$1", "pod_name", "(.*)"),
              "gpu_container", "$1", "container_name", "(.*)")
            or
            label_replace(label_replace(label_replace(
              group by (
                cluster, node, hostname, Hostname, UUID, uuid, GPU_I_ID,
                namespace, pod, container, pod_uid
              ) (
                (
                  {__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO", pod!=""}
                  or {__name__=~"DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", pod!=""}
                  or DCGM_FI_DEV_FB_USED{pod!=""}
                )
                unless on (cluster, job, instance, namespace, pod)
                up
              ),
              "gpu_namespace", "$1", "namespace", "(.*)"),
              "gpu_pod", "$1", "pod", "(.*)"),
              "gpu_container", "$1", "container", "(.*)"),
            "found_uuid", "", "UUID", "uuid"
          ),
          "found_node", ";", "node", "hostname", "Hostname"
        ),
        "found_node", "$1", "found_node", ";*([^;]*).*"),
        "gpu_pod_uid", "$1", "pod_uid", "(.*)")
    ),
    "UUID", "$1", "found_uuid", "(.*)"),
    "node", "$1", "found_node", "(.*)")
  unless on (UUID) vector(0)
  unless on (node) vector(0)
  unless on (cluster, UUID) gpugauge_device_allocated_pods{adapter=""}
)
"""
"""The pod labels of the fields: with `honor_labels: false`, with `--use-old-namespace`, and with `honor_labels: true`,
where an unallocated device has the pod label of its scrape target. That is no allocation; it is recognized by `up`,
which has the same label."""

_ALLOCATED_PODS = """
count by (cluster, node, UUID, GPU_I_ID) (
  group by (cluster, node, UUID, GPU_I_ID, gpu_namespace, gpu_pod) (gpugauge_allocation_info{adapter="dcgm-exporter"})
)
"""
"""Never 0: that no pod is named may mean that dcgm-exporter does not ask the kubelet."""


def _of_pod(quantity: str) -> str:
    """Give a value of a device to the pod that it is exclusively allocated to."""
    return """
max by (cluster, node, UUID, GPU_I_ID, gpu_namespace, gpu_pod) (gpugauge_allocation_info{adapter="dcgm-exporter"})
* on (cluster, node, UUID, GPU_I_ID) group_left ()
(
  max by (cluster, node, UUID, GPU_I_ID) (QUANTITY)
  and on (cluster, node, UUID, GPU_I_ID)
  (gpugauge_device_allocated_pods{adapter="dcgm-exporter"} == 1)
)
""".replace("QUANTITY", quantity)


_RULES = (
    ("gpugauge_device_info", _INFO),
    ("gpugauge_device_busy_ratio", _of_device(_BUSY)),
    ("gpugauge_device_sm_active_ratio", _of_device(_SM)),
    ("gpugauge_device_tensor_active_ratio", _of_device(_TENSOR)),
    ("gpugauge_device_dram_active_ratio", _of_device(_DRAM)),
    ("gpugauge_device_memory_used_bytes", _of_device(_MEMORY_USED)),
    ("gpugauge_device_memory_total_bytes", _of_device(_MEMORY_TOTAL)),
    ("gpugauge_gpu_power_watts", _of_gpu(_POWER)),
    ("gpugauge_gpu_power_limit_watts", _of_gpu(_POWER_LIMIT)),
    ("gpugauge_gpu_energy_joules_total", _of_gpu(_ENERGY)),
    ("gpugauge_gpu_temperature_celsius", _of_gpu(_TEMPERATURE)),
    ("gpugauge_gpu_memory_temperature_celsius", _of_gpu(_MEMORY_TEMPERATURE)),
    ("gpugauge_allocation_info", _ALLOCATION),
    ("gpugauge_device_allocated_pods", _ALLOCATED_PODS),
    ("gpugauge_allocation_busy_ratio", _of_pod("gpugauge_device_busy_ratio")),
    ("gpugauge_allocation_tensor_active_ratio", _of_pod("gpugauge_device_tensor_active_ratio")),
    ("gpugauge_allocation_memory_used_bytes", _of_pod("gpugauge_device_memory_used_bytes")),
)

GROUP = Group(
    "gpugauge-dcgm-exporter",
    tuple(Recording(name, expression, (("adapter", ADAPTER),)) for name, expression in _RULES),
)
