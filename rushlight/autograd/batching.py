"""What ``vmap`` is to operators, gradients and random numbers: a level, entered and left.

Inside, tensors that are mapped over hold ``Batched`` arrays (``engine/batched``), so an operator runs once for all
examples. A ``Vmap`` is an interceptor. It lifts arguments that come from outside: as they are, if nothing is recorded;
else through a node that adds up the examples' gradients, for outside there is but one of it.
"""

from __future__ import annotations

import itertools
import math
import weakref

from ..config import epoch
from ..engine import batched_engine, namespace_of
from ..tensor import Tensor, wrap
from . import mode, tangents
from .mode import state
from .tape import Node

_depths = itertools.count(1)
LEVELS: weakref.WeakValueDictionary[int, Vmap] = weakref.WeakValueDictionary()  # by depth


class Vmap(mode.Mapping):
    """One ``vmap``: how many examples there are, and what random numbers may do."""

    def __init__(self, size: int, randomness: str):
        self.size, self.randomness = size, randomness
        self.depth = next(_depths)  # where two levels meet in one array, the younger lies on top
        self._captured: dict = {}
        LEVELS[self.depth] = self

    def __call__(self, call, args, static):
        if any(isinstance(a, Tensor) and self.concerns(a) for a in args):
            args = [self.lift(a) if isinstance(a, Tensor) else a for a in args]
        return call(*args, **static)

    def fresh(self, t: Tensor) -> Tensor:
        return t if self.holds(t._array) else wrap(self._lifted(t._array))

    def close(self) -> None:
        """The block has ended: what came from outside is not asked for again. Nodes still refer to the level."""
        self._captured.clear()

    def concerns(self, t: Tensor) -> bool:
        """Is it of this level, or does the graph lead out of it?"""
        return (t._node is not None and state.grad) or self.holds(t._array)

    def holds(self, array) -> bool:
        kind = batched_engine().Batched
        while array.__class__ is kind:
            if array.level is self:
                return True
            array = array.inner
        return False

    def lift(self, t: Tensor) -> Tensor:
        """``t`` as a tensor of this level."""
        if epoch.readers:
            epoch.tell(t)  # what comes from outside hides behind what is made of it here
        t._sync()
        if self.holds(t._array):
            return t
        if t._node is None or not state.grad:
            return tangents.moved(t, wrap(self._lifted(t._array)), self.lift)
        known = self._captured.get(id(t))
        if known is not None and known[0] is t and known[1] is t._node and known[2] is t._array:
            return known[3]
        made = _recorded(t, self._lifted(t._array), Captured, self)
        tangents.moved(t, made, self.lift)
        self._captured[id(t)] = t, t._node, t._array, made
        return made

    # -- the way in and out --------------------------------------------------------------------------------------------

    def enter(self, t: Tensor, dim: int) -> Tensor:
        """``t`` as each example sees it: without dimension ``dim``."""
        if t.is_nested:
            raise RuntimeError("vmap: a nested tensor cannot be mapped over; map over unbind(), or over values()")
        if epoch.readers:
            epoch.tell(t)
        t._sync()
        made = _recorded(t, self._split(t._array, dim), Entered, self, dim)
        return tangents.moved(t, made, lambda tangent: self.enter(tangent, dim))

    def leave(self, t: Tensor, dim: int) -> Tensor:
        """All examples' ``t`` in one tensor, along a new dimension ``dim``."""
        t._sync()
        made = _recorded(t, self._joined(t._array, dim), Left, self, dim)
        return tangents.moved(t, made, lambda tangent: self.leave(tangent, dim))

    def collapse(self, t: Tensor) -> Tensor:
        """The sum over the examples."""
        return _recorded(t, self._summed(t._array), Collapsed, self)

    def outside(self, function, *args):
        """``function(*args)`` as if this level were not on."""
        before = state.interceptors, state.transforms
        state.interceptors, state.transforms = (tuple([one for one in stack if one is not self]) for stack in before)
        try:
            return function(*args)
        finally:
            state.interceptors, state.transforms = before

    def inside(self, value, dim: int | None):
        """A result made outside, of this level if it has the examples along a dimension; nothing is recorded."""
        return value if dim is None or not isinstance(value, Tensor) else wrap(self._split(value._array, dim))

    # On arrays. Where an inner level lies on top, this one is found below it: ``_under``.

    def _lifted(self, array):
        under = self._under(array, self._lifted)
        return under if under is not None else batched_engine().Batched(array, self, False)

    def _split(self, array, dim: int):
        dim %= array.ndim
        under = self._under(array, self._split, dim)
        if under is not None:
            return under
        if not dim:
            return batched_engine().Batched(array, self)
        made = batched_engine().Batched(namespace_of(array).moveaxis(array, dim, 0), self)
        made.shown = dim
        return made

    def _joined(self, array, dim: int):
        under = self._under(array, self._joined, dim)
        if under is not None:
            return under
        mapped, below = self._below(array)
        xp = namespace_of(below)
        if not mapped:
            below = xp.copy(xp.broadcast_to(xp.expand_dims(below, 0), (self.size, *below.shape)))
        return xp.moveaxis(below, 0, dim) if dim else below

    def _summed(self, array):
        under = self._under(array, self._summed)
        if under is not None:
            return under
        mapped, below = self._below(array)
        return namespace_of(below).sum(below, axis=0) if mapped else below * self.size

    def _under(self, array, function, dim: int | None = None):
        """``function`` of what lies under a level inside this one; None if there is none on top."""
        if array.__class__ is not batched_engine().Batched or array.level.depth <= self.depth:
            return None
        dims = () if dim is None else (dim + array.mapped,)
        return batched_engine().Batched(function(array.inner, *dims), array.level, array.mapped)

    def _below(self, array):
        """(does it differ between examples, the array without this level)."""
        if array.__class__ is not batched_engine().Batched or array.level is not self:
            return False, array
        return array.mapped, array.inner


def _recorded(t: Tensor, array, kind, *rest) -> Tensor:
    made = wrap(array)
    if t._node is not None and state.grad:
        made._node = kind(t, array, *rest)
    return made


class _Crossing(Node):
    """A node on the border of a level."""

    __slots__ = ("dim", "level")

    def __init__(self, t: Tensor, array, level: Vmap, dim: int = 0):
        super().__init__((t._node,), tuple(array.shape), array.dtype, namespace_of(array))
        self.level, self.dim = level, dim


class Captured(_Crossing):
    """A tensor from outside, used inside: the examples' gradients add up."""

    __slots__ = ()

    def apply(self, xp, g, graph, keep):
        return (self.level.collapse(g) if graph else self.level._summed(g),)


class Collapsed(_Crossing):
    """A sum over examples: each gets its gradient."""

    __slots__ = ()

    def apply(self, xp, g, graph, keep):
        return (self.level.lift(g) if graph else self.level._lifted(g),)


class Entered(_Crossing):
    """A tensor mapped over: the examples' gradients lie side by side."""

    __slots__ = ()

    def apply(self, xp, g, graph, keep):
        return (self.level.leave(g, self.dim) if graph else self.level._joined(g, self.dim),)


class Left(_Crossing):
    """Results side by side: each example gets its part of the gradient."""

    __slots__ = ()

    def apply(self, xp, g, graph, keep):
        return (self.level.enter(g, self.dim) if graph else self.level._split(g, self.dim),)


def beside(t: Tensor, array):
    """``array`` as one of the levels that ``t`` is of: what differs between examples may be written into it."""
    for level in mode.maps():
        if level.holds(t._array):
            array = level._lifted(array)
    return array


def unit_vectors(tensors) -> list:
    """For each tensor all unit vectors of all of them, side by side: zeros where it is another's turn."""
    counts = [math.prod(t.shape) for t in tensors]
    total, start, made = sum(counts), 0, []
    for t, count in zip(tensors, counts):
        xp = namespace_of(t._array)
        unit = xp.eye(total, count, k=-start, dtype=t._array.dtype)
        made.append(wrap(xp.reshape(unit, (total, *t._array.shape))))
        start += count
    return made


# -- random numbers ----------------------------------------------------------------------------------------------------

_NOT_ALLOWED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def drawn(draw, shape):
    """``draw(shape)`` once for all examples of levels where they are the same, apart for each where they differ."""
    different = [level for level in levels_for_random() if level.randomness == "different"]
    array = draw((*[level.size for level in different], *shape))
    for level in different:
        array = batched_engine().Batched(array, level)
    return array


def levels_for_random() -> list:
    """The levels that are on; raises where random numbers are not allowed."""
    found = mode.maps()
    if any(level.randomness == "error" for level in found):
        raise RuntimeError(_NOT_ALLOWED)
    return found


def drawn_from(draw, arrays):
    """``draw(*arrays)``: numbers that depend on arrays element by element, some of them mapped over."""
    for level in reversed(levels_for_random()):
        if any(level.holds(a) for a in arrays):
            if level.randomness == "same":
                raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input")
            ndim = max([a.ndim for a in arrays])
            whole = [_aligned(level._joined(a, 0), ndim + 1) for a in arrays]
            return batched_engine().Batched(drawn_from(draw, whole), level)
    return draw(*arrays)


def _aligned(array, ndim):
    return array.reshape((array.shape[0], *(1,) * (ndim - array.ndim), *array.shape[1:]))
