"""Metrics about the reflectors: how current each store is, and how often it had to be listed or watched again."""

from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.kubernetes.watching.store import StoreView
from exporter.metric import Family, Kind, metric

LAST_SYNC = metric(
    "gpugauge_watch_last_sync_timestamp_seconds",
    Kind.GAUGE,
    "When the API server last confirmed what is known of these objects.",
    "object",
)
RESTARTS = metric(
    "gpugauge_watch_restarts_total",
    Kind.COUNTER,
    "Failures after which these objects had to be listed or watched again.",
    "object",
    "reason",
)
MALFORMED = metric(
    "gpugauge_watch_malformed_objects_total",
    Kind.COUNTER,
    "Objects that could not be read and were left out.",
    "object",
)
OFF = metric(
    "gpugauge_watch_off",
    Kind.GAUGE,
    "Optional objects that are not read, and why.",
    "object",
    "reason",
)
METRICS = (LAST_SYNC, RESTARTS, MALFORMED, OFF)


def reflector_families(stores: tuple[StoreView, ...]) -> list[Family]:
    """The families; they are exposed from the start, whether or not the API server has answered."""
    on = [s for s in stores if not s.off]
    return [
        Family(LAST_SYNC, [LAST_SYNC.sample(s.synced_at, object=s.object) for s in on if s.synced_at is not None]),
        Family(
            RESTARTS,
            [
                RESTARTS.sample(s.restarts.get(reason, 0), object=s.object, reason=reason)
                for s in on
                for reason in WatchReason
            ],
        ),
        Family(MALFORMED, [MALFORMED.sample(s.malformed, object=s.object) for s in on]),
        Family(OFF, [OFF.sample(1, object=s.object, reason=s.off) for s in stores if s.off]),
    ]
