"""Special functions: error, gamma, zeta and Bessel functions, orthogonal polynomials."""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd.op import check_broadcast, op, variant
from ..autograd.op import differentiable as xp_
from ..engine import special as series
from ..storage import affordable
from ..tensor import Tensor
from .common import (
    binary,
    complex_dtype,
    dtype_of,
    no_gradient,
    not_floating_dtype,
    refuse,
    require_number,
    type_word,
    unary,
)
from .dims import as_int
from .public import PUBLIC, public

SPECIAL: dict = {}  # name -> function; what ``rushlight.special`` exports


def _special(function, *names):
    """Publish in ``rushlight.special`` only."""
    names = names or (function.__name__.rstrip("_"),)
    published = public(function, function=False, method=False)
    for name in names:
        SPECIAL[name] = published
    return published


def _special_unary(call, name=None):
    def function(input):
        return call(input)

    function.__name__ = call.op.label = name or call.__name__
    function.__doc__ = call.__doc__
    return _special(function)


# -- error functions ---------------------------------------------------------------------------------------------------

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


@op(promote="float", takes="real", x=lambda xp, g, x: g * _TWO_OVER_ROOT_PI * xp.exp(-x * x))
def erf(xp, x):
    """The error function."""
    return xp.erf(x)


@op(promote="float", takes="real", x=lambda xp, g, x: -g * _TWO_OVER_ROOT_PI * xp.exp(-x * x))
def erfc(xp, x):
    """1 - erf(x), precise where that is small."""
    return xp.erfc(x)


def _erfinv_slope(xp, g, x):
    y = xp.erfinv(x)  # again: the result may be written to
    return g * (0.5 * math.sqrt(math.pi)) * xp.exp(y * y)


@op(promote="float", takes="real", x=_erfinv_slope)
def erfinv(xp, x):
    """The inverse of the error function."""
    return xp.erfinv(x)


@op(
    node="SpecialErfcxBackward0",
    promote="float",
    takes="full",
    x=lambda xp, g, x, y: g * (2 * x * y - _TWO_OVER_ROOT_PI),
)
def erfcx(xp, x):
    """``exp(x²) erfc(x)``."""
    return xp.erfcx(x)


@op(
    node="SpecialNdtriBackward0",
    promote="float",
    takes="full",
    x=lambda xp, g, y: g * math.sqrt(2 * math.pi) * xp.exp(y * y / 2),
)
def ndtri(xp, x):
    """The inverse of ``ndtr``."""
    return xp.ndtri(x)


@op(
    node="SpecialLogNdtrBackward0",
    promote="float",
    takes="full",
    x=lambda xp, g, x: g / xp.erfcx(x * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
)
def log_ndtr(xp, x):
    """The logarithm of the normal distribution function."""
    return xp.log_ndtr(x)


@op(node="SpecialEntrBackward0", promote="float", takes="real", x=lambda xp, g, x: g * (-xp.log(x) - 1))
def entr(xp, x):
    """``-x log(x)``; 0 at 0, -inf below."""
    inside = -x * xp.log(xp.where(x > 0, x, 1.0))  # 0 at 0, nan at nan
    return xp.where(x < 0, -math.inf, inside)


for _name in ("erf", "erfc", "erfinv"):
    unary(getattr(xp_, _name))
for _call in (erfcx, ndtri, log_ndtr, entr):
    _special_unary(_call)


@_special
def ndtr(input):
    """The normal distribution function: the share of a standard normal variable below ``input``."""
    z = input * math.sqrt(0.5)
    # 1 + erf loses all digits in the left tail, so that comes from erfc; each is asked only where it is exact.
    left = z < -1
    return xp_.where(left, 0.5 * xp_.erfc(-z), 0.5 * (1 + xp_.erf(z)))


# -- gamma and zeta ----------------------------------------------------------------------------------------------------


@op(promote="float", takes="real", x=lambda xp, g, x: g * xp.digamma(x))
def lgamma(xp, x):
    """The logarithm of |Γ(x)|."""
    return xp.lgamma(x)


@op(promote="float", takes="real", x=lambda xp, g, x: g * xp.polygamma(x, n=1))
def digamma(xp, x):
    """The slope of ``lgamma``."""
    return xp.digamma(x)


@op(promote="float", takes="real", x=lambda xp, g, x, n: g * xp.polygamma(x, n=n + 1))
def polygamma_(xp, x, *, n):
    return xp.polygamma(x, n=n)


@op(
    node="SpecialZetaBackward0",
    promote="float",
    takes="full",
    s=no_gradient("zeta"),
    q=lambda xp, g, s, q: -g * s * xp.zeta(s + 1.0, q),
)
def zeta_(xp, s, q):
    return xp.zeta(s, q)


def _igamma_rule(xp, g, a, x):
    return g * xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


@op(promote="common", a=no_gradient("igamma: input"), x=_igamma_rule)
def igamma(xp, a, x):
    """The lower incomplete gamma function, as a share of the whole."""
    refuse("igamma_cpu", not_floating_dtype, a, x)
    return xp.igamma(a, x)


@op(promote="common", a=no_gradient("igammac: input"), x=lambda xp, g, a, x: -_igamma_rule(xp, g, a, x))
def igammac(xp, a, x):
    """The upper incomplete gamma function, as a share of the whole."""
    refuse("igammac_cpu", not_floating_dtype, a, x)
    return xp.igammac(a, x)


@op(a=no_gradient("gamma_slope"), x=no_gradient("gamma_slope"))
def gamma_slope(xp, a, x):
    return xp.gamma_slope(a, x)


@op(**dict.fromkeys(("x", "a", "total"), no_gradient("dirichlet_slope")))
def dirichlet_slope(xp, x, a, total):
    return xp.dirichlet_slope(x, a, total)


@op(promote="float", x=lambda xp, g, x, p: g * sum(xp.digamma(x - j / 2) for j in range(p)))
def mvlgamma_(xp, x, *, p):
    parts = range(0, p, 1 if p < _SIDE_BY_SIDE else _SIDE_BY_SIDE)
    terms = (xp.lgamma(x - j / 2) for j in parts)
    if p >= _SIDE_BY_SIDE:
        terms = (_lgammas(xp, x, j, min(j + _SIDE_BY_SIDE, p)) for j in parts)
    return sum(terms) + p * (p - 1) / 4 * math.log(math.pi)


_SIDE_BY_SIDE = 1 << 12  # of so many terms as many are made at once


def _lgammas(xp, x, start, end):
    halves = xp.asarray([j / 2 for j in range(start, end)]).astype(x.dtype)
    return xp.sum(xp.lgamma(xp.expand_dims(x, axis=-1) - halves), axis=-1)


unary(lgamma)
unary(digamma)
binary(igamma, tensors_only=True)
binary(igammac, tensors_only=True)


@public(method=False)
def polygamma(n, input):
    """The ``n``-th derivative of the digamma function."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return xp_.digamma(input) if n == 0 else polygamma_(input, n=n)


def _polygamma_method(self, n):
    """The ``n``-th derivative of ``digamma``."""
    return polygamma(n, self)


def _polygamma_inplace(self, n):
    """``polygamma``, in place."""
    from ..autograd import views

    return views.inplace(self, _polygamma_method, n)


Tensor.polygamma, Tensor.polygamma_ = _polygamma_method, _polygamma_inplace


@public(inplace=True)
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``."""
    refuse("arange_cpu", complex_dtype, input)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    p = as_int(p, "p")
    affordable(p * max(input._array.size, 1) * input._array.dtype.itemsize)
    return mvlgamma_(input, p=p)


_number_zeta, _zeta_number = variant(zeta_, "SpecialZetaBackward1"), variant(zeta_, "SpecialZetaBackward2")


@_special
def zeta(input, other):
    """Hurwitz's zeta function: the sum of ``(other + k) ** -input`` over k = 0, 1, …"""
    return _mixed(zeta_, _number_zeta, _zeta_number, input, other)


def _mixed(tensors, number_first, number_second, input, other):
    if not isinstance(input, Tensor):
        return number_first(input, other)
    return (tensors if isinstance(other, Tensor) else number_second)(input, other)


@op(
    node="SpecialXlog1PyBackward0",
    promote="float",
    x=lambda xp, g, x, w: xp.where((x == 0) & (w <= -1), 0.0, g * _log1p(xp, w)),
    w=lambda xp, g, x, w: g * x / (w + 1),
)
def xlog1py_(xp, x, w):
    refuse("xlog1py_cpu", complex_dtype, x, w)
    return xp.where((x == 0) & (w == w), 0.0, x * _log1p(xp, w))


def _log1p(xp, w):
    if isinstance(w, (int, float)):
        return math.log1p(w) if w > -1 else -math.inf if w == -1 else math.nan
    return xp.log1p(w)


_number_xlog1py = variant(xlog1py_, "SpecialXlog1PyBackward1")
_xlog1py_number = variant(xlog1py_, "SpecialXlog1PyBackward2")


@_special
def xlog1py(input, other):
    """``input * log1p(other)``, 0 where input is 0."""
    return _mixed(xlog1py_, _number_xlog1py, _xlog1py_number, input, other)


# -- Bessel and Airy functions -----------------------------------------------------------------------------------------


@op(promote="float", takes="real", x=lambda xp, g, x: g * xp.i1(x))
def i0(xp, x):
    """The modified Bessel function of the first kind, order 0."""
    return xp.i0(x)


@op(node="SpecialI0EBackward0", promote="float", takes="real", x=lambda xp, g, x, y: g * (xp.i1e(x) - xp.sign(x) * y))
def i0e(xp, x):
    """``exp(-|x|) I0(x)``."""
    return xp.i0e(x)


def _away_from_zero(xp, x, slope):
    """``slope(x)``, and 1/2 where x is so small that it is that."""
    away = xp.abs(x) > dtypes.finfo(dtype_of(x)).eps
    return xp.where(away, slope(xp.where(away, x, 1.0)), 0.5)


@op(
    node="SpecialI1Backward0",
    promote="float",
    takes="real",
    x=lambda xp, g, x, y: g * _away_from_zero(xp, x, lambda x: xp.i0(x) - y / x),
)
def i1(xp, x):
    """The modified Bessel function of the first kind, order 1."""
    return xp.i1(x)


@op(
    node="SpecialI1EBackward0",
    promote="float",
    takes="real",
    x=lambda xp, g, x, y: g * _away_from_zero(xp, x, lambda x: xp.i0e(x) - y * (xp.sign(x) + 1 / x)),
)
def i1e(xp, x):
    """``exp(-|x|) I1(x)``."""
    return xp.i1e(x)


unary(i0)
for _call in (i0, i0e, i1, i1e):
    _special_unary(_call)


def _series(name, doc):
    """An op without gradient, as in PyTorch, from a function of engine/special.py that serves both engines."""

    def forward(xp, x):
        return series.in_double(xp, getattr(series, name), x)

    forward.__name__, forward.__doc__ = name, doc
    return _special_unary(op(promote="float", takes="full")(forward))


for _n in (0, 1):
    _series(f"bessel_j{_n}", f"The Bessel function of the first kind, order {_n}.")
    _series(f"bessel_y{_n}", f"The Bessel function of the second kind, order {_n}.")
    _series(f"modified_bessel_k{_n}", f"The modified Bessel function of the second kind, order {_n}.")
    _series(f"scaled_modified_bessel_k{_n}", f"``exp(x) K{_n}(x)``.")
_series("airy_ai", "The Airy function Ai.")


@op(promote="float", takes="full")
def spherical_bessel_j0(xp, x):
    """``sin(x) / x``, 1 at 0."""
    at_zero = x == 0
    wave = xp.where(at_zero, 1.0, xp.sin(x) / xp.where(at_zero, 1.0, x))
    return xp.where(xp.isinf(x), 0.0, wave)


_special_unary(spherical_bessel_j0)


def _without_gradient(call):
    """The function under its other name, which PyTorch gives no gradient and no half precision."""

    def function(input):
        refuse(f"modified_bessel_{call.__name__}_cpu", _too_small, input)
        return call(input.detach() if isinstance(input, Tensor) else input)

    function.__doc__ = call.__doc__
    return function


def _too_small(d):
    return d.is_floating_point and d.itemsize < 4


for _name, _call in (("modified_bessel_i0", i0), ("modified_bessel_i1", i1)):
    _special(_without_gradient(_call), _name)


# -- orthogonal polynomials --------------------------------------------------------------------------------------------


def _polynomial(name, second, step, shifted=False, closed=None):
    """A family of polynomials P_n(x): P_0 is 1, P_1 is ``second(x)``, then ``step(k, x, P_{k-1}, P_k)``.

    ``closed(xp, n, arccos x)`` is P_n inside the unit interval, for which no n takes long.
    """

    def forward(xp, x, n):
        x, n = xp.broadcast_arrays(x, n)
        dtype = x.dtype
        x, n = xp.astype(x, dtype="float64"), xp.astype(n, dtype="int64")
        x = 2 * x - 1 if shifted else x
        inside = (n > _FEW) & (xp.abs(x) < 1) if closed else None
        steps = n if inside is None else xp.where(inside, 0, n)
        item = xp.recurrence(lambda k, last, item: step(k, x, last, item), xp.ones_like(x), second(x), steps)
        if inside is not None:
            angle = xp.arccos(xp.where(inside, x, 0.5))
            item = xp.where(inside, closed(xp, xp.astype(n, dtype="float64"), angle), item)
        return xp.astype(xp.where(n < 0, 0.0, item), dtype=dtype)

    forward.__name__ = name
    call = op(promote="float", takes="full")(forward)

    def function(input, n):
        if not isinstance(n, Tensor):
            require_number(name, "n", 2, n)
        elif not isinstance(input, Tensor):
            require_number(name, "x", 1, input)
            input = xp_.astype(xp_.zeros_like(n), dtype=_of_number(input, n)) + input
        kind = PUBLIC["result_type"](input, n)
        if _too_small(kind):
            check_broadcast((input, n))
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_word(kind)}'")
        return call(input, n)

    function.__name__ = name
    words = name.title().replace("_", " ").replace("Polynomial", "polynomial").replace("Shifted", "shifted")
    function.__doc__ = f"The {words} of degree ``n``."
    return _special(function)


def _of_number(x, n):
    """The dtype of the polynomials of a number: that of a tensor ``n`` of floats, else the default."""
    return (n.dtype if n.dtype.is_floating_point else dtypes.get_default_dtype()).numpy


def _chebyshev_step(k, x, last, item):
    return 2 * x * item - last


_FEW = 8  # steps of a recurrence that are as exact as the closed form
for _prefix, _shifted in (("", False), ("shifted_", True)):
    for _letter, _second, _closed in (
        ("t", lambda x: x, lambda xp, n, t: xp.cos(n * t)),
        ("u", lambda x: 2 * x, lambda xp, n, t: xp.sin((n + 1) * t) / xp.sin(t)),
        ("v", lambda x: 2 * x - 1, lambda xp, n, t: xp.cos((n + 0.5) * t) / xp.cos(t / 2)),
        ("w", lambda x: 2 * x + 1, lambda xp, n, t: xp.sin((n + 0.5) * t) / xp.sin(t / 2)),
    ):
        _polynomial(f"{_prefix}chebyshev_polynomial_{_letter}", _second, _chebyshev_step, _shifted, _closed)
_polynomial("hermite_polynomial_h", lambda x: 2 * x, lambda k, x, last, item: 2 * x * item - 2 * k * last)
_polynomial("hermite_polynomial_he", lambda x: x, lambda k, x, last, item: x * item - k * last)
_polynomial(
    "laguerre_polynomial_l", lambda x: 1 - x, lambda k, x, last, item: ((2 * k + 1 - x) * item - k * last) / (k + 1)
)
_polynomial(
    "legendre_polynomial_p", lambda x: x, lambda k, x, last, item: ((2 * k + 1) * x * item - k * last) / (k + 1)
)


# -- names that exist elsewhere ----------------------------------------------------------------------------------------

_ELSEWHERE = {
    "digamma": "digamma", "psi": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "i0": "i0",
    "log1p": "log1p", "logit": "logit", "multigammaln": "mvlgamma", "polygamma": "polygamma", "sinc": "sinc",
    "xlogy": "xlogy", "log_softmax": "log_softmax", "logsumexp": "logsumexp", "softmax": "softmax",
}  # fmt: skip


def published() -> dict:
    """Everything in ``rushlight.special``, once all ops are declared."""
    elsewhere = {name: PUBLIC[source] for name, source in _ELSEWHERE.items() if source in PUBLIC}
    return {**elsewhere, **SPECIAL}


@_special
def round_(input, *, decimals=0):
    """To ``decimals`` places, halves to even."""
    return PUBLIC["round"](input, decimals=decimals)
