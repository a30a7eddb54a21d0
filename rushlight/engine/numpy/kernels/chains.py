"""Formulas element by element, on large arrays: one pass of the library in C instead of one of NumPy's for each step.

An op's forward and its gradient rules are formulas of arrays. Run once on stand-ins, such a function says which steps
it takes; the library does those on small blocks, on all threads (``native/src/chains.c``). What it computes with
Python's numbers, or asks about static arguments, is done while it is followed. A function that does anything else than
these steps, and arrays that the library does not take, are left to NumPy.
"""

from __future__ import annotations

import functools
import math
import threading

import numpy as np

from .... import config
from ...fallback import FORWARDS
from ...native import library

WORTH, ONE_STEP = 1 << 15, 1 << 16  # elements: of formulas; of what NumPy does by one call
_LONG = 256  # results in a row
_ndarray, _BOOL = np.ndarray, np.dtype(np.bool_)
_REGISTERS, _REALS, _MASKS = 48, 6, 2  # what the library has room for
OPERATIONS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal", "equal", "not_equal",
    "logical_and", "logical_or", "logical_not", "where", "negative", "abs", "sqrt", "exp", "log", "log1p", "expm1",
    "tanh", "sigmoid", "sign", "erf",
)  # fmt: skip
_CODES = {name: code for code, name in enumerate(OPERATIONS)}
_TRUTHS = {"less", "less_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not"}


# Ops whose gradient rules are formulas; those of the second and third table also have one of several steps forward.
RULES = (
    "abs", "add_scaled", "clip", "divide", "erf", "erfc", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2",
    "masked_fill", "maximum", "minimum", "multiply", "negative", "power", "reciprocal", "rsqrt", "rsub", "sqrt",
    "subtract", "subtract_scaled", "where",
)  # fmt: skip
FORMULAS = ("addcdiv", "addcmul", "hardshrink", "lerp", "prelu_kernel", "softshrink", "threshold", "xlogy")
LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "mse_each", "smooth_l1_loss",
    "soft_margin_loss",
)  # fmt: skip
REDUCTIONS = ("logsumexp", "vector_norm")


def install(bodies, engine) -> None:
    """Put formulas before the bodies of these ops."""
    for name in (*FORMULAS, *LOSSES):
        if name not in bodies:
            bodies[name] = large(_forward_of(name), engine)


def _forward_of(name):
    return lambda xp, *arrays, **static: FORWARDS[name](xp, *arrays, **static)


def chain_rules(rules_of, engine) -> None:
    """The same of gradient rules; ``rules_of`` gives those of an op, by its name."""
    for name in (*RULES, *FORMULAS, *LOSSES, *REDUCTIONS):
        for rule in rules_of(name):
            which = int(name in LOSSES or name in REDUCTIONS)  # the gradient may be small: the input is looked at
            quick = large(rule.function, engine, which, 1 + len(rule.needs))
            quick.needs = rule.needs
            rule.function = quick


def large(function, engine, which=0, count=None):
    """``function(xp, *values, **static)``, by the library where the array number ``which`` of the engine is large."""
    if library is None:
        return function

    def chained(xp, *values, **static):
        x = values[which]
        if x.__class__ is not _ndarray or x.size < WORTH or xp is not engine:
            return function(xp, *values, **static)
        found = evaluated(function, values, static)
        return function(xp, *values, **static) if found is None else found

    def short(xp, g, x):
        """The same for the commonest rules."""
        if g.__class__ is not _ndarray or g.size < WORTH or xp is not engine:
            return function(xp, g, x)
        found = evaluated(function, (g, x), {})
        return function(xp, g, x) if found is None else found

    return short if count == 2 and which == 0 else chained


def of_one(plain, name=None):
    """A function of NumPy that is one step, of one array; ``name`` is that of the step."""
    name = name or plain.__name__

    def one(x):
        if x.__class__ is not _ndarray or x.size < ONE_STEP:
            return plain(x)
        found = evaluated(step, (x,), {})
        return plain(x) if found is None else found

    def step(xp, x):
        return getattr(xp, name)(x)

    return one if library is not None else plain


def of_two(plain):
    """The same of two arrays, or an array and a number; on one thread NumPy has the same bits, and is often quicker."""
    name = plain.__name__

    def two(x, w):
        larger = x if x.__class__ is _ndarray else w
        if larger.__class__ is not _ndarray or (larger.size < ONE_STEP and not _is_large_together(x, w)):
            return plain(x, w)
        if config.get_num_threads() == 1 and not _has_long_rows(x, w):
            return plain(x, w, out=_written_over((x, w)))
        found = evaluated(step, (x, w), {})
        return plain(x, w) if found is None else found

    def step(xp, x, w):
        return getattr(xp, name)(x, w)

    return two if library is not None else plain


def _is_large_together(x, w) -> bool:
    """Is ``x`` small, but not what it makes with ``w``?"""
    if w.__class__ is not _ndarray or x.__class__ is not _ndarray or x.size * w.size < ONE_STEP or x.shape == w.shape:
        return False
    try:
        return math.prod(np.broadcast_shapes(x.shape, w.shape)) >= ONE_STEP
    except ValueError:  # which NumPy has words for
        return False


def _has_long_rows(x, w) -> bool:
    """Is one repeated, or has gaps, and are the rows long? NumPy takes twice as long for that as the library."""
    if x.__class__ is not w.__class__ or (x.shape == w.shape and x.flags.c_contiguous and w.flags.c_contiguous):
        return False
    return _row(Kind((x.dtype, x.shape, x.strides)), Kind((w.dtype, w.shape, w.strides))) >= _LONG


class _Target(threading.local):
    array = None  # where the next result may go; see ``into``


_target = _Target()


def into(array, function, *args):
    """``function(*args)``, which does one step to ``array``: the result may be written over it, not into new memory."""
    _target.array = array
    try:
        return function(*args)
    finally:
        _target.array = None


def _written_over(values):
    """The argument that the result of these may be written over, if there is one; no other shares memory with it."""
    array = _target.array
    if array is None or not any(v is array for v in values):
        return None
    others = [v for v in values if v.__class__ is _ndarray and v is not array]
    for v in others:
        if v.dtype is not array.dtype or np.may_share_memory(v, array):
            return None
        if v.shape != array.shape and np.broadcast_shapes(array.shape, v.shape) != array.shape:
            return None
    _target.array = None
    return array


def evaluated(function, values, static):
    """``function(xp, *values, **static)`` by the library; None where that does not serve."""
    if library is None:
        return None
    kinds = []
    for v in values:
        if v.__class__ is _ndarray:
            v = Kind((v.dtype, v.shape, v.strides))
        elif v.__class__ is float and _is_negative_zero(v):
            return None
        kinds.append(v)
    if static and any(map(_is_negative_zero, static.values())):
        return None
    try:
        program = _program(function, tuple(kinds), tuple(static.items()))
    except TypeError:  # something that has no hash
        return None
    return None if program is None else program.run(values)


def _is_negative_zero(value) -> bool:
    """Then no program is kept for it: its key would be that of 0."""
    return value.__class__ is float and value == 0 and math.copysign(1, value) < 0


class Kind(tuple):
    """What is known of an array when a function is followed: its dtype, shape and strides."""

    __slots__ = ()


@functools.lru_cache(1024)
def _program(function, kinds, static):
    """The steps that a function takes for such values: arrays of these kinds, others as they are."""
    arrays = [kind for kind in kinds if kind.__class__ is Kind]
    dtypes = {dtype for dtype, _, _ in arrays} - {_BOOL}
    if len(dtypes) != 1 or not all(_in_order(*kind[1:]) for kind in arrays):
        return None
    steps = Steps(dtypes.pop())
    if steps.dtype.char not in "fd":
        return None
    try:
        values = [steps.take(i, *kind) if kind.__class__ is Kind else kind for i, kind in enumerate(kinds)]
        result = function(steps, *values, **dict(static))
        return Program(steps, result) if result.__class__ is Value and result.register in steps.made else None
    except Untold:
        return None


def _in_order(shape, strides) -> bool:
    """Does it lie in memory as its axes follow each other, with gaps perhaps, or repeated? So does the result then."""
    steps = [step for n, step in zip(shape, strides) if n != 1 and step]
    return all(step > 0 for step in steps) and steps == sorted(steps, reverse=True)


class Untold(Exception):
    """A function does something that is no step."""


class Value:
    """A stand-in for an array: what is done with it becomes a step."""

    __slots__ = ("steps", "register", "dtype", "shape", "divisor")
    __array_ufunc__ = None

    def __init__(self, steps, register, dtype, shape, divisor=None):
        self.steps, self.register, self.dtype, self.shape = steps, register, dtype, shape
        self.divisor = divisor  # of a sum: what that is divided by

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    __add__ = __radd__ = lambda self, other: self.steps.add(self, other)
    __mul__ = __rmul__ = lambda self, other: self.steps.multiply(self, other)
    __sub__ = lambda self, other: self.steps.subtract(self, other)
    __rsub__ = lambda self, other: self.steps.subtract(other, self)
    __truediv__ = lambda self, other: self.steps.divide(self, other)
    __rtruediv__ = lambda self, other: self.steps.divide(other, self)
    __neg__ = lambda self: self.steps.negative(self)
    __lt__ = lambda self, other: self.steps.less(self, other)
    __le__ = lambda self, other: self.steps.less_equal(self, other)
    __gt__ = lambda self, other: self.steps.greater(self, other)
    __ge__ = lambda self, other: self.steps.greater_equal(self, other)
    __and__ = __rand__ = lambda self, other: self.steps.logical_and(self, other)
    __or__ = __ror__ = lambda self, other: self.steps.logical_or(self, other)
    __invert__ = lambda self: self.steps.logical_not(self)
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        return self.steps.equal(self, other)

    def __ne__(self, other):
        return self.steps.not_equal(self, other)

    def __bool__(self):
        raise Untold

    def __getattr__(self, name):
        raise Untold


class Steps:
    """The namespace that a function is followed in: notes which of its functions are called, with what."""

    def __init__(self, dtype):
        self.dtype, self.taken, self.constants, self.made, self.followed = dtype, {}, {}, {}, set()

    def take(self, place, dtype, shape, strides):
        """A stand-in for the argument at ``place``."""
        self.taken[register := ("taken", place)] = (dtype, shape, strides)
        return Value(self, register, dtype, shape)

    def __getattr__(self, name):
        if name in _CODES:
            return functools.partial(self._step, name)
        if name.startswith("__") or name not in FORWARDS or name in self.followed:
            raise Untold
        self.followed.add(name)  # one that would call itself here is NumPy's

        def follow(*args, **static):
            try:
                return FORWARDS[name](self, *args, **static)
            finally:
                self.followed.discard(name)

        return follow

    def _step(self, name, *args):
        values = [a for a in args if a.__class__ is Value]
        if not values or any(v.divisor is not None for v in values):
            raise Untold
        truths = [a.__class__ is Value and a.dtype is _BOOL for a in args]
        if (
            truths != [True] * len(args)
            if name.startswith("logical")
            else truths != [name == "where", False, False][: len(args)]
        ):
            raise Untold  # what NumPy does with truth values is not what is done with numbers
        self.made[register := ("made", len(self.made))] = (name, [self._register_of(a) for a in args])
        return Value(self, register, _BOOL if name in _TRUTHS else self.dtype, self._shape_of(values))

    def _shape_of(self, values):
        try:
            return np.broadcast_shapes(*[v.shape for v in values])
        except ValueError:
            raise Untold from None

    def _register_of(self, value):
        if value.__class__ is Value:
            return value.register
        if value.__class__ not in (int, float) and not (getattr(value, "dtype", None) == self.dtype and not value.ndim):
            raise Untold
        number = float(value)
        self.constants[register := ("constant", number, math.copysign(1, number))] = number
        return register

    def divide(self, x, w):
        """By a power of 2 it is a product, without another rounding."""
        if w.__class__ in (int, float) and 2.0**-60 < math.fabs(w) < 2.0**60 and math.frexp(w)[0] in (0.5, -0.5):
            return x if w == 1 else self.multiply(x, 1.0 / w)
        return self._step("divide", x, w)

    # -- in terms of the steps there are -------------------------------------------------------------------------------

    def greater(self, x, w):
        return self.less(w, x)

    def greater_equal(self, x, w):
        return self.less_equal(w, x)

    def reciprocal(self, x):
        return self.divide(1, x)

    def rsqrt(self, x):
        return self.divide(1, self.sqrt(x))

    def square(self, x):
        return self.multiply(x, x)

    def isnan(self, x):
        return self.not_equal(x, x)

    def conj(self, x):
        return x

    def power(self, x, w):
        """As NumPy's engine has it, for exponents that are little work."""
        known = {1: lambda: x * 1, 2: lambda: x * x, 3: lambda: x * x * x}
        known |= {0.5: lambda: self.sqrt(x), -1: lambda: self.reciprocal(x), -0.5: lambda: self.rsqrt(x)}
        if w.__class__ not in (int, float) or w not in known:
            raise Untold
        return known[w]()

    def reshape(self, x, shape):
        """Of an argument as it came: the same numbers, seen in another shape."""
        dtype, old, strides = self.taken.get(x.register, (None, None, None))
        if strides != _plain_strides(old, dtype) or -1 in shape or math.prod(shape) != math.prod(old):
            raise Untold
        register = (*x.register[:2], tuple(shape))
        self.taken[register] = (dtype, tuple(shape), _plain_strides(shape, dtype))
        return Value(self, register, dtype, tuple(shape))

    def sum(self, x):
        if x.register not in self.made or x.dtype is _BOOL or x.divisor is not None:
            raise Untold
        return Value(self, x.register, x.dtype, (), 1)

    def mean(self, x):
        total = self.sum(x)
        total.divisor = x.size
        return total


class Program:
    """Steps with their registers numbered as the library wants them: inputs, constants, results."""

    def __init__(self, steps, result):
        used = _used(steps.made, [result.register])
        read = {r for name in used for r in steps.made[name][1]}
        reals, masks = (
            [r for r in steps.taken if r in read and (steps.taken[r][0] is _BOOL) is kind] for kind in (False, True)
        )
        constants = [r for r in steps.constants if r in read]
        numbers, self.registers = _numbered([*reals, *masks, *constants], used, steps.made, used[-1:])
        if not reals or len(reals) > _REALS or len(masks) > _MASKS or self.registers > _REGISTERS:
            raise Untold
        shape, self.sizes, self.strides = _layout([steps.taken[r] for r in (*reals, *masks)])
        if any(steps.taken[r][2] != _plain_strides(steps.taken[r][1], _BOOL) for r in masks):
            raise Untold  # the library takes them in C order
        self.shape, self.divisor = (() if result.divisor else shape), result.divisor
        self.reals, self.masks = [r[1] for r in reals], [r[1] for r in masks]
        self.no_reals, self.no_masks = [None] * (_REALS - len(reals)), [None] * (_MASKS - len(masks))
        self.dtype = result.dtype
        self.constants = np.array([steps.constants[r] for r in constants], steps.dtype)
        self.steps = _rows(steps.made, used, numbers)

    def run(self, values):
        reals, masks = [values[i] for i in self.reals], [values[i] for i in self.masks]
        inputs = (*reals, *self.no_reals, *masks, *self.no_masks)
        out = _written_over(values) if self.dtype is reals[0].dtype and self.divisor is None else None
        out = np.empty(self.shape, self.dtype) if out is None else out
        outs = (None, out) if self.dtype is _BOOL else (out, None)
        totals = self.divisor is not None
        library.chain(self.steps, *inputs, *outs, self.sizes, self.strides, self.constants, self.registers, totals)
        return out if not totals or self.divisor == 1 else np.divide(out, out.dtype.type(self.divisor))


def _used(made, results) -> list:
    """The steps that ``results`` need, in their order."""
    wanted = {*results}
    for register in reversed(made):
        if register in wanted:
            wanted.update(made[register][1])
    return [r for r in made if r in wanted]


def _numbered(given, used, made, kept) -> tuple[dict, int]:
    """A number for each register, and how many there are: a result takes over that of one which is read no more.

    Those of ``kept`` are taken over from none and by none: they are the memory of results.
    """
    numbers, last = {r: i for i, r in enumerate(given)}, {r: i for i, step in enumerate(used) for r in made[step][1]}
    free: list[int] = []
    count = len(given)
    for i, step in enumerate(used):
        free += [numbers[r] for r in {*made[step][1]} if last[r] == i and r in made and r not in kept]
        if free and step not in kept:
            numbers[step] = free.pop()
        else:
            numbers[step] = count
            count += 1
    return numbers, count


def _rows(made, used, numbers):
    """The steps as the library reads them."""
    rows = [(_CODES[name], numbers[r], *_three(numbers, args)) for r in used for name, args in [made[r]]]
    return np.array(rows, np.int64).reshape(-1, 5)


def _at_once(name, register, results, made) -> bool:
    """May the step that makes this result write over the argument ``name``? Not if a later one reads that."""
    if register not in made or [*results.values()].count(register) > 1:
        return False
    order = [*made]
    return not any(("taken", name) in made[r][1] for r in order[order.index(register) + 1 :])


def _plain_strides(shape, dtype):
    return None if shape is None else np.empty(shape, dtype).strides


def _three(numbers, args):
    found = [numbers[r] for r in args]
    return (found + found[:1] * 2)[:3]


def _layout(arrays):
    """(the shape of the result, its sizes with neighbouring axes joined, the strides of each array along these)."""
    shape = np.broadcast_shapes(*[each for _, each, _ in arrays])
    strides = [_strides(dtype.itemsize, each, steps, shape) for dtype, each, steps in arrays]
    sizes = [n for n in shape if n != 1]
    for axis in reversed(range(len(sizes) - 1)):
        if all(each[axis] == each[axis + 1] * sizes[axis + 1] for each in strides):
            sizes[axis : axis + 2] = [sizes[axis] * sizes[axis + 1]]
            for each in strides:
                del each[axis]
    return shape, np.array(sizes or [1], np.int64), np.array(strides if sizes else [[0]] * len(arrays), np.int64)


@functools.lru_cache(1024)
def _row(*arrays) -> int:
    """How many results follow each other for which each array's elements lie at one distance; 0 if there are none."""
    try:
        return int(_layout(arrays)[1][-1])
    except ValueError:  # their shapes do not fit, which NumPy has words for
        return 0


def _strides(itemsize, shape, steps, whole):
    """In elements, along the axes of ``whole`` that are longer than 1; 0 where the array is repeated."""
    along = [0] * (len(whole) - len(shape)) + [step // itemsize if n != 1 else 0 for n, step in zip(shape, steps)]
    return [step for step, n in zip(along, whole) if n != 1]


# -- formulas of many arrays in place ----------------------------------------------------------------------------------


def together(function, engine, dtype, names):
    """``function(xp, arrays)`` followed once, for any number of arrays by these names, each group of one shape.

    ``arrays`` and what it returns are dicts. Returns (a function of as many lists of arrays as there are names, which
    writes the results into those arrays; what else was returned: numbers). None where the library does not serve.
    """
    if library is None or dtype.char not in "fd":
        return None
    steps = Alike(dtype, engine)
    try:
        made = function(steps, {name: steps.take(name, dtype, None, None) for name in names})
        values = {name: value for name, value in made.items() if value.__class__ is Value}
        rest = {name: value for name, value in made.items() if name not in values}
        return Together(steps, {name: v.register for name, v in values.items()}, names), rest
    except (Untold, TypeError):  # a shape that was asked for is None
        return None


class Alike(Steps):
    """The same where all arrays have one shape, which is not known, and numbers are computed by the engine."""

    def __init__(self, dtype, engine):
        super().__init__(dtype)
        self.engine = engine

    def _step(self, name, *args):
        if not any(a.__class__ is Value for a in args):
            return getattr(self.engine, name)(*args)
        return super()._step(name, *args)

    def _shape_of(self, values):
        return None

    def _register_of(self, value):
        return super()._register_of(value if value.__class__ is Value else float(value))

    def where(self, condition, x, w):
        if condition.__class__ is Value:
            return self._step("where", condition, x, w)
        if x.__class__ is w.__class__ is Value:
            return x if condition else w
        return self.engine.where(condition, x, w)

    def astype(self, x, dtype):
        if x.__class__ is Value:
            raise Untold
        return self.engine.astype(x, dtype=dtype)

    def full_like(self, x, value):
        return Value(self, self._register_of(value), self.dtype, None)

    def ones_like(self, x):
        return self.full_like(x, 1.0)

    def zeros_like(self, x):
        return self.full_like(x, 0.0)


class Together:
    """Steps whose results are written into arrays, of which there may be many for each input."""

    def __init__(self, steps, results, names):
        results = {name: r for name, r in results.items() if r != ("taken", name)}  # others are as they were
        used = _used(steps.made, results.values())
        read = {r for step in used for r in steps.made[step][1]} | {*results.values()}
        taken, constants = ([r for r in known if r in read] for known in (steps.taken, steps.constants))
        numbers, self.registers = _numbered([*taken, *constants], used, steps.made, {*results.values()})
        if not results or self.registers > _REGISTERS or any(r in steps.taken for r in results.values()):
            raise Untold
        self.read, self.written = ([names.index(n) for n in some] for some in ([r[1] for r in taken], results))
        self.steps = _rows(steps.made, used, numbers)
        pairs = [(numbers[r], _at_once(name, r, results, steps.made)) for name, r in results.items()]
        self.results = np.array(pairs, np.int64)
        self.constants = np.array([steps.constants[r] for r in constants], steps.dtype)

    def __call__(self, *lists):
        written, read = ([a for i in some for a in lists[i]] for some in (self.written, self.read))
        library.updates(written, read, self.steps, self.results, self.constants, self.registers)
