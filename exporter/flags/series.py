"""The flags for series beside the DCGM-named ones."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN

SERIES = (
    Flag(
        "normalized-metrics",
        BOOLEAN,
        "expose utilization, memory, power, energy and temperature in base units too (`gpugauge_device_…`, "
        "`gpugauge_gpu_…`, `gpugauge_allocation_…`), which the rules and dashboards of gpugauge read",
        variable="GPUGAUGE_NORMALIZED_METRICS",
        default="true",
    ),
)
