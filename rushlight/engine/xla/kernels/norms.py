"""Layer and batch norm in programs for the CPU: by the kernels in C, where XLA would pass over the array many times.

None leaves the work to the op's own forward and rules.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from . import native

_WORTH = 1 << 12  # elements from which on a kernel is called


def normalized(needs, x, w, b, *, view, axes, affine, eps):
    form = _form(view, axes, affine)
    if form is None or not native.serves(x, w, b) or x.size < _WORTH:
        return None
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
        return None
    name, shape, _, numbers = form
    parameter = native.Place((math.prod(saved["affine"]),), x.dtype)
    arrays = jnp.reshape(g[0], shape), jnp.reshape(x, shape), None if w is None else jnp.ravel(w)
    statistics = mean.reshape(-1, 1), scale.reshape(-1, 1)
    gx, gw, gb = native.call(
        f"{name}_slope", *arrays, *statistics, native.Place(shape, x.dtype), parameter, parameter, *numbers
    )
    away = (x.reshape(saved["view"]) - mean) * (g[2] * scale * scale * scale)
    gx = gx.reshape(x.shape) + ((g[1] - away) / math.prod(saved["view"][i] for i in saved["axes"])).reshape(x.shape)
    return [None if e is None else a for e, a in zip(edges, (gx, gw, gb))]


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
