"""From a jaxpr to a score: programs that are small, or mostly kernels, are played, not compiled.

XLA takes 15 µs to start a program, more than many small ones take to run, and half a second or many to compile it.
Where most of the work is done by kernels anyway, there is little to compile. Such a jaxpr becomes a list of steps in C
instead (``score.py``); here is what each primitive becomes.

``play_of`` returns None for what is too large, or has a primitive that is not in the table at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..engine.native import library
from ..engine.numpy.kernels.sums import SHARED
from ..engine.xla.kernels.native import ABSENT, WRITTEN_OVER
from . import score as scores
from .score import Effort, Score
from .values import LETTERS, WORD, NotPlayed, Value, dense_strides, letter_of


def play_of(
    closed, inputs: list[Value], targets: list[Value | None], flag=False, fresh: int = 1 << 30,
    own: int | None = None, effort: Effort | None = None, beside: bool = False,
):  # fmt: skip
    """The function that plays ``closed``: it takes NumPy arrays, the memories that ``inputs`` and ``targets`` name.

    ``targets`` are where outputs belong; None for one that nobody wants. ``flag``: the last output says whether they
    may be put there. Memories from ``own`` on are no arguments', those from ``fresh`` on hold nothing of value.
    ``effort`` is that of the parts before, if it is a part. ``beside``: other threads may run meanwhile, which is for
    one that writes to no argument. None if it is not to be played.
    """
    if library is None or not scores.MOST:
        return None
    try:
        return Score(closed, inputs, RULES, effort).played(targets, flag, fresh, own, beside)
    except NotPlayed:
        return None


def played_test(closed):
    """The truth that ``closed`` computes, as a function of its arrays; None if it is not to be played."""
    play = play_of(closed, [Value(a.shape, a.dtype, k) for k, a in enumerate(closed.in_avals, 1)], [], flag=True)
    return play and (lambda *arrays: play(*map(np.ascontiguousarray, arrays)))


# -- what each primitive is: (score, equation, operands) -> a value, or a list of them ---------------------------------


def _inlined(name):
    def rule(score: Score, equation, *operands):
        closed = equation.params[name]
        return score.follow(closed.jaxpr, closed.consts, operands)

    return rule


def _mapped(name, but="", dtype=None):
    """Element by element, for all dtypes ``but`` those of these letters."""

    def rule(score: Score, equation, *operands):
        if letter_of(operands[0]) in but:
            raise NotPlayed(name)
        return score.map(name, *operands, dtype=dtype)

    return rule


def _same(score, equation, x, *_):
    return x


def _all_the_same(score, equation, *given):
    return [*given]


def _reduction(name, only="fdiq"):
    def rule(score: Score, equation, x):
        if letter_of(x) not in only:
            raise NotPlayed(name)
        return score.reduced(name, x, equation.params["axes"])

    return rule


def _sum(score: Score, equation, x):
    """Of a large array that lies in order by kernels: neighbouring dimensions together, the last ones first."""
    axes = sorted(equation.params["axes"], reverse=True)
    if letter_of(x) not in "fd" or x.size < SHARED or not x.is_dense:
        return _LOOP_OF_SUMS(score, equation, x)
    while axes:
        end = first = axes.pop(0) + 1
        while axes and axes[0] == first - 2:
            first = axes.pop(0) + 1
        x = _summed(score, x, first - 1, end)
    return x


def _summed(score: Score, x: Value, first: int, end: int) -> Value:
    """``x`` without the dimensions from ``first`` to ``end``."""
    if x.size < SHARED:
        return score.reduced("reduce_sum", x, range(first, end))
    outer, n, inner = map(math.prod, (x.shape[:first], x.shape[first:end], x.shape[end:]))
    made = score.new(x.shape[:first] + x.shape[end:], x.dtype)
    if inner == 1:
        kernel, operands, integers = "row_sums", [x, None, made], [n, 0]
    else:
        kernel, operands, integers = "axis_sums", [x, made], [outer, n, inner]
    score.call(kernel, operands, integers, (), (), [made], [], _multiplications(kernel, [x], [made]))
    return made


_LOOP_OF_SUMS = _reduction("reduce_sum")


def _place(name):
    def rule(score: Score, equation, x):
        if letter_of(x) == "b":
            raise NotPlayed(name)
        found = score.reduced(name, x, equation.params["axes"], np.int64)
        return _convert(score, equation, found, equation.params["index_dtype"])

    return rule


def _convert(score: Score, equation, x, to=None):
    to = np.dtype(to if to is not None else equation.params["new_dtype"])
    if to == x.dtype:
        return x
    target = LETTERS.get(to.name)
    if target is None:
        raise NotPlayed(to.name)
    return score.map(f"convert_{letter_of(x)}{target}", x, shape=x.shape, dtype=to, letter="f")


def _of_words(name, dtype=None, otherwise=None):
    """Element by element, of random words; ``otherwise`` is the rule for other dtypes."""

    def rule(score: Score, equation, x, y):
        if x.dtype == WORD == y.dtype:
            return score.map(name, x, y, dtype=dtype, letter="u")
        if otherwise is None:
            raise NotPlayed(name)
        return otherwise(score, equation, x, y)

    return rule


def _bitcast(score: Score, equation, x):
    """Words as the reals whose bits they are."""
    to = np.dtype(equation.params["new_dtype"])
    if x.dtype != WORD or to != np.float32:
        raise NotPlayed("bitcast_convert_type")
    return Value(x.shape, to, x.memory, x.offset, x.strides, x.made)


def _select(score: Score, equation, which, *cases):
    if len(cases) != 2 or which.dtype != bool:
        raise NotPlayed("select_n")
    return score.map("select", which, *cases, shape=cases[0].shape)


def _clamp(score: Score, equation, least, x, most):
    return score.map("min", score.map("max", x, least), most)


def _integer_pow(score: Score, equation, x):
    power = equation.params["y"]
    if power not in (2, 3, 4, -1, -2) or letter_of(x) not in "fd":
        raise NotPlayed("integer_pow")
    made = x
    for _ in range(abs(power) - 1):
        made = score.map("mul", made, x)
    return made if power > 0 else score.map("div", score.constant(np.ones((), x.dtype)), made)


def _square(score: Score, equation, x):
    return score.map("mul", x, x)


def _pow(score: Score, equation, x, y):
    if letter_of(x) not in "fd":
        raise NotPlayed("pow")
    return score.map("pow", x, _convert(score, equation, y, x.dtype))


def _round(score: Score, equation, x):
    if int(equation.params["rounding_method"]) != 1 or letter_of(x) not in "fd":  # to even numbers
        raise NotPlayed("round")
    return score.map("round", x)


def _dot_general(score: Score, equation, a, b):
    if a.dtype != b.dtype or letter_of(a) not in "fd":
        raise NotPlayed("dot_general")
    return score.product(a, b, *equation.params["dimension_numbers"])


def _reshape(score: Score, equation, x):
    if equation.params["dimensions"] is not None:
        raise NotPlayed("reshape")
    return _flat(score, x, equation.params["new_sizes"])


def _flat(score: Score, x, shape):
    dense = score.dense(x)
    return dense.seen(shape, dense_strides(shape, x.dtype.itemsize))


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
        filler = np.nan if letter_of(x) in "fd" else np.iinfo(x.dtype).min if x.dtype != bool else 1
    operands = [indices.seen(shape, in_indices), x.seen(shape, in_x)]
    return score.map("gather", *operands, shape=shape, rest=rest, numbers=(float(filler),))


def _scatter(name, but=""):
    """What is put at the places that indices lead to, or added there."""

    def rule(score: Score, equation, x, indices, updates):
        if letter_of(x) in but:
            raise NotPlayed(name)
        return _scattered(name, score, equation, x, indices, updates)

    return rule


def _scattered(name, score: Score, equation, x, indices, updates):
    p, numbers = equation.params, equation.params["dimension_numbers"]
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
    score.step(name, letter_of(x), operands, shape, rest)
    return made


def _kernel(score: Score, equation, *operands):
    """A call of one of our own kernels: see ``call`` in engine/xla/kernels/native.py."""
    p = equation.params
    if p["target_name"] != "rushlight_kernel":
        raise NotPlayed(p["target_name"])
    told = {name: getattr(a, "val", a) for name, a in p["attributes"]}
    given = [score.laid(v, layout[::-1]) for v, layout in zip(operands, p["input_layouts"])]
    made = [
        score.new(v.aval.shape, v.aval.dtype, layout[::-1]) for v, layout in zip(equation.outvars, p["output_layouts"])
    ]
    lists, layouts, reads, writes = map(iter, (told["lists"].tolist(), told["layouts"].tolist(), given, made))
    taken: list[Value | None] = []
    for letter in getattr(library, told["kernel"]).__doc__:
        for _ in range(next(lists) if letter in "XY" else letter in "xqubsyQUBS"):
            layout = next(layouts)
            if layout == ABSENT:
                taken.append(None)
            elif letter in "xqubsX":
                taken.append(next(reads))
            else:
                if layout & WRITTEN_OVER:
                    next(reads)
                taken.append(next(writes))
    over = [(given[i], made[k]) for i, k in p["input_output_aliases"]]
    numbers = next(reads, told["numbers"].tolist())
    score.call(
        told["kernel"], taken, told["integers"].tolist(), numbers, told["lists"].tolist(), made, over,
        _multiplications(told["kernel"], given, made),
    )  # fmt: skip
    return made


def _fold_in(score: Score, equation, key, number):
    """Another key: what each random operator makes of the program's."""
    told = getattr(equation.invars[1], "val", None)
    if told is None or key.dtype != WORD or key.shape != (4,):
        raise NotPlayed("a key")
    made = score.new((4,), WORD)
    score.call("fold_in", [key, made], [int(told)], (), (), [made], [], 0)
    return made


def _random_bits(score: Score, equation, key):
    shape = equation.params["shape"]
    if equation.params["bit_width"] != 32 or key.dtype != WORD or key.shape != (4,):
        raise NotPlayed("random_bits")
    made = score.new((-(-math.prod(shape) // 4) * 4,), WORD)
    score.call("philox", [key, made], [], (), (), [made], [], _multiplications("philox", [], [made]))
    return made.seen(shape, dense_strides(shape, WORD.itemsize))


# Kernels that do little with each element.
_LITTLE = {
    "sgd_plain", "sgd", "adam", "rmsprop", "adadelta", "axis_sums", "row_sums", "gelu", "gelu_slope", "gelu_tanh",
    "gelu_tanh_slope", "layer_norm", "layer_norm_slope", "rms_norm", "rms_norm_slope", "batch_norm",
    "batch_norm_slope", "group_norm", "group_norm_slope",
}  # fmt: skip


def _multiplications(kernel: str, given: list[Value], made: list[Value]) -> int:
    """How many a call is worth, roughly."""
    if kernel in ("product", "matmul"):
        return given[0].shape[-1] * made[0].size
    return (8 if kernel in _LITTLE else 64) * sum(v.size for v in (*given, *made))


RULES: dict[str, Any] = {
    **{name: _mapped(name, "b") for name in ("add", "sub", "mul", "max", "min", "neg", "abs", "sign")},
    **{name: _mapped(name, "fd") for name in ("and", "xor", "not")},
    "or": _of_words("or", None, _mapped("or", "fd")),
    **{name: _mapped(name, "b", bool) for name in ("le", "gt", "ge")},
    "lt": _of_words("lt", bool, _mapped("lt", "b", bool)),
    "shift_right_logical": _of_words("shift_right_logical"),
    "bitcast_convert_type": _bitcast,
    "erf_inv": _mapped("erf_inv", "diqb"),
    **{
        name: _mapped(name, "iqb")
        for name in (
            "div", "floor", "ceil", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "tanh", "logistic", "erf", "erfc",
            "sin", "cos",
        )
    },
    **{name: _reduction(name) for name in ("reduce_prod", "reduce_max", "reduce_min")},
    "reduce_sum": _sum,
    **{name: _reduction(name, only="b") for name in ("reduce_and", "reduce_or")},
    **dict.fromkeys(("copy", "copy_p", "stop_gradient"), _same),
    "device_put": _all_the_same,  # there is one device
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
    "scatter": _scatter("scatter"),
    "scatter-add": _scatter("scatter_add", "b"),
    "ffi_call": _kernel,
    **dict.fromkeys(("random_wrap", "random_unwrap"), _same),
    "random_fold_in": _fold_in,
    "random_bits": _random_bits,
}  # fmt: skip
