"""How long pods waited until they were bound: each is counted once, by namespace, resource and size."""

import msgspec
import pytest

from exporter.cluster.scheduling.keeping.waits import BOUNDS, SchedulingWaits
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod

GPU = "nvidia.com/gpu"


def bound(name, waited, count=1, in_namespace="team-a", **more):
    given = objects.pod(name, in_namespace, {GPU: count}, created=NOW - 1000)
    return msgspec.structs.replace(
        pod(objects.bound(given, "n1", NOW - 1000 + waited)), schedulable_since=NOW - 1000, **more
    )


def counts(found):
    return {group: (waits.counts, waits.total) for group, waits in found.items()}


def test_pods_that_were_bound_before_the_first_collection_are_not_counted():
    waits = SchedulingWaits()
    assert counts(waits.update([bound("a", 5)])) == {}
    assert counts(waits.update([bound("a", 5)])) == {}


def test_a_pod_is_counted_once_and_stays_counted_when_it_is_gone():
    waits = SchedulingWaits()
    waits.update([])
    expected = {("team-a", "nvidia_com_gpu", "1"): ([0, 1, 0, 0, 0, 0, 0, 0], 30.0)}
    for pods in ([bound("a", 30)], [bound("a", 30)], []):
        assert counts(waits.update(pods)) == expected


@pytest.mark.parametrize(
    ("devices", "size"), [(1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-8"), (8, "5-8"), (9, "9+"), (64, "9+")]
)
def test_the_size_is_the_number_of_devices(devices, size):
    waits = SchedulingWaits()
    waits.update([])
    assert list(waits.update([bound("a", 1, devices)])) == [("team-a", "nvidia_com_gpu", size)]


@pytest.mark.parametrize(
    ("waited", "position"), [(-5, 0), (0, 0), (10, 0), (11, 1), (86_400, len(BOUNDS) - 1), (86_401, len(BOUNDS))]
)
def test_a_wait_counts_up_to_its_bound_and_is_never_negative(waited, position):
    waits = SchedulingWaits()
    waits.update([])
    (found,) = waits.update([bound("a", waited)]).values()
    assert found.counts.index(1) == position
    assert found.total == max(0, waited)


def test_a_pod_without_a_time_or_still_gated_is_not_counted():
    waits = SchedulingWaits()
    waits.update([])
    unscheduled = pod(objects.pod("b", "team-a", {GPU: 1}, created=NOW))
    placed = objects.bound(objects.pod("c", "team-a", {GPU: 1}, created=NOW), "n1", NOW)
    placed["status"]["conditions"][0]["lastTransitionTime"] = None
    gated = msgspec.structs.replace(bound("a", 5), schedulable_since=None)
    assert counts(waits.update([gated, unscheduled, pod(placed)])) == {}


def test_the_number_of_groups_is_bounded():
    waits, one = SchedulingWaits(), bound("a", 5)
    waits.update([])
    many = (msgspec.structs.replace(one, uid=str(number), namespace=f"team-{number}") for number in range(20_100))
    assert len(waits.update(many)) == 20_000
