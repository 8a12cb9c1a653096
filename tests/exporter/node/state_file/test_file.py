"""A state file is replaced as a whole or not at all, and never over the change of somebody else."""

import fcntl
import os
import resource
import threading

import pytest

from exporter.node.state_file.content import RememberedGpu, RememberedNode
from exporter.node.state_file.file import MAX_BYTES, StateFile
from exporter.node.state_file.reasons import StateFileError
from tests.waiting import LIMIT_SECONDS

ONE, TWO, THREE = (RememberedNode(tuple(RememberedGpu(f"GPU-{n}", n) for n in range(count))) for count in (1, 2, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


def written(path, state):
    file = StateFile(path)
    file.read()
    assert file.write(state)
    return file


def test_a_file_is_read_as_it_was_written_and_nothing_else_is_left_in_the_folder(path):
    for state in (ONE, THREE, TWO):
        written(path, state)
        assert StateFile(path).read() == state
        assert list(path.parent.iterdir()) == [path]


def test_where_there_is_no_file_nothing_is_remembered(path):
    assert StateFile(path).read() is None
    assert StateFile(path.parent / "folder" / "state.json").read() is None


def test_a_write_makes_a_new_file_so_that_a_reader_finds_the_old_content_or_the_new(path):
    written(path, ONE)
    with path.open("rb") as reader:
        written(path, TWO)
        assert b"GPU-1" not in reader.read()
    assert StateFile(path).read() == TWO


def test_a_link_stays_one(path):
    (path.parent / "disk").mkdir()
    path.symlink_to("disk/state.json")
    written(path, ONE)
    written(path, TWO)
    assert path.is_symlink()
    assert StateFile(path.parent / "disk" / "state.json").read() == TWO


def test_what_a_killed_process_left_beside_it_is_replaced(path):
    beside = path.with_name(".state.json.new")
    beside.symlink_to("/dev/null")
    written(path, ONE)
    assert not beside.exists()
    assert StateFile(path).read() == ONE


def test_a_change_by_somebody_else_is_seen_and_not_written_over(path):
    file, other = written(path, ONE), StateFile(path)
    assert not file.changed()
    other.read()
    assert other.write(TWO)
    assert file.changed()
    assert not file.write(ONE)
    assert StateFile(path).read() == TWO
    file.read()
    assert file.write(THREE)
    path.unlink()
    assert file.changed()


def test_a_write_waits_until_nobody_else_writes(path):
    file = written(path, ONE)
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    writing = threading.Thread(target=file.write, args=(TWO,), daemon=True)
    writing.start()
    writing.join(0.2)
    assert writing.is_alive()
    assert StateFile(path).read() == ONE
    os.close(folder)
    writing.join(LIMIT_SECONDS)
    assert StateFile(path).read() == TWO


@pytest.fixture
def full_disk():
    """No file of this process can have more than ten bytes: a write fails in the middle, as on a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_a_write_that_fails_in_the_middle_keeps_the_old_content_and_no_other_file(path, full_disk):
    file = written(path, ONE)
    full_disk()
    with pytest.raises(StateFileError, match="cannot be written: File too large") as error:
        file.write(TWO)
    assert error.value.reason == "unwritable"
    assert str(path) in str(error.value)
    assert StateFile(path).read() == ONE
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_unwritable(path):
    file = StateFile(path.parent / "folder" / "state.json")
    file.read()
    with pytest.raises(StateFileError, match="cannot be written: No such file or directory"):
        file.write(ONE)


def test_a_state_that_is_too_large_is_not_written(path):
    file = written(path, ONE)
    large = RememberedNode(tuple(RememberedGpu(f"GPU-{n}", n, model="x" * MAX_BYTES) for n in range(1)))
    with pytest.raises(StateFileError, match=f"more than {MAX_BYTES}"):
        file.write(large)
    assert StateFile(path).read() == ONE


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "cannot be read: it is a directory"),
        (os.mkfifo, "cannot be read: it is a FIFO"),
        (lambda path: path.write_bytes(b"x" * (MAX_BYTES + 1)), f"cannot be read: it has more than {MAX_BYTES} bytes"),
        (lambda path: path.write_bytes(b"{"), "cannot be used: "),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels"),
    ],
)
def test_what_cannot_be_read_is_one_message_that_names_the_file(path, make, message):
    make(path)
    with pytest.raises(StateFileError) as error:
        StateFile(path).read()
    assert error.value.reason == "unreadable"
    assert str(error.value).startswith(f"{path} {message}")


@pytest.mark.parametrize(("simulated", "message"), [(True, "it has simulated GPUs"), (False, "it has real GPUs")])
def test_simulated_gpus_are_never_taken_for_real_ones(path, simulated, message):
    written(path, RememberedNode(ONE.gpus, simulated=simulated))
    assert StateFile(path, simulated=simulated).read() is not None
    assert StateFile(path).read() is not None
    with pytest.raises(StateFileError, match=message):
        StateFile(path, simulated=not simulated).read()
