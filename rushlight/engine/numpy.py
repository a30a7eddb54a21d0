"""The NumPy engine: NumPy's own functions, and the names it lacks or spells differently.

A name that NumPy and JAX share with one meaning needs no entry here or in ``xla``: it is found in NumPy.
"""

from __future__ import annotations

import numpy as np

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
    return np.swapaxes(x, -1, -2)


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
    if name.startswith("__"):
        raise AttributeError(name)
    function = globals()[name] = getattr(np, name)  # found once, then an ordinary global
    return function
