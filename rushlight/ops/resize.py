"""Resizing, border padding, adaptive averages, sampling at arbitrary points: sums of pixels with known weights.

Most are linear and act along each axis for itself. What one does along an axis is a ``Map``: which input elements go
into each output element, with what weights, all known from sizes alone. One op, ``resample``, runs a Map per axis, and
is its own gradient rule with the maps transposed.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from ..autograd.op import op
from ..engine.open_size import is_open
from ..storage import affordable

_TABLES: dict = {}  # kind -> function(n, out, *options) -> (index, weight), each (terms, out); weight None: all 1


def _table(function):
    _TABLES[function.__name__] = function
    return function


class Map(NamedTuple):
    """``out`` elements from ``n`` along an axis, by the function ``kind`` of this file."""

    kind: str
    n: int
    out: int
    options: tuple = ()

    def table(self, transposed, dtype):
        """(places, weights), (terms, results), the longer axis last; a place past the end stands for no term."""
        return _table_of(self, transposed, dtype)

    def results(self, transposed):
        return self.n if transposed else self.out


@op(x=lambda xp, g, maps, transposed: xp.resample(g, maps=maps, transposed=not transposed))
def resample(xp, x, *, maps, transposed=False):
    """Apply a Map (None: nothing) along each of the trailing axes."""
    size = math.prod(x.shape[: x.ndim - len(maps)]) * math.prod(m.out for m in maps if m) * x.dtype.itemsize
    if not is_open(size):
        affordable(size)
    for axis, along in enumerate(maps, x.ndim - len(maps)):
        if along is not None:
            x = _apply(xp, x, axis, along, transposed)
    return x if any(maps) else xp.copy(x)


def _apply(xp, x, axis, along, transposed):
    index, weight = _terms(along, transposed)
    terms, length = len(index), x.shape[axis]
    if terms > 4 and length <= 16 * terms:
        return _product(xp, x, axis, _matrix(along, transposed))
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    total = None
    for k in range(terms):
        part = xp.take(x, index[k], axis=axis)
        if weight is not None:
            part = part * xp.asarray(weight[k].reshape(shape), dtype=x.dtype)
        total = part if total is None else total + part
    return total


def _product(xp, x, axis, matrix):
    """``matrix`` times x along one axis, as a matrix product."""
    matrix = xp.asarray(matrix, dtype=x.dtype)
    if axis == x.ndim - 1:
        return xp.matmul(x, xp.matrix_transpose(matrix))
    rows = int(np.prod(x.shape[:axis]))
    flat = xp.reshape(x, shape=(rows, x.shape[axis], int(np.prod(x.shape[axis + 1 :]))))
    return xp.reshape(xp.matmul(matrix, flat), shape=(*x.shape[:axis], matrix.shape[0], *x.shape[axis + 1 :]))


@functools.lru_cache(1024)
def _terms(along: Map, transposed: bool):
    index, weight = _TABLES[along.kind](along.n, along.out, *along.options)
    return _transposed(index, weight, along.n) if transposed else (index, weight)


@functools.lru_cache(1024)
def _table_of(along, transposed, dtype):
    index, weight = _terms(along, transposed)
    if weight is None:
        weight = np.ones(index.shape)
    elif transposed or along.kind == "area":  # others have weights that happen to be 0
        index = np.where(weight == 0, along.out if transposed else along.n, index)
    if len(index) > index.shape[1]:
        index, weight = index.T, weight.T
    return np.ascontiguousarray(index, np.int64), np.ascontiguousarray(weight, dtype)


def _transposed(index, weight, n):
    """For each input element, the outputs it goes into and with what weights; padded with weights 0."""
    weight = np.ones(index.shape) if weight is None else weight
    outputs = np.broadcast_to(np.arange(index.shape[1]), index.shape)
    used = weight != 0
    goal, source, value = index[used], outputs[used], weight[used]
    order = np.argsort(goal, kind="stable")
    goal, source, value = goal[order], source[order], value[order]
    counts = np.bincount(goal, minlength=n)
    place = np.arange(len(goal)) - np.repeat(np.cumsum(counts) - counts, counts)
    back = np.zeros((max(1, counts.max(initial=1)), n), dtype=np.int64)
    weights = np.zeros(back.shape)
    back[place, goal], weights[place, goal] = source, value
    return back, None if (weights == 1).all() else weights


@functools.lru_cache(256)
def _matrix(along: Map, transposed: bool) -> np.ndarray:
    """(results, terms): the Map as a dense matrix."""
    index, weight = _terms(along, False)
    matrix = np.zeros((along.out, along.n))
    outputs = np.broadcast_to(np.arange(along.out), index.shape)
    np.add.at(matrix, (outputs, index), 1.0 if weight is None else weight)
    return np.ascontiguousarray(matrix.T) if transposed else matrix


# -- what goes into each element ---------------------------------------------------------------------------------------


@_table
def for_bytes(n, out, kind, *options):
    """``kind`` with weights of 15 bits: as many digits as the largest of them leaves room for."""
    index, weight = _TABLES[kind](n, out, *options)
    weight = weight.copy()
    for k, j in itertools.combinations(range(len(index)), 2):  # at a border one element may be there several times
        again = index[j] == index[k]
        weight[k] += np.where(again, weight[j], 0.0)
        weight[j] = np.where(again, 0.0, weight[j])
    unit = 2.0 ** -next((p for p in range(22) if np.floor(0.5 + weight.max() * 2.0 ** (p + 1)) >= 1 << 15), 22)
    return index, np.copysign(np.floor(np.abs(weight) / unit + 0.5) * unit, weight)


@_table
def area(n, out):
    """The mean over the stretch of input that an output element covers: adaptive average pooling."""
    start, stop = stretches(n, out)
    steps = np.arange((stop - start).max(initial=1))[:, None]
    return np.minimum(start + steps, stop - 1), np.where(start + steps < stop, 1 / (stop - start), 0.0)


def stretches(n, out):
    """(where each of ``out`` windows that cover ``n`` elements starts, where it stops)."""
    i = np.arange(out)
    return i * n // max(out, 1), -(-(i + 1) * n // max(out, 1))


@_table
def nearest(n, out, scale):
    # PyTorch counts in float32; so must we, to round the same way.
    at = np.floor(np.arange(out, dtype=np.float32) * _nearest_scale(n, out, scale))
    return np.minimum(at.astype(np.int64), n - 1)[None], None


@_table
def nearest_exact(n, out, scale):
    at = np.floor((np.arange(out, dtype=np.float32) + np.float32(0.5)) * _nearest_scale(n, out, scale))
    return np.minimum(at.astype(np.int64), n - 1)[None], None


def _nearest_scale(n, out, scale):
    return np.float32(1 / scale) if scale else np.float32(n) / np.float32(out)


@_table
def linear(n, out, align, scale):
    at = np.arange(out) if n == out else np.maximum(_source(n, out, align, scale), 0)
    low = np.minimum(np.floor(at).astype(np.int64), n - 1)
    part = at - low
    return np.stack([low, np.minimum(low + 1, n - 1)]), np.stack([1 - part, part])


@_table
def cubic(n, out, align, scale):
    at = _source(n, out, align, scale)
    low = np.floor(at).astype(np.int64)
    index = np.clip(low + np.arange(-1, 3)[:, None], 0, n - 1)
    return index, np.stack(cubic_weights(at - low))


def cubic_weights(t, a=-0.75):
    """Of the four neighbours of a point that lies ``t`` after the second; ``t`` may be any array."""
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _source(n, out, align, scale):
    """Where in the input the output's pixels are."""
    ratio = _ratio(n, out, align, scale)
    return np.arange(out) * ratio if align else (np.arange(out) + 0.5) * ratio - 0.5


def _ratio(n, out, align, scale):
    if align:
        return (n - 1) / (out - 1) if out > 1 else 0.0
    return 1 / scale if scale else n / out


@_table
def smooth(n, out, align, scale, kind):
    """With anti-aliasing: a filter that grows when the output is smaller; Pillow's way."""
    reach, filter_ = _FILTERS[kind]
    ratio = _ratio(n, out, align, scale)
    width = max(ratio, 1.0)
    center = ratio * (np.arange(out) + 0.5)
    start = np.maximum((center - reach * width + 0.5).astype(np.int64), 0)
    stop = np.minimum((center + reach * width + 0.5).astype(np.int64), n)
    index = start + np.arange((stop - start).max(initial=1))[:, None]
    weight = np.where(index < stop, filter_(np.abs((index - center + 0.5) / width)), 0.0)
    return np.minimum(index, n - 1), weight / weight.sum(0)


def _triangle(d):
    return np.maximum(1 - d, 0)


def _bicubic(d, a=-0.5):
    near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d < 1, near, np.where(d < 2, far, 0))


def _lanczos(d):
    return np.where(d < 3, np.sinc(d) * np.sinc(d / 3), 0)


_FILTERS = {"bilinear": (1.0, _triangle), "bicubic": (2.0, _bicubic), "lanczos": (3.0, _lanczos)}


@_table
def reflect(n, out, before, after):
    at = np.abs(np.arange(out) - before)
    return np.minimum(at, 2 * (n - 1) - at)[None], None


@_table
def replicate(n, out, before, after):
    return np.clip(np.arange(out) - before, 0, n - 1)[None], None


@_table
def circular(n, out, before, after):
    """What negative numbers take away is gone before the rest goes round."""
    start, period = max(-before, 0), n + min(before, 0) + min(after, 0)
    return (start + (np.arange(out) - max(before, 0)) % max(period, 1))[None], None


# -- sampling ----------------------------------------------------------------------------------------------------------


@op(derive=True)
def grid_sampler(xp, x, grid, *, mode, padding, align):
    """x (N, C, *size) at the points ``grid`` (N, *out, dims): from -1 to 1, the coordinate of the last axis first."""
    dims = x.ndim - 2
    size = x.shape[2:]
    count = x.shape[0] * math.prod(x.shape[2:])
    rows = xp.reshape(xp.transpose(x, axes=(0, *range(2, x.ndim), 1)), shape=(count, x.shape[1]))
    points = xp.reshape(grid, shape=(grid.shape[0], math.prod(grid.shape[1:-1]), dims))
    at = [_pixel(xp, xp.select_part(points, axis=2, index=dims - 1 - d), size[d], align) for d in range(dims)]
    choices = [_neighbours(xp, c, n, mode, padding, align, dims) for c, n in zip(at, size)]
    total = None
    for corner in itertools.product(*choices):
        part = _read(xp, rows, corner, size)
        total = part if total is None else total + part
    out = xp.reshape(total, shape=(x.shape[0], *grid.shape[1:-1], x.shape[1]))
    return xp.lay_out(xp.transpose(out, axes=(0, x.ndim - 1, *range(1, x.ndim - 1))), order=tuple(range(x.ndim)))


def _pixel(xp, c, n, align):
    return (c + 1) * ((n - 1) / 2) if align else ((c + 1) * n - 1) / 2


def _neighbours(xp, at, n, mode, padding, align, dims):
    """[(position, weight)] of the pixels along one axis that go into each point."""
    if mode == "bicubic":
        low = xp.floor(at)
        weights = cubic_weights(at - low)
        return [(_inside(xp, low + (k - 1), n, padding, align, dims), w) for k, w in enumerate(weights)]
    at = _inside(xp, at, n, padding, align, dims)
    if mode == "nearest":
        # A weight of 1 that comes from the point, for its gradient is 0, not nothing.
        return [(xp.round(at), xp.where(at - at == 0, at * 0 + 1, 1.0))]
    low = xp.floor(at)
    part = at - low
    return [(low, 1 - part), (low + 1, part)]


def _inside(xp, at, n, padding, align, dims):
    if padding == "zeros":
        return at
    if padding == "reflection":
        at = _reflected(xp, at, n, align)
    if dims == 2:  # PyTorch's comparisons: NaN is at the first border of an image, and at the last of a volume
        return xp.where(at >= n - 1, n - 1.0, xp.where(at > 0, at, 0.0))
    return xp.where(at <= 0, 0.0, xp.where(at < n - 1, at, n - 1.0))


def _reflected(xp, at, n, align):
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0:
        return at * 0
    away = at - low
    away = xp.where(away < 0, -away, away)
    turns = xp.floor(away / span)
    rest = away - turns * span
    odd = turns - 2 * xp.floor(turns / 2) == 1
    return xp.where(odd, span - rest, rest) + low


def _read(xp, rows, corner, size):
    """The rows at one combination of neighbours, (N, points, C), times their weights; 0 outside.

    In an image a point that is not finite has no value; in a volume it is outside, as in PyTorch, and so has no weight.
    """
    flat, weight, valid = 0, 1, True
    for (position, w), n in zip(corner, size):
        inside = (position >= 0) & (position <= n - 1)
        flat = flat * n + xp.astype(xp.where(inside, position, 0.0), dtype="int64")
        valid, weight = inside & valid, w * weight
    found = xp.embedding(rows, xp.batch_rows(flat, each=int(np.prod(size))))
    valid, weight = xp.expand_dims(valid, axis=-1), xp.expand_dims(weight, axis=-1)
    return xp.where(valid, found, 0.0) * (weight if len(size) == 2 else xp.where(valid, weight, 0.0))


@op
def batch_rows(xp, index, *, each):
    """Indices into each of a batch of tables as indices into all of them, of ``each`` rows, one below the other."""
    return index + xp.asarray(np.arange(index.shape[0])[:, None] * each)


@op(
    node="AffineGridGeneratorBackward0",
    theta=lambda xp, g, size, align: xp.affine_grid_slope(g, size=size, align=align),
)
def affine_grid_generator(xp, theta, *, size, align):
    """(N, *size, dims): where the transform ``theta`` (N, dims, dims + 1) takes the points of a regular grid."""
    base = xp.asarray(_regular_grid(size, align), dtype=theta.dtype)
    out = xp.matmul(base, xp.matrix_transpose(theta))
    return xp.reshape(out, shape=(theta.shape[0], *size, len(size)))


@op(x=lambda xp, g, size, align: xp.affine_grid_generator(g, size=size, align=align))
def affine_grid_slope(xp, x, *, size, align):
    """The adjoint of ``affine_grid_generator``."""
    base = xp.asarray(_regular_grid(size, align), dtype=x.dtype)
    points = xp.reshape(x, shape=(x.shape[0], base.shape[0], len(size)))
    return xp.matmul(xp.matrix_transpose(points), base)


@functools.lru_cache(64)
def _regular_grid(size, align) -> np.ndarray:
    """(points, dims + 1): the coordinates of every pixel's center between -1 and 1, last axis first, and a 1."""
    along = []
    for n in size:
        ends = (n > 1) * 1.0
        steps = np.linspace(-ends, ends, n)
        along.append(steps if align else steps * (n - 1) / n)
    mesh = np.meshgrid(*along, indexing="ij")
    return np.stack([m.ravel() for m in mesh[::-1]] + [np.ones(mesh[0].size)], axis=1)


# -- moving channels into pixels ---------------------------------------------------------------------------------------


@op(exact=True, x=lambda xp, g, factor: xp.pixel_unshuffle(g, factor=factor))
def pixel_shuffle(xp, x, *, factor):
    """(…, C r², H, W) to (…, C, H r, W r)."""
    if factor == 1:
        return xp.copy(x)
    *lead, c, h, w = x.shape
    k, first = len(lead), tuple(range(len(lead)))
    x = xp.reshape(x, shape=(*lead, c // factor**2, factor, factor, h, w))
    x = xp.transpose(x, axes=(*first, k, k + 3, k + 1, k + 4, k + 2))
    return xp.reshape(x, shape=(*lead, c // factor**2, h * factor, w * factor))


@op(exact=True, x=lambda xp, g, factor: xp.pixel_shuffle(g, factor=factor))
def pixel_unshuffle(xp, x, *, factor):
    """(…, C, H r, W r) to (…, C r², H, W)."""
    if factor == 1:
        return xp.copy(x)
    *lead, c, h, w = x.shape
    k, first = len(lead), tuple(range(len(lead)))
    x = xp.reshape(x, shape=(*lead, c, h // factor, factor, w // factor, factor))
    x = xp.transpose(x, axes=(*first, k, k + 2, k + 4, k + 1, k + 3))
    return xp.reshape(x, shape=(*lead, c * factor**2, h // factor, w // factor))


@op(exact=True, x=lambda xp, g, groups, x_shape: xp.channel_shuffle(g, groups=x_shape[1] // groups))
def channel_shuffle(xp, x, *, groups):
    """Channels (dimension 1) as a table of ``groups`` rows, read column by column."""
    n, c, *rest = x.shape
    if groups in (1, c):
        return xp.copy(x)
    x = xp.swapaxes(xp.reshape(x, shape=(n, groups, c // groups, *rest)), axis1=1, axis2=2)
    return xp.reshape(x, shape=(n, c, *rest))
