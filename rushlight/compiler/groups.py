"""Loops of a score that are done together: tile by tile, so that what one makes for the next stays in the cache.

Loops over the same elements are a group (``src/player.c``), if each meets in one place what another one makes there.
What only they use has no place in memory at all: each thread has a tile of it. A step between them that has nothing to
do with them comes before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .values import Step, Value, collapsed, dense_strides

if TYPE_CHECKING:
    from .places import Places

LEAST = 2048  # elements of a loop that is worth a group
_MOST = 32  # steps in one
_TILE = 2048  # elements, as in player.c


def grouped(steps: list[Step], places: Places) -> list[Step | Group]:
    """The same steps, in an order that is as good."""
    done: list[Step | Group] = []
    group: Group | None = None
    for step in steps:
        is_bound = places.is_bound(step)
        if step.loop is not None and step.operands[-1].size >= LEAST and not is_bound:
            if group is None or not group.take(step):
                done += [group] if group is not None else []
                group = Group(step.loop[0], places)
                group.take(step)
        elif group is not None and not is_bound and group.is_apart(step):
            done.append(step)
        else:
            done += [step] if group is None else [group, step]
            group = None
    return done if group is None else [*done, group]


class Group:
    """``steps`` over the elements of ``shape``. ``own``: {where an array begins that only they use: its tile}."""

    def __init__(self, shape, places: Places):
        self.shape, self._places = shape, places
        self.steps: list[Step] = []
        self._strides: list[list[tuple]] = []  # of each step's operands
        self._reads: dict = {}  # {an array: the ways in which it is met}
        self._writes: dict = {}
        self.own: dict[int, int] = {}
        self.room = 0  # bytes that all of ``own`` take

    @property
    def values(self) -> list[Value]:
        return [v for step in self.steps for v in step.values]

    def take(self, step: Step) -> bool:
        """Does it belong to them? Then it is one of them now."""
        shape, strides = step.loop
        seen = [found for each in strides if (found := _along(self.shape, shape, each)) is not None]
        if len(self.steps) == _MOST or len(seen) < len(strides):
            return False
        met = []
        for v, each in zip(step.operands, seen):
            array, offset = self._places.seat(v)
            met.append((array, (offset, each)))
        *reads, (made, way) = met
        if any(way != self._writes.get(array, way) for array, way in reads):
            return False
        if self._writes.get(made, way) != way or self._reads.get(made, {way}) != {way}:
            return False
        self._writes[made] = way
        for array, way in reads:
            self._reads.setdefault(array, set()).add(way)
        self.steps.append(step)
        self._strides.append(seen)
        return True

    def is_apart(self, step: Step) -> bool:
        """May this one come before all of them?"""
        if any(self._places.seat(v)[0] in self._writes for v in step.values):
            return False
        return not any(self._places.seat(v)[0] in self._reads for v in step.writes)

    def laid_out(self) -> tuple[tuple, list[list]]:
        """The loop in as few dimensions as possible, and the strides of each step's operands."""
        shape, every = collapsed(self.shape, [s for strides in self._strides for s in strides])
        left = iter(every)
        return shape, [[next(left) for _ in strides] for strides in self._strides]

    def settle(self, alone: set[int]) -> None:
        """Give a tile to each array that is used by these alone."""
        shape, strides = self.laid_out()
        last: dict[int, int] = {}
        for i, (step, each) in enumerate(zip(self.steps, strides)):
            for v, s in zip(step.operands, each):
                start = self._places.start(v)
                if start in alone and tuple(s) == dense_strides(shape, v.dtype.itemsize):
                    last[start] = i
        free: dict[int, list[int]] = {}  # {bytes of an element: places}
        for i, step in enumerate(self.steps):
            mine = {self._places.start(v): v.dtype.itemsize for v in step.operands}
            for start, size in mine.items():
                if start in last and start not in self.own:
                    places = free.setdefault(size, [])
                    self.own[start] = places.pop() if places else self.room
                    self.room = max(self.room, self.own[start] + _TILE * size)
            for start, size in mine.items():
                if last.get(start) == i:
                    free[size].append(self.own[start])


def _along(shape, given, strides) -> tuple | None:
    """``strides`` of an array that is met along ``given``, along ``shape`` instead; None if there are none."""
    sizes, (steps,) = collapsed(given, [strides])
    left, step, d = sizes[-1], steps[-1], len(sizes) - 1
    found = []
    for n in reversed(shape):
        if n > 1 and left == 1:
            d -= 1
            if d < 0:
                return None
            left, step = sizes[d], steps[d]
        if left % n:
            return None
        found.append(step if n > 1 else 0)
        left, step = left // n, step * n
    return None if left > 1 or d > 0 else tuple(reversed(found))
