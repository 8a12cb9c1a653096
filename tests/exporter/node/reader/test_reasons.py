"""Reasons of the reader process: facts that other modules state too."""

from exporter.collection_loop import FOLLOWS_A_CRASH
from exporter.node.reader.reasons import ReaderReason
from exporter.node.reader.supervisor import ReaderTimings

TIMINGS = ReaderTimings()


def test_the_reason_that_the_collection_loop_does_not_log_is_restarting():
    """exporter/collection_loop.py serves both programs, so it cannot import the reader's reasons."""
    assert FOLLOWS_A_CRASH == ReaderReason.RESTARTING


def test_the_meanings_have_the_deadlines_and_pauses():
    assert f"within {TIMINGS.deadline:.0f} s ({TIMINGS.opening:.0f} s at its start)" in ReaderReason.HUNG.meaning
    assert f"from {TIMINGS.first_pause:.0f} to {TIMINGS.longest_pause:.0f} s" in ReaderReason.RESTARTING.meaning
