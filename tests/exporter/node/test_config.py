"""Which counters file is read: the given one, else the one at the usual path, else the built-in default."""

from pathlib import Path

import pytest

from exporter.node.config import counters_path


def test_a_given_counters_file_is_taken_whatever_it_is(tmp_path):
    assert counters_path(str(tmp_path / "nothing"), usual=tmp_path) == tmp_path / "nothing"


@pytest.mark.parametrize("given", [None, ""])
def test_without_a_file_at_the_usual_path_the_built_in_default_is_used(tmp_path, given):
    (tmp_path / "file").touch()
    assert counters_path(given, usual=tmp_path / "nothing") is None
    assert counters_path(given, usual=tmp_path / "nothing" / "counters.csv") is None
    assert counters_path(given, usual=tmp_path / "file" / "counters.csv") is None


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.touch(),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nothing"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/dev/null"),
    ],
    ids=["file", "directory", "dangling", "loop", "device"],
)
def test_what_is_at_the_usual_path_is_never_replaced_by_the_built_in_default(tmp_path, make):
    usual = tmp_path / "counters.csv"
    make(usual)
    assert counters_path(None, usual) == usual


def test_a_usual_path_that_cannot_be_looked_at_is_not_replaced_by_the_built_in_default(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    usual = Path(tmp_path / "loop" / "counters.csv")
    assert counters_path(None, usual) == usual
