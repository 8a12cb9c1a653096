"""Recorded sums per cluster and per GPU model, made of those per node: what panels over a whole fleet read."""

from alerts.rules.rule import Group, Recording

_OF_CLUSTER = (
    ("cluster:gpus:count", "sum by (cluster) (node:gpus:count)"),
    ("cluster:gpus_allocated:count", "sum by (cluster) (node:gpus_allocated:count)"),
    ("cluster:gpus_unallocated:count", "sum by (cluster) (node:gpus_unallocated:count)"),
    ("cluster:gpu_devices:count", "sum by (cluster) (node:gpu_devices:count)"),
    ("cluster:gpu_devices_allocated:count", "sum by (cluster) (node:gpu_devices_allocated:count)"),
    ("cluster:gpu_devices_unallocated:count", "sum by (cluster) (node:gpu_devices_unallocated:count)"),
    ("cluster:gpu_idle_devices:count", "sum by (cluster) (node:gpu_idle_devices:count)"),
    ("cluster:gpu_idle_devices:count15m", "sum by (cluster) (node:gpu_idle_devices:count15m)"),
    ("cluster:gpu_allocated_busy:sum", "sum by (cluster) (node:gpu_allocated_busy:sum)"),
    ("cluster:gpu_allocated_busy:count", "sum by (cluster) (node:gpu_allocated_busy:count)"),
    ("cluster:gpu_allocated_tensor_active:sum", "sum by (cluster) (node:gpu_allocated_tensor_active:sum)"),
    ("cluster:gpu_allocated_tensor_active:count", "sum by (cluster) (node:gpu_allocated_tensor_active:count)"),
    ("cluster:gpu_allocated_dram_active:sum", "sum by (cluster) (node:gpu_allocated_dram_active:sum)"),
    ("cluster:gpu_allocated_dram_active:count", "sum by (cluster) (node:gpu_allocated_dram_active:count)"),
    ("cluster:gpu_memory_used_bytes:sum", "sum by (cluster) (node:gpu_memory_used_bytes:sum)"),
    ("cluster:gpu_memory_total_bytes:sum", "sum by (cluster) (node:gpu_memory_total_bytes:sum)"),
    ("cluster:gpu_power_watts:sum", "sum by (cluster) (node:gpu_power_watts:sum)"),
)

_OF_MODEL = (
    (
        "model:gpus:count",
        """
        sum by (cluster, model) (
          node:gpus:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpus_allocated:count",
        """
        sum by (cluster, model) (
          node:gpus_allocated:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpus_unallocated:count",
        """
        sum by (cluster, model) (
          node:gpus_unallocated:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_allocated_busy:sum",
        """
        sum by (cluster, model) (
          node:gpu_allocated_busy:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_allocated_busy:count",
        """
        sum by (cluster, model) (
          node:gpu_allocated_busy:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_busy:sum",
        """
        sum by (cluster, model) (
          node:gpu_busy:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_busy:count",
        """
        sum by (cluster, model) (
          node:gpu_busy:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_tensor_active:sum",
        """
        sum by (cluster, model) (
          node:gpu_tensor_active:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_tensor_active:count",
        """
        sum by (cluster, model) (
          node:gpu_tensor_active:count * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_memory_used_bytes:sum",
        """
        sum by (cluster, model) (
          node:gpu_memory_used_bytes:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_memory_total_bytes:sum",
        """
        sum by (cluster, model) (
          node:gpu_memory_total_bytes:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
    (
        "model:gpu_power_watts:sum",
        """
        sum by (cluster, model) (
          node:gpu_power_watts:sum * on (cluster, node) group_left (model) node:gpu_model:info
        )
        """,
    ),
)

GROUPS = (
    Group("gpugauge-clusters", tuple(Recording(name, expression) for name, expression in _OF_CLUSTER)),
    Group("gpugauge-models", tuple(Recording(name, expression) for name, expression in _OF_MODEL)),
)
"""Two, because Mimir accepts 20 rules in a group unless its limit is raised."""
