"""`torch.special`: the special functions under SciPy's names.

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

def airy_ai(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The Airy function Ai."""
def bessel_j0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The Bessel function of the first kind, order 0."""
def bessel_j1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The Bessel function of the first kind, order 1."""
def bessel_y0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The Bessel function of the second kind, order 0."""
def bessel_y1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The Bessel function of the second kind, order 1."""
def chebyshev_polynomial_t(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Chebyshev polynomial T of degree `n`."""
def chebyshev_polynomial_u(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Chebyshev polynomial U of degree `n`."""
def chebyshev_polynomial_v(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Chebyshev polynomial V of degree `n`."""
def chebyshev_polynomial_w(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Chebyshev polynomial W of degree `n`."""
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The slope of `lgamma`."""
def entr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`-x log(x)`; 0 at 0, -inf below."""
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The error function."""
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 - erf(x), precise where that is small."""
def erfcx(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(x²) erfc(x)`."""
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of the error function."""
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """2 to the power of x."""
def expit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 / (1 + exp(-x))."""
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """exp(x) - 1, precise near 0."""
def gammainc(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The lower incomplete gamma function, as a share of the whole."""
def gammaincc(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The upper incomplete gamma function, as a share of the whole."""
def gammaln(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of |Γ(x)|."""
def hermite_polynomial_h(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Hermite polynomial H of degree `n`."""
def hermite_polynomial_he(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Hermite polynomial He of degree `n`."""
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the first kind, order 0."""
def i0e(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(-|x|) I0(x)`."""
def i1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the first kind, order 1."""
def i1e(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(-|x|) I1(x)`."""
def laguerre_polynomial_l(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Laguerre polynomial L of degree `n`."""
def legendre_polynomial_p(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The Legendre polynomial P of degree `n`."""
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """log(1 + x), precise near 0."""
def log_ndtr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of the normal distribution function."""
def log_softmax(input: _Tensor, dim: _int | Sequence[_int], dtype: _dtype | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of `softmax`, without overflow."""
def logit(input: _Tensor, eps: _float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`log(input / (1 - input))`, the inverse of sigmoid; input clamped to [eps, 1 - eps] if eps is given."""
def logsumexp(input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """`log(sum(exp(input)))` over `dim`, without overflow."""
def modified_bessel_i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the first kind, order 0."""
def modified_bessel_i1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the first kind, order 1."""
def modified_bessel_k0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the second kind, order 0."""
def modified_bessel_k1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the second kind, order 1."""
def multigammaln(input: _Tensor, p: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
def ndtr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The normal distribution function: the share of a standard normal variable below `input`."""
def ndtri(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of `ndtr`."""
def polygamma(n: _int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The `n`-th derivative of the digamma function."""
def psi(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The slope of `lgamma`."""
def round(input: _Tensor, *, decimals: _int = 0, out: _Tensor | None = None) -> _Tensor:
    """To `decimals` places, halves to even."""
def scaled_modified_bessel_k0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(x) K0(x)`."""
def scaled_modified_bessel_k1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(x) K1(x)`."""
def shifted_chebyshev_polynomial_t(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The shifted Chebyshev polynomial T of degree `n`."""
def shifted_chebyshev_polynomial_u(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The shifted Chebyshev polynomial U of degree `n`."""
def shifted_chebyshev_polynomial_v(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The shifted Chebyshev polynomial V of degree `n`."""
def shifted_chebyshev_polynomial_w(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The shifted Chebyshev polynomial W of degree `n`."""
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """sin(πx) / πx, 1 at 0."""
def softmax(input: _Tensor, dim: _int | Sequence[_int], dtype: _dtype | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(input)` divided by its sum over `dim`."""
def spherical_bessel_j0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`sin(x) / x`, 1 at 0."""
def xlog1py(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """`input * log1p(other)`, 0 where input is 0."""
def xlogy(input: _Number | _Tensor, other: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input * log(other)`, 0 where input is 0."""
def zeta(input: _Number | _Tensor, other: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Hurwitz's zeta function: the sum of `(other + k) ** -input` over k = 0, 1, …"""
