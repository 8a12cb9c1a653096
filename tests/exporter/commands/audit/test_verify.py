"""`gpugauge audit --verify` names what is missing, changed or in another order, and nothing else."""

import json

import pytest

from exporter.commands.audit.verify import as_json, as_text, verify
from exporter.node.audit.chain import digest
from tests.exporter.commands.audit.logs import NodeLog, read_lines_of
from tests.exporter.node.audit.days import given


@pytest.fixture(scope="module")
def lines():
    log = NodeLog()
    for pod in "abcdefgh":
        log.note(given(pod), times=2)
    return log.stop().lines


def findings(*files):
    return verify(read_lines_of(*files)).findings


def test_a_whole_log_is_intact_in_any_order_and_with_overlaps(lines):
    for files in ([lines], [lines[5:], lines[:5]], [lines[3:9], lines[:6], lines[8:], lines]):
        found = verify(read_lines_of(*files))
        assert (found.findings, found.notes) == ([], [])
        (chain,) = found.chains
        assert (chain.node, chain.first, chain.last, chain.head) == ("node-1", 1, len(lines), digest(lines[-1]))


@pytest.mark.parametrize("number", [1, 6, 12])
def test_a_changed_line_is_found_by_the_one_after_it(lines, number):
    changed = [*lines[:number], lines[number].replace(b"node-1", b"node-2"), *lines[number + 1 :]]
    place, before = f"file-1:{number + 2}", f"file-1:{number + 1}"
    text = f"{place}: line {number + 2} was made to follow another line than {before}: one was changed"
    assert findings(changed) == [text]


def test_a_line_that_was_changed_together_with_its_number_is_a_gap(lines):
    changed = [*lines[:5], lines[5].replace(b'"seq":6,', b'"seq":96,'), *lines[6:]]
    found = findings(changed)
    assert "lines 6 to 6 are missing between file-1:5 and file-1:7" in found
    assert any("the order was changed" in each for each in found)


@pytest.mark.parametrize(("begin", "end"), [(3, 4), (3, 8), (1, 2)])
def test_lines_that_were_left_out_are_named(lines, begin, end):
    assert findings([*lines[:begin], *lines[end:]]) == [
        f"lines {begin + 1} to {end} are missing between file-1:{begin} and file-1:{begin + 1}"
    ]


def test_a_file_that_is_missing_in_the_middle_is_named_by_the_number_in_its_name(lines):
    (found,) = findings(lines[:4], lines[9:])
    assert found.startswith("lines 5 to 9 are missing between file-1:4 and file-2:1: ")
    assert found.endswith("the file whose name ends in 000000000009, and any before")


def test_files_that_were_rotated_away_are_a_note(lines):
    found = verify(read_lines_of(lines[4:]))
    assert found.findings == []
    assert found.notes == [
        "chain c1 of node node-1: its lines 1 to 4 are in none of the files: rotated away, or not given"
    ]


def test_lines_in_another_order_are_named(lines):
    assert findings([*lines[:4], lines[5], lines[4], *lines[6:]]) == [
        "file-1:6: line 5 follows line 6: the order was changed"
    ]


def test_lines_with_one_number_that_differ_are_named(lines):
    other = lines[3].replace(b"team", b"evil")
    found = findings(lines, [other])
    assert found[0] == "file-1:4, file-2:1: these are line 4 of one chain, and differ"


def test_what_is_no_line_is_named_and_a_torn_last_one_is_a_note(lines):
    read = read_lines_of([*lines, b"hello"])
    assert verify(read).findings == [f"file-1:{len(lines) + 1}: this is no line of an audit log"]
    torn = [*read[:-1], read[-1]._replace(torn=True)]
    assert verify(torn).findings == []
    assert len(verify(torn).notes) == 1


def test_the_chains_of_several_processes_and_nodes_are_apart(lines):
    one, two = NodeLog("node-2", "c2"), NodeLog("node-2", "c3")
    found = verify(read_lines_of(lines, one.lines, two.lines))
    assert [(each.node, each.chain) for each in found.chains] == [("node-1", "c1"), ("node-2", "c2"), ("node-2", "c3")]
    assert found.findings == []


def test_the_text_ends_with_the_result_and_has_no_control_characters(lines):
    hostile = NodeLog("node\x1b[2J", "c2").lines
    text = as_text(verify(read_lines_of(lines, hostile)))
    assert text.endswith("Intact: every line follows the one before it.\n")
    assert "\x1b" not in text
    assert as_text(verify(read_lines_of(lines[1:3] + lines[5:]))).endswith("Not intact: 1 findings.\n")


def test_the_same_is_there_for_programs(lines):
    document = json.loads(as_json(verify(read_lines_of(lines))))
    assert document["intact"] is True
    assert document["chains"][0]["last"] == len(lines)
