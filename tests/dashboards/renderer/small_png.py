"""Makes a PNG of Chromium smaller: at most 256 colors, of which each pixel takes the nearest one.

For true-color PNGs without an alpha channel or interlacing, as Chromium writes them (PNG specification, sections 9 to
11).
"""

import struct
import zlib
from collections import Counter

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLORS = 256
STEP = 5
"""Colors that agree but for this many of the lowest bits of each channel become one."""


def smaller(png: bytes) -> bytes:
    """The same image with a palette."""
    width, height, rows = _rows(png)
    buckets = Counter(bucket for row in rows for bucket in row)
    kept = [bucket for bucket, _ in buckets.most_common(COLORS)]
    place = {bucket: index for index, bucket in enumerate(kept)}
    for bucket in buckets.keys() - place.keys():
        place[bucket] = min(range(len(kept)), key=lambda index: _distance(kept[index], bucket))
    lines = b"".join(b"\0" + bytes(map(place.__getitem__, row)) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = b"".join(bytes(bucket) for bucket in kept)
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _rows(png: bytes) -> tuple[int, int, list[list[tuple[int, int, int]]]]:
    """Width, height, and the colors of each row, rounded."""
    chunks = list(_chunks(png))
    width, height, depth, kind = struct.unpack(">IIBB", dict(chunks)[b"IHDR"][:10])
    assert (depth, kind) == (8, 2), "not a true-color PNG"
    raw = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    size = 3 * width
    rows, before = [], bytes(size)
    for top in range(0, height * (size + 1), size + 1):
        before = _unfiltered(raw[top], bytearray(raw[top + 1 : top + 1 + size]), before)
        rounded = before.translate(ROUNDED)
        rows.append(list(zip(rounded[::3], rounded[1::3], rounded[2::3], strict=True)))
    return width, height, rows


ROUNDED = bytes(min(round(value / STEP) * STEP, 255) for value in range(256))


def _unfiltered(kind: int, line: bytearray, above: bytes) -> bytes:
    """A line of the image from how it differs from its neighbors."""
    for at in range(len(line)):
        left, up = line[at - 3] if at >= 3 else 0, above[at]
        match kind:
            case 1:
                line[at] = (line[at] + left) & 255
            case 2:
                line[at] = (line[at] + up) & 255
            case 3:
                line[at] = (line[at] + (left + up) // 2) & 255
            case 4:
                line[at] = (line[at] + _paeth(left, up, above[at - 3] if at >= 3 else 0)) & 255
    return bytes(line)


def _paeth(left: int, up: int, corner: int) -> int:
    by_distance = (abs(up - corner), abs(left - corner), abs(left + up - 2 * corner))
    nearest = min(by_distance)
    return left if by_distance[0] == nearest else up if by_distance[1] == nearest else corner


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunks(png: bytes):
    at = len(SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
