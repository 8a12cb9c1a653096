"""Which watches remain when devices or fields change, without a library."""

from exporter.node.dcgm.targets.keeping import Watched, kept_watches, not_kept
from exporter.node.dcgm.targets.targets import WatchTarget

GPU = 1


def target(numbers, fields=(150, 155), watch="basic", offset=0):
    """These GPUs by engine id; their positions in the inventory are `offset` higher."""
    entities = tuple((GPU, number) for number in numbers)
    devices = tuple(number + offset for number in numbers)
    return WatchTarget(watch, entities, devices, tuple(f"GPU-{number}" for number in numbers), fields)


def identities(*numbers, **others):
    return {(GPU, number): (f"GPU-{others.get(f'gpu{number}', number)}",) for number in numbers}


def watched(*targets):
    return [Watched(each, each) for each in targets]


def test_a_watch_remains_for_the_gpus_that_are_left_at_their_new_positions():
    made, now = target((0, 1, 2)), target((1, 2), offset=-1)
    kept = kept_watches(watched(made), [now], identities(0, 1, 2), identities(1, 2))
    assert kept == [Watched(made, now)]
    assert not_kept([now], kept) == []


def test_only_what_is_new_is_not_kept():
    made, now = target((0, 2)), target((0, 1, 2), fields=(150, 155, 203))
    kept = kept_watches(watched(made), [now], identities(0, 2), identities(0, 1, 2))
    assert kept == [Watched(made, target((0, 2)))]
    assert not_kept([now], kept) == [target((0, 2), fields=(203,)), target((1,), fields=(150, 155, 203))]


def test_a_watch_with_a_field_that_is_not_wanted_any_more_ends():
    assert kept_watches(watched(target((0,))), [target((0,), fields=(150,))], identities(0), identities(0)) == []


def test_an_engine_id_that_means_another_device_is_watched_anew():
    now = target((0, 1))
    kept = kept_watches(watched(now), [now], identities(0, 1), identities(0, 1, gpu1="other"))
    assert kept == [Watched(now, target((0,)))]
    assert not_kept([now], kept) == [target((1,))]


def test_a_watch_that_shares_samples_with_one_that_ends_is_made_anew():
    """An engine has one watch per connection, entity and field: the end of the one would end the other's too."""
    all_of_it, one = target((0, 1)), target((0,), fields=(150, 203))
    now = [target((0, 1), fields=(150, 155))]
    assert kept_watches(watched(all_of_it, one), now, identities(0, 1), identities(0, 1)) == []


def test_a_watch_of_another_watch_group_is_another_watch():
    basic, profiling = target((0,), fields=(1004,)), target((0,), fields=(1004,), watch="profiling")
    assert kept_watches(watched(basic), [profiling], identities(0), identities(0)) == []
    assert not_kept([profiling], watched(basic)) == [profiling]
