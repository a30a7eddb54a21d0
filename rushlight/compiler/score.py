"""The score of a program: what it does as a list of steps in C (``engine/native/src/player.c``).

A step is a loop over operands that lie in memory anyhow (``src/steps.c``), or a call of a kernel. A slice, a transposed
or broadcast array is the same memory seen in another way, and costs no step. Which steps a primitive of JAX's becomes
stands in ``steps.py``, which loops are done together in ``groups.py``, where arrays are in ``places.py``.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from ..engine.native import library
from .groups import LEAST, grouped
from .places import LINE, NOWHERE, OWN, Places, room_for, start_of
from .values import WORD, NotPlayed, Step, Value, collapsed, dense_strides, letter_of

MOST = 32 * 1024  # elements to be computed by loops: what takes longer is worth XLA's start, and its threads
_BESIDE = 64  # multiplications that a kernel does while a loop computes an element: loops may take as long as kernels
_TOGETHER = 8  # elements that loops of a group compute while another one computes one
_LONGEST = 1 << 28  # multiplications: some milliseconds. In a program that takes longer, others have the interpreter
_DIMENSIONS = 8  # as in steps.c
# Times that these take as long as others.
_SLOW = {"pow": 20, "erf": 10, "erfc": 10, "erf_inv": 3, "log1p": 3, "log": 2, "sin": 10, "cos": 10}


class Effort:
    """What a program takes: elements that loops compute, and multiplications in kernels. Its parts share one."""

    def __init__(self):
        self.elements = self.multiplications = 0


class Score:
    """The steps of a jaxpr, as they are found by ``rules``, {primitive: (score, equation, operands) -> value(s)}."""

    def __init__(self, closed, inputs: list[Value], rules: dict[str, Any], effort: Effort | None = None):
        self._rules, self._effort = rules, effort or Effort()
        self._steps: list[Step] = []
        self._known: dict = {}  # steps that were made, by what they do
        self._room, self._constants = 0, []
        self._starts: list[int] = []  # where in the room each array begins
        self._sizes: dict[int, int] = {}  # how many elements it has
        self._multiplications = 0
        self._inputs = inputs
        self._outputs = self.follow(closed.jaxpr, closed.consts, inputs)

    # -- from equations to steps -------------------------------------------------------------------------------------

    def follow(self, jaxpr, constants, inputs) -> list[Value]:
        known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs))
        known.update(zip(jaxpr.constvars, map(self.constant, constants)))

        def value(v) -> Value:
            return known[v] if v.__class__.__name__ != "Literal" else self.constant(np.asarray(v.val, v.aval.dtype))

        for equation in jaxpr.eqns:
            rule = self._rules.get(equation.primitive.name)
            if rule is None or any(0 in v.aval.shape for v in (*equation.invars, *equation.outvars)):
                raise NotPlayed(equation.primitive.name)
            made = rule(self, equation, *map(value, equation.invars))
            for v, x in zip(equation.outvars, made if isinstance(made, list) else [made]):
                is_key = x.dtype == WORD and jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.prng_key)
                if not is_key and (x.shape != v.aval.shape or x.dtype != v.aval.dtype):
                    raise NotPlayed(equation.primitive.name)
                known[v] = x
        return [value(v) for v in jaxpr.outvars]

    def constant(self, array) -> Value:
        array = np.asarray(array)
        key = (array.shape, array.dtype, array.tobytes())
        if key not in self._known:
            v = self._known[key] = self.new(array.shape, array.dtype)
            if v.dtype != WORD:
                letter_of(v)
            self._constants.append((v, array))
        return self._known[key]

    def new(self, shape, dtype, order=None) -> Value:
        """Room for an array, with its dimensions in memory in ``order``, the outermost first."""
        v = Value(shape, dtype, 0, self._room, dense_strides(shape, np.dtype(dtype).itemsize, order))
        self._starts.append(self._room)
        self._sizes[self._room] = v.size
        self._room += room_for(v.size * v.dtype.itemsize)
        return v

    def map(self, name: str, *operands: Value, shape=None, dtype=None, letter=None, rest=(), numbers=()) -> Value:
        """A new array, each element of which ``name`` makes of one of each operand."""
        shape = shape if shape is not None else np.broadcast_shapes(*(v.shape for v in operands))
        dtype = np.dtype(dtype or operands[-1].dtype)
        letter = letter if letter is not None else letter_of(operands[-1])
        key = (name, letter, dtype, shape, *(v.key() for v in operands), rest, numbers)
        if key not in self._known:
            made = self.new(shape, dtype)
            self.step(name, letter, [*operands, made], shape, rest, numbers)
            self._known[key] = made
        return self._known[key]

    def step(self, name: str, letter: str, operands: list[Value], shape, rest=(), numbers=(), work=0) -> None:
        """One step, that writes to the last of the operands."""
        every = [_stretched(v, shape) for v in operands]
        loop = None if rest or numbers or len(shape) > _DIMENSIONS else (shape, every)
        shape, strides = collapsed(shape, every)
        times = _SLOW.get(name, 1) * (math.prod(rest[::2]) if name.startswith("reduce") else 1)
        is_quick = loop is not None and name not in _SLOW and math.prod(shape) >= LEAST
        work = work or math.prod(shape) * times // (_TOGETHER if is_quick else 1)
        if len(shape) > _DIMENSIONS:
            raise NotPlayed("it has too many dimensions")
        kernel = "." + name + ("" if letter in "fd" else "_" + letter), letter == "d"
        integers = (len(shape), *shape, *(s for each in strides for s in each), *rest)
        made = Step(kernel, operands, integers, numbers, loop=loop, work=work)
        operands[-1].made.append(made)
        self._steps.append(made)

    def call(self, kernel, operands, integers, numbers, lists, made: list[Value], over, multiplications) -> None:
        """A call of a kernel that writes to ``made``, which are among the operands; ``over`` as in Step."""
        self._multiplications += multiplications
        first = len(self._steps)
        for source, copy in over:
            self.copied(source, copy)
        copies = self._steps[first:]
        is_double = any(v.dtype == np.float64 for v in made)
        step = Step((kernel, is_double), operands, integers, numbers, lists, over, copies)
        for v in made:
            v.made.append(step)
        self._steps.append(step)

    def laid(self, v: Value, order) -> Value:
        """``v`` with its dimensions in memory in ``order``, the outermost first."""
        strides = dense_strides(v.shape, v.dtype.itemsize, order)
        if all(a == b or n == 1 for a, b, n in zip(v.strides, strides, v.shape)):
            return v
        made = self.new(v.shape, v.dtype, order)
        self.copied(v, made)
        return made

    def dense(self, v: Value) -> Value:
        return v if v.is_dense else self.map("copy", v, shape=v.shape)

    def kept(self, v: Value, own: int) -> Value:
        """``v`` in memory that no argument has: memories from ``own`` on are the program's."""
        return self.map("copy", v, shape=v.shape) if 0 < v.memory < own else v

    def _apart(self, v: Value) -> Value:
        """``v`` in a place that it shares with nothing."""
        made = self.new(v.shape, v.dtype)
        self.copied(v, made)
        return made

    def copied(self, v: Value, into: Value) -> None:
        self.step("copy", letter_of(v), [v, into], v.shape)

    def reduced(self, name: str, v: Value, axes, dtype=None, letter=None) -> Value:
        """``v`` without the dimensions ``axes``."""
        axes = sorted(d % len(v.shape) for d in axes)
        kept = [d for d in range(len(v.shape)) if d not in axes]
        shape, (strides,) = collapsed([v.shape[d] for d in axes], [[v.strides[d] for d in axes]])
        if len(shape) > 2:
            return self.reduced(name, self.map("copy", v, shape=v.shape), axes, dtype, letter)
        (n, s), (m, t) = [*zip(shape[::-1], strides[::-1]), (1, 0)][:2]
        outer = v.seen([v.shape[d] for d in kept], [v.strides[d] for d in kept])
        return self.map(name, outer, shape=outer.shape, dtype=dtype, letter=letter, rest=(n, s, m, t))

    def product(self, a: Value, b: Value, contracted, batch) -> Value:
        """The sum over ``contracted`` dimensions of products; ``batch`` dimensions of both go along."""
        (a_k, b_k), (a_b, b_b) = contracted, batch
        a_m = [d for d in range(len(a.shape)) if d not in (*a_k, *a_b)]
        b_n = [d for d in range(len(b.shape)) if d not in (*b_k, *b_b)]
        sizes = [[a.shape[d] for d in dims] for dims in (a_b, a_m, a_k)]
        over, m, k = sizes
        n = [b.shape[d] for d in b_n]
        made = self.new((*over, *m, *n), a.dtype)
        a = a if _is_one(a, a_m) and _is_one(a, a_k) else self.map("copy", a, shape=a.shape)
        b = b if _is_one(b, b_n) and _is_one(b, b_k) else self.map("copy", b, shape=b.shape)
        if not all((_is_one(a, a_m), _is_one(a, a_k), _is_one(b, b_n), _is_one(b, b_k))):
            raise NotPlayed("dimensions of a product that lie apart")
        size = a.dtype.itemsize
        rest = (
            math.prod(m), math.prod(n), math.prod(k), _stride(a, a_m), _stride(a, a_k), _stride(b, b_k),
            _stride(b, b_n), math.prod(n) * size, size,
        )  # fmt: skip
        operands = [
            a.seen(over, [a.strides[d] for d in a_b]), b.seen(over, [b.strides[d] for d in b_b]),
            made.seen(over, made.strides[: len(over)]),
        ]  # fmt: skip
        self.step("dot", letter_of(made), operands, over, rest, work=-(-made.size * math.prod(k) // 4))
        return made

    # -- from steps to a function ------------------------------------------------------------------------------------

    def played(self, targets: list[Value | None], flag: bool, fresh: int, own: int | None = None, beside=False):
        """See ``play_of``; memories from ``own`` on are nobody else's, those from ``fresh`` on are new."""
        outputs = self._outputs[:-1] if flag else self._outputs
        # What is an input itself is kept before others are written, for they may be the same memory.
        own = fresh if own is None else own
        wanted = [(self.kept(v, own), to) for v, to in zip(outputs, targets) if to is not None]
        truth = [self._apart(self._outputs[-1])] if flag else []
        computed = self._needed([v for v, _ in wanted] + truth)
        once, always = self._constant_ones(computed)
        asked = {id(step) for step in self._needed(truth)}
        moves = self._made_in_place(always, wanted, fresh)
        last = self._written_over(always, wanted, moves)
        spared = [*self._joined(always, moves), *self._given_away(always, wanted, asked, moves)]
        first = len(self._steps)
        for v, to in wanted:
            if self._start(v) not in moves or moves[self._start(v)].memory != to.memory:
                self.copied(v, to)
        left = {id(step) for s in (*last, *spared) for step in (s, *s.copies)}
        asking = [step for step in always if id(step) in asked and id(step) not in left]
        telling = [step for step in always if id(step) not in asked and id(step) not in left]
        self._effort.elements += sum(step.work for step in (*asking, *telling))
        self._effort.multiplications += self._multiplications
        if self._effort.elements > MOST + self._effort.multiplications // _BESIDE:
            raise NotPlayed("it is too large")
        telling += [*self._steps[first:], *last]
        places = Places(self._starts, self._room, moves, [v for v, _ in self._constants] + truth, once, fresh)
        parts = grouped(asking, places), grouped(telling, places)
        places.share([*parts[0], *parts[1]])
        room = np.zeros(places.room + 2 * LINE, np.uint8)
        room = room[-room.ctypes.data % LINE :]
        for v, array in self._constants:
            _, start = places.of(v)
            room[start : start + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        _player(room, places, [], once, [], -1, False)()
        given = self._given([to for to in targets if to is not None])
        beside = beside or self._multiplications > _LONGEST
        return _player(room, places, *parts, given, places.of(truth[0])[1] if flag else -1, beside)

    def _start(self, v: Value) -> int:
        return start_of(self._starts, v)

    def _is_whole(self, v: Value) -> bool:
        """Is this array in the room all that begins there, and not a part of it?"""
        start = self._start(v)
        return v.offset == start and v.is_dense and self._sizes[start] == v.size

    def _made_in_place(self, steps, wanted, fresh) -> dict[int, Value]:
        """{where an array begins: the new memory that it is made in}, of results that nobody else has as theirs."""
        changing = {id(step) for step in steps}
        moves: dict[int, Value] = {}
        for v, to in wanted:
            start = self._start(v)
            whole = start >= 0 and self._is_whole(v) and v.made and start not in moves
            if to.memory >= fresh and whole and all(id(step) in changing for step in v.made):
                moves[start] = to
        return moves

    def _joined(self, steps, moves) -> list[Step]:
        """Copies that are not made, for what they copy is made in its place among others; ``moves`` is told so."""
        changing, found = {id(step) for step in steps}, []
        for step in steps:
            if not step.is_copy or step.operands[0].memory:
                continue
            v, into = step.operands
            start, parts = self._start(v), into.made
            # What others are added to, or laid over, has more than its parts' elements.
            is_joined = all(part.is_copy for part in parts) and sum(part.operands[1].size for part in parts)
            if (
                self._is_whole(v) and is_joined == self._sizes.get(self._start(into)) and into.is_dense
                and start not in moves and v.made and all(id(s) in changing for s in v.made) and v.made is not parts
            ):  # fmt: skip
                moves[start] = into
                found.append(step)
        return found

    def _given_away(self, steps, wanted, asked, moves) -> list[Step]:
        """Copies for kernels that are not made, for nobody needs what they copy any more; ``moves`` is told so."""
        changing, found = {id(step) for step in steps}, []
        last = {self._start(v): i for i, step in enumerate(steps) for v in step.values}
        last.update({self._start(v): len(steps) for v, _ in wanted})
        for i, step in enumerate(steps):
            own = {self._start(v) for v in step.values}
            for (source, made), copy in zip(step.over, step.copies, strict=True):
                start = self._start(source)
                is_free = self._start(made) not in moves and start >= 0 and start not in own and start not in moves
                if (
                    is_free and id(step) not in asked and last[start] < i and self._is_whole(source) and made.is_dense
                    and source.made and all(id(s) in changing for s in source.made)
                ):  # fmt: skip
                    moves[start] = made
                    found.append(copy)
        return found

    def _written_over(self, steps, wanted, moves) -> list[Step]:
        """Kernels that are called last, for what they write over is where it belongs; ``moves`` is told so."""
        starts = [self._start(v) for v, _ in wanted]
        belongs = {start: to.memory for start, (_, to) in zip(starts, wanted) if starts.count(start) == 1}
        written = {to.memory for _, to in wanted}
        found = []
        for step in (step for step in steps if step.over):
            own = {self._start(made): source for source, made in step.over}
            others = [v for v in step.values if self._start(v) not in own]
            users = [v for s in steps if s is not step and s not in step.copies for v in s.values]
            if (
                all(s.memory == belongs.get(start) and not s.offset and s.is_dense for start, s in own.items())
                and not any(v.memory in written or step in v.made for v in others)
                and not any(self._start(v) in own for v in users)
            ):
                moves.update(own)
                found.append(step)
        return found

    def _needed(self, values) -> list[Step]:
        """The steps that these values are made of."""
        needed = {id(step) for v in values for step in v.made}
        for step in reversed(self._steps):
            if id(step) in needed:
                needed.update(id(s) for v in step.values for s in v.made)
        return [step for step in self._steps if id(step) in needed]

    def _constant_ones(self, steps) -> tuple[list, list]:
        """Steps that depend on constants alone, which need not be made again; and the others.

        An array that others write to as well, such as what is added to, is made anew every time.
        """
        changing: set[int] = set()
        before = -1
        while before != len(changing):
            before = len(changing)
            for step in steps:
                if any(v.memory or any(id(s) in changing for s in v.made) for v in step.values):
                    changing.add(id(step))
        return [s for s in steps if id(s) not in changing], [s for s in steps if id(s) in changing]

    def _given(self, targets) -> list[tuple[int, int]]:
        """(bytes, is it written) of every memory that the function takes."""
        found: dict[int, tuple[int, int]] = {}
        for v in self._inputs:
            end = v.offset + v.size * v.dtype.itemsize
            found[v.memory] = max(end, found.get(v.memory, (0, 0))[0]), 0
        found.update({to.memory: (to.size * to.dtype.itemsize, 1) for to in targets})
        return [found[memory] for memory in sorted(found) if memory]


def _player(room, places: Places, asking, telling, given, flag, beside: bool):
    described, offsets, integers, numbers, laid = [], [], [], [], []
    alone = None  # from here on arguments are written

    def describe(step: Step, told, own=()):
        computed = isinstance(step.numbers, Value)
        operands = [*step.operands, step.numbers] if computed else step.operands
        counts = len(step.operands), len(told), 0 if computed else len(step.numbers)
        described.append((*step.kernel, *counts, asks, step.lists is not None, len(step.lists or ()), computed))
        for v in operands:
            start = places.start(v) if v is not None else -1
            offsets.extend((NOWHERE, 0) if v is None else (OWN, own[start]) if start in own else places.of(v))
        integers.extend((*told, *(step.lists or ())))
        numbers.extend([] if computed else step.numbers)
        if step.lists is not None:
            laid.extend(x for v in step.operands for x in _laid(v))

    for asks, steps in ((True, asking), (False, telling)):
        for step in steps:
            if isinstance(step, Step):
                if alone is None and places.is_bound(step):
                    alone = len(described)
                describe(step, step.integers)
                continue
            shape, strides = step.laid_out()
            told = len(step.steps), step.room, len(shape), *shape
            described.append((".together", False, 0, len(told), 0, asks, False, 0, False))
            integers.extend(told)
            for each, along in zip(step.steps, strides):
                describe(each, [n for s in along for n in s], step.own)
    return library.player(
        room, tuple(described), np.array(offsets, np.int64), np.array(integers, np.int64),
        np.array(numbers, np.float64), np.array(laid, np.int64), np.array(given, np.int64), flag,
        (len(described) if alone is None else alone) if beside else 0, places.stage,
    )  # fmt: skip


def _laid(v: Value | None) -> tuple:
    """Its number of elements and of dimensions, sizes and strides; what is there once serves for all along it."""
    if v is None:
        return 0, 0
    last = len(v.shape) - 1
    strides = [0 if n == 1 and d < last else s for d, (n, s) in enumerate(zip(v.shape, v.strides))]
    return v.size, len(v.shape), *v.shape, *strides


def _stretched(v: Value, shape) -> list[int]:
    """The strides of ``v`` for a loop over ``shape``: what is there once serves for all along a dimension."""
    missing = len(shape) - len(v.shape)
    return [0] * missing + [0 if n == 1 else s for n, s in zip(v.shape, v.strides)]


def _is_one(v: Value, dims) -> bool:
    """Can these dimensions be gone through as if they were one?"""
    return len(collapsed([v.shape[d] for d in dims], [[v.strides[d] for d in dims]])[0]) == 1


def _stride(v: Value, dims) -> int:
    return collapsed([v.shape[d] for d in dims], [[v.strides[d] for d in dims]])[1][0][0]
