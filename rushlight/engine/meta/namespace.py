"""The meta engine's namespace: every function gives arrays of the shape and dtype that it would give, and no values.

``once`` finds them: what a pure function makes of arguments of these shapes and dtypes is remembered. A new kind of
call is run by the NumPy engine on stand-ins, where they are small; large ones are left to ``jax.eval_shape`` on the XLA
engine where JAX is installed, which computes nothing, else to NumPy on arrays that have one element in memory.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import sys
from typing import Any

import numpy as np

from ...device import device
from ...layout import dense_strides
from ..fallback import through
from ..numpy import layouts
from ..numpy import namespace as numpy_engine
from .array import NO_DATA, Meta

SMALL = 1 << 14  # elements in all arguments: NumPy is quicker than a look by JAX
PLACE = device("meta")
Meta.namespace = sys.modules[__name__]
_known: dict[tuple, Any] = {}


# -- shapes of results -------------------------------------------------------------------------------------------------


def once(name: str, function, constants: tuple, *args):
    """``function(xp, *constants, *args)``, pure in the arrays anywhere in ``args``: its result, ``Meta`` for arrays."""
    arrays: list = []
    args = (*constants, *args)
    try:
        key = (function, _scan(args, arrays))
        known = _known.get(key)
    except TypeError:  # an argument that cannot be a key
        key, known = None, None
    if known is None:
        known = _laid(name, constants, args, _evaluated(name, function, args, arrays), arrays)
        if key is not None:
            _known[key] = known
    return _fresh(known)


def _evaluated(name, function, args, arrays):
    small = sum(a.size for a in arrays) <= SMALL
    if not small and importlib.util.find_spec("jax") is not None:
        return _by_jax(name, function, args)
    result = _by_numpy(function, args, _First(small))
    try:
        again = _by_numpy(function, args, _Second(small))
    except Exception:  # an index out of range, say: these values were only a guess
        again = result
    if _shapes(result) != _shapes(again):
        raise _by_value(name)
    return result


def _laid(name, constants, args, result, arrays):
    """The result of an operator as it would lie in memory: by the rules of the NumPy engine."""
    o = constants[0] if constants else None
    if not hasattr(o, "promote") or o.view:
        return result
    out, auxiliary = result
    if name in layouts.OWN:
        out = layouts.of_its_own(out, name, args[-1], args[len(constants)])
    rule = layouts.rule_of(o, o.node)
    parts: list[Meta] = []
    _scan(out, parts)
    if rule is None or all(a.steps is None for a in (*arrays, *parts)):
        return out, auxiliary
    given = args[len(constants)]
    if out.__class__ is tuple:
        out = tuple([rule(a, given) if a.shape == out[0].shape else a for a in out])
    elif out.ndim > 1:
        out = rule(out, given)
    return out, auxiliary


def _by_value(name):
    return NotImplementedError(
        f"{name}: the shape of the result depends on values, and tensors on the meta device have none"
    )


def _by_numpy(function, args, values):
    with np.errstate(all="ignore"):
        return _abstract(function(numpy_engine, *_filled(args, values)))


def _by_jax(name, function, args):
    import jax

    from ..xla import namespace as xla

    arrays: list[Meta] = []
    _scan(args, arrays)
    made: list = []

    def run(values):
        rest = iter(values)
        result = function(xla, *_filled(args, lambda _: next(rest)))
        made.append(result)
        return [x for x in jax.tree.leaves(result) if hasattr(x, "dtype")]

    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    try:
        jax.eval_shape(run, shapes)
    except jax.errors.ConcretizationTypeError as error:
        raise _by_value(name) from error
    return _abstract(made[0])


class _First:
    """Stand-ins: unit matrices, so that they can be inverted; zeros, which are good indices."""

    def __init__(self, small: bool):
        self.small = small

    def __call__(self, a):
        if a.dtype.kind in "biu" or not self.small:
            return np.broadcast_to(np.zeros((), a.dtype), a.shape)
        if a.ndim < 2:
            return np.linspace(0.25, 0.75, a.size).reshape(a.shape).astype(a.dtype)
        made = np.array(np.broadcast_to(np.eye(*a.shape[-2:]), a.shape), a.dtype, order="C")
        if a.steps is None:
            return made
        laid = a.laid_out()
        laid[...] = made
        return laid


class _Second(_First):
    """Other values: a shape that differs with them depends on values."""

    def __call__(self, a):
        if a.dtype.kind in "iu" and self.small:
            return (np.arange(a.size) % 2).reshape(a.shape).astype(a.dtype)
        return np.broadcast_to(np.ones((), a.dtype), a.shape)


def _scan(value, arrays: list):
    """What makes a kind of its own of ``value``; the arrays in it are appended to ``arrays``."""
    kind = value.__class__
    if kind is Meta:
        arrays.append(value)
        return value.shape, value.dtype, value.steps
    if kind is tuple or kind is list:
        return kind, tuple([_scan(part, arrays) for part in value])
    if kind is dict:
        return tuple([(name, _scan(part, arrays)) for name, part in value.items()])
    if kind is slice:
        return slice, value.start, value.stop, value.step
    if kind is np.ndarray:
        return value.shape, value.dtype.str, value.tobytes()
    if kind is float:
        return float, repr(value)
    return kind, value


def _filled(value, values):
    """``value`` with ``values(array)`` in the place of each array."""
    kind = value.__class__
    if kind is Meta:
        return values(value)
    if kind is tuple or kind is list:
        return kind([_filled(part, values) for part in value])
    if kind is dict:
        return {name: _filled(part, values) for name, part in value.items()}
    return value


def _abstract(value):
    """A result with ``Meta`` in the place of each array."""
    if isinstance(value, (tuple, list)):
        parts = [_abstract(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {name: _abstract(part) for name, part in value.items()}
    if hasattr(value, "tree_flatten"):  # what a fused body of XLA's keeps for a backward that nobody will run here
        return None
    if value.__class__ is np.ndarray:
        return Meta.like(value)
    return Meta(value.shape, value.dtype) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def _fresh(value):
    """A result of its own for each call."""
    return _filled(value, Meta.copy)


def _shapes(value):
    arrays: list = []
    _scan(value, arrays)
    return [(a.shape, a.dtype) for a in arrays]


# -- operators ---------------------------------------------------------------------------------------------------------


class _Gradients(dict):
    """Every operator has this backward: a gradient has its input's shape and dtype."""

    def get(self, name, default=None):
        return _gradients


def _gradients(g, edges, known):
    return [None if edge is None or edge.shape is None else Meta(edge.shape, edge.dtype) for edge in edges]


DEFERS = False
BODIES: dict = {}  # an operator is evaluated as a whole, see ``once``
BACKWARD = _Gradients()


def __getattr__(name: str):
    """NumPy's function of that name, for shapes. It is not made a global: some have the names of Python's own."""
    return _function(name)


@functools.cache
def _function(name: str):
    return through(once, numpy_engine, name)


# -- arrays and devices ------------------------------------------------------------------------------------------------


def device_of(array) -> device:
    return PLACE


def place_of(d):
    return d


def to_device(array, d) -> Meta:
    if array.__class__ is np.ndarray and not array.flags.c_contiguous:
        return Meta(array.shape, array.dtype).laid(layouts.preserved(array.shape, layouts.strides_of(array)))
    return Meta(array.shape, array.dtype)


def to_numpy(array):
    raise NotImplementedError(NO_DATA)


def check_same_device(arrays) -> None:
    for a in arrays:
        if getattr(a, "ndim", 0) and a.__class__ is not Meta:
            raise RuntimeError("Tensor on device cpu is not on the expected device meta!")


@contextlib.contextmanager
def explained(place=None, holding=""):
    yield


def draw(kind: str, generator, d, args: tuple, options: dict) -> Meta:
    """Random numbers: (shape, dtype), or arrays of parameters."""
    if not any(a.__class__ is Meta for a in args):
        return Meta(*args)
    return Meta(np.broadcast_shapes(*[a.shape for a in args]), args[0].dtype)


def is_traced(x) -> bool:
    return True  # values cannot be looked at: what checks them goes on


def is_known(x) -> bool:
    return False


def on_host(function, name, *arrays):
    raise _by_value(name)


def asarray(x, dtype=None, copy=None) -> Meta:
    x = x if x.__class__ is Meta else np.asarray(x)
    return Meta(x.shape, dtype or x.dtype, getattr(x, "steps", None))


def astype(x, dtype) -> Meta:
    return asarray(x, dtype)


def alias(x) -> Meta:
    return x.copy()


def lay_out(x, order) -> Meta:
    return x.laid(dense_strides(x.shape, order))


def full(shape, fill_value, dtype=None, device=None) -> Meta:
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    return Meta(shape, np.asarray(fill_value).dtype if dtype is None else dtype)


def zeros(shape, dtype=None) -> Meta:
    return full(shape, 0.0, dtype)


ones = zeros


def zeros_like(x, dtype=None) -> Meta:
    return Meta(x.shape, dtype or x.dtype)


ones_like = zeros_like


def broadcast_to(x, shape) -> Meta:
    np.broadcast_shapes(x.shape, tuple(shape))
    return Meta(shape, x.dtype)


def reshape(x, shape) -> Meta:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape = tuple([x.size // rest if n == -1 else n for n in shape])
    return Meta(shape, x.dtype)


def nonzero(x):
    raise _by_value("nonzero")
