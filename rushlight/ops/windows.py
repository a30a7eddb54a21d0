"""Window functions: ``hann_window`` and its kin, periodic unless told otherwise. ``rushlight.signal`` has more of them.

They are computed step by step in the result's precision, on the CPU, so that every digit is PyTorch's.
"""

from __future__ import annotations

import functools
import math

from .. import dtypes
from ..autograd.mode import no_grad
from ..layout import strided
from . import arithmetic, creation, trigonometry  # noqa: F401  (the operators of Tensor used below)
from .public import PUBLIC


def _window(make):
    """Publish ``make(n, last, …)``: the window at the positions ``n``; the full window ends at ``last``."""
    name = make.__name__

    @functools.wraps(make)
    def create(
        window_length, periodic=True, *args, dtype=None, layout=strided, device=None, pin_memory=False,
        requires_grad=False, **kwargs,
    ):  # fmt: skip
        if isinstance(window_length, (bool, float)) or not hasattr(window_length, "__index__"):
            given = type(window_length).__name__
            raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {given}")
        if layout is not strided:
            raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
        dtype = dtypes.argument(dtype, name) or dtypes.get_default_dtype()
        if dtype.is_complex or not dtype.is_floating_point:
            raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        place = PUBLIC["empty"](0, device=device).device  # a bad one is refused before the work
        with no_grad():
            n = PUBLIC["arange"](window_length, dtype=dtype, device="cpu")
            made = make(n, window_length - (not periodic), *args, **kwargs) if window_length > 1 else n + 1
        return made.to(place).requires_grad_(requires_grad)

    PUBLIC[name] = create
    return create


@_window
def hann_window(n, last):
    """A raised cosine that begins at zero: sin²(πn / N).

    >>> rushlight.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hamming(n, last, 0.5, 0.5)


@_window
def hamming_window(n, last, alpha=0.54, beta=0.46):
    """A raised cosine: alpha - beta · cos(2πn / N)."""
    return hamming(n, last, alpha, beta)


@_window
def blackman_window(n, last):
    """Three cosine terms: 0.42 - 0.5 cos(2πn / N) + 0.08 cos(4πn / N)."""
    step = 2 * math.pi / last
    return (n * (2 * step)).cos() * 0.08 - (n * step).cos() * 0.5 + 0.42


@_window
def bartlett_window(n, last):
    """A triangle that begins at zero."""
    rising = n * (2 / last)
    return PUBLIC["where"](n <= last / 2, rising, 2 - rising)


@_window
def kaiser_window(n, last, beta=12.0):
    """I₀(beta · √(1 - (2n / N - 1)²)) / I₀(beta), I₀ the modified Bessel function."""
    x = (n - last / 2) * (2 / last)
    return ((1 - x * x).clamp(min=0).sqrt() * beta).i0() / PUBLIC["full_like"](x, beta).i0()


def hamming(n, last, alpha, beta):
    return (n * (2 * math.pi / last)).cos() * -beta + alpha
