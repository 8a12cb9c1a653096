"""Why a metric or one of its series is not in a response."""

from collections.abc import Collection

from exporter.commands.compare.identity import QuantityKey, device_of, key_of, quantity
from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import MetricsResponse
from exporter.node.devices.counters.computed_metrics import COMPUTED, HEALTH_STATUS
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.devices.series.metrics import UNSUPPORTED

_XID = "DCGM_FI_DEV_XID_ERRORS"
_UP = "gpugauge_source_up"
DEVICE_SOURCES = ("dcgm", "nvml", "simulated")


def absent_metric(name: str, new: MetricsResponse) -> CompareReason:
    """Why a response has no series of a metric with a DCGM name at all."""
    if any(0 in new.values_of(_UP, source=source) for source in DEVICE_SOURCES):
        return CompareReason.SOURCE_DOWN
    if name in COMPUTED:
        health = HEALTH_STATUS in COMPUTED[name].fields
        return CompareReason.HEALTH_BINDINGS if health else CompareReason.NOT_IN_COUNTERS_FILE
    field = fields_by_name().get(name)
    if field is None:
        return CompareReason.UNKNOWN_FIELD
    if not field.is_read:
        return CompareReason.FIELD_NOT_READ
    if any(value > 0 for other in field.names for value in new.values_of(UNSUPPORTED.name, field=other)):
        return CompareReason.UNSUPPORTED_HERE
    return CompareReason.NOT_IN_COUNTERS_FILE


def absent_series(name: str, key: QuantityKey, new: MetricsResponse, keys: Collection[QuantityKey]) -> CompareReason:
    """Why a response that may have the metric has not this series. `keys` are those of its series."""
    if any(other[0] == key[0] and other[1] > key[1] for other in keys):
        return CompareReason.PER_MIG_DEVICE
    if _is_xid(name) and any(other[0] == key[0] for other in keys):
        return CompareReason.XID_ENDED
    if not any(quantity(other) == key[0] for other in new.by_name):
        return absent_metric(name, new)
    device = device_of(key)
    if device is not None and not any(device in other[1] for other in keys):
        return CompareReason.DEVICE_MISSING
    return CompareReason.VALUE_MISSING


def _is_xid(name: str) -> bool:
    return quantity(name) == quantity(_XID)


def xid_zero(name: str, value: float) -> bool:
    """Whether a series says that a GPU has had no XID."""
    return _is_xid(name) and value == 0


def keys_of(response: MetricsResponse) -> dict[QuantityKey, list[int]]:
    """The positions of the series of each key."""
    found: dict[QuantityKey, list[int]] = {}
    for position, each in enumerate(response.series):
        found.setdefault(key_of(each), []).append(position)
    return found
