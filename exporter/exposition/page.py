"""A page of an exposition in pieces, so that a large one is never in memory as a whole.

A small piece is kept as it is. A large family is written in slices, each compressed as soon as it is written: the page
of a large cluster is 70 MB of text, and 4 MB compressed. Both formats share these pieces.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exporter.exposition.checksum import joined_crc32

GZIP_LEVEL = 1  # measured on our expositions: level 6 saves a tenth of the bytes for five times the time
_RAW = -15
"""Tells zlib to write no header and no trailer: those of the page are ours."""
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""RFC 1952: deflate, no name, no time, fastest compression, unknown system."""
_LAST_BLOCK = b"\x03\x00"
"""RFC 1951: an empty final block."""


@dataclass(frozen=True, slots=True)
class PackedPiece:
    """A piece that is kept compressed. Its blocks refer to nothing before it, so they may follow any other."""

    blocks: bytes
    crc: int
    size: int
    """Bytes, not compressed."""

    def unpacked(self) -> bytes:
        """Return the piece as it was."""
        return zlib.decompress(self.blocks + _LAST_BLOCK, _RAW, self.size)


Piece = bytes | PackedPiece


def packed(plain: bytes) -> PackedPiece:
    """Compress a piece."""
    return PackedPiece(_blocks(plain), zlib.crc32(plain), len(plain))


def plain_page(pieces: Sequence[Piece]) -> bytes:
    """Join the pieces of a page."""
    return b"".join([piece if isinstance(piece, bytes) else piece.unpacked() for piece in pieces])


def gzip_page(pieces: Sequence[Piece]) -> bytes:
    """Join the pieces of a page, compressed as one gzip member: not every client reads several."""
    if all(isinstance(piece, bytes) for piece in pieces):
        return gzip.compress(plain_page(pieces), GZIP_LEVEL, mtime=0)
    ready = list(_all_packed(pieces))
    crc, size = 0, 0
    for piece in ready:
        crc, size = joined_crc32(crc, piece.crc, piece.size), size + piece.size
    trailer = crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join([_HEADER, *(piece.blocks for piece in ready), _LAST_BLOCK, trailer])


def _all_packed(pieces: Sequence[Piece]) -> Iterator[PackedPiece]:
    """Yield the pieces compressed, small ones that follow each other as one."""
    small: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            small.append(piece)
            continue
        if small:
            yield packed(b"".join(small))
            small = []
        yield piece
    if small:
        yield packed(b"".join(small))


def _blocks(plain: bytes) -> bytes:
    """Compress to whole bytes, without a final block, so that other blocks can follow."""
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _RAW)
    return compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH)
