"""Joins the CRC-32 checksums of two texts to that of both in turn, without reading the texts again. Pure functions.

Python's zlib does not offer zlib's own `crc32_combine`. A CRC is a remainder of polynomials with coefficients 0 and 1:
appending n bytes multiplies it by x to the power of 8n. Polynomials are written as zlib does, the highest bit first.
"""

from functools import lru_cache

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
_X8 = 1 << 23
"""x to the power of 8."""


def joined_crc32(first: int, second: int, second_size: int) -> int:
    """Return the CRC-32 of two texts in turn from theirs and the size of the second in bytes."""
    return _product(_power(second_size), first) ^ second


@lru_cache(maxsize=16_384)
def _power(size: int) -> int:
    """The power of x by which as many bytes multiply; cached, because most pieces of an exposition stay as they are."""
    result, base = _ONE, _X8
    while size:
        if size & 1:
            result = _product(result, base)
        base = _product(base, base)
        size >>= 1
    return result


def _product(a: int, b: int) -> int:
    """Multiply two polynomials modulo that of CRC-32."""
    result = 0
    while a:
        if a & _ONE:
            result ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return result
