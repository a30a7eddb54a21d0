"""Where a tensor's values are while XLA programs own them.

A resident tensor keeps its array (so that shape, dtype and memory stay what they were), but the current values are
in an XLA buffer: one of its own if it is large, a place in a ``Group``'s flat buffer if it is small. ``Resident``
sits in the tensor's ``_view`` slot, so the same test that notices a stale view notices a stale resident, and
``refresh`` brings the values home. All members of a group share one ``Storage``: one count marks them all stale,
however many they are. Whoever writes to a resident tensor ends its residence first (``leave``).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.xla.devices import fetched
from ..tensor import Storage, Tensor

SMALL = 32 * 1024  # bytes; below this a buffer of its own costs more than packing


class Group:
    """Small tensors that travel together: one flat buffer per dtype. ``intact`` until a member leaves."""

    def __init__(self, place):
        self.place = place
        self.storage = Storage()
        self.buffers: dict = {}  # dtype's name -> flat XLA array
        self.intact = True

    def gather(self, members: list[tuple[Tensor, int]]) -> None:
        """Pack the tensors, each from its start in its dtype's buffer on, and take them in."""
        parts: dict = {}
        for t, _ in members:
            parts.setdefault(t._array.dtype.name, []).append(current(t, self.place))
        flat: Any
        for dtype, values in parts.items():
            if self.place.platform == "cpu":
                flat = np.concatenate([np.asarray(v).reshape(-1) for v in values])
            else:
                flat = jnp.concatenate([jnp.reshape(v, -1) for v in values])
            self.buffers[dtype] = jax.device_put(flat, self.place)
        for t, start in members:
            end_residence(t)
            if t._storage is not None:
                t._storage.version += 1  # aliases look again, and find the group
            t._storage = self.storage
            t._view = Resident(self, start=start)
            t._view.seen = self.storage.version

    def replace(self, buffers) -> None:
        """A program has computed all members' new values."""
        self.buffers = buffers
        self.storage.version += 1


class Resident:
    """The current value of one tensor: ``array``, or a part of ``group``'s buffer of its dtype from ``start`` on."""

    __slots__ = ("array", "group", "seen", "start")

    base = node = recorded = None  # what a View has and a resident tensor has not
    path = ()

    def __init__(self, group: Group | None = None, array=None, start: int = 0):
        self.group, self.array, self.start, self.seen = group, array, start, -1

    def value(self, like):
        """The value as an XLA array of its own, shaped like ``like``."""
        if self.group is None:
            return self.array.astype(like.dtype)  # a gradient may be kept in less precision than it has
        flat = self.group.buffers[like.dtype.name]
        return jnp.reshape(flat[self.start : self.start + like.size], like.shape)

    def refresh(self, t: Tensor) -> None:
        """Bring the value home to ``t``: into its own memory on NumPy, as its array on XLA."""
        array = t._array
        if array.__class__ is not np.ndarray:
            t._array = self.value(array)
        elif self.group is None:
            np.copyto(array, fetched(self.array), casting="unsafe")
        else:
            flat = fetched(self.group.buffers[array.dtype.name])
            np.copyto(array, flat[self.start : self.start + array.size].reshape(array.shape))
        self.seen = t._storage.version

    def leave(self, t: Tensor) -> None:
        """``t`` is about to be written, or its memory handed out: from now on its own array is what counts."""
        if self.seen != t._storage.version:
            self.refresh(t)
        t._view = None
        if self.group is not None:
            self.group.intact = False
            if t._array.__class__ is not np.ndarray:
                t._storage.version += 1  # XLA arrays are not shared: aliases must look again
            t._storage = Storage(t._storage.version)


def end_residence(t: Tensor) -> None:
    if t._view.__class__ is Resident:
        t._view.leave(t)


def current(t: Tensor, place):
    """The tensor's value as an XLA array on ``place``, wherever it is now."""
    if t._view.__class__ is Resident:
        return t._view.value(t._array)
    t._sync()
    array = t._array
    # device_put may keep NumPy's memory, which eager code goes on writing to: hand over a copy.
    return jax.device_put(np.array(array) if array.__class__ is np.ndarray else array, place)


def own_buffer(t: Tensor, place):
    """The tensor's value in an XLA buffer of its own, where it now resides."""
    if t._array.__class__ is not np.ndarray:
        t._come_home()
        if isinstance(t._array, jax.Array) and place in t._array.devices():
            return t._array
    view = t._view
    if view.__class__ is Resident and view.group is None and view.array.dtype == t._array.dtype:
        return view.array
    value = current(t, place)
    end_residence(t)
    move(t, value)
    if t._view is not None:
        t._view.seen = t._storage.version
    return value


def move(t: Tensor, value) -> None:
    """``value`` is what ``t`` holds from now on.

    On XLA it becomes the tensor's array, or, if it is of less precision, its array when somebody looks; on NumPy the
    tensor's memory is brought up to date when somebody looks.
    """
    t._counted().version += 1
    array, view = t._array, t._view
    if array.__class__ is not np.ndarray:
        if value.dtype == array.dtype:
            t._array, t._view = value, None
            return
        t._array = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=value.sharding)
    if view.__class__ is Resident and view.group is None:
        view.array = value
    else:
        t._view = Resident(array=value)


def release(t: Tensor) -> None:
    """Let go of an XLA value that is about to be replaced, so that its memory can be used again."""
    view = t._view
    if view.__class__ is Resident and view.group is None:
        view.array = None
    elif isinstance(t._array, jax.Array):
        t._array = jax.ShapeDtypeStruct(t._array.shape, t._array.dtype, sharding=t._array.sharding)
