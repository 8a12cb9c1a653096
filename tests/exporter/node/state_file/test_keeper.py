"""When the state file is read and written, and what is reported about it."""

import logging
import threading

import pytest

from exporter.node.devices.computed.device_state import DeviceState
from exporter.node.state_file.content import DeviceSeconds, RememberedGpu, RememberedNode
from exporter.node.state_file.file import StateFile
from exporter.node.state_file.keeper import HUNG_SECONDS, WRITE_SECONDS, StateKeeper
from tests.clock import Clock
from tests.waiting import until

GPUS = tuple(RememberedGpu(f"GPU-{n}", n) for n in range(3))
ONE, TWO, THREE = (RememberedNode(GPUS[:count]) for count in (1, 2, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


def keeper_of(path, clock=None, start=lambda function: function()):
    """A keeper that writes at once, in the same thread."""
    return StateKeeper(path, simulated=False, clock=clock or Clock(), start=start)


def put(path, state):
    """Write the file as somebody else."""
    file = StateFile(path)
    file.read()
    assert file.write(state)


def test_without_a_file_nothing_is_remembered_and_one_is_written_with_the_first_state(path):
    keeper = keeper_of(path)
    assert keeper.load() == RememberedNode()
    assert keeper.problem() is None
    keeper.keep(ONE)
    assert StateFile(path).read() == ONE
    assert keeper_of(path).load() == ONE


def test_a_state_that_did_not_change_is_not_written_again(path):
    clock = Clock()
    keeper = keeper_of(path, clock)
    keeper.load()
    keeper.keep(ONE)
    before = path.stat().st_ino
    for _ in range(5):
        clock.now += WRITE_SECONDS
        keeper.keep(RememberedNode(GPUS[:1]))
    assert path.stat().st_ino == before


def test_other_gpus_are_written_at_once(path):
    keeper = keeper_of(path)
    keeper.load()
    for state in (ONE, THREE, TWO):
        keeper.keep(state)
        assert StateFile(path).read() == state


def counted(seconds):
    return RememberedNode(GPUS[:1], devices=(DeviceSeconds("GPU-0", -1, -1, "", {DeviceState.BUSY: seconds}),))


def test_seconds_are_written_at_most_once_a_minute_and_at_the_end(path):
    clock = Clock()
    keeper = keeper_of(path, clock)
    keeper.load()
    found = []
    for collection in range(8):
        keeper.keep(counted(30.0 * collection))
        found.append(StateFile(path).read())
        clock.now += WRITE_SECONDS / 2
    assert found == [counted(30.0 * (collection - collection % 2)) for collection in range(8)]
    keeper.close()
    assert StateFile(path).read() == counted(30.0 * 7)


def test_what_somebody_else_changed_is_taken_up_once(path):
    put(path, THREE)
    keeper = keeper_of(path)
    assert keeper.load() == THREE
    assert keeper.take_up() is None
    put(path, ONE)
    change = keeper.take_up()
    assert (change.state, change.forgotten) == (ONE, {"GPU-1", "GPU-2"})
    assert keeper.take_up() is None


def test_a_change_made_during_a_collection_is_not_written_over(path):
    put(path, TWO)
    keeper = keeper_of(path)
    keeper.load()
    put(path, ONE)
    keeper.keep(THREE)
    assert StateFile(path).read() == ONE
    assert keeper.take_up().forgotten == {"GPU-1"}
    keeper.keep(THREE)
    assert StateFile(path).read() == THREE


def test_a_file_that_was_removed_is_written_again_and_forgets_nothing(path):
    put(path, TWO)
    keeper = keeper_of(path)
    keeper.load()
    path.unlink()
    assert keeper.take_up() is None
    keeper.keep(TWO)
    assert StateFile(path).read() == TWO


def test_a_broken_file_is_a_problem_is_left_as_it_is_and_is_taken_up_when_it_is_repaired(path):
    path.write_text("{")
    keeper = keeper_of(path)
    assert keeper.load() == RememberedNode()
    keeper.keep(ONE)
    assert keeper.take_up() is None
    source, reason, message = keeper.problem()
    assert (source, reason) == ("state_file", "unreadable")
    assert str(path) in message
    assert path.read_text() == "{"
    keeper.close()
    assert path.read_text() == "{"
    path.unlink()
    put(path, TWO)
    change = keeper.take_up()
    assert (change.state, change.forgotten, keeper.problem()) == (TWO, frozenset(), None)
    keeper.keep(THREE)
    assert StateFile(path).read() == THREE


def test_a_broken_file_that_is_removed_is_written_anew(path):
    path.write_text("{")
    keeper = keeper_of(path)
    keeper.load()
    keeper.keep(ONE)
    path.unlink()
    assert keeper.take_up() is None
    keeper.keep(ONE)
    assert (StateFile(path).read(), keeper.problem()) == (ONE, None)


def test_a_folder_that_cannot_be_written_is_one_problem_and_is_tried_again_after_a_pause(path):
    clock = Clock()
    keeper = keeper_of(path.parent / "folder" / "state.json", clock)
    keeper.load()
    keeper.keep(ONE)
    problem = keeper.problem()
    assert problem.reason == "unwritable"
    (path.parent / "folder").mkdir()
    keeper.keep(ONE)
    assert keeper.problem() == problem
    clock.now += 30
    keeper.keep(ONE)
    assert keeper.problem() is None
    assert StateFile(path.parent / "folder" / "state.json").read() == ONE


def test_a_write_that_hangs_delays_no_collection_and_is_a_problem_after_a_while(path, caplog):
    disk, clock = threading.Event(), Clock()

    def hanging(write):
        threading.Thread(target=lambda: (disk.wait(), write()), daemon=True).start()

    keeper = keeper_of(path, clock, hanging)
    keeper.load()
    keeper.keep(ONE)
    clock.now += HUNG_SECONDS
    keeper.keep(TWO)
    assert keeper.problem() is None
    clock.now += 1
    assert (keeper.take_up(), keeper.problem().reason) == (None, "unwritable")
    keeper.close()
    assert "has not ended" in caplog.text
    disk.set()
    until(lambda: keeper.problem() is None)
    assert StateFile(path).read() == TWO


def test_the_thread_that_writes_is_one_at_a_time(path):
    writes = []
    keeper = keeper_of(path, start=writes.append)
    keeper.load()
    for state in (ONE, TWO, THREE):
        keeper.keep(state)
    (write,) = writes
    write()
    assert StateFile(path).read() == THREE


def test_the_last_state_is_written_at_the_end(path, caplog):
    later = []
    keeper = keeper_of(path, start=later.append)
    keeper.load()
    keeper.keep(ONE)
    later.pop()()
    keeper = StateKeeper(path, simulated=False, clock=Clock())
    keeper.load()
    keeper.keep(TWO)
    keeper.close()
    assert StateFile(path).read() == TWO
    with caplog.at_level(logging.WARNING):
        keeper.close()
    assert caplog.text == ""
