"""The lines of one family: slice by slice, without what parsers reject, in little memory."""

import math
import tracemalloc

import pytest

from exporter.exposition.page import PackedPiece, plain_page
from exporter.exposition.sample_lines import SLICE, SampleLines
from exporter.metric import Kind, LabelError, metric

PER_POD = metric("a", Kind.GAUGE, "A.", "pod")
COUNTED = metric("a_total", Kind.COUNTER, "A.", "pod")


def lines_of(metric_, samples):
    """The lines, the number of dropped samples, and whether every piece is compressed."""
    written = SampleLines(metric_)
    pieces = list(written.pieces(samples))
    found = plain_page(pieces).decode().splitlines()
    return found, written.dropped, bool(pieces) and all(isinstance(piece, PackedPiece) for piece in pieces)


def numbered(metric_, count, value=1):
    return [metric_.sample(value, pod=f"p{number}") for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, SLICE - 1, SLICE, SLICE + 1, 2 * SLICE, 2 * SLICE + 1])
def test_every_sample_is_written_once_and_a_family_of_several_slices_is_kept_compressed(count):
    found, dropped, compressed = lines_of(PER_POD, iter(numbered(PER_POD, count)))
    assert found == [f'a{{pod="p{number}"}} 1' for number in range(count)]
    assert dropped == 0
    assert compressed is (count > SLICE)


@pytest.mark.parametrize("position", [0, SLICE - 1, SLICE, 2 * SLICE + 5])
def test_a_series_that_comes_again_in_any_slice_is_dropped_and_the_first_stays(position):
    samples = numbered(PER_POD, 2 * SLICE + 10)
    samples.insert(position + 1, PER_POD.sample(2, pod=f"p{position}"))
    samples.append(PER_POD.sample(3, pod="p1"))
    found, dropped, _ = lines_of(PER_POD, samples)
    assert found == [f'a{{pod="p{number}"}} 1' for number in range(2 * SLICE + 10)]
    assert dropped == 2


@pytest.mark.parametrize("count", [3, 2 * SLICE])
def test_a_value_that_parsers_reject_costs_itself_in_any_slice(count):
    samples = numbered(COUNTED, count)
    samples[1] = COUNTED.sample(math.nan, pod="p1")
    samples[-1] = COUNTED.sample(-1, pod=f"p{count - 1}")
    found, dropped, _ = lines_of(COUNTED, samples)
    assert len(found) == count - 2
    assert dropped == 2


@pytest.mark.parametrize("count", [0, 2 * SLICE])
def test_labels_of_another_metric_are_refused(count):
    other = metric("b", Kind.GAUGE, "B.", "pod", "uid")
    with pytest.raises(LabelError, match="labels of another metric on a: "):
        lines_of(PER_POD, [*numbered(PER_POD, count), other.sample(1, pod="p", uid="u")])


def test_a_large_family_never_has_the_memory_of_its_text():
    samples = (PER_POD.ordered(1, f"{number:0800}") for number in range(20 * SLICE))
    tracemalloc.start()
    try:
        pieces = list(SampleLines(PER_POD).pieces(samples))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = len(plain_page(pieces))
    assert whole > 60e6
    assert sum(len(piece.blocks) for piece in pieces) < whole / 10
    assert peak < whole / 1.5  # some slices, and the hashes of all label texts
