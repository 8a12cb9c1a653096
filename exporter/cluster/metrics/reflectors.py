"""Families about the watches themselves: how current each is, and how often it had to start anew."""

from exporter.cluster.kubernetes.api import REASONS
from exporter.cluster.kubernetes.store import TableView
from exporter.metric import Family, Kind, Labels, Metric, Value

LAST_SYNC = Metric(
    "gpugauge_watch_last_sync_timestamp_seconds",
    Kind.GAUGE,
    "When the API server last confirmed what is known of these objects.",
    ("object",),
)
RESTARTS = Metric(
    "gpugauge_watch_restarts_total",
    Kind.COUNTER,
    "Failures after which these objects had to be listed or watched anew.",
    ("object", "reason"),
)
MALFORMED = Metric(
    "gpugauge_watch_malformed_objects_total",
    Kind.COUNTER,
    "Objects that could not be read and were left out.",
    ("object",),
)
METRICS = (LAST_SYNC, RESTARTS, MALFORMED)


def watch_families(tables: tuple[TableView, ...]) -> list[Family]:
    """There from the start, whether or not the API server has ever answered."""
    synced: list[tuple[Labels, Value]] = [
        (_of(table), table.synced_at) for table in tables if table.synced_at is not None
    ]
    restarts: list[tuple[Labels, Value]] = [
        (_of(table).and_(("reason", reason)), table.restarts.get(reason, 0)) for table in tables for reason in REASONS
    ]
    malformed: list[tuple[Labels, Value]] = [(_of(table), table.malformed) for table in tables]
    return [Family(LAST_SYNC, synced), Family(RESTARTS, restarts), Family(MALFORMED, malformed)]


def _of(table: TableView) -> Labels:
    return Labels((("object", table.object),))
