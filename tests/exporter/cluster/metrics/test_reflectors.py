"""Metrics about the reflectors, from their stores."""

from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.kubernetes.watching.store import ObjectStore
from exporter.cluster.metrics.reflectors import reflector_families
from tests.exporter.cluster.fixture import NOW, exposed

KINDS = ("pods", "nodes", "namespaces")
SYNC = "gpugauge_watch_last_sync_timestamp_seconds"
MALFORMED = "gpugauge_watch_malformed_objects_total"


def stores():
    return [ObjectStore(kind, lambda: NOW, lambda: 0.0) for kind in KINDS]


def series_of(given):
    return exposed(reflector_families(tuple(store.view(120.0) for store in given)))


def restarts(kind, reason):
    return f'gpugauge_watch_restarts_total{{object="{kind}",reason="{reason}"}}'


def test_every_kind_has_a_restarts_series_for_every_reason_before_the_first_list():
    series = series_of(stores())
    expected = {restarts(kind, reason): 0 for kind in KINDS for reason in WatchReason}
    assert {key: value for key, value in series.items() if "restarts" in key} == expected


def test_malformed_objects_are_zero_and_the_last_sync_is_missing_before_the_first_list():
    series = series_of(stores())
    assert {key: value for key, value in series.items() if "restarts" not in key} == {
        f'{MALFORMED}{{object="{kind}"}}': 0 for kind in KINDS
    }


def test_failures_and_malformed_objects_before_the_first_list_are_not_lost():
    pods, *others = stores()
    pods.failed(WatchReason.UNREACHABLE, "refused")
    pods.failed(WatchReason.UNREACHABLE, "refused")
    pods.failed(WatchReason.CRASHED, "defect")
    pods.count_malformed(3)
    before = series_of([pods, *others])
    assert before[restarts("pods", "unreachable")] == 2
    assert before[restarts("pods", "crashed")] == 1
    assert before[restarts("nodes", "unreachable")] == 0
    assert before[f'{MALFORMED}{{object="pods"}}'] == 3
    pods.replace({}, 0.5)
    assert series_of([pods, *others]) == before | {f'{SYNC}{{object="pods"}}': NOW}


def test_the_last_sync_stays_exposed_when_the_records_are_stale():
    now = [0.0]
    pods = ObjectStore("pods", lambda: NOW + now[0], lambda: now[0])
    pods.replace({}, 0.5)
    now[0] = 500.0
    assert pods.view(120.0).records is None
    assert series_of([pods])[f'{SYNC}{{object="pods"}}'] == NOW
    pods.confirm()
    assert series_of([pods])[f'{SYNC}{{object="pods"}}'] == NOW + 500
