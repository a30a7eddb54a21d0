"""The namespace of ``Batched`` arrays: each function does for all examples at once what it would do for one.

A function has a batching rule (``rules.py``), by family for most. One without runs for one example after the other, so
it is right all the same; ``SLICED`` counts which did. On the XLA engine JAX's own batching does all of it.

Levels nest: the innermost ``vmap`` an argument belongs to is taken away first, and the same function is called on
what is under it, by the engine of that.
"""

from __future__ import annotations

import collections
import contextlib
import functools

import numpy as np

from .. import namespace_of
from ..fallback import FORWARDS, run
from ..numpy import namespace as numpy_engine
from .array import CONTROL_FLOW, ITEM, Batched, Mapped, Unbatchable
from .rules import OPERATORS, RULES

SLICED: collections.Counter = collections.Counter()  # what ran slice by slice, by name
DEFERS = True  # all gradients of an operator are one call of ``once``, so that it can be sliced or left to JAX as one


# -- an operator, or its gradients, as one piece -----------------------------------------------------------------------


def once(name: str, function, constants: tuple, *args):
    """``function(xp, *constants, *args)``, pure in the arrays anywhere in ``args``."""
    level, mapped, base = _survey(args)
    if level is None:
        return _engine(args).once(name, function, constants, *args)
    if not mapped:
        below = _map(args, lambda a: _below(a, level))
        return _raised(_engine(below).once(name, function, constants, *below), level, False)
    if base is not numpy_engine:
        return _by_jax(name, function, constants, args, level)
    try:
        return _raised(function(inside, *constants, *args), level, None)
    except Unbatchable:
        return _by_slices(name, function, constants, args, level)


class _Inside:
    """The namespace as an operator's own functions see it: they are no longer one piece."""

    DEFERS = False

    def __getattr__(self, name: str):
        return globals()[name] if name in globals() else __getattr__(name)


inside = _Inside()


class _Bodies(dict):
    """Element-wise operators, and those that take leading axes anyway, are handed on whole."""

    def get(self, name, default=None):
        rule = OPERATORS.get(name)
        return default if rule is None else functools.partial(_operator, name, rule, default)


def _operator(name, rule, forward, xp, *arrays, **static):
    level = _top(arrays)
    if level is None or not _is_mapped(arrays, level):
        return forward(xp, *arrays, **static)
    below = [_marked(a, level) for a in arrays]
    engine = _engine([a.whole if a.__class__ is Mapped else a for a in below])
    made = rule(functools.partial(engine.BODIES.get(name, forward), engine), engine, level.size, *below, **static)
    if made is NotImplemented:
        return forward(xp, *arrays, **static)
    return _raised(made, level, True)


BODIES: dict = _Bodies()
BACKWARD: dict = {}


def _by_slices(name, function, constants, args, level):
    """For one example after the other; results are stacked."""
    SLICED[name] += 1
    below = _map(args, lambda a: _marked(a, level))
    engine = _engine(_map(below, lambda a: a.whole if a.__class__ is Mapped else a))
    found = [function(engine, *constants, *_map(below, lambda a, i=i: _slice(engine, a, i))) for i in range(level.size)]
    return _raised(_stacked(engine, found), level, True)


def _slice(engine, a, i):
    return engine.getitem(a.whole, i) if a.__class__ is Mapped else a


def _stacked(engine, found):
    first = found[0]
    if isinstance(first, (tuple, list)):
        return _like(first, [_stacked(engine, [f[i] for f in found]) for i in range(len(first))])
    if first is None or not hasattr(first, "dtype"):
        return first
    for i, f in enumerate(found):
        if f.shape != first.shape:
            sizes = f"got {list(first.shape)} at entry 0 and {list(f.shape)} at entry {i}"
            raise RuntimeError(f"stack expects each tensor to be equal size, but {sizes}")
    return engine.stack([np.asarray(f) if isinstance(f, np.generic) else f for f in found])


# -- functions ---------------------------------------------------------------------------------------------------------


def __getattr__(name: str):
    """The function of that name; it is not made a global, for some have the names of Python's own."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _function(name)


@functools.cache
def _function(name: str):
    known = getattr(numpy_engine, name)
    if not callable(known):
        return known
    rule = RULES.get(name)
    if rule is None and name in FORWARDS and not _is_own(name):
        return functools.partial(_composed, name)

    def batched(*args, **options):
        if rule is not None:
            level = _plain(args, options)
            if level is not None:  # one level over NumPy: no more to look for
                given = [a if a.__class__ is not Batched else Mapped(a.inner) if a.mapped else a.inner for a in args]
                return _raised(rule(known, numpy_engine, level.size, *given, **options), level, True)
        level, mapped, base = _survey((args, options))
        if level is None:
            return getattr(_engine((args, options)), name)(*args, **options)
        if base is not numpy_engine:
            return once(name, run, (name,), args, options)
        if not mapped:
            args, options = _map((args, options), lambda a: _below(a, level))
            return _raised(getattr(_engine((args, options)), name)(*args, **options), level, False)
        if rule is None:
            return _by_slices(name, run, (name,), (args, options), level)
        args, options = _map((args, options), lambda a: _marked(a, level))
        engine = _engine(_map((args, options), lambda a: a.whole if a.__class__ is Mapped else a))
        made = rule(getattr(engine, name), engine, level.size, *args, **options)
        return _raised(made, level, True)

    batched.__name__ = name
    return batched


def _is_own(name: str) -> bool:
    """Is it a function of NumPy's, or of the engine's? Else it is the forward function of an operator."""
    found = getattr(numpy_engine, name)
    return not (isinstance(found, functools.partial) and found.func is FORWARDS[name])


def _composed(name, *args, **options):
    return once(name, _forward, (name,), args, options)


def _forward(xp, name: str, args: tuple, options: dict):
    return FORWARDS[name](xp, *args, **options)


# -- levels ------------------------------------------------------------------------------------------------------------


def _top(value):
    """The innermost level that an array in ``value`` belongs to."""
    kind = value.__class__
    if kind is Batched:
        return value.level
    top = None
    if kind is tuple or kind is list:
        for part in value:
            if part.__class__ in _CONTAINERS:
                level = _top(part)
                if level is not None and (top is None or level.depth > top.depth):
                    top = level
    elif kind is dict:
        return _top(tuple(value.values()))
    return top


_CONTAINERS = frozenset({Batched, tuple, list, dict})


def _plain(args, options):
    """The level of the arrays in ``args``, if there is one alone, over NumPy's arrays, and it maps over one of them."""
    level, mapped = None, False
    for a in args:
        kind = a.__class__
        if kind is Batched:
            if a.inner.__class__ is not np.ndarray or (level is not None and a.level is not level):
                return None
            level, mapped = a.level, mapped or a.mapped
        elif kind not in _PLAIN:
            return None
    for value in options.values():
        if (value.__class__ in _CONTAINERS and value.__class__ is not tuple) or not _flat(value):
            return None
    return level if mapped else None


_PLAIN = frozenset({np.ndarray, int, float, bool, str, type(None)})


def _flat(value) -> bool:
    return value.__class__ is not tuple or all(part.__class__ is int for part in value)


def _survey(value):
    """(the innermost level of the arrays in ``value``, does it map over one of them, the engine under all levels)."""
    found: list = []
    _collect(value, found)
    level, base = None, numpy_engine
    for array in found:
        if array.__class__ is Batched and (level is None or array.level.depth > level.depth):
            level = array.level
    mapped = False
    for array in found:
        if array.__class__ is Batched:
            mapped = mapped or (array.mapped and array.level is level)
            array = _bottom(array)
        if array.__class__ is not np.ndarray:
            base = namespace_of(array)
    return level, mapped, base


def _is_mapped(value, level) -> bool:
    kind = value.__class__
    if kind is Batched:
        return value.mapped and value.level is level
    if kind is tuple or kind is list:
        return any(_is_mapped(part, level) for part in value if part.__class__ in _CONTAINERS)
    return kind is dict and _is_mapped(tuple(value.values()), level)


def _map(value, function):
    """``value`` with ``function(array)`` in the place of each array of this engine."""
    kind = value.__class__
    if kind is Batched or kind is Mapped:
        return function(value)
    if kind is tuple or kind is list:
        return kind([_map(part, function) if part.__class__ in _INSIDE else part for part in value])
    if kind is dict:
        return {name: _map(part, function) for name, part in value.items()}
    return value


_INSIDE = _CONTAINERS | {Mapped}


def _below(a, level):
    return a.inner if a.level is level else a


def _marked(a, level):
    """An argument as rules see it: ``Mapped`` if it differs between examples, else the array itself."""
    if a.__class__ is not Batched or a.level is not level:
        return a
    return Mapped(a.inner) if a.mapped else a.inner


def _raised(value, level, mapped):
    """Arrays in a result as ones of ``level``; with ``mapped`` None, those that are not already."""
    if isinstance(value, (tuple, list)):
        return _like(value, [_raised(part, level, mapped) for part in value])
    if value is None or not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return value
    if mapped is None:
        if value.__class__ is Batched and _has(value, level):
            return value
        mapped = False
    return Batched(np.asarray(value) if isinstance(value, np.generic) else value, level, mapped)


def _like(value, parts: list):
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _has(array, level) -> bool:
    while array.__class__ is Batched:
        if array.level is level:
            return True
        array = array.inner
    return False


def _engine(value):
    """The engine for the arrays in ``value``: that of a ``vmap`` outside if there is one, else not NumPy's if any."""
    found: list = []
    _collect(value, found)
    engine = numpy_engine
    for array in found:
        if array.__class__ is Batched:
            return namespace_of(array)
        if array.__class__ is not np.ndarray:
            engine = namespace_of(array)
    return engine


def _collect(value, found: list) -> None:
    kind = value.__class__
    if kind is np.ndarray or kind is Batched:
        found.append(value)
    elif kind in _OTHERS:
        return
    elif isinstance(value, (tuple, list)):
        for part in value:
            _collect(part, found)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, found)
    elif hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, np.generic):
        found.append(value)


_OTHERS = frozenset({int, float, bool, str, type(None)})


# -- on XLA ------------------------------------------------------------------------------------------------------------


def _by_jax(name, function, constants, args, level):
    """JAX maps the whole call over the hidden axes."""
    arrays: list = []
    structure = _taken(args, level, arrays)
    engine = _engine(arrays)
    result = engine.once(name, _vmapped, (function, constants, structure, level.size), tuple(arrays))
    return _raised(result, level, True)


class _Place:
    """Where an array was: its number, and whether it is mapped."""

    __slots__ = ("mapped", "number")

    def __init__(self, number, mapped):
        self.number, self.mapped = number, mapped

    def __eq__(self, other):
        return isinstance(other, _Place) and (self.number, self.mapped) == (other.number, other.mapped)

    def __hash__(self):
        return hash((self.number, self.mapped))


def _taken(value, level, arrays: list):
    """``value`` as something hashable with places for its arrays, which are appended to ``arrays``."""
    kind = value.__class__
    if kind is tuple or kind is list:
        return kind, tuple([_taken(part, level, arrays) for part in value])
    if kind is dict:
        return dict, tuple([(name, _taken(part, level, arrays)) for name, part in value.items()])
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, np.generic):
        marked = _marked(value, level)
        mapped = marked.__class__ is Mapped
        arrays.append(marked.whole if mapped else marked)
        return _Place(len(arrays) - 1, mapped)
    return None, value


def _filled(structure, arrays):
    if structure.__class__ is _Place:
        return arrays[structure.number]
    kind, value = structure
    if kind is None:
        return value
    if kind is dict:
        return {name: _filled(part, arrays) for name, part in value}
    return kind([_filled(part, arrays) for part in value])


def _places(structure, found: dict) -> dict:
    if structure.__class__ is _Place:
        found[structure.number] = 0 if structure.mapped else None
    elif structure[0] is dict:
        for _, part in structure[1]:
            _places(part, found)
    elif structure[0] is not None:
        for part in structure[1]:
            _places(part, found)
    return found


def _vmapped(xp, function, constants, structure, size, arrays):
    from ..xla.batching import mapped

    places = _places(structure, {})
    axes = tuple(places[i] for i in range(len(arrays)))
    return mapped(lambda *given: function(xp, *constants, *_filled(structure, given)), axes, size, arrays)


# -- arrays and devices ------------------------------------------------------------------------------------------------


def _bottom(array):
    while array.__class__ is Batched:
        array = array.inner
    return array


def device_of(array):
    from ...device import cpu

    array = _bottom(array)
    return cpu if array.__class__ is np.ndarray else namespace_of(array).device_of(array)


def to_device(array, d):
    """``array`` on device ``d``, at the same levels."""
    if array.__class__ is not Batched:
        return array
    below = array.inner
    engine = namespace_of(below)
    if d.type == "cpu":
        moved = below if below.__class__ is np.ndarray else engine.to_numpy(below)
    elif below.__class__ is Batched:
        moved = to_device(below, d)
    else:
        from .. import accelerated, meta

        moved = (meta() if d.type == "meta" else accelerated()).to_device(below, d)
    return Batched(moved, array.level, array.mapped)


def place_of(d):
    return d


def to_numpy(array):
    raise RuntimeError(ITEM)


def decide(array):
    """``bool(tensor)``."""
    raise RuntimeError(CONTROL_FLOW)


def check_same_device(arrays) -> None:
    """Left to the engine below."""


@contextlib.contextmanager
def explained(place=None, holding=""):
    yield


def draw(kind: str, generator, d, args: tuple, options: dict):
    raise NotImplementedError("random numbers with parameters that vmap maps over")


def is_traced(x) -> bool:
    return x.__class__ is Batched  # values cannot be looked at: what checks them goes on


def is_known(x) -> bool:
    return x.__class__ is not Batched


def on_host(function, name, *arrays):
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )


def nonzero(x):
    return on_host(None, "nonzero", x)


def scan(step, carry, *xs):
    """The carries ``carry = step(carry, *x)`` for x in zip(*xs), stacked."""
    carries = []
    for i in range(len(xs[0])):
        carry = step(carry, *[x[i] for x in xs])
        carries.append(carry)
    return __getattr__("stack")(carries)


Batched.namespace = __import__("sys").modules[__name__]
