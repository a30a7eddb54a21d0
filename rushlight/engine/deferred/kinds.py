"""Kinds of recorded calls.

A kind is a function with its static arguments and the shapes and dtypes of the arrays that go in; it knows what comes
out, because a new kind is evaluated on shapes once: errors of shape are raised at the line that made them. Recording a
call that was seen before is one look into a dictionary.

Python floats, and integers that are operands, are part of the key, hence constants of the program, until one of them is
seen with another value in a later recording. From then on it is an input, so that a learning rate or a step count does
not compile a program for each value; a loop over ``x[0]``, ``x[1]``, … in one recording has constants.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np

from ...errors import ValuesNeeded
from .. import Number
from ..native import library
from ..xla.devices import KEY_WORDS, NEEDS_VALUE, check_room, compiling_for
from .array import Deferred, aval_of

by_id: list[Kind] = []  # Kind.id -> Kind; what a recording's numbers refer to


class Kind:
    """One kind of recorded call: ``run(arrays, numbers, key)`` on JAX's arrays gives the list of its outputs.

    ``moving`` are the numbers in the arguments that are inputs: {the place of each among them: a value}.
    """

    __slots__ = ("arrays", "build", "id", "interpreted", "keyed", "name", "numbers", "outputs", "run")

    def __init__(self, name: str, function, args: tuple, arrays: list, device, keyed=False, moving=None):
        moving = moving or {}
        self.name, self.arrays, self.keyed, self.numbers = name, len(arrays), keyed, len(moving)
        structure: list = []
        expected: list = []
        template = _emptied(args)  # arrays given now must not be held for good

        def run(values, numbers, key):
            filled = _Filling(values, numbers, moving)(template)
            with compiling_for(device):  # bodies may ask which device that is
                result = function[0](*function[1:], *filled, *((key,) if keyed else ()))
            arrays, form = _apart(result)
            if expected and [(x.shape, x.dtype) for x in arrays] != expected:
                raise RuntimeError(f"{name}: {expected} was foreseen, not {[(x.shape, x.dtype) for x in arrays]}")
            structure[:] = form
            return arrays

        def interpreted(xp, values, numbers):
            """The same in another namespace, of arrays with values; ValueError if the result has another form."""
            result = function[0](xp, *function[2:], *_Filling(values, numbers, moving)(template))
            arrays, form = _apart(result)
            if list(form) != structure or [(x.shape, x.dtype) for x in arrays] != expected:
                raise ValueError(f"{name} has a form of its own on {xp.__name__}")
            return arrays

        # What trains comes back: it is compiled at once.
        self.interpreted = None if getattr(function[0], "trains", False) else interpreted
        run.__name__ = name
        self.run = jax.jit(run)
        foreseen = getattr(function[0], "foreseen", None)
        result = None if foreseen is None else foreseen(*function[2:], *args)
        if result is not None:
            made, structure[:] = _apart(result)
        else:
            shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
            made = jax.eval_shape(self.run, shapes, list(moving.values()), _KEY if keyed else None)
        self.outputs = tuple([aval_of(x.shape, x.dtype) for x in made])
        size = sum(math.prod(a.shape) * a.dtype.itemsize for a in self.outputs)
        if size > _LARGE:  # an array that no memory can hold is noticed at this line, not when somebody looks
            check_room(jax.local_devices()[0], size)
        expected[:] = [(a.shape, a.dtype) for a in self.outputs]
        self.build = _builder(*structure)
        self.id = len(by_id)
        by_id.append(self)


_LARGE = 2**30  # bytes
_KEY = jax.ShapeDtypeStruct((KEY_WORDS,), np.uint32)


def _apart(result) -> tuple[list, tuple]:
    """(the arrays in a result, its form: a tree, and for each leaf None or, in a tuple, what is no array)."""
    leaves, tree = jax.tree.flatten(result, is_leaf=lambda x: x is None)
    return [x for x in leaves if _is_array(x)], (tree, [None if _is_array(x) else (x,) for x in leaves])


def _is_array(x) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _builder(tree, fixed):
    """None if the result is one array; else a function that puts a list of arrays into the result's form."""
    leaf, count = jax.tree.structure(0), len(fixed)
    if tree == leaf and fixed[0] is None:
        return None
    if tree == jax.tree.structure((0, 0)) and fixed == [None, (None,)]:  # an operator that keeps nothing: the commonest
        return lambda made: (made[0], None)
    for form in (tuple, list):
        if tree == jax.tree.structure(form([0] * count)):
            return form if all(f is None for f in fixed) else _flat_builder(form, fixed)

    def build(made):
        arrays = iter(made)
        return jax.tree.unflatten(tree, [next(arrays) if f is None else f[0] for f in fixed])

    return build


def _flat_builder(form, fixed):
    def build(made):
        arrays = iter(made)
        return form([next(arrays) if f is None else f[0] for f in fixed])

    return build


class Family:
    """Calls that differ only in the values of numbers: the first call's, and the places of those that have differed."""

    __slots__ = ("key", "kind", "moving", "numbers", "recording", "stays")

    def __init__(self, key: tuple, numbers: list, recording: int):
        self.key, self.numbers, self.recording = key, numbers, recording
        self.moving: set = set()
        self.kind: Kind | None = None
        self.stays = False  # a number decides what is computed, so it can only be a constant


_kinds: dict[tuple, Kind] = {}
_families: dict[tuple, Family] = {}
_unknowable: set[tuple] = set()  # calls whose results have shapes that depend on values


def find(name: str, function, args: tuple, key: list, arrays: list, recording, keyed=False) -> tuple[Kind, Any]:
    """(the kind of this call, the numbers it takes as inputs).

    ``function`` is a tuple of it and its first arguments; ``key`` what ``scan`` made of the others, with the device.
    """
    full = tuple(key)
    kind = _kinds.get(full)
    if kind is not None:
        return kind, ()
    if full in _unknowable:
        raise ValuesNeeded(name)
    try:
        if float in full or Number in full:
            found = _of_family(name, function, args, full, arrays, recording, keyed)
            if found is not None:
                return found
        kind = _kinds[full] = Kind(name, function, args, arrays, recording.device, keyed)
    except NEEDS_VALUE:
        _unknowable.add(full)
        raise
    return kind, ()


def _of_family(name, function, args, full, arrays, recording, keyed):
    """A kind with moving numbers for this call; None if it is to have constants only."""
    general = tuple([None if i and full[i - 1] in _NUMBERS else part for i, part in enumerate(full)])
    numbers = _numbers_in(args, [])
    family = _families.get(general)
    if family is None:
        _families[general] = Family(full, numbers, recording.number)
        return None
    if family.recording == recording.number:
        family.key = None  # several values in one recording: each is a constant for good
        return None
    if family.stays:
        return None
    moved = {i for i, (a, b) in enumerate(zip(family.numbers, numbers)) if a != b}
    if not moved <= family.moving or family.kind is None:
        family.moving |= moved
        try:
            moving = {i: numbers[i] for i in sorted(family.moving)}
            family.kind = Kind(name, function, args, arrays, recording.device, keyed, moving)
        except NEEDS_VALUE:
            family.stays = True
            return None
        _kinds.pop(family.key, None)  # or the first value would remain a program of its own
    return family.kind, [numbers[i] for i in sorted(family.moving)]


def forget() -> None:
    """Settings that kinds were made under have changed."""
    _kinds.clear()
    _families.clear()


class Traced(Exception):
    """Somebody traces this code with JAX: nothing is to be recorded."""


def plain_scan(value, arrays: list, key: list) -> None:
    """Append the promises in ``value`` to ``arrays``, and what makes it a kind of its own to ``key``."""
    kind = value.__class__
    if kind is Deferred:
        arrays.append(value)
        key.append(value.aval)
    elif kind is tuple or kind is list:
        key += (kind, len(value))
        for part in value:
            kind = part.__class__
            if kind is Deferred:
                arrays.append(part)
                key.append(part.aval)
            elif kind in _leaves:  # the commonest, without a call for each
                key += (kind, part)
            else:
                plain_scan(part, arrays, key)
    elif kind is dict:
        key.append(len(value))
        for name, part in value.items():
            key.append(name)
            plain_scan(part, arrays, key)
    elif kind in _NUMBERS:
        key.append(kind)
        key.append(value if value == value and value else repr(value))  # nan, and zeros of either sign
    elif kind in _leaves:
        key.append(kind)
        key.append(value)
    elif kind is slice:
        key += (slice, value.start, value.stop, value.step)
    elif isinstance(value, _ARRAYS):
        if isinstance(value, jax.core.Tracer):
            raise Traced
        entered = Deferred(np.array(value) if isinstance(value, np.generic) else value)
        arrays.append(entered)
        key.append(entered.aval)
    elif jax.tree_util.all_leaves([value]):
        _leaves.add(kind)
        key.append(kind)
        key.append(value)
    else:  # some other container, residuals of a fused body say
        leaves, tree = jax.tree.flatten(value)
        key.append(tree)
        for leaf in leaves:
            plain_scan(leaf, arrays, key)


_ARRAYS = (np.ndarray, np.generic, jax.Array)
_NUMBERS = {float: float, Number: int}  # classes of numbers that may move, and what JAX is given for them
_leaves: set[type] = {int, bool, str, type(None), complex, np.dtype}  # classes whose objects are constants

scan = plain_scan
if library is not None:
    library.recorder_uses(Deferred, _leaves, plain_scan, _kinds)
    scan = library.scan  # the same in C; what is rare is handed to the plain one


class _Hole:
    """Where an array belongs in the arguments of a kind."""


def _emptied(value):
    """``value`` with holes for the arrays that ``scan`` finds in it."""
    kind = value.__class__
    if kind is tuple or kind is list:
        return kind([_emptied(part) for part in value])
    if kind is dict:
        return {name: _emptied(part) for name, part in value.items()}
    if kind is Deferred or isinstance(value, _ARRAYS):
        return _Hole
    if kind is slice or kind in _leaves or jax.tree_util.all_leaves([value]):
        return value
    return jax.tree.map(_emptied, value)


class _Filling:
    """Puts arrays into the holes of an emptied value, and numbers in the place of moving ones."""

    def __init__(self, arrays, numbers, moving):
        self.arrays, self.numbers, self.moving = iter(arrays), iter(numbers), moving
        self.places = itertools.count()

    def __call__(self, value):
        kind = value.__class__
        if value is _Hole:
            return next(self.arrays)
        if kind is tuple or kind is list:
            return kind([self(part) for part in value])
        if kind is dict:
            return {name: self(part) for name, part in value.items()}
        if kind in _NUMBERS:
            return next(self.numbers) if next(self.places) in self.moving else _NUMBERS[kind](value)
        if kind is slice or kind in _leaves or jax.tree_util.all_leaves([value]):
            return value
        return jax.tree.map(self, value)


def _numbers_in(value, found: list) -> list:
    """The numbers in ``value`` that may move, as Python's own, in the order in which ``scan`` meets them."""
    kind = value.__class__
    if kind in _NUMBERS:
        found.append(_NUMBERS[kind](value))
    elif kind is tuple or kind is list:
        for part in value:
            _numbers_in(part, found)
    elif kind is dict:
        for part in value.values():
            _numbers_in(part, found)
    return found
