"""Discrete Fourier transforms under PyTorch's names: ``rushlight.fft``."""

from __future__ import annotations

import functools
import math

from .autograd.op import differentiable as xp
from .ops.dims import as_ints, is_int, wrap_dim, wrap_dims
from .ops.fft import promoted
from .ops.public import public

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__():
    return __all__


_function = functools.partial(public, function=False, method=False)  # only out=

# -- one dimension ---------------------------------------------------------------------------------------------------


@_function
def fft(input, n=None, dim=-1, norm=None):
    """The Fourier transform along ``dim``."""
    return _complex(*_one(input, n, dim), norm, False)


@_function
def ifft(input, n=None, dim=-1, norm=None):
    """The inverse of ``fft``."""
    return _complex(*_one(input, n, dim), norm, True)


@_function
def rfft(input, n=None, dim=-1, norm=None):
    """The half of a real signal's transform that the rest follows from."""
    return _from_real("rfft", *_one(input, n, dim), norm, False)


@_function
def irfft(input, n=None, dim=-1, norm=None):
    """The inverse of ``rfft``; ``n`` is the signal's length."""
    return _to_real(*_half(input, n, dim), norm, True)


@_function
def hfft(input, n=None, dim=-1, norm=None):
    """The real transform of a signal that is Hermitian, given by its half."""
    return _to_real(*_half(input, n, dim), norm, False)


@_function
def ihfft(input, n=None, dim=-1, norm=None):
    """The inverse of ``hfft``."""
    return _from_real("ihfft", *_one(input, n, dim), norm, True)


# -- several dimensions ----------------------------------------------------------------------------------------------


@_function
def fftn(input, s=None, dim=None, norm=None):
    """The Fourier transform along several dimensions: all, the last ``len(s)``, or ``dim``."""
    return _complex(*_many(input, s, dim), norm, False)


@_function
def ifftn(input, s=None, dim=None, norm=None):
    """The inverse of ``fftn``."""
    return _complex(*_many(input, s, dim), norm, True)


@_function
def rfftn(input, s=None, dim=None, norm=None):
    """``fftn`` of a real signal: the half along the last dimension that the rest follows from."""
    return _from_real("rfftn", *_many(input, s, dim), norm, False)


@_function
def irfftn(input, s=None, dim=None, norm=None):
    """The inverse of ``rfftn``."""
    return _to_real(*_many(input, s, dim, half=True), norm, True)


@_function
def hfftn(input, s=None, dim=None, norm=None):
    """The real transform of a signal that is Hermitian, given by its half along the last dimension."""
    return _to_real(*_many(input, s, dim, half=True), norm, False)


@_function
def ihfftn(input, s=None, dim=None, norm=None):
    """The inverse of ``hfftn``."""
    return _from_real("ihfftn", *_many(input, s, dim), norm, True)


@_function
def fft2(input, s=None, dim=(-2, -1), norm=None):
    """``fftn`` over two dimensions."""
    return fftn(input, s, dim, norm)


@_function
def ifft2(input, s=None, dim=(-2, -1), norm=None):
    """``ifftn`` over two dimensions."""
    return ifftn(input, s, dim, norm)


@_function
def rfft2(input, s=None, dim=(-2, -1), norm=None):
    """``rfftn`` over two dimensions."""
    return rfftn(input, s, dim, norm)


@_function
def irfft2(input, s=None, dim=(-2, -1), norm=None):
    """``irfftn`` over two dimensions."""
    return irfftn(input, s, dim, norm)


@_function
def hfft2(input, s=None, dim=(-2, -1), norm=None):
    """``hfftn`` over two dimensions."""
    return hfftn(input, s, dim, norm)


@_function
def ihfft2(input, s=None, dim=(-2, -1), norm=None):
    """``ihfftn`` over two dimensions."""
    return ihfftn(input, s, dim, norm)


# -- helpers of users ------------------------------------------------------------------------------------------------


@_function
def fftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of ``fft``'s results, for samples ``d`` apart."""
    from .ops.creation import arange

    return _frequencies(arange, [(0, (n + 1) // 2), (-(n // 2), 0)], n, d, dtype, device, requires_grad)


@_function
def rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of ``rfft``'s results, for samples ``d`` apart."""
    from .ops.creation import arange

    return _frequencies(arange, [(0, n // 2 + 1)], n, d, dtype, device, requires_grad)


def _frequencies(arange, ranges, n, d, dtype, device, requires_grad):
    from .dtypes import get_default_dtype

    dtype = dtype or get_default_dtype()
    parts = [arange(start, end, dtype=dtype, device=device) for start, end in ranges]
    counted = parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=0)
    result = xp.multiply(counted, 1.0 / (n * d))
    return result.requires_grad_() if requires_grad else result


@_function
def fftshift(input, dim=None):
    """The zero frequency moved to the middle."""
    return _shifted(input, dim, lambda n: n // 2)


@_function
def ifftshift(input, dim=None):
    """The inverse of ``fftshift``."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)


def _shifted(input, dim, by):
    dims = range(input.ndim) if dim is None else (dim,) if is_int(dim) else as_ints(dim, "dim")
    if dim is not None and not dims:
        raise RuntimeError("`shifts` required")
    total: dict[int, int] = {}  # a dimension may be named twice
    for d in dims:
        axis = wrap_dim(d, input.ndim)
        total[axis] = total.get(axis, 0) + by(input._array.shape[axis])
    return xp.roll(input, shift=tuple(total.values()), axis=tuple(total))


# -- from PyTorch's arguments to the primitives' ---------------------------------------------------------------------


def _one(input, n, dim):
    axis = _axis(input, dim)
    _check_points(input._array.shape[axis] if n is None else n)
    return input, (axis,), (n,)


def _axis(input, dim) -> int:
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, input.ndim)


def _half(input, n, dim):
    axis = _axis(input, dim)
    n = 2 * (input._array.shape[axis] - 1) if n is None else n
    _check_points(n)
    return input, (axis,), (n,)


def _check_points(n) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _many(input, s, dim, half=False):
    shape = input._array.shape
    s = (s,) if isinstance(s, int) else s
    s = s and as_ints(s, "s")
    if dim is not None:
        axes = wrap_dims(dim, input.ndim)
        if s is not None and len(s) != len(axes):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > input.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {input.ndim} dimensions.")
        axes = tuple(range(input.ndim - len(s), input.ndim))
    else:
        axes = tuple(range(input.ndim))
    sizes = [None if n == -1 else n for n in (s or [None] * len(axes))]
    if half and axes and sizes[-1] is None:
        sizes[-1] = 2 * (shape[axes[-1]] - 1)
    for a, n in zip(axes, sizes):
        _check_points(shape[a] if n is None else n)
    return input, axes, tuple(sizes)


def _complex(input, axes, sizes, norm, inverse):
    x = _sized(promoted(input), axes, sizes)
    scale = _scale(x, axes, norm, inverse)
    if x.dtype.is_complex or len(axes) != 1:
        return (
            xp.fft_c2c(promoted(x, to_complex=True), axes=axes, scale=scale, inverse=inverse)
            if axes
            else promoted(x, to_complex=True)
        )
    return xp.fft_r2c(x, axes=axes, scale=scale, inverse=inverse, onesided=False)


def _from_real(name, input, axes, sizes, norm, inverse):
    if input.dtype.is_complex:
        real = "real-valued" if name.endswith("n") else "real"
        raise RuntimeError(f"{name} expects a {real} input tensor, but got {input.dtype.char.removesuffix('Tensor')}")
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _sized(promoted(input), axes, sizes)
    scale = _scale(x, axes, norm, inverse)
    if inverse and len(axes) > 1:  # the half first, as PyTorch does: so the others lie innermost
        half = xp.fft_r2c(x, axes=axes[-1:], scale=scale, inverse=True)
        return xp.fft_c2c(half, axes=axes[:-1], inverse=True)
    return xp.fft_r2c(x, axes=axes, scale=scale, inverse=inverse)


def _to_real(input, axes, sizes, norm, inverse):
    if not axes:
        raise RuntimeError("irfftn must transform at least one axis")
    size = sizes[-1]
    x = _sized(promoted(input, to_complex=True), axes, (*sizes[:-1], size // 2 + 1))
    scale = _scale(x, axes, norm, inverse, size)
    return xp.fft_c2r(x, axes=axes, size=size, scale=scale, inverse=inverse)


def _sized(x, axes, sizes):
    shape = x._array.shape
    changed = [(a, n) for a, n in zip(axes, sizes) if n is not None and n != shape[a]]
    if not changed:
        return x
    return xp.resize_ends(x, axes=tuple(a for a, _ in changed), sizes=tuple(n for _, n in changed))


def _scale(x, axes, norm, inverse, last=None) -> float:
    """What the unnormalized transform must be multiplied by; ``last`` is the length of the last axis if not x's."""
    sizes = [x._array.shape[a] for a in axes]
    if last is not None:
        sizes[-1] = last
    n = math.prod(sizes)
    if norm == "ortho":
        return n**-0.5
    if norm not in (None, "backward", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return 1.0 / n if (norm == "forward") != inverse else 1.0
