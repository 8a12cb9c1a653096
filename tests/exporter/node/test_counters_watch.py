"""Which counters file is read, and when: at the start, when it changes, when it comes later, and after a failure."""

import os

import pytest

from exporter.node.counters_watch import BUILT_IN, CountersWatch, UnusableCountersError
from tests.clock import Clock
from tests.file_lease import unreadable

TEMP = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
CLOCK = "DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\n"


def names(loaded):
    return [row.name for row in loaded.counters.rows]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "counters.csv"


def test_a_named_file_is_read_whatever_is_at_the_usual_path(tmp_path, file, clock):
    file.write_text(TEMP)
    watch = CountersWatch(tmp_path / "nothing", file, clock)
    with pytest.raises(UnusableCountersError, match="nothing cannot be read: No such file"):
        watch.read()


@pytest.mark.parametrize("parent", ["", "nothing", "a file"])
def test_the_built_in_list_is_read_while_nothing_is_at_the_usual_path(tmp_path, clock, parent):
    (tmp_path / "a file").touch()
    watch = CountersWatch(None, tmp_path / parent / "counters.csv", clock)
    assert watch.due()
    assert len(names(watch.read())) == BUILT_IN.read_text().count("\nDCGM_FI_")
    assert not watch.due()


def test_a_file_that_comes_to_the_usual_path_is_due_and_never_replaced_by_the_built_in_list(file, clock):
    watch = CountersWatch(None, file, clock)
    watch.read()
    file.write_text(TEMP)
    assert watch.due()
    assert names(watch.read()) == ["DCGM_FI_DEV_GPU_TEMP"]
    file.unlink()
    assert watch.due()
    with pytest.raises(UnusableCountersError, match="No such file"):
        watch.read()
    file.write_text(CLOCK)
    assert watch.due()
    assert names(watch.read()) == ["DCGM_FI_DEV_SM_CLOCK"]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.touch(),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nothing"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/dev/null"),
    ],
    ids=["empty", "directory", "dangling", "loop", "device"],
)
@pytest.mark.parametrize("late", [False, True], ids=["from the start", "later"])
def test_what_is_at_the_usual_path_and_cannot_be_used_is_an_error(file, clock, make, late):
    watch = CountersWatch(None, file, clock)
    if late:
        watch.read()
    make(file)
    assert watch.due()
    with pytest.raises(UnusableCountersError):
        watch.read()
    assert not watch.due()


def test_a_usual_path_that_cannot_be_looked_at_is_an_error(tmp_path, clock):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnusableCountersError, match="Too many levels of symbolic links"):
        CountersWatch(None, tmp_path / "loop" / "counters.csv", clock).read()


def test_a_file_is_due_again_when_it_changes_even_while_it_was_read(file, clock):
    file.write_text(TEMP)
    watch = CountersWatch(file, file, clock)
    watch.read()
    assert not watch.due()
    os.utime(file, (1, 1))
    assert watch.due()
    watch.read()
    assert not watch.due()


def test_a_file_that_fails_for_a_moment_is_due_again_after_pauses_that_double_without_a_change(file, clock):
    file.write_text(TEMP)
    watch = CountersWatch(file, file, clock)
    watch.read()
    with unreadable(file):
        pauses = [failed_read(watch, clock) for _ in range(7)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert watch.due()
    assert names(watch.read()) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert watch.failure == ""
    clock.now += 1000
    assert not watch.due()


def failed_read(watch, clock):
    """Read, and return after how many seconds the file is due again. The clock is that far then."""
    with pytest.raises(UnusableCountersError, match="cannot be read: Resource temporarily unavailable"):
        watch.read()
    began = clock.now
    while not watch.due() and clock.now < began + 100:
        clock.now += 1
    return clock.now - began
