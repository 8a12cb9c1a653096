"""The groups and watches of one connection to the fake libdcgm."""

import pytest

from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import DcgmLibrary, StatusError
from exporter.node.dcgm.reading.watch import Watches, watch_interval
from exporter.node.dcgm.targets.targets import WatchTarget
from tests.exporter.node.dcgm.fixture import document, gpu_spec, uuid_of

GPU = 1
UNKNOWN = 9999


class GroupLibrary(DcgmLibrary):
    """libdcgm that records the watches that are made and the field groups that are destroyed."""

    def __init__(self, path):
        self.watched, self.destroyed = [], []
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmWatchFields":
            self.watched.append(arguments[2:4])
        if function == "dcgmFieldGroupDestroy":
            self.destroyed.append(arguments[1])
        return super().status(function, *arguments)


@pytest.fixture
def library_and_watches(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1)))
    library = GroupLibrary(str(engine.library))
    connection = EngineConnection(library, engine.socket.address)
    watches = Watches(connection, interval=0.25)
    yield library, watches
    watches.close()
    connection.close()
    library.status("dcgmShutdown")


def target(number, *fields, watch="basic", interval=None):
    return WatchTarget(watch, ((GPU, number),), (number,), (uuid_of(number),), fields, interval)


def test_a_field_group_that_is_watched_outlasts_the_search_for_unknown_fields(library_and_watches):
    library, watches = library_and_watches
    watches.watch(target(0, 150))
    assert watches.known((150, UNKNOWN)) == ((150,), {})
    assert set(watches.unknown) == {UNKNOWN}
    assert {group for group, _ in library.watched} & set(library.destroyed) == set()


def test_groups_are_destroyed_with_the_last_of_their_watches(library_and_watches):
    library, watches = library_and_watches
    one, two = target(0, 150), target(1, 150)
    watches.watch(one)
    watches.watch(two)
    watches.discard(one)
    assert library.destroyed == []
    watches.discard(two)
    assert library.destroyed == [library.watched[0][0]]


def test_entities_that_no_group_takes_are_returned_with_the_answer(library_and_watches):
    _, watches = library_and_watches
    rejected = watches.admit(((GPU, 0), (GPU, 30)))
    assert {entity: error.status for entity, error in rejected.items()} == {(GPU, 30): -1}
    with pytest.raises(StatusError, match="dcgmGroupAddEntity answered -1"):
        watches.watch(target(30, 150))


@pytest.mark.parametrize(("watch", "seconds"), [("basic", 0.25), ("event", 0.25), ("profiling", 1.0)])
def test_the_interval_of_a_watch_is_that_of_its_watch_group(library_and_watches, watch, seconds):
    library, watches = library_and_watches
    watches.watch(target(0, 1004 if watch == "profiling" else 150, watch=watch))
    assert library.watched[0][1] == seconds * 1e6
    assert watch_interval(watch, 30.0) == 30.0


@pytest.mark.parametrize(("watch", "field"), [("basic", 150), ("profiling", 1004)])
def test_a_target_with_an_interval_of_its_own_is_watched_at_that_interval(library_and_watches, watch, field):
    library, watches = library_and_watches
    watches.watch(target(0, field, watch=watch, interval=600.0))
    assert library.watched[0][1] == 600 * 1e6
