"""Normal float32 numbers from uniform ones, to the last bit as PyTorch's vector code makes them.

That code has its own logarithm, sine and cosine: the polynomials of Cephes (S. L. Moshier, https://www.netlib.org/cephes/),
each step a fused multiply-add. NumPy has no such instruction, but a float64 holds the product of two float32 exactly:
here values are float64 that are rounded to float32 after every step.
"""

from __future__ import annotations

import math

import numpy as np

from ..native import library
from .kernels import parallel

BLOCK = 16  # 8 radii with 8 angles
_PIECE = 1 << 10  # blocks that are worked on at a time, so that they stay in the cache

_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_LOG_2 = 0.693359375, -2.12194440e-4  # log(2) in two parts
_QUARTER = 0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8  # pi / 4 in three


def normal(u: np.ndarray, out: np.ndarray, mean: float, std: float) -> None:
    """Blocks of 8 radii and 8 angles from ``u`` into ``out``; both flat and of float32."""
    if library is not None:
        library.box_muller(u, out, mean, std)
        return
    u, out = u.reshape(-1, 2, BLOCK // 2), out.reshape(-1, 2, BLOCK // 2)

    def work(start, stop):
        for i in range(start, stop, _PIECE):
            part = slice(i, min(i + _PIECE, stop))
            _some(u[part], out[part], mean, std)

    parallel.rows(len(u), BLOCK, work)


def _some(u, out, mean, std):
    radius = np.sqrt(np.float32(-2) * _log(np.float32(1) - u[:, 0])).astype(np.float64)
    sine, cosine = _sine_and_cosine(np.float32(2 * math.pi) * u[:, 1])
    mean, std = np.float64(np.float32(mean)), np.float64(np.float32(std))
    for i, wave in enumerate((cosine, sine)):
        value = _rounded(radius * wave)
        out[:, i] = value if std == 1 and mean == 0 else value * std + mean


def _rounded(x):
    return x.astype(np.float32).astype(np.float64)


def _polynomial(x, coefficients):
    y = _single(coefficients[0])
    for c in coefficients[1:]:
        y = _rounded(y * x + _single(c))
    return y


def _single(c):
    return np.float64(np.float32(c))


def _log(x):
    """The logarithm of float32 numbers from (0, 1]."""
    bits = x.view(np.int32)
    exponent = (bits >> 23) - 126
    mantissa = ((bits & 0x7FFFFF) | 0x3F000000).view(np.float32)  # from [1/2, 1)
    low = mantissa < np.float32(math.sqrt(0.5))
    exponent = (exponent - low).astype(np.float64)
    m = np.where(low, mantissa + mantissa, mantissa).astype(np.float64) - 1
    square = _rounded(m * m)
    y = _rounded(_polynomial(m, _LOG) * m)
    y = _rounded(y * square + _rounded(exponent * _single(_LOG_2[1])))
    y = _rounded(y - 0.5 * square)
    return (exponent * _LOG_2[0] + _rounded(m + y)).astype(np.float32)


def _sine_and_cosine(x):
    """Of float32 numbers that are not negative, as float64."""
    octant = (x * np.float32(4 / math.pi)).astype(np.int32) + 1 & ~1
    x, turns = x.astype(np.float64), octant.astype(np.float64)
    for part in _QUARTER:
        x = _rounded(x - turns * _single(part))
    square = _rounded(x * x)
    cosine = _rounded(_polynomial(square, _COSINE) * square)
    cosine = _rounded(_rounded(cosine * square - 0.5 * square) + 1)
    sine = _rounded(_polynomial(square, _SINE) * square)
    sine = _rounded(sine * x + x)
    swapped = octant & 2 != 0
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    return np.where(octant & 4 != 0, -sine, sine), np.where(octant - 2 & 4 == 0, -cosine, cosine)
