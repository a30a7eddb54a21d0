"""Layer and batch norm with fewer passes over the array than XLA would make of the rules.

In programs for the CPU by the kernels in C; elsewhere batch norm asks for all sums of a pass at once. None leaves the
work to the op's own forward and rules.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from . import native

_WORTH = 1 << 12  # elements from which on a kernel is called


def normalized(needs, x, w, b, *, view, axes, affine, eps):
    form = _form(view, axes, affine)
    if form is None or not native.serves(x, w, b) or x.size < _WORTH:
        return _batch(x, w, b, axes, affine, eps) if _is_batch(x, view, axes) else None
    name, shape, count, numbers = form
    statistic = native.Place((count, 1), x.dtype)
    w, b = (None if p is None else jnp.ravel(p) for p in (w, b))
    places = native.Place(shape, x.dtype), statistic, statistic, statistic
    y, *statistics = native.call(name, jnp.reshape(x, shape), w, b, *places, *numbers, float(eps))
    kept = [1 if i in axes else n for i, n in enumerate(view)]
    statistics = tuple([t.reshape(kept) for t in statistics])
    return (y.reshape(x.shape), *statistics), statistics


def normalized_backward(g, edges, saved):
    x, w, (mean, scale, _) = saved.get("x"), saved.get("w"), saved["aux"]
    form = _form(saved["view"], saved["axes"], saved["affine"])
    if x is None or form is None or not native.serves(x, w, g[0]) or x.size < _WORTH:
        return _batch_slopes(g, edges, saved) if x is not None and _is_batch(x, saved["view"], saved["axes"]) else None
    name, shape, _, numbers = form
    parameter = native.Place((math.prod(saved["affine"]),), x.dtype)
    arrays = jnp.reshape(g[0], shape), jnp.reshape(x, shape), None if w is None else jnp.ravel(w)
    statistics = [None if t is None else t.reshape(-1, 1) for t in (mean, scale, g[1], g[2])]
    gx, gw, gb = native.call(
        f"{name}_slope", *arrays, *statistics, native.Place(shape, x.dtype), parameter, parameter, *numbers
    )
    return [None if e is None else a for e, a in zip(edges, (gx.reshape(x.shape), gw, gb))]


def _form(view, axes, affine):
    """(the kernel, the shape it wants, how many means there are, its numbers), or None if there is no kernel."""
    if len(affine) == len(axes):
        size = math.prod(view[a] for a in axes)
        rows = math.prod(view[: axes[0]])
        return "layer_norm", (rows, size), rows, (size,)
    if axes[0] == 0:
        shape = (view[0], view[1], math.prod(view[2:]))
        return "batch_norm", shape, view[1], shape
    return None


def _is_batch(x, view, axes) -> bool:
    over_channels = axes[0] == 0 and len(view) > 1 and 1 not in axes  # a layer norm of a whole tensor is not
    return over_channels and tuple(x.shape) == tuple(view) and x.dtype.kind == "f"


def _batch(x, w, b, axes, affine, eps):
    """Mean and variance in one pass: of the distance to the first sample's mean.

    That mean is of a fraction 1/n of the values, so its distance to the mean of all is at most the square root of n
    standard deviations, and of the variance no more digits cancel than n has.
    """
    near = jnp.mean(x[:1], axis=axes, keepdims=True)
    near = jnp.where(jnp.isfinite(near), near, 0)
    away = x - near
    first, second = (jnp.mean(a, axis=axes, keepdims=True) for a in (away, away * away))
    mean = near + first
    # Squares that overflow make the variance infinite, infinite values make it nan.
    variance = jnp.where(second < jnp.inf, jnp.maximum(second - first * first, 0), second + 0 * first)
    scale = 1 / jnp.sqrt(variance + eps)
    y = (x - mean) * (scale if w is None else scale * w.reshape(affine))
    return (y if b is None else y + b.reshape(affine), mean, scale, variance), (mean, scale, variance)


def _batch_slopes(g, edges, saved):
    x, w, (mean, scale, _), axes, affine = (saved[n] for n in ("x", "w", "aux", "axes", "affine"))
    g, to_mean, to_scale, _ = g
    away, count = x - mean, math.prod(x.shape[i] for i in axes)
    total, product, rest = (jnp.sum(a, axis=axes, keepdims=True) for a in (g, g * away, away))  # one pass
    weight = scale if w is None else scale * w.reshape(affine)
    slope = (product - total * rest / count) * scale * scale / count  # ``rest`` is not quite 0
    gx = weight * (g - total / count - away * slope)
    if to_mean is not None:
        gx = gx + (to_mean - to_scale * scale * scale * scale * away) / count
    gw, gb = (None if w is None else (scale * product).reshape(w.shape)), total.reshape(-1)
    return [None if e is None else a for e, a in zip(edges, (gx, gw, gb))]
