"""Spread, covariance and histograms."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..autograd.op import differentiable as xp
from ..autograd.op import op
from ..engine import namespace_of
from ..errors import warn_user
from ..tensor import Tensor
from . import returns
from .common import refuse
from .data import fill_value
from .dims import as_ints
from .kinds import c_name
from .public import PUBLIC, public
from .reduce import axes_of, count_of, kept, tensor_argument, type_word

# -- variance --------------------------------------------------------------------------------------------------------


def _freedom(shape, axis, correction):
    """What the sum of squares is divided by."""
    return max(count_of(shape, axis) - correction, 0)


def _variance(xp, x, axis, keepdims, correction):
    """(variance, mean)."""
    mean = xp.mean(x, axis=axis, keepdims=True)
    off = xp.abs(x - mean)
    squares = xp.sum(off * off, axis=axis, keepdims=keepdims)
    mean = mean if keepdims else xp.reshape(mean, shape=squares.shape)
    freedom = _freedom(x.shape, axis, correction)
    if not freedom:  # division by zero, without NumPy's warning
        return xp.where(xp.equal(squares, 0), math.nan, squares + math.inf), mean
    return squares / freedom, mean


def _deviation(xp, x, axis, keepdims, correction):
    """(standard deviation, mean)."""
    freedom = _freedom(x.shape, axis, correction)
    if not freedom:
        variance, mean = _variance(xp, x, axis, keepdims, correction)
        return xp.sqrt(variance), mean
    mean = xp.mean(x, axis=axis, keepdims=True)
    deviation = xp.root_mean_square(xp.abs(x - mean), freedom, axis=axis, keepdims=keepdims)
    return deviation, mean if keepdims else xp.reshape(mean, shape=deviation.shape)


def _variance_gradient(xp, g, x, axis, keepdims, correction, x_shape):
    g = kept(xp, g, axis, keepdims, x_shape)
    freedom = count_of(x_shape, axis) - correction
    away = x - xp.mean(x, axis=axis, keepdims=True)
    if axis is None and freedom <= 0:  # PyTorch's two functions differ: this one is infinite both ways
        return g * xp.where(xp.equal(away, 0), math.nan, xp.abs(away) + math.inf)
    return g * (2.0 / freedom if freedom else math.inf) * away


def _deviation_gradient(xp, g, x, y, axis, keepdims, correction, x_shape):
    flat = xp.equal(y, 0)  # the root has no slope there
    g = xp.where(flat, 0, g / (2.0 * xp.where(flat, 1, y)))
    return _variance_gradient(xp, g, x, axis, keepdims, correction, x_shape)


def _mean_gradient(xp, g, axis, keepdims, x_shape):
    return xp.broadcast_to(kept(xp, g, axis, keepdims, x_shape) / (count_of(x_shape, axis) or 1), shape=x_shape)


@op(x=_variance_gradient)
def _var(xp, x, *, axis=None, keepdims=False, correction=1):
    return _variance(xp, x, axis, keepdims, correction)[0]


@op(x=_deviation_gradient)
def _std(xp, x, *, axis=None, keepdims=False, correction=1):
    return _deviation(xp, x, axis, keepdims, correction)[0]


@op(
    x=lambda xp, g, x, axis, keepdims, correction, x_shape: (
        _variance_gradient(xp, g[0], x, axis, keepdims, correction, x_shape)
        + _mean_gradient(xp, g[1], axis, keepdims, x_shape)
    )
)
def _var_mean(xp, x, *, axis=None, keepdims=False, correction=1):
    return _variance(xp, x, axis, keepdims, correction)


@op(
    uses=(0,),
    x=lambda xp, g, x, y, axis, keepdims, correction, x_shape: (
        _deviation_gradient(xp, g[0], x, y[0], axis, keepdims, correction, x_shape)
        + _mean_gradient(xp, g[1], axis, keepdims, x_shape)
    ),
)
def _std_mean(xp, x, *, axis=None, keepdims=False, correction=1):
    return _deviation(xp, x, axis, keepdims, correction)


@public
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The variance: squares of differences from the mean, summed and divided by count - ``correction`` (1)."""
    return _spread(xp.var, "var", input, dim, unbiased, keepdim, correction)


@public
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The standard deviation: the square root of ``var``."""
    return _spread(xp.std, "std", input, dim, unbiased, keepdim, correction)


@public(method=False)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The variance and the mean at once."""
    return _spread(xp.var_mean, "var_mean", input, dim, unbiased, keepdim, correction)


@public(method=False)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The standard deviation and the mean at once."""
    return _spread(xp.std_mean, "std_mean", input, dim, unbiased, keepdim, correction)


def _spread(function, name, input, dim, unbiased, keepdim, correction):
    if tensor_argument(input, name)._array.dtype.kind in "biu":
        what = "std and var" if name in ("std", "var") else name
        raise RuntimeError(f"{what} only support floating point and complex dtypes")
    if isinstance(dim, bool) and (unbiased is not None or keepdim or correction is not None):
        raise TypeError(f"{name}(): argument 'dim' must be tuple of ints, not bool")
    if isinstance(dim, bool):  # std(input, unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif correction != correction:
        correction = math.inf  # no degree of freedom is left, as PyTorch has it
    axis = axes_of(input, dim)
    if correction < 0 and not count_of(input._array.shape, axis):
        correction = 0  # nothing has no variance
    if count_of(input._array.shape, axis) - correction <= 0:
        warn_user(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
        if name in ("var_mean", "std_mean"):  # whose gradients are nan and finite: none of one may reach the other
            first = xp.var if name == "var_mean" else xp.std
            static = {"axis": axis, "keepdims": bool(keepdim)}
            return first(input, correction=correction, **static), xp.mean(input, **static)
    return function(input, axis=axis, keepdims=bool(keepdim), correction=correction)


# -- covariance ------------------------------------------------------------------------------------------------------


@public(out=False)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of variables in rows, observations in columns."""
    x = _observations(input, "cov")
    for name, t, kinds, word in (
        ("fweights", fweights, "iu", "integral"),
        ("aweights", aweights, "f", "floating point"),
    ):
        if t is not None and t._array.dtype.kind not in kinds and not (kinds == "f" and t.dtype.is_floating_point):
            raise RuntimeError(f"cov(): expected {name} to have {word} dtype but got {name} with {type_word(t)} dtype")
        _check_weights(name, t)
    w = _observation_weights(x, fweights, aweights)
    if w is None:
        total = count = x._array.shape[1]
        centred = x - xp.mean(_floating(x), axis=1, keepdims=True)
        right = centred
    else:
        total = xp.sum(w)
        if not w._array.size:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        centred = x - xp.sum(x * w, axis=1, keepdims=True) / total
        right = centred * w
        count = total
    if w is not None and aweights is not None and correction:
        freedom = total - correction * xp.sum(w * aweights) / total
    else:
        freedom = count - correction
    freedom = xp.maximum(freedom, 0) if isinstance(freedom, Tensor) else max(freedom, 0)
    product = xp.matmul(right, xp.conj(xp.matrix_transpose(centred)))
    result = xp.divide(product, freedom)
    return PUBLIC["squeeze"](result)


@public(out=False)
def corrcoef(input):
    """The matrix of correlation coefficients of variables in rows."""
    _observations(input, "corrcoef")
    c = cov(input)
    if c._array.ndim == 0:
        return c / c
    deviation = xp.sqrt(xp.real(PUBLIC["diagonal"](c)))
    c = c / xp.reshape(deviation, shape=(-1, 1)) / xp.reshape(deviation, shape=(1, -1))
    clamp = PUBLIC["clamp"]
    if c._array.dtype.kind == "c":
        return PUBLIC["complex"](clamp(xp.real(c), -1, 1), clamp(xp.imag(c), -1, 1))
    return clamp(c, -1, 1)


def _check_weights(name, t) -> None:
    if t is None:
        return
    if t._array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {t._array.ndim} dimensions"
        )
    if t._array.__class__ is np.ndarray and (t._array < 0).any():  # values on other devices are not looked at
        raise RuntimeError(f"cov(): {name} cannot be negative")


def _observations(input, name):
    if tensor_argument(input, name)._array.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input._array.ndim} "
            "dimensions"
        )
    return xp.reshape(input, shape=(1, input._array.size)) if input._array.ndim < 2 else input


def _observation_weights(x, fweights, aweights):
    for name, t in (("fweights", fweights), ("aweights", aweights)):
        if t is not None and t._array.size != x._array.shape[1]:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{t._array.size} != {x._array.shape[1]}"
            )
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


def _floating(x):
    return x if x._array.dtype.kind in "fcV" else xp.astype(x, dtype=dtypes.get_default_dtype().numpy)


# -- histograms ------------------------------------------------------------------------------------------------------


@op
def _count_in_bins(xp, x, weights, *, length):
    """How often each of ``0 … length - 1`` occurs in ``x`` (or the sum of its weights); others are not counted."""
    inside = xp.logical_and(x >= 0, x < length)
    ones = xp.ones(x.shape, dtype=np.float64) if weights is None else weights
    return xp.bincount(xp.where(inside, x, 0), xp.where(inside, ones, 0), length=length)


@public
def bincount(input, weights=None, minlength=0):
    """How often each whole number occurs, or the sum of ``weights`` at its places."""
    if tensor_argument(input, "bincount")._array.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{type_word(input)}'")
    if input._array.ndim != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._array.shape != input._array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is not None and weights._array.dtype.kind == "c":
        weights = xp.astype(weights.real, dtype=np.dtype(np.float64))
    lowest, length = 0, 0
    if input._array.size:
        low, high = PUBLIC["aminmax"](input)
        lowest, length = int(low.item()), int(high.item()) + 1
    if lowest < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    counts = xp.count_in_bins(xp.astype(input, dtype=np.dtype(np.int64)), weights, length=max(length, minlength))
    if weights is None or not input._array.size:
        return xp.astype(counts, dtype=np.dtype(np.int64))
    return xp.astype(counts, dtype=np.dtype(np.float32 if weights.dtype is dtypes.float32 else np.float64))


@public
def histc(input, bins=100, min=0, max=0):
    """How many elements fall into each of ``bins`` equal parts of the range from ``min`` to ``max`` (0, 0: all)."""
    if tensor_argument(input, "histc")._array.dtype.kind in "biuc":
        fill_value(float(min), input.dtype)
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_word(input)}'")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    x = xp.reshape(input.detach(), shape=(input._array.size,))
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    low, high = _range(x, (min, max) if min != max else None, (min, max), 1)
    _check_finite("torch.histc: range of", low, high)
    place = xp.astype(xp.floor((x - low) * bins / (high - low)), dtype=np.dtype(np.int64))
    place = xp.where(xp.equal(x, high), bins - 1, xp.where(x > high, bins, place))
    counts = xp.count_in_bins(place, None, length=int(bins))
    return xp.astype(counts, dtype=input._array.dtype)


@public
def histogram(input, bins, *, range=None, weight=None, density=False):
    """``(hist, bin_edges)``: the count (or weight, or density) of elements between the edges."""
    refuse("histogramdd", _not_counted, tensor_argument(input, "histogram"))
    x = xp.reshape(input.detach(), shape=(input._array.size, 1))
    edges = [bins.clone()] if isinstance(bins, Tensor) else _even_edges(x, [bins], range)
    hist = _histogram(x, x, edges, None if weight is None else weight.reshape(-1), density)
    return returns.histogram((hist, edges[0]))


@public(method=False, out=False)
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """``(hist, bin_edges)`` of points in space, whose coordinates are the last dimension."""
    shape = tensor_argument(input, "histogramdd")._array.shape
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    refuse("histogramdd", _not_counted, input)
    size = shape[-1]
    bins = [bins] * size if isinstance(bins, int) else list(bins)
    if len(bins) != size:
        raise RuntimeError(
            f"histogramdd(): Expected {size} sequences of bin edges for a {size}-dimensional histogram "
            f"but got {len(bins)}"
        )
    x = xp.reshape(input.detach(), shape=(math.prod(shape[:-1]), size))
    edges = bins if bins and isinstance(bins[0], Tensor) else _even_edges(x, bins, range)
    return returns.histogramdd((_histogram(input, x, edges, weight, density), tuple(edges)))


def _check_histogram_weight(input, x, weight) -> None:
    """``input`` has points along its last dimension; each has one weight of its dtype."""
    if weight.dtype is not x.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({c_name(x.dtype)}), and weight({c_name(weight.dtype)})"
        )
    if weight._array.shape != input._array.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )


def _not_counted(d):
    return not d.is_floating_point or d.itemsize < 4


def _even_edges(x, bins, limits):
    """For each column of ``x``, edges that cut its range (or the given limits) into equal bins."""
    edges = []
    for i, n in enumerate(as_ints(bins, "bins")):
        if n < 1:
            raise RuntimeError(f"torch.histogramdd(): bins must be > 0, but got {n} for dimension {i}")
        given = None if limits is None else limits[2 * i : 2 * i + 2]
        low, high = _range(xp.select_part(x, axis=1, index=i), given, (0.0, 1.0), 0.5)
        _check_finite(f"torch.histogramdd: dimension {i}'s range", low, high)
        place = PUBLIC["arange"](n + 1, dtype=x.dtype, device=x.device)
        step = (high - low) / n
        # From both ends, so that both are met exactly.
        edges.append(xp.where(place < (n + 1) / 2, low + place * step, high - (n - place) * step))
    return edges


def _range(x, limits, default, margin):
    """(low, high): as given, or those of the data, with a margin where that is nothing."""
    if limits is None and x._array.size:
        low, high = PUBLIC["aminmax"](x)
        flat = xp.equal(low, high)
        return xp.where(flat, low - margin, low), xp.where(flat, high + margin, high)
    low, high = limits or default
    return (low - margin, high + margin) if low == high else (low, high)


def _check_finite(what: str, low, high) -> None:
    """Refuse a range that is not finite, where its values are known."""
    ends = [end._array if isinstance(end, Tensor) else end for end in (low, high)]
    if any(namespace_of(end).is_traced(end) for end in ends if not isinstance(end, (int, float))):
        return
    first, last = (float(end) for end in ends)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"{what} [{first:g}, {last:g}] is not finite")


def _histogram(input, x, edges, weight, density):
    for i, edge in enumerate(edges):
        if edge.dtype is not x.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{c_name(x.dtype)} and bins for dimension {i} with dtype {c_name(edge.dtype)}"
            )
    if weight is not None:
        _check_histogram_weight(input, x, weight)
    size = [e._array.shape[0] - 1 for e in edges]
    place, inside = 0, None
    for i, (edge, n) in enumerate(zip(edges, size)):
        column = xp.select_part(x, axis=1, index=i)
        first, last = (xp.select_part(edge, axis=0, index=j) for j in (0, n))
        here = xp.logical_and(column >= first, column <= last)
        found = xp.searchsorted(edge, column, side="right") - 1
        found = xp.where(xp.equal(column, last), n - 1, found)  # the last bin has both its edges
        inside = here if inside is None else xp.logical_and(inside, here)
        place = place * n + found
    place = xp.where(inside, place, -1)
    length = int(np.prod(size))
    flat = None if weight is None else xp.reshape(weight, shape=(x._array.shape[0],))
    hist = xp.astype(xp.count_in_bins(place, flat, length=length), dtype=x._array.dtype)
    hist = xp.reshape(hist, shape=tuple(size))
    if density:
        hist = hist / xp.sum(hist)
        for i, edge in enumerate(edges):
            widths = PUBLIC["diff"](edge)
            hist = hist / xp.reshape(widths, shape=[-1 if j == i else 1 for j in range(len(size))])
    return hist
