"""The XLA engine: ``jax.numpy``, and the names it lacks or spells differently from NumPy."""

from __future__ import annotations

import builtins  # names found in the library become globals here, ``any`` and ``all`` among them
import math
import sys

import jax
import jax.numpy as jnp
import jax.scipy.special as jax_special
import numpy as np

from ...errors import ValuesNeeded
from .. import ctc, special
from ..fallback import lookup
from . import keys
from .devices import (
    check_room,
    check_same_device,
    device_of,
    explained,
    is_tracing,
    next_key,
    place_of,
    to_device,
    to_numpy,
)
from .devices import expect as _expect
from .kernels import activations as _activations
from .kernels import attention as _attention
from .kernels import norms as _norms
from .kernels import products as _products
from .kernels import rnn as _rnn
from .kernels.conv import conv, conv_input, conv_weight
from .kernels.optimizers import serves_update, update_all
from .kernels.products import matmul
from .kernels.windows import add_columns, columns, max_windows, pick, spread, spread_windows, sum_windows
from .kernels.windows import max_windows_backward as _max_windows_backward
from .linalg import *

DEFERS = False  # see ``once``
BODIES: dict = {}  # op name -> a faster forward
BACKWARD: dict = {}  # op name -> a faster backward: f(g, edges, saved by name) -> gradients


def once(name, function, constants, *args):
    """``function(xp, *constants, *args)``; an engine that ``DEFERS`` records it as one call."""
    return function(sys.modules[__name__], *constants, *without_promises(args))


def without_promises(args):
    """``args`` as they are; the deferred engine puts another function here, for promises that meet a trace."""
    return args


def draw(kind, generator, device, args, options):
    """Random numbers of a ``kind`` that ``keys`` has, on ``device`` if one is given."""
    array = getattr(keys, kind)(generator, *args, **options)
    return array if device is None or is_tracing() else to_device(array, device)


def astype(x, dtype):
    return jnp.asarray(x, dtype=dtype)


def full(shape, fill_value, dtype=None, device=None):
    """``jnp.full``, made where it belongs: that would make it on the default device and move it."""
    if device is None:
        return jnp.full(shape, fill_value, dtype=dtype)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > _LARGE:
        check_room(device, size)
    with explained(device), jax.default_device(device):
        return jnp.full(shape, fill_value, dtype=dtype, device=device)


_LARGE = 2**26  # bytes; for less it is not worth asking how much memory there is


def reshape(x, shape):
    return jnp.reshape(x, shape)


def conj(x):
    if hasattr(x, "dtype"):
        return jnp.conj(x) if x.dtype.kind == "c" else x
    return x.conjugate()


def alias(x):
    return jnp.asarray(x)


def lay_out(x, order):
    """A copy; XLA chooses how it lies in memory."""
    return jnp.array(x)


def matrix_transpose(x):
    return jnp.swapaxes(x, -1, -2)


def getitem(x, index):
    return jnp.asarray(x)[index]


def is_traced(x) -> bool:
    """Is it a stand-in whose values are not known yet?"""
    return isinstance(x, jax.core.Tracer)


def is_known(x) -> bool:
    """Can values be looked at without waiting?"""
    return not is_traced(x)


def expanded(x, shape):
    return jnp.broadcast_to(x, shape)


def windows(x, axis, size, step):
    """All windows of ``size`` along ``axis``, ``step`` apart, as a last axis."""
    index = np.arange(0, x.shape[axis] - size + 1, step)[:, None] + np.arange(size)
    return jnp.moveaxis(take(x, index, axis=axis), axis + 1, -1)


def take(x, index, axis):
    if x.shape[axis]:
        return jnp.take(x, index, axis=axis)
    axis %= x.ndim  # of an empty axis JAX returns x itself
    return jnp.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), dtype=x.dtype)


def strided(x, shape, strides, offset):
    """The flattened ``x``, read with the given strides."""
    at = np.asarray(offset)
    for n, stride in zip(shape, strides):
        at = at[..., None] + np.arange(n) * stride
    return jnp.ravel(x)[at]


def index_reduce(x, value, index, how):
    """``x`` with ``value`` multiplied in (``how="prod"``), or the larger or smaller kept ("amax", "amin")."""
    at = jnp.asarray(x).at[index]
    return {"prod": at.multiply, "amax": at.max, "amin": at.min}[how](value)


def repeat_each(repeats, total=None):
    """Each position of ``repeats`` so many times as it says; ``total`` is the length, where that must be known."""
    return jnp.repeat(jnp.arange(len(repeats)), repeats, total_repeat_length=total)


def bitcast(x, dtype):
    """The same bytes read as another dtype; the last axis grows or shrinks."""
    have, want = x.dtype.itemsize, jnp.dtype(dtype).itemsize
    if want > have:
        x = jnp.reshape(x, (*x.shape[:-1], x.shape[-1] * have // want, want // have))
    out = jax.lax.bitcast_convert_type(x, dtype)
    return jnp.reshape(out, (*x.shape[:-1], x.shape[-1] * (have // want))) if want < have else out


def index_put(x, value, index):
    """``x`` with ``x[index] = value`` done to a copy."""
    parts = index if isinstance(index, tuple) else (index,)
    whole = (isinstance(part, slice) and part.indices(n) == (0, n, 1) for part, n in zip(parts, x.shape))
    if len(parts) <= x.ndim and builtins.all(whole):
        return jnp.broadcast_to(value, x.shape).astype(x.dtype)  # all of it
    return jnp.asarray(x).at[index].set(value)


def index_add(x, value, index):
    """``x`` with ``value`` added at ``index``, repeated positions adding up."""
    return jnp.asarray(x).at[index].add(value)


def slice_part(x, *, axis, start, size, step=1):
    """``x`` at ``size`` places along ``axis``; where that begins may be known only when the program runs."""
    if isinstance(start, int):
        return x[_along(axis, slice(start, start + size * step, step))]
    span = builtins.max((size - 1) * step + 1, 0)
    return jax.lax.dynamic_slice_in_dim(x, start, span, axis)[_along(axis, slice(None, None, step))]


def put_slice(x, value, *, axis, start, size, step=1):
    if isinstance(start, int):
        return index_put(x, value, _along(axis, slice(start, start + size * step, step)))
    if step != 1:
        return index_put(x, value, _along(axis, start + step * jnp.arange(size)))
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return jax.lax.dynamic_update_slice_in_dim(x, jnp.broadcast_to(jnp.asarray(value, x.dtype), shape), start, axis)


def _along(axis, index):
    return (slice(None),) * axis + (index,)


# -- element-wise ------------------------------------------------------------------------------------------------------


def sigmoid(x):
    return jax.nn.sigmoid(x)


def sign(x):
    """-1, 0 or 1, 0 for nan; for complex numbers x / |x|, and 0 for 0."""
    if x.dtype.kind == "c":
        size = jnp.abs(x)
        return jnp.where(size == 0, x.dtype.type(0), x / size)
    return jnp.sign(x) if x.dtype.kind in "biu" else jnp.where(x == x, jnp.sign(x), x.dtype.type(0))


def floor_divide(x, w):
    _expect_no_zero(w)
    return jnp.floor_divide(x, w)


def remainder(x, w):
    _expect_no_zero(w)
    return jnp.remainder(x, w)


def fmod(x, w):
    _expect_no_zero(w)
    return jnp.fmod(x, w)


def _expect_no_zero(w) -> None:
    if getattr(w, "dtype", np.dtype(float)).kind in "biu":
        _expect(w, lambda w: w != 0)


def left_shift(x, w):
    """Shifting by the width or more, or by less than 0, leaves 0."""
    outside = (w < 0) | (w >= 8 * x.dtype.itemsize)
    return jnp.where(outside, x.dtype.type(0), jnp.left_shift(x, jnp.where(outside, 0, w)))


def right_shift(x, w):
    """Shifting by the width or more, or by less than 0, leaves only the sign."""
    most = 8 * x.dtype.itemsize - 1
    return jnp.right_shift(x, jnp.where((w < 0) | (w > most), most, w))


erf, erfc, erfinv, lgamma = jax_special.erf, jax_special.erfc, jax_special.erfinv, jax_special.gammaln
igamma, igammac = jax_special.gammainc, jax_special.gammaincc
i0, i0e, i1, i1e = jax_special.i0, jax_special.i0e, jax_special.i1, jax_special.i1e
ndtri, log_ndtr = jax_special.ndtri, jax_special.log_ndtr
gamma_slope = jax.lax.random_gamma_grad


def root_mean_square(x, count, axis=None, keepdims=False):
    """The root of the sum of squares divided by ``count``, also where the squares are too large for a float32."""
    largest = jnp.max(jnp.abs(x), initial=0, keepdims=True)
    scale = jnp.where((largest > 2.0**60) & jnp.isfinite(largest), largest, jnp.ones_like(largest))
    root = jnp.sqrt(jnp.sum(jnp.square(x / scale), axis=axis, keepdims=keepdims) / count)
    return root * jnp.reshape(scale, ())


def digamma(x):
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x).astype(x.dtype), jax_special.digamma(x))


def rsqrt(x):
    return jnp.reciprocal(jnp.sqrt(x))


_INVERSES = {0.5: jnp.sqrt, -0.5: rsqrt}  # also of -0 and -inf as roots, which powers are not


def power(x, w):
    if isinstance(w, float) and w in _INVERSES and x.dtype.kind in "fc":
        return _INVERSES[w](x)
    return jnp.power(x, w)


def polygamma(x, n):
    return digamma(x) if n == 0 else special.signed_factorial(n) * zeta(n + 1.0, x)


def zeta(s, q):
    """Hurwitz's zeta. JAX's is right for positive q only, so q is counted up to there first, at most 10,000 steps."""
    s, q = jnp.broadcast_arrays(jnp.asarray(s, q.dtype) if isinstance(s, float) else s, q)

    def count_up(state):
        k, q, total = state
        low = q < 1
        return k + 1, jnp.where(low, q + 1, q), total + jnp.where(low, jnp.power(q, -s), 0)

    state = 0, q, jnp.zeros_like(q)
    _, above, total = jax.lax.while_loop(lambda state: (state[0] < 10_000) & jnp.any(state[1] < 1), count_up, state)
    value = jnp.where((q <= 0) & (s != jnp.floor(s)), jnp.nan, total + jax_special.zeta(s, above))
    return jnp.where((q <= 0) & (q == jnp.floor(q)) & (s > 1), jnp.inf, value)


def erfcx(x):
    return special.in_double(sys.modules[__name__], special.erfcx, x)


def recurrence(step, first, second, n):
    """Item ``n`` (an array) of the sequence that begins ``first, second``, goes on ``step(k, last, item)``."""
    begin = (1, first, second, jnp.where(n == 0, first, second))

    def advance(state):
        k, last, item, result = state
        after = step(k, last, item)
        return k + 1, item, after, jnp.where(n == k + 1, after, result)

    top = jnp.max(n, initial=0)
    return jax.lax.while_loop(lambda state: state[0] < top, advance, begin)[3]


def iterate(step, unfinished, state, most):
    """``state = step(n, state)`` for n from 0, while ``unfinished(n, state)``, ``most`` times at most."""

    def going(carried):
        return (carried[0] < most) & unfinished(*carried)

    return jax.lax.while_loop(going, lambda carried: (carried[0] + 1, step(*carried)), (0, state))[1]


def dirichlet_slope(x, a, total):
    double = [jnp.asarray(v, np.float64) for v in jnp.broadcast_arrays(x, a, total)]
    return special.dirichlet_slope(sys.modules[__name__], *double).astype(x.dtype)


def make_complex(x, w):
    return jax.lax.complex(*jnp.broadcast_arrays(x, w))


def view_as_real(x):
    return jnp.stack([x.real, x.imag], axis=-1)


def view_as_complex(x):
    return jax.lax.complex(x[..., 0], x[..., 1])


# -- scans, order ----------------------------------------------------------------------------------------------------


def cummax(x, axis):
    return _as_number(jax.lax.cummax, x, axis)


def cummin(x, axis):
    return _as_number(jax.lax.cummin, x, axis)


def _as_number(function, x, axis):
    return function(x.astype(np.uint8), axis).astype(bool) if x.dtype == bool else function(x, axis)


def cumlogsumexp(x, axis):
    return jax.lax.cumlogsumexp(x, axis)


def linear_scan(a, b, axis, reverse=False):
    """``y[i] = a[i] * y[i-1] + b[i]`` along ``axis``, or from its end with ``y[i+1]``."""
    a, b = jnp.broadcast_arrays(a, b)
    if not b.size:
        return b

    def compose(first, then):
        return first[0] * then[0], then[0] * first[1] + then[1]

    return jax.lax.associative_scan(compose, (a, b), reverse=reverse, axis=axis)[1]


def scan(step, carry, *xs):
    """The carries ``carry = step(carry, *x)`` for x in zip(*xs), stacked."""

    def advance(carry, x):
        after = step(carry, *x)
        return after, after

    return jax.lax.scan(advance, carry, xs)[1]


def ctc_paths(x, targets, input_lengths, target_lengths, blank):
    return ctc.paths(jnp, scan, x, targets, input_lengths, target_lengths, blank)


def ctc_gradient(g, x, targets, input_lengths, target_lengths, alpha, loss, blank):
    return ctc.gradient(jnp, scan, g, x, targets, input_lengths, target_lengths, alpha, loss, blank)


def argsort(x, axis=-1):
    """The order that sorts, NaN last, equal elements as they came."""
    return jnp.argsort(x, axis=axis, stable=True)


def top_order(x, k, axis):
    """Where the ``k`` largest elements along ``axis`` are, the first of equal ones first; NaN is the largest."""
    return jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(x, axis, -1), k)[1].astype(np.int64), -1, axis)


def add_rows(value, index, size):
    """Zeros with ``size`` rows, with each row of ``value`` added to the one that ``index`` names."""
    return jnp.zeros((size, *value.shape[1:]), value.dtype).at[index].add(value)


def add_along_axis(value, index, axis, size, unique=False):
    """Zeros of ``size`` along ``axis``, with ``value`` added where ``index`` says; ``unique``: no place twice."""
    if index.shape[axis] == 1:  # a comparison with the class numbers fuses into what follows, a scatter never does
        numbers = jnp.arange(size, dtype=index.dtype).reshape([size if i == axis else 1 for i in range(index.ndim)])
        return jnp.where(numbers == index, value, np.zeros((), value.dtype))
    out = jnp.zeros([size if i == axis else n for i, n in enumerate(value.shape)], value.dtype)
    places = list(np.ogrid[tuple(map(slice, index.shape))])
    places[axis] = index
    return out.at[tuple(places)].add(value, unique_indices=unique)


def searchsorted(sequence, values, side="left"):
    """Where ``values`` belong in ``sequence``; if that has rows, row by row."""
    if sequence.ndim == 1:
        return jnp.searchsorted(sequence, values, side=side).astype(np.int64)
    rows = _rows(sequence), _rows(values)
    found = jax.vmap(lambda s, v: jnp.searchsorted(s, v, side=side))(*rows)
    return found.reshape(values.shape).astype(np.int64)


def _rows(x):
    return x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])


def on_host(function, name, *arrays):
    """``function`` of NumPy copies of ``arrays``, its results put back beside them; impossible while tracing."""
    if builtins.any(isinstance(a, jax.core.Tracer) for a in arrays):
        raise ValuesNeeded(
            f"{name}(): the shape of its result depends on values, so it cannot be compiled. "
            "Call it outside the compiled function."
        )
    place = next(iter(arrays[0].devices()))
    results = function(*[np.asarray(a) for a in arrays])
    if isinstance(results, tuple):
        return tuple(jax.device_put(r, place) for r in results)
    return jax.device_put(results, place)


# -- Fourier transforms ----------------------------------------------------------------------------------------------


def fftn(x, axes, norm=None):
    return jnp.fft.fftn(x, axes=axes, norm=norm)


def ifftn(x, axes, norm=None):
    return jnp.fft.ifftn(x, axes=axes, norm=norm)


def rfftn(x, axes, norm=None):
    return jnp.fft.rfftn(x, axes=axes, norm=norm)


def irfftn(x, s, axes, norm=None):
    return jnp.fft.irfftn(x, s=s, axes=axes, norm=norm)


BODIES["recurrent"], BACKWARD["recurrent"] = _rnn.recurrent, _rnn.recurrent_backward
BODIES["linear"], BACKWARD["linear"] = _products.linear, _products.linear_backward
BODIES["normalized"], BACKWARD["normalized"] = _norms.normalized, _norms.normalized_backward
BODIES["gelu"], BACKWARD["gelu"] = _activations.gelu, _activations.gelu_backward
BODIES["attention"], BACKWARD["attention"] = _attention.attention, _attention.attention_backward
BACKWARD["max_pool"] = _max_windows_backward
BODIES["slice_part"] = lambda xp, x, **static: slice_part(x, **static)
BODIES["put_slice"] = lambda xp, x, value, **static: put_slice(x, value, **static)
BODIES["cofactor"] = lambda xp, x: cofactor(x)  # noqa: F405 — the op's own forward divides by the determinant


def __getattr__(name):
    function = globals()[name] = lookup(jnp, name, sys.modules[__name__])  # found once, then an ordinary global
    return function
