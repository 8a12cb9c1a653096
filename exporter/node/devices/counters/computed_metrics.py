"""The metrics that are computed here and not read: those that dcgm-exporter computes, which a counters file may name.

Also the home of the fields that must be read for them, and for our own computed metrics, whatever else the counters
file lists. What computes them is computed_families.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.metric import Kind
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import WantedField

P2P_STATUS, HEALTH_STATUS = 100_000, 100_001
"""No fields of DCGM, whose ids have 16 bits: the peer-to-peer status of each pair of GPUs, and the health checks.

A source reads each by a call of its own.
"""


@dataclass(frozen=True, slots=True)
class ComputedMetric:
    """One metric that dcgm-exporter computes."""

    about: str
    """What it is, for the reference."""
    kind: Kind
    """Whatever type the counters file gives: in dcgm-exporter's own file most are counters, and some of them fall."""
    fields: tuple[int, ...]
    """What has to be read for it."""
    labels: tuple[str, ...]
    """Beside those of the GPU."""
    optional: frozenset[str] = frozenset()
    """Labels that not every series has."""


COMPUTED: Mapping[str, ComputedMetric] = {
    "DCGM_EXP_XID_ERRORS_COUNT": ComputedMetric(
        "XIDs of this code within the window; 0, without the label xid, where there was none.",
        Kind.GAUGE,
        (field_ids.XID,),
        ("window_size_in_ms", "xid"),
        optional=frozenset({"xid"}),
    ),
    "DCGM_EXP_XID_ERRORS_TOTAL": ComputedMetric(
        "XIDs of this code since the exporter started; it appears with the first one.",
        Kind.COUNTER,
        (field_ids.XID,),
        ("xid",),
    ),
    "DCGM_EXP_CLOCK_EVENTS_COUNT": ComputedMetric(
        "Collections within the window in which this clock event was active.",
        Kind.GAUGE,
        (field_ids.CLOCKS_EVENT_REASONS,),
        ("window_size_in_ms", "clock_event"),
    ),
    "DCGM_EXP_CLOCK_EVENTS_TOTAL": ComputedMetric(
        "How often this clock event has begun since the exporter started.",
        Kind.COUNTER,
        (field_ids.CLOCKS_EVENT_REASONS,),
        ("clock_event",),
    ),
    "DCGM_EXP_P2P_STATUS": ComputedMetric(
        "Peer-to-peer status of two GPUs over NVLink: 0 where they reach each other, else why they do not.",
        Kind.GAUGE,
        (P2P_STATUS,),
        ("peer_gpu", "link_status"),
    ),
    "DCGM_EXP_GPU_HEALTH_STATUS": ComputedMetric(
        "Result of each health check of DCGM (ALL is the worst): 0 passed, 10 warning, 20 failure. Needs NVIDIA's "
        "Python bindings of DCGM.",
        Kind.GAUGE,
        (HEALTH_STATUS,),
        ("health_watch", "health_error_code"),
    ),
}
"""By name. A row here makes the counters file accept it, and a method of `ComputedFamilies` makes its series."""

READ_BY_CALLS: Mapping[int, WantedField] = {
    number: WantedField(number, "int", "gpu", "call") for number in (P2P_STATUS, HEALTH_STATUS)
}
"""What is no field of DCGM, as a source gets it among the fields."""

ALWAYS_READ = (
    field_ids.XID,
    field_ids.CLOCKS_EVENT_REASONS,
    field_ids.GPU_UTIL,
    *field_ids.VIDEO_UTILIZATION,
    field_ids.FB_USED,
    field_ids.FB_FREE,
    field_ids.POWER_USAGE,
    field_ids.ENFORCED_POWER_LIMIT,
    field_ids.TOTAL_ENERGY_CONSUMPTION,
    field_ids.GPU_TEMP,
    field_ids.MEMORY_TEMP,
)
"""What our own computed metrics and the normalized values need, whatever the counters file lists.

Only fields that cost next to nothing: profiling fields need rights and the hardware counters, so the file decides.
"""
