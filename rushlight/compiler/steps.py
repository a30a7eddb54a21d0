"""From a jaxpr to steps in C: small programs are played, not compiled (``engine/native/src/player.c``).

XLA takes 15 µs to start a program, more than many small ones take to run, and half a second to compile it. A jaxpr of
few and small arrays becomes a list of steps instead, each a loop over operands that lie in memory anyhow: a slice, a
transposed or broadcast array is the same memory seen in another way, and costs no step.

``play_of`` returns None for what is too large, or has a primitive that is not in the table below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..engine.native import library

_LETTERS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "bool": "b"}
MOST = 32 * 1024  # elements to be computed: what takes longer is worth XLA's start, and its threads
_DIMENSIONS = 8  # as in steps.c
_SLOW = {"pow": 20, "erf": 10, "erfc": 10, "log1p": 10, "log": 5, "sin": 10, "cos": 10}  # times as long as others
_ALIGNED = 64


class NotPlayed(Exception):
    """The program has something that no step does."""


class Value:
    """An array of a program: where its elements are. ``made`` are the steps that write it, all of its memory's."""

    __slots__ = ("dtype", "made", "memory", "offset", "shape", "strides")

    def __init__(self, shape, dtype, memory=0, offset=0, strides=None, made=None):
        self.shape, self.dtype, self.memory, self.offset = tuple(shape), np.dtype(dtype), memory, offset
        self.made: list[Step] = [] if made is None else made
        self.strides = _dense(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)

    def seen(self, shape, strides, offset=0) -> Value:
        """The same memory in another way."""
        return Value(shape, self.dtype, self.memory, self.offset + offset, strides, self.made)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_dense(self) -> bool:
        return all(
            s == d or n == 1 for s, d, n in zip(self.strides, _dense(self.shape, self.dtype.itemsize), self.shape)
        )

    def key(self):
        return self.memory, self.offset, self.strides


class Step:
    """One call: a kernel, its operands, the last of which it writes, and what else it is told."""

    __slots__ = ("integers", "kernel", "numbers", "operands")

    def __init__(self, kernel, operands, integers, numbers=()):
        self.kernel, self.operands, self.integers, self.numbers = kernel, operands, integers, numbers


def _dense(shape, itemsize) -> tuple:
    strides, size = [], itemsize
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def play_of(closed, inputs: list[Value], targets: list[Value | None], flag: bool = False):
    """The function that plays ``closed``: it takes NumPy arrays, the memories that ``inputs`` and ``targets`` name.

    ``targets`` are where outputs belong; None for one that nobody wants. ``flag``: the last output says whether they
    may be put there. None if it is not to be played.
    """
    if library is None or not MOST:
        return None
    try:
        return Score(closed, inputs).played(targets, flag)
    except NotPlayed:
        return None


def played_test(closed):
    """The truth that ``closed`` computes, as a function of its arrays; None if it is not to be played."""
    play = play_of(closed, [Value(a.shape, a.dtype, k) for k, a in enumerate(closed.in_avals, 1)], [], flag=True)
    return play and (lambda *arrays: play(*map(np.ascontiguousarray, arrays)))


class Score:
    """The steps of a jaxpr, as they are found."""

    def __init__(self, closed, inputs: list[Value]):
        self._steps: list[Step] = []
        self._known: dict = {}  # steps that were made, by what they do
        self._room, self._constants = 0, []
        self._work = 0
        self._inputs = inputs
        self._outputs = self.follow(closed.jaxpr, closed.consts, inputs)

    # -- from equations to steps -------------------------------------------------------------------------------------

    def follow(self, jaxpr, constants, inputs) -> list[Value]:
        known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs))
        known.update(zip(jaxpr.constvars, map(self.constant, constants)))

        def value(v) -> Value:
            return known[v] if v.__class__.__name__ != "Literal" else self.constant(np.asarray(v.val, v.aval.dtype))

        for equation in jaxpr.eqns:
            rule = _RULES.get(equation.primitive.name)
            if rule is None or any(0 in v.aval.shape for v in (*equation.invars, *equation.outvars)):
                raise NotPlayed(equation.primitive.name)
            made = rule(self, equation, *map(value, equation.invars))
            for v, x in zip(equation.outvars, made if isinstance(made, list) else [made]):
                if x.shape != v.aval.shape or x.dtype != v.aval.dtype:
                    raise NotPlayed(equation.primitive.name)
                known[v] = x
        return [value(v) for v in jaxpr.outvars]

    def constant(self, array) -> Value:
        array = np.asarray(array)
        key = (array.shape, array.dtype, array.tobytes())
        if key not in self._known:
            v = self._known[key] = self.new(array.shape, array.dtype)
            _letter(v)
            self._constants.append((v, array))
        return self._known[key]

    def new(self, shape, dtype) -> Value:
        v = Value(shape, dtype, offset=self._room)
        self._room += -(-v.size * v.dtype.itemsize // _ALIGNED) * _ALIGNED
        return v

    def map(self, name: str, *operands: Value, shape=None, dtype=None, letter=None, rest=(), numbers=()) -> Value:
        """A new array, each element of which ``name`` makes of one of each operand."""
        shape = shape if shape is not None else np.broadcast_shapes(*(v.shape for v in operands))
        dtype = np.dtype(dtype or operands[-1].dtype)
        letter = letter if letter is not None else _letter(operands[-1])
        key = (name, letter, dtype, shape, *(v.key() for v in operands), rest, numbers)
        if key not in self._known:
            made = self.new(shape, dtype)
            self.step(name, letter, [*operands, made], shape, rest, numbers)
            self._known[key] = made
        return self._known[key]

    def step(self, name: str, letter: str, operands: list[Value], shape, rest=(), numbers=()) -> None:
        """One step, that writes to the last of the operands."""
        shape, strides = _collapsed(shape, [_stretched(v, shape) for v in operands])
        self._work += math.prod(shape) * _SLOW.get(name, 1) * (math.prod(rest[::2]) if name.startswith("reduce") else 1)
        if self._work > MOST or len(shape) > _DIMENSIONS:
            raise NotPlayed("it is too large")
        kernel = "." + name + ("" if letter in "fd" else "_" + letter), letter == "d"
        integers = (len(shape), *shape, *(s for each in strides for s in each), *rest)
        made = Step(kernel, operands, integers, numbers)
        operands[-1].made.append(made)
        self._steps.append(made)

    def dense(self, v: Value) -> Value:
        return v if v.is_dense else self.map("copy", v, shape=v.shape)

    def kept(self, v: Value) -> Value:
        return self.map("copy", v, shape=v.shape) if v.memory else v

    def copied(self, v: Value, into: Value) -> None:
        self.step("copy", _letter(v), [v, into], v.shape)

    def reduced(self, name: str, v: Value, axes, dtype=None, letter=None) -> Value:
        """``v`` without the dimensions ``axes``."""
        axes = [d % len(v.shape) for d in axes]
        kept = [d for d in range(len(v.shape)) if d not in axes]
        shape, (strides,) = _collapsed([v.shape[d] for d in axes], [[v.strides[d] for d in axes]])
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
        self._work += math.prod(over) * math.prod(m) * math.prod(n) * math.prod(k) // 4
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
        self.step("dot", _letter(made), operands, over, rest)
        return made

    # -- from steps to a function ------------------------------------------------------------------------------------

    def played(self, targets: list[Value | None], flag: bool):
        outputs = self._outputs[:-1] if flag else self._outputs
        # What is an input itself is kept before others are written, for they may be the same memory.
        wanted = [(self.kept(v), to) for v, to in zip(outputs, targets) if to is not None]
        truth = [self.dense(self._outputs[-1])] if flag else []
        computed = self._needed([v for v, _ in wanted] + truth)
        first = len(self._steps)
        for v, to in wanted:
            self.copied(v, to)
        placing = self._steps[first:]
        room = np.zeros(self._room + 2 * _ALIGNED, np.uint8)
        room = room[-room.ctypes.data % _ALIGNED :]
        for v, array in self._constants:
            room[v.offset : v.offset + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        once, always = self._constant_ones(computed)
        given = self._given([to for to in targets if to is not None])
        _player(room, once, [], [], -1)()
        return _player(room, always, placing, given, truth[0].offset if flag else -1)

    def _needed(self, values) -> list[Step]:
        """The steps that these values are made of."""
        needed = {id(step) for v in values for step in v.made}
        for step in reversed(self._steps):
            if id(step) in needed:
                needed.update(id(s) for v in step.operands for s in v.made)
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
                if any(v.memory or any(id(s) in changing for s in v.made) for v in step.operands):
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


def _player(room, computed, placing, given, flag):
    described = [
        (*step.kernel, len(step.operands), len(step.integers), len(step.numbers), placed)
        for steps, placed in ((computed, False), (placing, True)) for step in steps
    ]  # fmt: skip
    steps = [*computed, *placing]
    offsets = [x for step in steps for v in step.operands for x in (v.memory, v.offset)]
    integers = [i for step in steps for i in step.integers]
    numbers = [x for step in steps for x in step.numbers]
    return library.player(
        room, tuple(described), np.array(offsets, np.int64), np.array(integers, np.int64),
        np.array(numbers, np.float64), np.array(given, np.int64), flag,
    )  # fmt: skip


def _letter(v: Value) -> str:
    letter = _LETTERS.get(v.dtype.name)
    if letter is None:
        raise NotPlayed(v.dtype.name)
    return letter


def _stretched(v: Value, shape) -> list[int]:
    """The strides of ``v`` for a loop over ``shape``: what is there once serves for all along a dimension."""
    missing = len(shape) - len(v.shape)
    return [0] * missing + [0 if n == 1 else s for n, s in zip(v.shape, v.strides)]


def _collapsed(shape, strides) -> tuple[tuple, list]:
    """The same loop in as few dimensions as possible, at least one."""
    sizes: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(f[-1] == s[d] * n for f, s in zip(found, strides)):
            sizes[-1] *= n
            for f, s in zip(found, strides):
                f[-1] = s[d]
        else:
            sizes.append(n)
            for f, s in zip(found, strides):
                f.append(s[d])
    return (tuple(sizes), found) if sizes else ((1,), [[0] for _ in strides])


def _is_one(v: Value, dims) -> bool:
    """Can these dimensions be gone through as if they were one?"""
    return len(_collapsed([v.shape[d] for d in dims], [[v.strides[d] for d in dims]])[0]) == 1


def _stride(v: Value, dims) -> int:
    return _collapsed([v.shape[d] for d in dims], [[v.strides[d] for d in dims]])[1][0][0]


# -- what each primitive is: (score, equation, operands) -> a value, or a list of them ---------------------------------


def _inlined(name):
    def rule(score: Score, equation, *operands):
        closed = equation.params[name]
        return score.follow(closed.jaxpr, closed.consts, operands)

    return rule


def _mapped(name, but="", dtype=None):
    """Element by element, for all dtypes ``but`` those of these letters."""

    def rule(score: Score, equation, *operands):
        if _letter(operands[0]) in but:
            raise NotPlayed(name)
        return score.map(name, *operands, dtype=dtype)

    return rule


def _same(score, equation, x, *_):
    return x


def _reduction(name, only="fdiq"):
    def rule(score: Score, equation, x):
        if _letter(x) not in only:
            raise NotPlayed(name)
        return score.reduced(name, x, equation.params["axes"])

    return rule


def _place(name):
    def rule(score: Score, equation, x):
        if _letter(x) == "b":
            raise NotPlayed(name)
        found = score.reduced(name, x, equation.params["axes"], np.int64)
        return _convert(score, equation, found, equation.params["index_dtype"])

    return rule


def _convert(score: Score, equation, x, to=None):
    to = np.dtype(to if to is not None else equation.params["new_dtype"])
    if to == x.dtype:
        return x
    target = _LETTERS.get(to.name)
    if target is None:
        raise NotPlayed(to.name)
    return score.map(f"convert_{_letter(x)}{target}", x, shape=x.shape, dtype=to, letter="f")


def _select(score: Score, equation, which, *cases):
    if len(cases) != 2 or which.dtype != bool:
        raise NotPlayed("select_n")
    return score.map("select", which, *cases, shape=cases[0].shape)


def _clamp(score: Score, equation, least, x, most):
    return score.map("min", score.map("max", x, least), most)


def _integer_pow(score: Score, equation, x):
    power = equation.params["y"]
    if power not in (2, 3, 4, -1, -2) or _letter(x) not in "fd":
        raise NotPlayed("integer_pow")
    made = x
    for _ in range(abs(power) - 1):
        made = score.map("mul", made, x)
    return made if power > 0 else score.map("div", score.constant(np.ones((), x.dtype)), made)


def _square(score: Score, equation, x):
    return score.map("mul", x, x)


def _pow(score: Score, equation, x, y):
    if _letter(x) not in "fd":
        raise NotPlayed("pow")
    return score.map("pow", x, _convert(score, equation, y, x.dtype))


def _round(score: Score, equation, x):
    if int(equation.params["rounding_method"]) != 1 or _letter(x) not in "fd":  # to even numbers
        raise NotPlayed("round")
    return score.map("round", x)


def _dot_general(score: Score, equation, a, b):
    if a.dtype != b.dtype or _letter(a) not in "fd":
        raise NotPlayed("dot_general")
    return score.product(a, b, *equation.params["dimension_numbers"])


def _reshape(score: Score, equation, x):
    if equation.params["dimensions"] is not None:
        raise NotPlayed("reshape")
    return _flat(score, x, equation.params["new_sizes"])


def _flat(score: Score, x, shape):
    dense = score.dense(x)
    return dense.seen(shape, _dense(shape, x.dtype.itemsize))


def _squeeze(score: Score, equation, x):
    gone = [d % len(x.shape) for d in equation.params["dimensions"]]
    kept = [d for d in range(len(x.shape)) if d not in gone]
    return x.seen([x.shape[d] for d in kept], [x.strides[d] for d in kept])


def _expand_dims(score: Score, equation, x):
    shape = list(equation.outvars[0].aval.shape)
    return _broadcast(x, shape, [d for d in range(len(shape)) if d not in equation.params["dimensions"]])


def _transpose(score: Score, equation, x):
    order = equation.params["permutation"]
    return x.seen([x.shape[d] for d in order], [x.strides[d] for d in order])


def _broadcast_in_dim(score: Score, equation, x, *more):
    if more:
        raise NotPlayed("a size that is computed")
    return _broadcast(x, equation.params["shape"], equation.params["broadcast_dimensions"])


def _broadcast(x, shape, dims):
    strides = [0] * len(shape)
    for d, n, s in zip(dims, x.shape, x.strides):
        strides[d] = s if n == shape[d] else 0
    return x.seen(shape, strides)


def _slice(score: Score, equation, x):
    starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
    by = equation.params["strides"] or [1] * len(starts)
    shape = [-(-(stop - start) // step) for start, stop, step in zip(starts, limits, by)]
    offset = sum(start * s for start, s in zip(starts, x.strides))
    return x.seen(shape, [s * step for s, step in zip(x.strides, by)], offset)


def _rev(score: Score, equation, x):
    turned = equation.params["dimensions"]
    offset = sum((x.shape[d] - 1) * x.strides[d] for d in turned)
    return x.seen(x.shape, [-s if d in turned else s for d, s in enumerate(x.strides)], offset)


def _split(score: Score, equation, x):
    axis, start, parts = equation.params["axis"], 0, []
    for size in equation.params["sizes"]:
        shape = [size if d == axis else n for d, n in enumerate(x.shape)]
        parts.append(x.seen(shape, x.strides, start * x.strides[axis]))
        start += size
    return parts


def _concatenate(score: Score, equation, *parts):
    (v,), axis = equation.outvars, equation.params["dimension"]
    made, start = score.new(v.aval.shape, v.aval.dtype), 0
    for part in parts:
        score.copied(part, made.seen(part.shape, made.strides, start * made.strides[axis]))
        start += part.shape[axis]
    return made


def _stack(score: Score, equation, *parts):
    (v,), axis = equation.outvars, equation.params["axis"]
    made = score.new(v.aval.shape, v.aval.dtype)
    strides = [s for d, s in enumerate(made.strides) if d != axis]
    for i, part in enumerate(parts):
        score.copied(part, made.seen(part.shape, strides, i * made.strides[axis]))
    return made


def _pad(score: Score, equation, x, filler):
    (v,), sides = equation.outvars, equation.params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in sides):
        raise NotPlayed("pad")
    made = score.new(v.aval.shape, v.aval.dtype)
    score.copied(_broadcast(filler, made.shape, ()), made)
    offset = sum(low * s for (low, _, _), s in zip(sides, made.strides))
    score.copied(x, made.seen(x.shape, [s * (1 + i) for (_, _, i), s in zip(sides, made.strides)], offset))
    return made


def _iota(score: Score, equation):
    shape, d = equation.params["shape"], equation.params["dimension"]
    line = np.arange(shape[d], dtype=equation.params["dtype"])
    return _broadcast(score.constant(line), shape, [d])


def _led(score: Score, x: Value, indices: Value, names, window, batch_dims, mode):
    """How a loop over ``batch_dims`` and ``window`` (places in the loop) goes through ``x`` and ``indices``.

    Returns the strides in both, and what the step is told of the indices: see ``led`` in steps.c.
    """
    starts, collapsed, batching, batching_of_indices, sizes = names
    rank = len(batch_dims) + len(window)
    in_x, in_indices = [0] * rank, [0] * rank
    left = [d for d in range(len(x.shape)) if d not in collapsed and d not in batching]
    for place, d in zip(window, left):
        in_x[place] = x.strides[d]
    for k, place in enumerate(batch_dims):
        in_indices[place] = indices.strides[k]
        if k in batching_of_indices:
            in_x[place] = x.strides[batching[batching_of_indices.index(k)]]
    mode = getattr(mode, "name", str(mode))
    rest = [len(starts), indices.strides[-1], int(mode in ("CLIP", "PROMISE_IN_BOUNDS"))]
    for d in starts:
        rest += [x.strides[d], x.shape[d] - sizes[d]]
    return in_x, in_indices, tuple(rest)


def _gather(score: Score, equation, x, indices):
    p, numbers = equation.params, equation.params["dimension_numbers"]
    (v,) = equation.outvars
    shape = v.aval.shape
    window = numbers.offset_dims
    batch = [d for d in range(len(shape)) if d not in window]
    names = (
        numbers.start_index_map, numbers.collapsed_slice_dims, numbers.operand_batching_dims,
        numbers.start_indices_batching_dims, p["slice_sizes"],
    )  # fmt: skip
    indices = _convert(score, equation, indices, np.int64)
    in_x, in_indices, rest = _led(score, x, indices, names, window, batch, p["mode"])
    filler = p["fill_value"]
    if filler is None:
        filler = np.nan if _letter(x) in "fd" else np.iinfo(x.dtype).min if x.dtype != bool else 1
    operands = [indices.seen(shape, in_indices), x.seen(shape, in_x)]
    return score.map("gather", *operands, shape=shape, rest=rest, numbers=(float(filler),))


def _scatter_add(score: Score, equation, x, indices, updates):
    p, numbers = equation.params, equation.params["dimension_numbers"]
    if x.dtype == bool:
        raise NotPlayed("scatter-add")
    made = score.new(x.shape, x.dtype)
    score.copied(x, made)
    window = numbers.update_window_dims
    batch = [d for d in range(len(updates.shape)) if d not in window]
    outside = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    sizes = [1] * len(x.shape)
    for place, d in zip(window, [d for d in range(len(x.shape)) if d not in outside]):
        sizes[d] = updates.shape[place]
    names = (
        numbers.scatter_dims_to_operand_dims, numbers.inserted_window_dims, numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims, sizes,
    )  # fmt: skip
    indices = _convert(score, equation, indices, np.int64)
    in_x, in_indices, rest = _led(score, made, indices, names, window, batch, p["mode"])
    shape = updates.shape
    operands = [indices.seen(shape, in_indices), updates, made.seen(shape, in_x)]
    score.step("scatter_add", _letter(x), operands, shape, rest)
    return made


_RULES: dict[str, Any] = {
    **{name: _mapped(name, "b") for name in ("add", "sub", "mul", "max", "min", "neg", "abs", "sign")},
    **{name: _mapped(name, "fd") for name in ("and", "or", "xor", "not")},
    **{name: _mapped(name, "b", bool) for name in ("lt", "le", "gt", "ge")},
    **{
        name: _mapped(name, "iqb")
        for name in (
            "div", "floor", "ceil", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "tanh", "logistic", "erf", "erfc",
            "sin", "cos",
        )
    },
    **{name: _reduction(name) for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")},
    **{name: _reduction(name, only="b") for name in ("reduce_and", "reduce_or")},
    **dict.fromkeys(("copy", "copy_p", "stop_gradient"), _same),
    **{name: _inlined("jaxpr") for name in ("jit", "pjit")},
    **{name: _inlined("call_jaxpr") for name in ("custom_jvp_call", "custom_vjp_call", "closed_call")},
    "add_any": _mapped("add", "b"),
    "eq": _mapped("eq", dtype=bool),
    "ne": _mapped("ne", dtype=bool),
    "is_finite": _mapped("is_finite", "iqb", bool),
    "argmax": _place("argmax"),
    "argmin": _place("argmin"),
    "convert_element_type": _convert,
    "select_n": _select,
    "clamp": _clamp,
    "integer_pow": _integer_pow,
    "square": _square,
    "pow": _pow,
    "round": _round,
    "dot_general": _dot_general,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast_in_dim,
    "slice": _slice,
    "rev": _rev,
    "split": _split,
    "concatenate": _concatenate,
    "stack": _stack,
    "pad": _pad,
    "iota": _iota,
    "gather": _gather,
    "scatter-add": _scatter_add,
}  # fmt: skip
