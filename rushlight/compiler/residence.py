"""Where a tensor's values are while XLA programs own them.

A resident tensor keeps its array (so that shape, dtype and memory stay what they were), but the current values are
in an XLA buffer: one of its own if it is large, a place in a flat ``Pack`` if it is small. ``Resident`` sits in the
tensor's ``_view`` slot, so the same test that notices a stale view notices a stale resident, and brings it home.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..tensor import Storage, Tensor

SMALL = 32 * 1024  # bytes; below this a buffer of its own costs more than packing


class Pack:
    """One flat buffer that holds many small tensors of one dtype between calls."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


class Resident:
    """The current value of one tensor: ``array``, or ``size`` elements of ``pack`` from ``start`` on."""

    __slots__ = ("seen", "version", "array", "pack", "start", "host")

    base = node = None  # what a View has and a resident tensor has not
    path = ()
    recorded = None

    def __init__(self):
        self.seen = self.version = -1
        self.array = self.pack = self.host = None
        self.start = 0

    def value(self, shape):
        """The value as an XLA array of its own."""
        if self.pack is None:
            return self.array
        size = int(np.prod(shape))
        return jnp.reshape(self.pack.array[self.start : self.start + size], shape)

    def refresh(self, t: Tensor) -> None:
        """Bring the value home to ``t``: into its own memory on NumPy, as its array on XLA."""
        if t._array.__class__ is not np.ndarray:
            t._array = self.value(t._array.shape)
        elif self.pack is None:
            np.copyto(t._array, np.asarray(self.array))
        else:
            flat = np.asarray(self.pack.array)
            np.copyto(t._array, flat[self.start : self.start + t._array.size].reshape(t._array.shape))
        self.seen = t._storage.version


def resident(t: Tensor) -> Resident | None:
    """The tensor's residence if what it holds is current: nothing was written to the tensor since."""
    view = t._view
    if view.__class__ is Resident and view.version == t._storage.version:
        return view
    return None


def settle(t: Tensor) -> Resident:
    """Give ``t`` a residence, empty for now."""
    if t._storage is None:
        t._storage = Storage()
    if t._view.__class__ is not Resident:
        t._view = Resident()
    return t._view


def current(t: Tensor, place):
    """The tensor's value as an XLA array on ``place``, wherever it is now."""
    view = resident(t)
    if view is not None:
        return view.value(t._array.shape)
    t._sync()
    array = t._array
    # device_put may keep NumPy's memory, which eager code goes on writing to: hand over a copy.
    return jax.device_put(np.array(array) if array.__class__ is np.ndarray else array, place)
