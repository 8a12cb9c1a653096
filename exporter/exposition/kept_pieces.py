"""Keeps what was written of chunks of families: one that is the same in the next collection is not written again."""

from collections.abc import Hashable, Iterator

from exporter.exposition.page import Piece, packed
from exporter.exposition.sample_lines import SampleLines
from exporter.metric import ChunkedFamily

PACKED_BYTES = 16_384
"""A piece at least this large is kept compressed; smaller ones that follow each other are compressed together."""


class KeptPieces:
    """The pieces of the last rendering. For use by one thread."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, Hashable], tuple[Piece, int]] = {}
        self._now: dict[tuple[str, Hashable], tuple[Piece, int]] = {}

    def begin(self) -> None:
        """Begin a rendering: what the one before it did not use is forgotten."""
        self._last, self._now = self._now, {}

    def of(self, family: ChunkedFamily) -> Iterator[tuple[Piece, int]]:
        """Yield the lines of each chunk, and how many samples were left out of it."""
        for chunk in family.chunks:
            key = (family.metric.name, chunk.of)
            found = self._last.get(key)
            if found is None:
                lines = SampleLines(family.metric)
                body = b"".join(
                    piece if isinstance(piece, bytes) else piece.unpacked() for piece in lines.pieces(chunk.make())
                )
                found = (packed(body) if len(body) >= PACKED_BYTES else body), lines.dropped
            self._now[key] = found
            yield found
