"""Distributions as PyTorch's CPU kernels draw them: the same words of MT19937 make the same numbers.

Every function takes a ``Generator`` and returns a flat array, in the order in which PyTorch fills memory.

Differs from PyTorch: on Intel CPUs PyTorch takes ``bernoulli_`` with a number (so dropout) and ``exponential_`` from
MKL's own generator; here, as in PyTorch on other CPUs, they too are drawn from MT19937.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..native import library
from . import box_muller
from .box_muller import BLOCK as _BLOCK
from .fused import fused

_FEW = 1024  # numbers that Python's math goes through one by one


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def whole(draw):
    """The generator is this thread's alone until ``draw`` has all its numbers, as in PyTorch.

    What asks the generator once is that by itself.
    """

    @functools.wraps(draw)
    def drawn(generator, *args, **kwargs):
        with generator.lock:
            return draw(generator, *args, **kwargs)

    return drawn


def uniform01(generator, n: int, dtype=np.float64) -> np.ndarray:
    """[0, 1): 24 of a word's bits for float32, 53 of two words' for float64."""
    return generator.uniform(n, dtype)


def uniform(generator, n: int, dtype, low: float, high: float) -> np.ndarray:
    compute = _compute(dtype)
    values = uniform01(generator, n, compute)
    if low != 0 or high != 1:
        low, high = compute.type(low), compute.type(high)
        values = fused(values, high - low, low)
    if dtype.itemsize == 2:  # rounding may reach ``high``, which is excluded
        values = values.astype(dtype)
        values[values == dtype.type(high)] = low
    return values


@whole
def normal(generator, n: int, dtype, mean: float, std: float, contiguous: bool = True) -> np.ndarray:
    """Blocks of 16 where there are as many in one piece, else single values from float64 pairs."""
    if n < _BLOCK or not contiguous:
        return (_pairs(generator, n) * std + mean).astype(dtype)
    compute = _compute(dtype)
    whole = n - n % _BLOCK
    out = np.empty(n, compute)
    # PyTorch first fills all of memory with uniform values (half precision: only the whole blocks).
    drawn = uniform01(generator, whole if dtype.itemsize == 2 else n, compute)
    fill = _blocks if compute is _DOUBLE else box_muller.normal
    if whole == n:
        fill(drawn, out, mean, std)
    else:
        fill(drawn[:whole], out[:whole], mean, std)
        fill(uniform01(generator, _BLOCK, compute), out[-_BLOCK:], mean, std)
    return out.astype(dtype, copy=False)


def _blocks(u, out, mean, std) -> None:
    """The same as ``box_muller.normal`` in float64, with the logarithm and waves of the C library."""
    if library is not None:
        library.box_muller(u, out, mean, std)
        return
    u, out = u.reshape(-1, 2, _BLOCK // 2), out.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(-2 * exactly(np.log, 1 - u[:, 0]))
    angle = u[:, 1] * (2 * math.pi)
    for i, wave in enumerate((np.cos, np.sin)):
        out[:, i] = fused(radius * exactly(wave, angle), std, mean)


def exactly(function, x):
    """``function`` of float64 numbers as the C library rounds it, which NumPy's vector code does not."""
    if x.size <= _FEW:
        one = getattr(math, function.__name__)
        return np.array([one(v) for v in x.reshape(-1).tolist()]).reshape(x.shape)
    return function(x.astype(np.longdouble)).astype(np.float64)


def _pairs(generator, n: int) -> np.ndarray:
    """Standard normal float64 values; the second of a pair waits in the generator if it is not needed now."""
    waiting = [] if generator.spare is None or not n else [generator.spare]
    pairs = (n - len(waiting) + 1) // 2
    u = uniform01(generator, 2 * pairs).reshape(-1, 2)
    values = [*waiting, *(_few_pairs(u) if n <= _FEW else _many_pairs(u))]
    if n:
        generator.spare = values[n] if len(values) > n else None
    return np.array(values[:n])


def _many_pairs(u) -> list:
    radius, angle = np.sqrt(-2 * exactly(np.log1p, -u[:, 1])), 2 * math.pi * u[:, 0]
    return np.stack([radius * exactly(np.cos, angle), radius * exactly(np.sin, angle)], axis=1).reshape(-1).tolist()


def _few_pairs(u) -> list:
    """The same with Python's math: faster for a handful."""
    values = []
    for first, second in u.tolist():
        radius, angle = math.sqrt(-2 * math.log1p(-second)), 2 * math.pi * first
        values += radius * math.cos(angle), radius * math.sin(angle)
    return values


@whole
def log_normal(generator, n: int, dtype, mean: float, std: float) -> np.ndarray:
    return exactly(np.exp, _pairs(generator, n) * std + mean).astype(dtype)


def bernoulli(generator, n: int, dtype, p: float) -> np.ndarray:
    return generator.below(n, p).astype(dtype, copy=False)


def exponential(generator, n: int, dtype, rate: float) -> np.ndarray:
    return (-1 / rate * exactly(np.log1p, -uniform01(generator, n))).astype(dtype)


def geometric(generator, n: int, dtype, p: float) -> np.ndarray:
    return np.ceil(np.log(uniform01(generator, n)) / math.log1p(-p)).astype(dtype)


def cauchy(generator, n: int, dtype, median: float, sigma: float) -> np.ndarray:
    return (median + sigma * np.tan(math.pi * (uniform01(generator, n) - 0.5))).astype(dtype)


def integers(generator, n: int, dtype, low: int, high: int) -> np.ndarray:
    """[low, high) by remainder; two words a number from a range of 2**28 on."""
    span = high - low
    if span == 2**64:  # all of int64
        return _long(generator, n).view(np.int64).astype(dtype)
    if span >= 2**28:
        values = _long(generator, n) % np.uint64(span)
    else:
        values = generator.words(n) % np.uint32(span)
        if not low:
            return values.astype(dtype)
        values = values.astype(np.uint64)
    return (values + np.uint64(low % 2**64)).view(np.int64).astype(dtype)


def any_integers(generator, n: int, dtype) -> np.ndarray:
    """All non-negative values that the dtype holds exactly."""
    if dtype.kind in "biu":
        limit = 2 if dtype.kind == "b" else np.iinfo(dtype).max + 1
    else:
        limit = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}[dtype.name] + 1
    draw = _long(generator, n) if dtype.itemsize == 8 else generator.words(n).astype(np.uint64)
    return (draw % np.uint64(limit)).astype(dtype)


def permutation(generator, n: int, dtype) -> np.ndarray:
    """Fisher–Yates from the front."""
    values = list(range(n))
    if n > 1:
        steps = np.arange(n, 1, -1, dtype=np.uint32)
        for i, step in enumerate((generator.words(n - 1) % steps).tolist()):
            values[i], values[i + step] = values[i + step], values[i]
    return np.array(values, dtype=dtype)


@whole
def poisson(generator, rates: np.ndarray) -> np.ndarray:
    with _Uniforms(generator) as u:
        return np.array([_poisson(u, r) for r in rates.reshape(-1).tolist()], dtype=np.float64)


@whole
def binomial(generator, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    pairs = zip(counts.reshape(-1).tolist(), probabilities.reshape(-1).tolist())
    with _Uniforms(generator) as u:
        return np.array([_binomial(u, n, p) for n, p in pairs], dtype=np.float64)


@whole
def gamma(generator, shapes: np.ndarray) -> np.ndarray:
    number = shapes.dtype.type
    with _Uniforms(generator) as u:
        normals = _Normals(u, generator.spare)
        drawn = np.array([_gamma(u, normals, a, number) for a in shapes.reshape(-1)], dtype=np.float64)
    generator.spare = normals.spare
    return drawn


def dirichlet(generator, shapes: np.ndarray) -> np.ndarray:
    parts = np.maximum(gamma(generator, shapes).reshape(shapes.shape), np.finfo(np.float64).tiny)
    shares = (parts / parts.sum(axis=-1, keepdims=True, initial=0)).astype(shapes.dtype)
    limits = np.finfo(shapes.dtype)
    return np.clip(shares, limits.tiny, 1 - limits.epsneg)


def _gamma(u, normal, shape, number) -> float:
    """Marsaglia and Tsang (2000), https://doi.org/10.1145/358407.358414; ``number`` is the type of ``shape``."""
    scale = 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        scale, shape = (1 - u()) ** float(number(1) / shape), shape + number(1)
    d = float(shape - number(_THIRD))
    c = 1 / math.sqrt(9 * d)
    while True:
        x = normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v, least = y * y * y, 1 - u()
        if least < 1 - 0.0331 * x**4 or math.log(least) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return scale * d * v


_THIRD = np.float32(1 / 3)  # also for float64: so PyTorch has it


def _poisson(u, rate: float) -> float:
    if rate == 0:
        return 0
    if rate >= 10:
        return _poisson_rejection(u, rate)
    limit, product, k = math.exp(-rate), u(), 0
    while product > limit:
        product *= u()
        k += 1
    return k


def _poisson_rejection(u, rate: float) -> float:
    """Hörmann's PTRS (1993), https://doi.org/10.1016/0167-6687(93)90997-4."""
    log_rate, b = math.log(rate), 0.931 + 2.53 * math.sqrt(rate)
    a, inverse_alpha, limit = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        x, v = u() - 0.5, u()
        s = 0.5 - abs(x)
        k = math.floor((2 * a / s + b) * x + rate + 0.43)
        if s >= 0.07 and v <= limit:
            return k
        if k < 0 or (s < 0.013 and v > s):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (s * s) + b) <= -rate + k * log_rate - math.lgamma(
            k + 1
        ):
            return k


def _binomial(u, n: float, p: float) -> float:
    if n <= 0 or p <= 0:
        return 0
    if p >= 1:
        return n
    if p > 0.5:
        return n - _binomial(u, n, 1 - p)
    if math.isnan(p):
        return p
    return _binomial_rejection(u, n, p) if n * p >= 10 else _binomial_waiting(u, n, p)


def _binomial_waiting(u, n: float, p: float) -> float:
    """Add up the waiting times between successes until they exceed n."""
    waited, successes, log_failure = 0.0, 0, math.log1p(-p)
    while True:
        waited += math.ceil(math.log(u()) / log_failure)
        if waited > n:
            return successes
        successes += 1


def _binomial_rejection(u, n: float, p: float) -> float:
    """Hörmann's BTRS (1993), https://doi.org/10.1080/00949659308811496."""
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a, c, limit = -0.0873 + 0.0248 * b + 0.01 * p, n * p + 0.5, 0.92 - 4.2 / b
    ratio, alpha, m = p / (1 - p), (2.83 + 5.1 / b) * deviation, math.floor((n + 1) * p)
    while True:
        x, v = u() - 0.5, u()
        s = 0.5 - abs(x)
        k = math.floor((2 * a / s + b) * x + c)
        if s >= 0.07 and v <= limit:
            return k
        if k < 0 or k > n:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (ratio * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(ratio * (n - k + 1) / (k + 1))
            + _stirling(m) + _stirling(n - m) - _stirling(k) - _stirling(n - k)
        )  # fmt: skip
        if math.log(v * alpha / (a / (s * s) + b)) <= bound:
            return k


_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling(k: float) -> float:
    """What Stirling's approximation of log(k!) leaves out."""
    if k < len(_STIRLING):
        return _STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


class _Uniforms:
    """float64 uniforms one by one, drawn in bulk; on leaving, the generator stands right after the last one used."""

    def __init__(self, generator, chunk=1024):
        self.generator, self.chunk = generator, chunk
        self.used, self.ready = 0, iter(())

    def __enter__(self):
        self.start = self.generator.get_state()
        return self

    def __call__(self) -> float:
        value = next(self.ready, None)
        if value is None:
            self.ready = iter(uniform01(self.generator, self.chunk).tolist())
            value = next(self.ready)
        self.used += 1
        return value

    def __exit__(self, *_):
        self.generator.set_state(self.start)
        self.generator.words(2 * self.used)


class _Normals:
    """Standard normal values one by one, of such uniforms; ``spare`` is the second of a pair, not used yet."""

    def __init__(self, uniforms, spare):
        self.uniforms, self.spare = uniforms, spare

    def __call__(self) -> float:
        if self.spare is not None:
            value, self.spare = self.spare, None
            return value
        value, self.spare = _few_pairs(np.array([[self.uniforms(), self.uniforms()]]))
        return value


def _long(generator, n: int) -> np.ndarray:
    """64-bit words, the first draw on top."""
    words = generator.words(2 * n).astype(np.uint64)
    return words[0::2] << np.uint64(32) | words[1::2]


def _compute(dtype) -> np.dtype:
    return _DOUBLE if dtype == _DOUBLE else _SINGLE
