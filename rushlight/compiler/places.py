"""Where the arrays of a score are, when its steps and groups are known."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from .groups import Group
from .values import Step, Value

NOWHERE, STAGE, OWN = -1, -2, -3  # memories that are no arguments', as in player.c
_SMALL = 1 << 16  # bytes that a program may have for itself; what needs more shares the stage with others
_LARGE = 1 << 16  # bytes of an array that begins at a page, as NumPy's do (src/memory.c); others begin at cache lines
LINE, _PAGE = 64, 4096


def room_for(size: int) -> int:
    """How many bytes an array of that ``size`` takes."""
    return _up(size, _PAGE if size >= _LARGE else LINE)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def start_of(starts: list[int], v: Value) -> int:
    """Where the array in the room begins that ``v`` is, or is a part of; -1 for an argument's memory."""
    return -1 if v.memory else starts[bisect_right(starts, v.offset) - 1]


class Places:
    """Where arrays are in the end: in an argument, or in the room or on the stage, one after the other.

    ``moves`` are those that are made in another's place, ``kept`` and those of ``once`` are there from call to call.
    """

    def __init__(self, starts, end, moves, kept, once, fresh):
        self._starts, self._moves, self._fresh = starts, moves, fresh
        self._sizes = dict(zip(starts, (b - a for a, b in zip(starts, [*starts[1:], end]))))
        self._kept = {self.start(v) for v in (*kept, *(v for step in once for v in step.values))}
        self._new: dict[int, tuple[int, int]] = {}  # (memory, offset) of what is nobody's
        self.room = self.stage = 0  # how large they are
        for start in sorted(self._kept):
            self._new[start] = 0, self.room
            self.room += self._sizes[start]

    def start(self, v: Value) -> int:
        return start_of(self._starts, v)

    def seat(self, v: Value) -> tuple[tuple[int, int], int]:
        """What ``v`` is, or is a part of, as (memory, where it begins), and where in it."""
        if v.memory:
            return (v.memory, 0), v.offset
        start = self.start(v)
        if start in self._moves:
            whole, offset = self.seat(self._moves[start])
            return whole, offset + v.offset - start
        return (0, start), v.offset - start

    def is_bound(self, step: Step) -> bool:
        """Does it write to memory that somebody has?"""
        return any(0 < self.seat(v)[0][0] < self._fresh for v in step.writes)

    def of(self, v: Value) -> tuple[int, int]:
        """(memory, offset) of a value."""
        (memory, start), offset = self.seat(v)
        if memory:
            return memory, offset
        memory, begin = self._new[start]
        return memory, begin + offset

    def share(self, steps: list[Step | Group]) -> None:
        """Give each array that these use its place; one that is used no more leaves its place to others."""
        uses = [{start for v in step.values if (start := self._home(v)) >= 0} - self._kept for step in steps]
        many = Counter(start for starts in uses for start in starts)
        many.update(self._home(to) for to in self._moves.values())
        for step, starts in zip(steps, uses):
            if isinstance(step, Group):
                step.settle({start for start in starts if many[start] == 1})
                starts.difference_update(step.own)
        last = {start: i for i, starts in enumerate(uses) for start in starts}
        free: list[tuple[int, int]] = []  # (size, offset)
        places: dict[int, int] = {}
        for i, starts in enumerate(uses):
            for start in sorted(starts):
                if start not in places:
                    places[start] = self._take(free, self._sizes[start])
            free += [(self._sizes[start], places[start]) for start in sorted(starts) if last[start] == i]
        is_small = self.stage <= _SMALL
        for start, offset in places.items():
            self._new[start] = (0, self.room + offset) if is_small else (STAGE, offset)
        if is_small:
            self.room, self.stage = self.room + self.stage, 0

    def _take(self, free: list[tuple[int, int]], size: int) -> int:
        """A place of that size: a free one, a part of one, or a new one.

        A large array takes only the place of another of its size: threads that share out both do the same part of it
        then. Writing to what another core has just had takes ten times as long.
        """
        is_large = size >= _LARGE
        will_do = (each for each in free if each[0] == size or (each[0] > size and not is_large))
        found = min(will_do, default=None)
        if found is None:
            begin = _up(self.stage, _PAGE if is_large else LINE)
            self.stage = begin + size
            return begin
        free.remove(found)
        left = found[0] - size
        if left:  # it begins at a page if the whole one did
            free.append((left, found[1]))
        return found[1] + left

    def _home(self, v: Value) -> int:
        """Where the array begins whose place ``v`` has; -1 if that is not in the room."""
        (memory, start), _ = self.seat(v)
        return -1 if memory else start
