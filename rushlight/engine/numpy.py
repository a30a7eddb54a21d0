"""The NumPy engine: NumPy's own functions, and the names it lacks or spells differently.

A name that NumPy and JAX share with one meaning needs no entry here or in ``xla``: it is found in NumPy.
"""

from __future__ import annotations

import sys

import numpy as np

from .fallback import lookup

BODIES: dict = {}  # op name -> a faster forward
BACKWARD: dict = {}  # op name -> a faster backward: f(g, edges, saved by name) -> gradients


def astype(x, dtype):
    return np.asarray(x).astype(dtype, copy=False)


def reshape(x, shape):
    return np.reshape(x, shape)


def conj(x):
    return x.conj() if hasattr(x, "dtype") and x.dtype.kind == "c" else x


def alias(x):
    return x.view()


def sum(x, axis=None, keepdims=False):
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def max(x, axis=None, keepdims=False):
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims)


def mean(x, axis=None, keepdims=False):
    return np.mean(x, axis=axis, keepdims=keepdims)


def matrix_transpose(x):
    return x.mT


def matmul(x, w):
    if w.ndim == 2:
        if x.ndim == 2:
            return x.dot(w)  # half the overhead of np.matmul
        if x.ndim > 2:  # one product, where np.matmul would loop over the batch
            return x.reshape(-1, x.shape[-1]).dot(w).reshape(*x.shape[:-1], w.shape[1])
    return np.matmul(x, w)


def matvec(x, w):
    return np.matmul(x, w)


def _linear(xp, x, w, b):
    if x.ndim == 2:
        y = x.dot(w.T)
        if b is not None:
            y += b
        return y
    y = x.reshape(-1, x.shape[-1]).dot(w.T)
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], w.shape[0])


def _linear_backward(g, edges, saved):
    to_x, to_w, to_b = edges
    rows = g if g.ndim == 2 else g.reshape(-1, g.shape[-1])
    gx = gw = None
    if to_x is not None:
        w = saved["w"]
        gx = rows.dot(conj(w))
        if g.ndim != 2:
            gx = gx.reshape(*g.shape[:-1], w.shape[1])
    if to_w is not None:
        x = saved["x"]
        gw = rows.T.dot(conj(x if x.ndim == 2 else x.reshape(-1, x.shape[-1])))
    return gx, gw, None if to_b is None else np.add.reduce(rows, axis=0)


BODIES["linear"], BACKWARD["linear"] = _linear, _linear_backward


def real(x):
    return np.real(x)


def getitem(x, index):
    return x[index]


def index_put(x, value, index):
    """``x`` with ``x[index] = value`` done to a copy."""
    out = np.array(x)
    out[index] = value
    return out


def index_add(x, value, index):
    """``x`` with ``value`` added at ``index``, repeated positions adding up."""
    out = np.array(x)
    if _is_basic(index):
        out[index] += value
    else:
        np.add.at(out, index, value)
    return out


def _is_basic(index) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(isinstance(p, (int, slice)) or p is None or p is Ellipsis for p in parts)


def sigmoid(x):
    # tanh form: no overflow for either sign, and one transcendental.
    return 0.5 * (np.tanh(0.5 * x) + 1.0) if x.dtype.kind == "f" else 1.0 / (1.0 + np.exp(-x))


def __getattr__(name):
    function = globals()[name] = lookup(np, name, sys.modules[__name__])  # found once, then an ordinary global
    return function
