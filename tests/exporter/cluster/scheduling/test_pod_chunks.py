"""The chunks of GPU pods: every pod is in one, and a chunk stays the same object while nothing in it changes."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.kubernetes.objects.records import Overrides, Pod
from exporter.cluster.scheduling.keeping.pod_chunks import AVERAGE, MOST, PodChunks, by_name, chunks_of

COUNT = 20 * AVERAGE
THRESHOLD = Overrides(threshold="10pct")


def pod(number, namespace=None, **more):
    namespace = f"team-{number % 7}" if namespace is None else namespace
    return Pod(f"uid-{number}", namespace, f"p{number:06}", 1.0, (("nvidia.com/gpu", 1),), "w", "job", **more)


@pytest.fixture(scope="module")
def pods():
    return tuple(pod(number) for number in range(COUNT))


NAMESPACES = {f"team-{number}": Overrides() for number in range(7)}


def test_every_pod_is_in_one_chunk_in_the_order_of_namespace_and_name(pods):
    shuffled = list(pods)
    random.Random(1).shuffle(shuffled)
    chunks = PodChunks().update(tuple(shuffled), NAMESPACES)
    assert [each for chunk in chunks for each in chunk.pods] == by_name(pods)
    assert max(len(chunk.pods) for chunk in chunks) <= MOST
    assert 5 <= len(chunks) <= 80


def test_the_same_pods_give_the_same_chunks_in_any_order(pods):
    kept = PodChunks()
    first = kept.update(pods, NAMESPACES)
    assert all(one is other for one, other in zip(first, kept.update(tuple(reversed(pods)), NAMESPACES), strict=True))
    equal = tuple(msgspec.structs.replace(each) for each in pods)
    assert all(one is other for one, other in zip(first, kept.update(equal, dict(NAMESPACES)), strict=True))


def changed(before, after):
    """How many chunks are others than before."""
    return len([chunk for chunk in after if not any(chunk is each for each in before)])


def test_a_pod_that_changes_comes_or_goes_changes_its_own_chunk(pods):
    kept = PodChunks()
    before = kept.update(pods, NAMESPACES)
    running = (*pods[:100], msgspec.structs.replace(pods[100], phase="Running"), *pods[101:])
    after = kept.update(running, NAMESPACES)
    assert (changed(before, after), len(after)) == (1, len(before))
    more = kept.update((*running, pod(999_999)), NAMESPACES)
    assert 1 <= changed(after, more) <= 2
    fewer = kept.update(running[1:], NAMESPACES)
    assert changed(after, fewer) <= 2


def test_what_a_namespace_sets_changes_the_chunks_with_pods_of_it_and_no_others(pods):
    kept = PodChunks()
    before = kept.update(pods, NAMESPACES)
    after = kept.update(pods, NAMESPACES | {"team-3": THRESHOLD})
    ours = [chunk for chunk in after if "team-3" in chunk.names]
    assert changed(before, after) == len(ours) < len(after)
    assert all(dict(zip(chunk.names, chunk.overrides, strict=True))["team-3"] == THRESHOLD for chunk in ours)
    unknown = kept.update(pods, None)
    assert {chunk.overrides for chunk in unknown} == {None}
    assert changed(after, unknown) == len(unknown)


def test_pods_of_a_namespace_that_is_not_known_and_pods_with_overrides_are_known_as_such():
    own = pod(1, "a", overrides=THRESHOLD)
    (chunk,) = chunks_of([own, pod(2, "a"), pod(3, "b")], {"b": Overrides()})
    assert (chunk.names, chunk.overrides, chunk.with_overrides) == (("a", "b"), (None, Overrides()), (own,))
    assert chunks_of([], {}) == ()


@given(st.lists(st.lists(st.integers(0, 60), unique=True, max_size=60), min_size=1, max_size=6))
def test_whatever_came_before_the_chunks_are_those_of_the_pods_now(history):
    kept = PodChunks()
    for numbers in history:
        now = tuple(pod(number) for number in numbers)
        chunks = kept.update(now, NAMESPACES)
        fresh = chunks_of(by_name(now), NAMESPACES)
        assert [(c.pods, c.names, c.overrides) for c in chunks] == [(c.pods, c.names, c.overrides) for c in fresh]
