"""Special functions that NumPy lacks, without SciPy: series, continued fractions and Newton steps on whole arrays.

All work in float64 on blocks that stay in the cache, and give back the dtype that came. Functions that take ``xp``
serve both engines, because JAX lacks them too. The Chebyshev series come from ``tools/special_tables.py``.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from . import special_tables as tables

_BLOCK = 4096  # elements worked on at a time: a dozen float64 temporaries fit the second-level cache
_ROOT_PI = math.sqrt(math.pi)


def blocked(function):
    """``function`` of flat float64 arrays as a function of arrays of any shape and float dtype, which broadcast."""

    def whole(*arrays):
        dtype = next(a.dtype for a in arrays if hasattr(a, "dtype"))
        arrays = np.broadcast_arrays(*arrays)
        out = np.empty(arrays[0].shape, dtype)
        flat, sources = out.reshape(-1), [a.reshape(-1) for a in arrays]
        for start in range(0, flat.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            flat[part] = function(*[s[part].astype(np.float64) for s in sources])
        return out

    return whole


def in_blocks(function):
    """``function(xp, x)`` as a function of NumPy arrays."""
    return blocked(functools.partial(function, np))


def in_double(xp, function, x):
    """``function(xp, x)`` in float64, given back in x's dtype."""
    return xp.astype(function(xp, xp.astype(x, dtype=np.float64)), dtype=x.dtype)


def chebyshev(t, coefficients):
    """The Chebyshev series at t, by Clenshaw's recurrence."""
    twice = 2 * t
    later = latest = 0.0
    for c in coefficients[:0:-1]:
        latest, later = twice * latest - later + c, latest
    return t * latest - later + coefficients[0]


# -- the error function ------------------------------------------------------------------------------------------------


def erf(x):
    return _erf_single(x) if x.dtype == np.float32 else _erf_double(x)


def _erf_single(x):
    """erf is tanh of nearly a straight line: of x P(x²)."""
    out = np.empty(x.shape, np.float32)
    flat, source = out.reshape(-1), x.reshape(-1)
    for start in range(0, flat.size, 4 * _BLOCK):
        v, t = source[start : start + 4 * _BLOCK], flat[start : start + 4 * _BLOCK]
        np.multiply(_horner(v * v, tables.ERF_SINGLE), v, out=t)
        np.tanh(t, out=t)
    return out


def _horner(z, coefficients):
    total = z * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        total += c
        total *= z
    total += coefficients[0]
    return total


@blocked
def _erf_double(x):
    a = np.abs(x)
    return np.where(a < 1, _erf_near_zero(x), np.copysign(1 - _erfc_positive(a), x))


@blocked
def erfc(x):
    a = np.abs(x)
    tail = _erfc_positive(a)
    return np.where(a < 0.5, 1 - _erf_near_zero(x), np.where(x < 0, 2 - tail, tail))


def erfcx(xp, x):
    """``exp(x²) erfc(x)``."""
    a = xp.abs(x)
    near = xp.minimum(a, 27.0)
    return xp.where(x < 0, 2 * _exp_square(xp, near, 1) - _erfcx_positive(near), _erfcx_positive(a))


def _erf_near_zero(x):
    return x * chebyshev(2 * np.minimum(x * x, 1) - 1, tables.ERF)


def _erfc_positive(x):
    x = np.minimum(x, 30)
    return _exp_square(np, x, -1) * _erfcx_positive(x)


def _erfcx_positive(x):
    return chebyshev(1 - 7.5 / (x + 3.75), tables.ERFCX) / (1 + 2 * x)


def _exp_square(xp, x, sign):
    """``exp(± x²)``, the square taken in two parts so that its rounding does not show."""
    high = xp.trunc(16 * x) / 16
    return xp.exp(sign * high * high) * xp.exp(sign * (x - high) * (x + high))


@blocked
def erfinv(y):
    return np.copysign(_erf_inverse(np.abs(y), 1 - np.abs(y)), y)


@blocked
def ndtri(p):
    """The inverse of the normal distribution function."""
    tail = 2 * np.minimum(p, 1 - p)
    return math.sqrt(2) * np.where(p < 0.5, -1, 1) * _erf_inverse(1 - tail, tail)


def _erf_inverse(y, q):
    """x ≥ 0 with erf(x) = y and erfc(x) = q = 1 - y: Newton steps on erf, and on log erfc in the tail."""
    logarithm = np.log(q * (1 + y))
    half = 2 / (math.pi * 0.147) + logarithm / 2  # Winitzki's formula: good to 2 digits
    x = np.sqrt(np.sqrt(half * half - logarithm / 0.147) - half)
    x = np.where(y < 1e-6, y, x)
    near, far = x.copy(), x
    log_q = np.log(q)
    for _ in range(4):
        scaled = _erfcx_positive(far)
        far = far + (np.log(scaled) - far * far - log_q) * scaled * (_ROOT_PI / 2)
        bounded = np.minimum(near, 1)
        step = (_erf_near_zero(bounded) - y) * np.exp(bounded * bounded) * (_ROOT_PI / 2)
        near = near - step / (1 + near * step)
    x = np.where(y < 0.5, near, far)
    return np.where(q == 0, np.inf, np.where((y >= 0) & (q >= 0), x, np.nan))


@blocked
def log_ndtr(x):
    """log of the normal distribution function."""
    z = x / math.sqrt(2)
    left = np.log(_erfcx_positive(np.abs(z)) / 2) - z * z
    return np.where(x < -1, left, np.log1p(-_erfc_of(z) / 2))


def _erfc_of(x):
    tail = _erfc_positive(np.abs(x))
    return np.where(x < 0, 2 - tail, tail)


# -- gamma, digamma, zeta ----------------------------------------------------------------------------------------------

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# Bernoulli numbers over factorials, B_2k / (2k)!
_ZETA = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip


@blocked
def lgamma(x):
    return _lgamma(x)


def _lgamma(x):
    positive = _lgamma_positive(np.where(x < 0.5, 1 - x, x))
    with np.errstate(invalid="ignore", divide="ignore"):
        mirrored = np.log(np.pi / np.abs(_sin_pi(x))) - positive
    return np.where(np.isinf(x), np.inf, np.where(x < 0.5, mirrored, positive))


def _lgamma_positive(x):
    """Stirling's series, reached from below 10 by the recurrence."""
    low = x < 10
    factor, small = np.ones_like(x), np.minimum(x, 10)
    for k in range(8):
        factor *= small + k
    y = np.where(low, x + 8, x)
    series = _horner(1 / (y * y), _STIRLING) / y
    return (y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series - np.where(low, np.log(factor), 0)


def _sin_pi(x):
    """|sin(pi x)|, exact zeros at the integers."""
    return np.sin(np.pi * (x - np.round(x)))


@blocked
def digamma(x):
    mirror = x < 0
    y = np.where(mirror, 1 - x, x)
    total = np.zeros_like(y)
    for k in range(8):
        total += 1 / (y + k)
    z = y + 8
    inverse = 1 / (z * z)
    value = np.log(z) - 0.5 / z - inverse * _horner(inverse, _DIGAMMA) - total
    fraction = x - np.round(x)
    mirrored = np.where(fraction == 0, np.nan, value - np.pi / np.tan(np.pi * fraction))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(mirror, mirrored, np.where(np.isinf(x), np.inf, value)))


def polygamma(x, n):
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    if n == 1:  # as PyTorch's, which for this one alone knows the limits
        return np.where(np.isinf(x), np.where(x > 0, x.dtype.type(0), x.dtype.type(np.nan)), zeta(2.0, x))
    return signed_factorial(n) * zeta(n + 1.0, x)


def signed_factorial(n: int) -> float:
    """``(-1) ** (n + 1) * n!``; infinite where a double has no such number."""
    return (math.factorial(n) if n < 171 else math.inf) * (1.0 if n % 2 else -1.0)


@blocked
def zeta(s, q):
    """Hurwitz's zeta, the sum of (q + k)^-s: its first terms, and Euler's and Maclaurin's formula for the rest."""
    terms = 12 + int(min(max(0.0, -np.min(q, initial=0.0, where=np.isfinite(q))), 1e4))
    total = np.zeros_like(q)
    for k in range(terms):
        total += np.power(q + k, -s)
    head = total.copy()
    a = q + terms
    power = np.power(a, -s)
    total += power * (a / (s - 1) + 0.5)
    rising = s * power / a
    for j, c in enumerate(_ZETA):
        total += c * rising
        rising = rising * (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a)
    pole = (s == 1) | ((q <= 0) & (q == np.floor(q)))
    undefined = (s < 1) | ((q <= 0) & (s != np.floor(s)))
    total = np.where(np.isinf(s) & (head > 0), head, total)  # only the first term is left of it
    return np.where(pole & ~(s < 1), np.inf, np.where(undefined, np.nan, total))


@blocked
def igamma(a, x):
    """The lower regularized incomplete gamma function."""
    return _incomplete(a, x)[0]


@blocked
def igammac(a, x):
    """The upper regularized incomplete gamma function."""
    return _incomplete(a, x)[1]


def _incomplete(a, x):
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    sa, sx = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    factor = np.exp(sa * np.log(sx) - sx - _lgamma(sa))
    by_series = sx < sa + 1
    low = _lower_series(sa, np.where(by_series, sx, 0.5)) * factor
    high = _upper_fraction(sa, np.where(by_series, sa + 2, sx)) * factor
    lower, upper = np.where(by_series, low, 1 - high), np.where(by_series, 1 - low, high)
    zero = (x == 0) & (a > 0) | np.isinf(a) & np.isfinite(x) & (x >= 0) & (a > 0)
    one = (a == 0) & (x > 0) | np.isinf(x) & np.isfinite(a) & (a >= 0) & (x > 0)
    lower = np.where(inside, lower, np.where(zero, 0.0, np.where(one, 1.0, np.nan)))
    upper = np.where(inside, upper, np.where(zero, 1.0, np.where(one, 0.0, np.nan)))
    return lower, upper


def _lower_series(a, x):
    term = 1 / a
    total = term
    for n in range(1, 5000):
        term = term * x / (a + n)
        total = total + term
        if np.all(np.abs(term) <= np.abs(total) * 1e-17):
            break
    return total


@blocked
def gamma_slope(a, x):
    """How a gamma variate x of shape a moves with a, its place in the distribution kept: -(dP/da) / (dP/dx).

    P is the sum of x**(a+n) exp(-x) / (Gamma(a) a (a+1) ... (a+n)), differentiated term by term.
    """
    term, harmonic = 1 / a, 1 / a
    offset = np.log(x) - digamma(a)
    total = term * (offset - harmonic)
    for n in range(1, 100_000):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        change = term * (offset - harmonic)
        total = total + change
        if n > 4 and np.all((np.abs(change) <= np.abs(total) * 1e-17) & (a + n > x)):
            break
    return -x * total


def dirichlet_slope(xp, x, a, total):
    """How a share x of a Dirichlet draw moves with its concentration a, its place in the distribution kept, over 1 - x.

    The share's distribution is Beta(a, b), b = total - a, so this is -(dI/da) / (dI/dx) / (1 - x) of the incomplete
    beta function I. With F(p, z) = sum of z**n (total)_n / (p+1)_n, which has only positive terms, I is
    x**a (1-x)**b F(a, x) / (a B(a, b)) and 1 - I is x**a (1-x)**b F(b, 1-x) / (b B(a, b)). One of them is
    differentiated by a, term by term: that whose terms have one sign, or that of few terms where little cancels.
    """
    inside = (x > 0) & (a > 0) & (total > a)
    x, a, total = (xp.where(inside, v, otherwise) for v, otherwise in ((x, 0.5), (a, 1.0), (total, 2.0)))
    b, logarithm = total - a, xp.log(x)
    mean = xp.digamma(a) - xp.digamma(total)  # of log x
    low = xp.where(x < 0.5, (logarithm < mean + 1 / a) | (total * x < 8), (logarithm < mean) & (total * (1 - x) > 8))
    start, z = xp.where(low, a, b), xp.where(low, x, 1 - x)
    sign = xp.where(low, -1.0, 1.0)
    offset = sign * (logarithm - mean) + xp.where(low, 1 / a, 0.0)

    def step(n, state):
        term, offset, sum = state
        change = term * offset
        offset = offset + sign / (total + n) + xp.where(low, 1 / (a + 1 + n), 0.0)
        return term * z * (total + n) / (start + 1 + n), offset, sum + change

    def unfinished(n, state):
        term, offset, sum = state
        gap = start + 1 + n - z * (total + n)  # the terms left are less than a geometric series of this one
        return (n < 4) | xp.any(term * xp.abs(offset) * (start + 1 + n) > 1e-17 * xp.abs(sum) * gap)

    sum = xp.iterate(step, unfinished, (xp.ones_like(x), offset, xp.zeros_like(x)), 200_000)[2]
    return xp.where(inside, x / start * sum, 0.0)


def _upper_fraction(a, x):
    """Legendre's continued fraction, by Lentz's method."""
    b = x + 1 - a
    c, d = 1e300, 1 / b
    value = d
    for n in range(1, 5000):
        step = -n * (n - a)
        b = b + 2
        d = 1 / _not_zero(step * d + b)
        c = _not_zero(b + step / c)
        value = value * c * d
        if np.all(np.abs(c * d - 1) < 5e-16):
            break
    return value


def _not_zero(x):
    return np.where(x == 0, 1e-300, x)


# -- Bessel functions --------------------------------------------------------------------------------------------------


def i0e(xp, x):
    """``exp(-|x|) I0(x)``."""
    a = xp.abs(x)
    far = xp.maximum(a, 8.0)
    small = chebyshev(xp.minimum(a, 8.0) / 4 - 1, tables.I0_SMALL)
    return xp.where(a <= 8, small, chebyshev(16 / far - 1, tables.I0_LARGE) / xp.sqrt(far))


def i0(xp, x):
    return xp.exp(xp.abs(x)) * i0e(xp, x)


def i1e(xp, x):
    """``exp(-|x|) I1(x)``."""
    a = xp.abs(x)
    far = xp.maximum(a, 8.0)
    small = chebyshev(xp.minimum(a, 8.0) / 4 - 1, tables.I1_SMALL) * a
    return xp.sign(x) * xp.where(a <= 8, small, chebyshev(16 / far - 1, tables.I1_LARGE) / xp.sqrt(far))


def i1(xp, x):
    return xp.exp(xp.abs(x)) * i1e(xp, x)


def _oscillating(xp, a, order):
    """J and Y of an order beyond 8: an amplitude times a wave."""
    far = xp.maximum(a, 8.0)
    ratio = 8 / far
    t = 2 * ratio * ratio - 1
    parts = (tables.HANKEL0_P, tables.HANKEL0_Q) if order == 0 else (tables.HANKEL1_P, tables.HANKEL1_Q)
    p, q = chebyshev(t, parts[0]), ratio * chebyshev(t, parts[1])
    angle = far - (math.pi / 4 + order * math.pi / 2)
    size = xp.sqrt(2 / (math.pi * far))
    c, s = xp.cos(angle), xp.sin(angle)
    return size * (p * c - q * s), size * (p * s + q * c)


def bessel_j0(xp, x):
    a = xp.abs(x)
    near = xp.minimum(a, 8.0)
    value = xp.where(a <= 8, chebyshev(near * near / 32 - 1, tables.J0_SMALL), _oscillating(xp, a, 0)[0])
    return xp.where(xp.isinf(a), math.nan, value)


def bessel_j1(xp, x):
    a = xp.abs(x)
    near = xp.minimum(a, 8.0)
    value = xp.where(a <= 8, near * chebyshev(near * near / 32 - 1, tables.J1_SMALL), _oscillating(xp, a, 1)[0])
    return xp.sign(x) * xp.where(xp.isinf(a), math.nan, value)


def bessel_y0(xp, x):
    near = xp.clip(x, 0.0, 8.0)
    small = chebyshev(near * near / 32 - 1, tables.Y0_SMALL) + (2 / math.pi) * xp.log(near) * bessel_j0(xp, near)
    return _right_half(xp, x, xp.where(x <= 8, small, _oscillating(xp, x, 0)[1]), -math.inf)


def bessel_y1(xp, x):
    near = xp.clip(x, 0.0, 8.0)
    rest = xp.log(xp.maximum(near, 5e-324)) * bessel_j1(xp, near) - 1 / near
    small = near * chebyshev(near * near / 32 - 1, tables.Y1_SMALL) + (2 / math.pi) * rest
    return _right_half(xp, x, xp.where(x <= 8, small, _oscillating(xp, x, 1)[1]), -math.inf)


def modified_bessel_k0(xp, x):
    return _second_kind(xp, x, 0, scaled=False)


def modified_bessel_k1(xp, x):
    return _second_kind(xp, x, 1, scaled=False)


def scaled_modified_bessel_k0(xp, x):
    return _second_kind(xp, x, 0, scaled=True)


def scaled_modified_bessel_k1(xp, x):
    return _second_kind(xp, x, 1, scaled=True)


def _second_kind(xp, x, order, scaled):
    near, far = xp.clip(x, 1e-300, 2.0), xp.maximum(x, 2.0)
    logarithm, t = xp.log(near / 2), near * near / 2 - 1
    if order == 0:
        small = chebyshev(t, tables.K0_SMALL) - logarithm * i0(xp, near)
        large = chebyshev(4 / far - 1, tables.K0_LARGE) / xp.sqrt(far)
    else:
        small = chebyshev(t, tables.K1_SMALL) / near + logarithm * i1(xp, near)
        large = chebyshev(4 / far - 1, tables.K1_LARGE) / xp.sqrt(far)
    value = xp.where(x <= 2, small * xp.exp(near), large) if scaled else xp.where(x <= 2, small, large * xp.exp(-far))
    return _right_half(xp, x, value, math.inf)


def _right_half(xp, x, value, at_zero):
    """A function with a pole at 0 and no values left of it."""
    return xp.where(x == 0, at_zero, xp.where(x < 0, math.nan, value))


def airy_ai(xp, x):
    right = xp.maximum(x, 2.0)
    zeta_right = right * xp.sqrt(right) * (2 / 3)
    decay = chebyshev(2 * _ZETA_RIGHT / zeta_right - 1, tables.AIRY_RIGHT) * xp.exp(-zeta_right)
    left = xp.maximum(-x, 5.0)
    zeta_left = left * xp.sqrt(left) * (2 / 3)
    ratio = _ZETA_LEFT / zeta_left
    t, angle = 2 * ratio * ratio - 1, zeta_left - math.pi / 4
    wave = xp.cos(angle) * chebyshev(t, tables.AIRY_LEFT_P)
    wave = wave + xp.sin(angle) * chebyshev(t, tables.AIRY_LEFT_Q) / zeta_left
    middle = chebyshev((2 * xp.clip(x, -5.0, 2.0) + 3) / 7, tables.AIRY_MIDDLE)
    outside = xp.where(x > 2, decay / xp.sqrt(xp.sqrt(right)), wave / (_ROOT_PI * xp.sqrt(xp.sqrt(left))))
    value = xp.where((x > 2) | (x < -5), outside, middle)
    return xp.where(xp.isinf(x), math.nan, value)


_ZETA_LEFT, _ZETA_RIGHT = 2 / 3 * 5**1.5, 2 / 3 * 2**1.5
