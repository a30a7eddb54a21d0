"""Matrix products in programs for the CPU: large ones by the kernel in C, others by XLA."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from ...numpy.kernels.products import FEW, WORTH
from . import native

_TURNED = (1, 0)
_LONG = 1 << 12  # products that are added up: XLA adds them one by one, and loses digits


def matmul(x, w):
    if x.ndim >= 2 and w.ndim == 2 and _worth(x, w):
        return _shaped(_product(_rows(x), w), x, w.shape[1])
    if x.ndim > 2 and w.ndim > 2 and _worth(x, w):
        return _batch(x, w)
    return jnp.matmul(x, w)


def linear(xp, x, w, b):
    if x.ndim >= 2 and _worth(x, w.T):
        fused = b is not None and b.shape == w.shape[:1] and b.dtype == x.dtype
        y = _shaped(_product(_rows(x), native.Laid(w.T, _TURNED), b if fused else None), x, w.shape[0])
        return y if b is None or fused else y + b
    y = jnp.matmul(x, w.T)
    return y if b is None else y + b


def linear_backward(g, edges, saved):
    """None, where the rules shall do it."""
    (to_x, to_w, to_b), w, x = edges, saved.get("w"), saved.get("x")
    rows = _rows(g) if g.ndim >= 2 else g
    if w is None and x is None:  # for the bias alone
        return None
    if g.ndim < 2 or not (w is None or _worth(rows, w)) or not (x is None or _worth(rows.T, _rows(x))):
        return None
    gx = None if to_x is None else _shaped(_product(rows, w), g, w.shape[1])
    gw = None if to_w is None else weight_gradient(rows, _rows(x))
    return gx, gw, None if to_b is None else sum_of_rows(rows)


def weight_gradient(g, x):
    """``g.T @ x`` of two matrices."""
    return _product(native.Laid(g.T, _TURNED), x) if _worth(g.T, x) else g.T @ x


def sum_of_rows(g):
    if not native.serves(g):
        return jnp.sum(g, axis=0)
    return native.call("axis_sums", g, native.Place(g.shape[1:], g.dtype), 1, *g.shape)[0]


def _worth(x, w) -> bool:
    """Shapes that do not fit are left to JAX, which says so."""
    if not native.serves(x, w) or x.shape[-1] != w.shape[-2]:  # in this order: sizes may be open otherwise
        return False
    few = min(x.shape[-2], w.shape[-1]) < FEW
    return x.shape[-1] >= _LONG or (x.size * w.shape[-1] > WORTH and not few)


def _product(x, w, bias=None):
    a, b = (m.array if isinstance(m, native.Laid) else m for m in (x, w))
    return native.call("product", x, w, bias, native.Place((a.shape[0], b.shape[1]), a.dtype))[0]


def _batch(x, w):
    batch = np.broadcast_shapes(x.shape[:-2], w.shape[:-2])
    x, w = (jnp.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(1, -1, *a.shape[-2:]) for a in (x, w))
    place = native.Place((1, math.prod(batch), x.shape[-2], w.shape[-1]), x.dtype)
    return native.call("matmul", x, w, None, place)[0].reshape(*batch, *place.shape[-2:])


def _rows(x):
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


def _shaped(y, x, size):
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], size)
