"""The XLA engine: ``jax.numpy``, and the names it lacks or spells differently from NumPy.

Importing this module imports JAX and switches its 64-bit types on, for the whole process: without them JAX would
make int32 where PyTorch has int64.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np

from .devices import device_of, next_key, place_of, to_device, to_numpy  # noqa: F401
from .fallback import lookup

jax.config.update("jax_enable_x64", True)

BODIES: dict = {}  # op name -> a faster forward
BACKWARD: dict = {}  # op name -> a faster backward: f(g, edges, saved by name) -> gradients


def astype(x, dtype):
    return jnp.asarray(x, dtype=dtype)


def reshape(x, shape):
    return jnp.reshape(x, shape)


def conj(x):
    return jnp.conj(x) if hasattr(x, "dtype") and x.dtype.kind == "c" else x


def alias(x):
    return jnp.asarray(x)


def matrix_transpose(x):
    return jnp.swapaxes(x, -1, -2)


def matvec(x, w):
    return jnp.matmul(x, w)


def getitem(x, index):
    return x[index]


def index_put(x, value, index):
    """``x`` with ``x[index] = value`` done to a copy."""
    return jnp.asarray(x).at[index].set(value)


def index_add(x, value, index):
    """``x`` with ``value`` added at ``index``, repeated positions adding up."""
    return jnp.asarray(x).at[index].add(value)


def sigmoid(x):
    return jax.nn.sigmoid(x)


def __getattr__(name):
    function = globals()[name] = lookup(jnp, name, sys.modules[__name__])  # found once, then an ordinary global
    return function
