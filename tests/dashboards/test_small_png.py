"""Images of dashboards keep their colors, to a few steps of each channel, with a palette."""

import struct
import zlib

import pytest

from tests.dashboards.renderer.small_png import SIGNATURE, STEP, _chunk, _chunks, _paeth, smaller

WIDTH, HEIGHT = 7, 4


def color(x, y):
    return (x * 36, y * 60, (x * y * 10) % 256)


PIXELS = [b"".join(bytes(color(x, y)) for x in range(WIDTH)) for y in range(HEIGHT)]


def filtered(kind, line, above):
    """A line as the PNG specification writes it with this filter."""

    def guess(at):
        left, up = line[at - 3] if at >= 3 else 0, above[at]
        corner = above[at - 3] if at >= 3 else 0
        return (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]

    return bytes((line[at] - guess(at)) & 255 for at in range(len(line)))


def true_color(kind):
    above = [bytes(3 * WIDTH), *PIXELS]
    raw = b"".join(bytes([kind]) + filtered(kind, line, above[y]) for y, line in enumerate(PIXELS))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in parts)


@pytest.mark.parametrize("kind", range(5))
def test_every_pixel_keeps_its_color_whatever_the_filter(kind):
    chunks = dict(_chunks(smaller(true_color(kind))))
    lines = zlib.decompress(chunks[b"IDAT"])
    for y in range(HEIGHT):
        for x in range(WIDTH):
            index = lines[y * (WIDTH + 1) + 1 + x]
            found = chunks[b"PLTE"][3 * index : 3 * index + 3]
            assert all(abs(one - other) <= STEP / 2 for one, other in zip(found, color(x, y), strict=True))


def test_the_nearest_neighbor_is_chosen_as_the_specification_says():
    assert [_paeth(10, 20, 12), _paeth(20, 10, 12), _paeth(5, 5, 5)] == [20, 20, 5]
