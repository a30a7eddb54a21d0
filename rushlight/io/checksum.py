"""CRC-32, zip's checksum, several times faster than ``zlib.crc32``: long exclusive-ors in place of tables.

A checksum is the remainder of a division of polynomials: the bytes are the coefficients, the divisor P is fixed. P
divides x^91639 + x^41678 + 1 (found by search: it is the shortest such sum of three powers), and so does it divide that
with x^8 in place of x, because squaring a polynomial over two elements squares its powers. So a byte may be taken away
if it is added, by exclusive or, to the bytes 91639 - 41678 and 91639 places after it: the remainder stays. What is left
in the end is short, and zlib's.
"""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["crc32"]

_LONG, _SHORT = 91639, 41678
_NEAR = _LONG - _SHORT
_WORTH = 4 * _LONG  # below that the end is too much of the whole


def crc32(data, crc: int = 0) -> int:
    """What ``zlib.crc32`` gives for bytes, or for anything that shows its memory as bytes."""
    data = memoryview(data).cast("B")
    if len(data) < _WORTH:
        return zlib.crc32(data, crc)
    count = len(data) // _LONG
    rows = np.frombuffer(data, np.uint8, count * _LONG).reshape(count, _LONG)
    ring = _folded(rows[:-1], crc)
    last = rows[-1] ^ ring
    last[:_NEAR] ^= ring[_SHORT:]
    return zlib.crc32(data[rows.size :], zlib.crc32(last, _inverted(0)))


def _folded(rows: np.ndarray, crc: int) -> np.ndarray:
    """The bytes that rows add to those after them: of each, its own and what came to it from before.

    ``ring`` has the last ``_LONG`` of these; the place of a byte in it is also that of the byte ``_LONG`` before.
    """
    ring = np.zeros(_LONG, np.uint8)
    ring[:4] = np.frombuffer(_inverted(crc).to_bytes(4, "little"), np.uint8)  # where zlib starts from
    first, middle, end = ring[:_SHORT], ring[_SHORT:_NEAR], ring[_NEAR:]
    before_first, before_middle = ring[_SHORT : 2 * _SHORT], ring[2 * _SHORT :]
    for row in rows:
        np.bitwise_xor(first, before_first, out=first)  # ``_NEAR`` before: these two from the last turn,
        np.bitwise_xor(middle, before_middle, out=middle)
        np.bitwise_xor(ring, row, out=ring)
        np.bitwise_xor(end, first, out=end)  # and this from the same
    return ring


def _inverted(crc: int) -> int:
    return crc ^ 0xFFFFFFFF
