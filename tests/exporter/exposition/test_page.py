"""A page is the same whether its pieces are kept compressed or not, and compressed it is one gzip member."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.exposition.checksum import joined_crc32
from exporter.exposition.page import PackedPiece, gzip_page, packed, plain_page

bodies = st.binary(max_size=200) | st.builds(
    lambda text, times: text * times, st.binary(max_size=20), st.integers(0, 500)
)


@given(st.lists(st.tuples(bodies, st.booleans()), max_size=8))
def test_a_page_is_the_text_of_its_pieces_in_turn(given_pieces):
    pieces = [packed(body) if compressed else body for body, compressed in given_pieces]
    whole = b"".join(body for body, _ in given_pieces)
    assert plain_page(pieces) == whole
    decompressor = zlib.decompressobj(wbits=31)  # of one member, with its checksum
    assert decompressor.decompress(gzip_page(pieces)) == whole
    assert decompressor.eof
    assert decompressor.unused_data == b""


@given(bodies, bodies)
def test_joined_checksums_are_those_of_the_joined_text(first, second):
    assert joined_crc32(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


def test_a_damaged_piece_is_noticed_by_who_decompresses_the_page():
    piece = packed(b"a 1\n" * 100)
    page = gzip_page([PackedPiece(piece.blocks, piece.crc ^ 1, piece.size), b"b 2\n"])
    with pytest.raises(gzip.BadGzipFile, match="CRC check failed"):
        gzip.decompress(page)


def test_pieces_that_follow_a_compressed_one_do_not_refer_to_what_was_before_it():
    text = b"gpugauge_gpu_pod_info 1\n" * 50
    assert gzip.decompress(gzip_page([text, packed(b"other\n" * 9), text, packed(text), text])) == (
        text + b"other\n" * 9 + text + text + text
    )
