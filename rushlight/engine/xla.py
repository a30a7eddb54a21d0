"""The XLA engine: ``jax.numpy``, and the names it lacks or spells differently from NumPy.

Importing this module imports JAX and switches its 64-bit types on, for the whole process: without them JAX would
make int32 where PyTorch has int64.
"""

from __future__ import annotations

import sys

import contextlib

import jax
import jax.numpy as jnp
import numpy as np

from .fallback import lookup

jax.config.update("jax_enable_x64", True)

BODIES: dict = {}  # op name -> a faster forward
BACKWARD: dict = {}  # op name -> a faster backward: f(g, edges, saved by name) -> gradients


def device_of(array):
    """The rushlight device an array lives on; while compiling, the device that is being compiled for."""
    from ..device import device

    if isinstance(array, jax.core.Tracer):
        return tracing_device
    place = next(iter(array.devices()))
    return device({"cpu": "xla", "gpu": "cuda"}.get(place.platform, place.platform), place.id)


tracing_device = None  # set by compile while it traces


# -- devices and randomness ------------------------------------------------------------------------------------------


def place_of(device):
    """The JAX device behind a rushlight device; XLA's CPU for ``cpu`` and ``xla``."""
    platform = {"cpu": "cpu", "xla": "cpu", "cuda": "gpu"}.get(device.type, device.type)
    try:
        return jax.devices(platform)[device.index or 0]
    except (RuntimeError, IndexError):
        raise RuntimeError(f"device '{device}' is not available on this machine: JAX finds {jax.devices()}") from None


def fresh_key():
    """The raw data of a random key for one compiled call."""
    return np.zeros(2, dtype=np.uint32)


def abstract_key():
    return jax.ShapeDtypeStruct((2,), np.uint32)


@contextlib.contextmanager
def random_key(data):
    """While tracing: random ops draw from keys derived from ``data``."""
    yield


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
