"""Which values are exposed, whichever source they are from: how old a sample may be, and the range of its field.

No I/O, no state. Blank values (how a library reports that it has no value) differ between the libraries: see
dcgm/values.py and nvml/values.py.
"""

import math

from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.readings import xids
from exporter.node.devices.readings.readings import RejectionReason, SampleValue

MAX_AGE_INTERVALS = 3
"""How many collection intervals old a sample may be; the minimums below apply to short intervals."""
EVENT_SECONDS = 300.0
"""How long the last event (an XID) is exposed: it is something that happened, not a state."""
MIN_SECONDS = 5.0
INFOROM_SECONDS = 120.0
"""DCGM updates what the GPU keeps in its InfoROM every 30 s at most, whatever the interval."""
INFOROM_FIELDS = frozenset({*range(300, 347), *range(385, 397), 1507})
"""ECC counters, retired pages and remapped rows."""


def age_limit(wanted: WantedField, interval: float) -> float:
    """Seconds after which a sample of this field is stale, when the collection interval is `interval` seconds."""
    interval = wanted.interval or interval
    if wanted.watch == "event":
        return max(MAX_AGE_INTERVALS * interval, EVENT_SECONDS)
    minimum = INFOROM_SECONDS if wanted.id in INFOROM_FIELDS else MIN_SECONDS
    return max(MAX_AGE_INTERVALS * interval, minimum)


def readings_age_limit(interval: float) -> float:
    """Seconds after which readings as a whole, taken with samples that were not stale then, are too old to be exposed.

    At short intervals a source can need longer than one; without late readings such a node would never have any.
    """
    return max(MAX_AGE_INTERVALS * interval, MIN_SECONDS)


def in_range(value: float, wanted: WantedField) -> bool:
    """Whether the field can have this value; no field can be infinite."""
    above = wanted.low is None or value >= wanted.low
    return above and (wanted.high is None or value <= wanted.high) and -math.inf < value < math.inf


def checked(value: SampleValue, wanted: WantedField) -> tuple[SampleValue, RejectionReason | None]:
    """Return the value, or None and OUT_OF_RANGE when the field cannot have it. Texts have no range."""
    if isinstance(value, int | float) and not in_range(value, wanted):
        return None, RejectionReason.OUT_OF_RANGE
    return value, None


def too_old(wanted: WantedField) -> RejectionReason | None:
    """Return what to count for a sample older than its age limit: nothing for an event, which may be long ago."""
    return None if wanted.watch == "event" else RejectionReason.STALE


def rejection_to_count(reason: RejectionReason | None, wanted: WantedField) -> RejectionReason | None:
    """Return the reason, or None where nothing is wrong: an event field is blank until there is an event."""
    if wanted.watch == "event" and reason is RejectionReason.BLANK:
        return None
    return reason


def before_first_event(wanted: WantedField) -> SampleValue:
    """Return the value of an event field of which a library states that there was no event since it receives them.

    It is the one blank that has a value: 0 for XID, as dcgm-exporter exposed it up to DCGM 4.4 and with driver 580;
    panels and `changes()` rest on it. DCGM makes that statement by the status "no data"; with NVML it is that the
    GPU's events are registered and none came. Only then, never for a GPU that cannot be read.
    """
    return xids.NO_XID if wanted.id == field_ids.XID else None
