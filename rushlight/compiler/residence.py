"""Where a tensor's values are while XLA programs own them.

A resident tensor keeps its array (so that shape, dtype and memory stay what they were), but the current values are
with a program, in a ``Group``: small tensors in one flat buffer per dtype, large ones in a buffer of their own.
``Resident`` sits in the tensor's ``_view`` slot, so the same test that notices a stale view notices a stale resident,
and ``refresh`` brings the values home. All members of a group that is written share one ``Storage``: one count marks
them all stale, however many they are. Whoever writes to a resident tensor ends its residence first (``leave``).
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine import SPREAD, computed
from ..engine.xla.devices import fetched
from ..storage import is_lent
from ..tensor import Storage, Tensor
from .commit import RUNNING, Run

SMALL = 32 * 1024  # bytes; below this a buffer of its own costs more than packing


class Group:
    """Tensors whose values are with one program. ``intact`` until a member leaves.

    Of a group that is ``written`` the program takes the buffers and gives new ones back. ``begin`` makes every member
    look here before that; ``held`` finishes what was interrupted.
    """

    def __init__(self, place, written: bool):
        self.place, self.intact, self.shown = place, True, False
        self.storage: Any = Storage() if written else None
        self._buffers: dict = {}  # dtype's name -> flat XLA array
        self._arrays: list = []
        self._run: Run | None = None
        self._lent: list = []  # (tensor, place) of members on XLA that have one of ``_arrays`` as their own

    def gather(self, small: list[tuple[Tensor, int]], large: list[Tensor]) -> None:
        """Take the tensors in: small ones packed, each from its start in its dtype's buffer on."""
        parts: dict = {}
        for t, _ in small:
            parts.setdefault(t._array.dtype.name, []).append(current(t, self.place))
        flat: Any
        for dtype, values in parts.items():
            if getattr(self.place, "platform", "cpu") == "cpu":
                flat = np.concatenate([np.asarray(_first(v)).reshape(-1) for v in values])
            else:
                flat = jnp.concatenate([jnp.reshape(v, -1) for v in values])
            self._buffers[dtype] = _put(flat, self.place)
        self._arrays = [_own(t, self.place) for t in large]
        for t, start in small:
            self._admit(t, Resident(self, start=start))
        for i, t in enumerate(large):
            self._admit(t, Resident(self, index=i))
            if t._array.__class__ is not np.ndarray:
                self._lent.append((t, i))  # until now it had the array as its own, and others may have read it there

    def _admit(self, t: Tensor, resident: Resident) -> None:
        end_residence(t)
        storage, array = t._counted(), t._array
        if self.storage is not None:
            storage.version += 1  # aliases look again, and find the group
            storage = self.storage
        resident.seen = storage.version
        if resident.index is not None and array.__class__ is not np.ndarray:
            array = _described(array)
            resident.seen = -1
        # In this order: whoever looks in between finds the group, which has the value.
        t._view, t._storage, t._array = resident, storage, array

    def held(self):
        """(flat buffers, arrays) as they are now: if a call is under way or was interrupted, as it left them."""
        with RUNNING:
            if self._run is not None:
                self._run.finish()
            return self._buffers, self._arrays

    def lend(self) -> list:
        """``held`` as one list, to be given away: an array that somebody else has too is copied first."""
        if self._run is not None:
            self._run.finish()
        arrays = self._arrays
        for t, i in self._lent:
            view = t._view
            if view.__class__ is Resident and view.group is self:
                described = _described(t._array)
                view.seen, t._array = -1, described
                if t._view is not view and t._array is described:  # a signal handler took it out in between
                    t._array = _of(arrays[i], described)
            if sys.getrefcount(arrays[i]) > 2:  # the list's and getrefcount's own
                arrays[i] = jnp.copy(arrays[i])
        self._lent = []
        return [*self._buffers.values(), *arrays]

    def begin(self, run: Run) -> None:
        """What the group holds is about to be given away: members must look here, and ``run`` knows the rest."""
        if self.is_lost:
            self.held()  # says so
        self._run = run
        self.storage.version += 1

    def awaits(self, run: Run) -> bool:
        """Is ``run`` still to be executed on what the group holds, all of it?"""
        return self._run is run and self.intact

    def changed(self) -> None:
        """Something is taken out of the group: a program that is not running yet must not run on what it was."""
        if self._run is not None:
            self._run.finish()
            if self._run is not None and self._run.cancel():
                self._run = None

    def replace(self, buffers, arrays) -> None:
        """A program has computed all members' new values."""
        self._buffers, self._arrays = buffers, arrays
        self.storage.version += 1

    def end(self) -> None:
        self._run = None

    def failed(self, loss: Exception) -> None:
        """The program was not executed, or failed: if it has what it was given, ``loss`` is for whoever asks for it."""
        if self.is_lost:  # that was before, and is why this one has failed
            return
        if any(array.is_deleted() for array in (*self._buffers.values(), *self._arrays)):
            self._run.lost = loss  # type: ignore[union-attr]
        else:
            self.end()

    @property
    def is_lost(self) -> bool:
        return self._run is not None and self._run.lost is not None and not self._run.outputs

    def dissolve(self, members: list[Tensor]) -> None:
        """The program is gone: large ``members`` that live on keep their own array, not everybody's."""
        if self.is_lost:
            return
        with RUNNING:
            _, arrays = self.held()
            for t in members:
                resident = t._view
                if resident.__class__ is Resident and resident.group is self:
                    if t._array.__class__ is not np.ndarray:
                        resident.leave(t)
                    else:
                        t._view = Resident(array=arrays[resident.index])
                        t._view.seen = resident.seen
            self._arrays, self.intact = [], False

    @property
    def running(self) -> bool:
        return self._run is not None

    def lent(self, t: Tensor, index: int) -> None:
        self.changed()  # the array is to be copied before it is given away
        self._lent.append((t, index))


class Resident:
    """The current value of one tensor: ``array``, or what ``group`` holds for it.

    That is a part of its dtype's buffer from ``start`` on, or the array at ``index``.
    """

    __slots__ = ("array", "group", "index", "seen", "start")

    base = node = recorded = None  # what a View has and a resident tensor has not
    path = ()

    def __init__(self, group: Group | None = None, *, array=None, start: int = 0, index: int | None = None):
        self.group, self.array, self.start, self.index, self.seen = group, array, start, index, -1

    def shown(self) -> None:
        """A gradient that is asked for may be kept: the next one is to be another tensor."""
        if self.group is not None:
            self.group.shown = True

    def value(self, like):
        """The value as an XLA array of its own, shaped like ``like``."""
        if self.group is None:
            return _widened(_mine(self.array, like), like.dtype)
        with RUNNING:  # or another thread gives the buffer away between finding and reading it
            buffers, arrays = self.group.held()
            if self.index is not None:
                return _widened(_mine(arrays[self.index], like), like.dtype)
            flat = _first(buffers[like.dtype.name])
            return jnp.reshape(flat[self.start : self.start + like.size], like.shape)

    def refresh(self, t: Tensor) -> None:
        """Bring the value home to ``t``: into its own memory on NumPy, as its array on XLA."""
        with RUNNING:
            if t._view is self:
                self._refresh(t)
            else:  # while this thread waited, another program took the tensor, or somebody brought it home
                t._sync()

    def _refresh(self, t: Tensor) -> None:
        array, group, index = t._array, self.group, self.index
        if array.__class__ is not np.ndarray:
            value = self.value(array)
            t._array = array.holding(value) if array.__class__ is SPREAD.array else value
            if group is not None and index is not None:
                group.lent(t, index)
        elif group is None or index is not None:
            held = self.array if group is None else group.held()[1][index]
            np.copyto(array, fetched(_mine(held, array)), casting="unsafe")
        else:
            flat = fetched(_first(group.held()[0][array.dtype.name]))
            np.copyto(array, flat[self.start : self.start + array.size].reshape(array.shape))
        # What is read in the midst of a call (by a signal handler) is to be read again after it.
        self.seen = -1 if group is not None and group.running else t._storage.version

    def leave(self, t: Tensor) -> None:
        """``t`` is about to be written, or its memory handed out: from now on its own array is what counts."""
        with RUNNING:
            if t._view is self:
                self._leave(t)
            else:
                t._come_home()

    def _leave(self, t: Tensor) -> None:
        group = self.group
        if group is not None:
            group.changed()
        if self.seen != t._storage.version:
            self._refresh(t)
        if group is not None:
            group.intact = False
        t._view = None
        if group is not None and group.storage is t._storage:
            if t._array.__class__ is not np.ndarray:
                t._storage.version += 1  # XLA arrays are not shared: aliases must look again
            t._storage = Storage(t._storage.version)


def _described(array):
    """Stands where an array was that is given away."""
    if array.__class__ is SPREAD.array:
        return array.holding(_described(array.physical))
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)


def _mine(array, like):
    """Of what a program holds for a tensor with the array ``like``, what this process has: of a DTensor, all of it."""
    if like.__class__ is SPREAD.array:
        return array
    found = _first(array)
    return found if found.shape == like.shape else found.reshape(like.shape)


def _first(array):
    """An ordinary array, which a program over a mesh has on all devices of this process."""
    return array if len(array.sharding.device_set) == 1 else array.addressable_data(0)


def _of(array, like):
    """What a program held as the array of a tensor that had ``like``."""
    return like.holding(array) if like.__class__ is SPREAD.array else _mine(array, like)


def _widened(array, dtype):
    """A gradient may be kept in less precision than it has."""
    return array if array.dtype == dtype else array.astype(dtype)


def end_residence(t: Tensor) -> None:
    if t._view.__class__ is Resident:
        t._view.leave(t)


def current(t: Tensor, place):
    """The tensor's value as an XLA array on ``place``, wherever it is now."""
    if t._view.__class__ is Resident:
        return t._view.value(t._array)
    t._sync()
    array = t._array = computed(t._array)
    if array.__class__ is SPREAD.array:
        return array.physical
    # device_put may keep NumPy's memory, which eager code goes on writing to: hand over a copy.
    return _put(np.array(array) if array.__class__ is np.ndarray else array, place)


def _own(t: Tensor, place):
    """The tensor's value in an XLA array that will be given away; ``lend`` looks whether others have it too."""
    if t._array.__class__ is np.ndarray:
        value = current(t, place)
        # A value that was with another program is that program's too, until the tensor leaves it.
        if t._view.__class__ is not Resident:
            return value
        return jnp.copy(value) if lies_at(value, place) else _put(np.array(value), place)
    t._come_home()
    t._array = computed(t._array)
    return t._array.physical if t._array.__class__ is SPREAD.array else _put(t._array, place)


def own_buffer(t: Tensor, place):
    """The tensor's value in an XLA buffer of its own, where it now resides; only to be read."""
    if t._array.__class__ is not np.ndarray:
        t._come_home()
        t._array = computed(t._array)
        if t._array.__class__ is SPREAD.array:
            return t._array.physical
        if isinstance(t._array, jax.Array) and place in t._array.devices():
            return t._array
    view = t._view
    kept = view.array if view.__class__ is Resident and view.group is None else None
    if kept is not None and kept.dtype == t._array.dtype and lies_at(kept, place):
        return kept
    value = current(t, place)
    if not lies_at(value, place):
        value = _put(value, place)
    end_residence(t)
    if t._array.__class__ is not np.ndarray:
        if isinstance(place, (jax.Device, jax.sharding.Sharding)):
            t._array = value
        return value
    if is_lent(t):  # it is looked at again at every call
        return value
    t._counted()
    t._view = Resident(array=value)
    t._view.seen = t._storage.version
    return value


def _put(array, place):
    """An array where programs of ``place``, a device or a sharding, take it."""
    if isinstance(place, jax.Device):
        return jax.device_put(array, place)
    if not isinstance(place, jax.sharding.Sharding):
        return place.put(array)
    from ..engine.spread.array import spread_out

    return spread_out(np.asarray(array), place)


def lies_at(array, place) -> bool:
    """Is it where programs of ``place``, a device or a sharding, take it?"""
    if SPREAD.array is None:  # there are no meshes
        return True
    if isinstance(place, jax.Device):
        return array.devices() == {place}
    return array.sharding == getattr(place, "sharding", place)


def move(t: Tensor, value) -> None:
    """``value`` is what ``t``, a new tensor, holds: on NumPy its memory is brought up to date when somebody looks."""
    t._counted().version += 1
    t._view = Resident(array=value)
