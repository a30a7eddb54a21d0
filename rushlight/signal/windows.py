"""``torch.signal.windows``: the windows of signal processing, symmetric unless ``sym=False``.

>>> rushlight.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

import functools
import inspect
import math

from .. import dtypes
from ..autograd.mode import no_grad
from ..layout import strided
from ..ops.public import PUBLIC as torch
from ..tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def __dir__():
    return __all__


def _window(make):
    """Give ``make(M, span, line, …)`` the arguments of every window.

    ``span`` is the distance between the first point and the last of the full window, and ``line(start, end)`` are the
    positions, evenly spaced.
    """
    name = make.__name__
    own = list(inspect.signature(make).parameters.values())[3:]

    @functools.wraps(make)
    def create(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False, **parameters):
        if M is True and name in _MEASURED:
            raise TypeError(f"{name}(): argument 'M' must be int, not bool")
        M = int(M) if M.__class__ is bool else M
        dtype = dtypes.argument(dtype, name) or dtypes.get_default_dtype()
        _check(name, M, dtype, layout)
        if requires_grad is None and name == "general_cosine" and M > 1:
            raise TypeError("tensor(): argument 'requires_grad' must be bool, not NoneType")
        if requires_grad.__class__ is not bool and requires_grad is not None:
            raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        place = torch["empty"](0, device=device).device  # a bad one is refused before the work
        with no_grad():
            line = functools.partial(_line, M, dtype)
            span = 0 if M == 1 and name in _MEASURED else max(M - bool(sym), 1)
            values = make(M, span, line, **parameters)
            made = values if M > 1 or (M and name in _MEASURED) else torch["ones"](M, dtype=dtype, device="cpu")
        return made.to(place).requires_grad_(bool(requires_grad))

    shared = list(inspect.signature(create, follow_wrapped=False).parameters.values())
    create.__signature__ = inspect.Signature([shared[0], *own, *shared[1:-1]])
    return create


_MEASURED = ("cosine", "exponential", "gaussian")  # computed for a single point too; others are 1 there


def _line(M, dtype, start, end):
    return torch["linspace"](start, end, M, dtype=dtype, device="cpu")


def _check(name, M, dtype, layout):
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


@_window
def general_cosine(M, span, line, *, a):
    """Σ (-1)ⁱ aᵢ cos(2πin / N)."""
    if not M:
        return None  # before PyTorch looks at the coefficients
    if not isinstance(a, (list, tuple, Tensor)):
        raise TypeError("Coefficients must be a list/tuple")
    if not len(a):
        raise ValueError("Coefficients cannot be empty")
    step = 2 * math.pi / span
    angle = line(0, (M - 1) * step)
    signed = torch["tensor"]([(-1) ** i * w for i, w in enumerate(a)], dtype=angle.dtype)
    return (signed[:, None] * (torch["arange"](len(a), dtype=angle.dtype)[:, None] * angle).cos()).sum(0)


@_window
def exponential(M, span, line, *, center=None, tau=1.0):
    """exp(-\\|n - center\\| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if center is not None and span < M and M > 1:
        raise ValueError("Center must be None for symmetric windows")
    center = span / 2 if center is None else center
    return (-line(-center / tau, (M - 1 - center) / tau).abs()).exp()


@_window
def cosine(M, span, line):
    """sin(π(n + 0.5) / N)."""
    step = math.pi / (span + 1)
    return line(0.5 * step, (M - 0.5) * step).sin()


@_window
def gaussian(M, span, line, *, std=1.0):
    """exp(-(n / std)² / 2) around the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    unit = 1 / (std * math.sqrt(2))
    return (-(line(-span / 2 * unit, (M - 1 - span / 2) * unit) ** 2)).exp()


@_window
def kaiser(M, span, line, *, beta=12.0):
    """I₀(beta · √(1 - (2n / N - 1)²)) / I₀(beta), I₀ the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    x = line(-beta, -beta + 2 * beta * (M - 1) / span)
    square = torch["full_like"](x, beta) ** 2
    return (square - x**2).clamp(min=0).sqrt().i0() / torch["full_like"](x, beta).i0()


@_window
def bartlett(M, span, line):
    """A triangle from zero to one and back."""
    return 1 - line(-1, -1 + 2 * (M - 1) / span).abs()


def _cosine_sum(name, doc, coefficients):
    """A window of fixed cosine terms; PyTorch's messages call it ``general_cosine``, which makes it."""

    def create(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
        return general_cosine(
            M, a=coefficients, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
        )

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return create


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2πn / N)."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


hamming = _cosine_sum("hamming", "0.54 - 0.46 cos(2πn / N).", [0.54, 0.46])
hann = _cosine_sum("hann", "sin²(πn / N).", [0.5, 0.5])
blackman = _cosine_sum("blackman", "0.42 - 0.5 cos(2πn / N) + 0.08 cos(4πn / N).", [0.42, 0.5, 0.08])
nuttall = _cosine_sum(
    "nuttall", "Four cosine terms with very low side lobes.", [0.3635819, 0.4891775, 0.1365995, 0.0106411]
)
