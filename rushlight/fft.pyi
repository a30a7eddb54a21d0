"""Discrete Fourier transforms under PyTorch's names: `rushlight.fft`.

Made by tools/stubs.py; do not edit.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from typing_extensions import TypeIs

from rushlight.device import device as _device
from rushlight.dtypes import dtype as _dtype
from rushlight.layout import layout as _layout, memory_format as _memory_format
from rushlight.ops import returns as _returns
from rushlight.random import Generator as _Generator
from rushlight.storage import UntypedStorage as _UntypedStorage
from rushlight.tensor import Size as _Size, Tensor as _Tensor
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

def fft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The Fourier transform along `dim`."""
def fft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`fftn` over two dimensions."""
def fftfreq(n: _int, d: _float = 1.0, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """The frequencies of `fft`'s results, for samples `d` apart."""
def fftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The Fourier transform along several dimensions: all, the last `len(s)`, or `dim`."""
def fftshift(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The zero frequency moved to the middle."""
def hfft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The real transform of a signal that is Hermitian, given by its half."""
def hfft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`hfftn` over two dimensions."""
def hfftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The real transform of a signal that is Hermitian, given by its half along the last dimension."""
def ifft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `fft`."""
def ifft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`ifftn` over two dimensions."""
def ifftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `fftn`."""
def ifftshift(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `fftshift`."""
def ihfft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `hfft`."""
def ihfft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`ihfftn` over two dimensions."""
def ihfftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `hfftn`."""
def irfft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `rfft`; `n` is the signal's length."""
def irfft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`irfftn` over two dimensions."""
def irfftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `rfftn`."""
def rfft(input: _Tensor, n: _int | None = None, dim: _int | Sequence[_int] = -1, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The half of a real signal's transform that the rest follows from."""
def rfft2(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] = (-2, -1), norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`rfftn` over two dimensions."""
def rfftfreq(n: _int, d: _float = 1.0, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """The frequencies of `rfft`'s results, for samples `d` apart."""
def rfftn(input: _Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None, norm: _str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`fftn` of a real signal: the half along the last dimension that the rest follows from."""
