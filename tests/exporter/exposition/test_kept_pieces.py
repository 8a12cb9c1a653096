"""What was written of a chunk is kept while the chunk is the same, and the exposition is as if it were not."""

import gzip

from prometheus_client import CollectorRegistry

from exporter.exposition.kept_pieces import PACKED_BYTES, KeptPieces
from exporter.exposition.page import PackedPiece
from exporter.exposition.render import formatted_samples, render
from exporter.metric import Chunk, ChunkedFamily, Family, Kind, metric

INFO = metric("gpugauge_a_info", Kind.GAUGE, "A.", "name")
OTHER = metric("gpugauge_b", Kind.GAUGE, "B.", "name")
NOTHING = CollectorRegistry()


class Source:
    """Makes chunks of samples, and counts how often each is made."""

    def __init__(self):
        self.made = []

    def chunk(self, key, *names, of=INFO, value=1):
        def make():
            self.made.append(key)
            return iter([of.sample(value, name=name) for name in names])

        return Chunk(key, make)


def test_a_chunk_is_written_once_while_it_is_the_same():
    source, kept = Source(), KeptPieces()
    first = [source.chunk("x", "a", "b"), source.chunk("y", "c")]
    for _ in range(3):
        text = render([ChunkedFamily(INFO, first)], NOTHING, None, kept).text
    assert source.made == ["x", "y"]
    changed = render([ChunkedFamily(INFO, [first[0], source.chunk("z", "d")])], NOTHING, None, kept).text
    assert source.made == ["x", "y", "z"]
    assert text == b"# HELP gpugauge_a_info A.\n# TYPE gpugauge_a_info gauge\n" + b"".join(
        b'gpugauge_a_info{name="%b"} 1\n' % name for name in (b"a", b"b", b"c")
    )
    assert changed == text.replace(b'"c"', b'"d"')


def test_what_was_not_used_is_forgotten():
    source, kept = Source(), KeptPieces()
    family, empty = ChunkedFamily(INFO, [source.chunk("x", "a")]), ChunkedFamily(INFO, [])
    for each in (family, empty, family):
        render([each], NOTHING, None, kept)
    assert source.made == ["x", "x"]


def test_two_metrics_of_the_same_chunk_are_kept_apart():
    source, kept = Source(), KeptPieces()
    families = [
        ChunkedFamily(INFO, [source.chunk("x", "a")]),
        ChunkedFamily(OTHER, [source.chunk("x", "a", of=OTHER, value=2)]),
    ]
    once, twice = (render(families, NOTHING, None, kept).text for _ in range(2))
    assert once == twice
    assert b'gpugauge_b{name="a"} 2\n' in twice


def test_the_exposition_is_that_of_one_family_and_large_chunks_are_packed():
    names = [f"n{number}" for number in range(3000)]
    whole = Family(INFO, [INFO.sample(1, name=name) for name in names])
    source, kept = Source(), KeptPieces()
    chunks = [source.chunk(begin, *names[begin : begin + 1000]) for begin in range(0, 3000, 1000)]
    chunks += [source.chunk("small", "last")]
    expected = render([Family(INFO, [*whole.samples, INFO.sample(1, name="last")])], NOTHING)
    for _ in range(2):
        found = render([ChunkedFamily(INFO, chunks)], NOTHING, None, kept)
        assert found.text == expected.text
        assert gzip.decompress(found.text_gzip) == expected.text
        assert gzip.decompress(found.openmetrics_gzip) == expected.openmetrics
    body = formatted_samples([ChunkedFamily(INFO, chunks)], NOTHING, kept).bodies[0][1]
    assert [isinstance(piece, PackedPiece) for piece in body] == [True, True, True, False]
    assert all(piece.size >= PACKED_BYTES for piece in body[:3])


def test_samples_that_are_left_out_are_counted_in_every_exposition():
    source, kept = Source(), KeptPieces()
    family = ChunkedFamily(INFO, [source.chunk("x", "a", "a"), source.chunk("y", "b", value=float("nan"))])
    for _ in range(2):
        found = render([family], NOTHING, None, kept)
        assert (found.dropped, found.text.count(b"gpugauge_a_info{")) == (2, 1)
    assert [labels.values for labels, _ in family.samples] == [("a",), ("a",), ("b",)]
