"""An op together with the casts that ``autocast`` puts before it: one recorded call instead of one for each argument.

Where calls are recorded (``xp.DEFERS``), what Python does for each counts more than the cast. The op that is called
keeps its rules and its engine's bodies; ``evaluate`` and ``OpNode`` see its ``lowered`` and cast what it is given.
"""

from __future__ import annotations

import copy
import functools

import numpy as np

from ..engine import WIDER, namespace_of
from ..tensor import Tensor
from .mode import state
from .overriding import PLAIN

_FLOATS = frozenset({np.dtype(np.float32), *(low for low, wide in WIDER.items() if wide.kind == "f")})
_new = object.__new__


def fused(call, args, dtype):
    """(a call with the casts inside, its arguments); None where they have to be made one by one.

    So they are where somebody may look at them: saved-tensor hooks, a profiler, other modes, double precision.
    """
    if state.interceptors or state.saved_hooks or state.anomaly or state.profile is not None:
        return None
    op, given, casts = call.op, [], False
    if op.derive or op.promote or op.variadic:
        return None
    for a in args:
        if isinstance(a, Tensor):
            if a._view is not None and a._view.seen != a._storage.version:
                a._refresh()
            array = a._array
            if a.__class__ not in PLAIN or array.dtype not in _FLOATS or not namespace_of(array).DEFERS:
                return None
            if array.dtype != dtype:
                a, casts = _as_it_is(a), True
        given.append(a)
    return (_with_casts(call, dtype) if casts else call), given


def lowered(xp, value, dtype):
    """A value that the op is given or has kept, in half precision if it is floating-point."""
    array = value._array if isinstance(value, Tensor) else value
    if getattr(array, "dtype", None) not in _FLOATS or array.dtype == dtype:
        return value
    return xp.astype(value, dtype=dtype)


def _as_it_is(a: Tensor) -> Tensor:
    """The tensor as a cast would see it: what is written to ``a`` later is no concern of the graph."""
    t = _new(Tensor)
    t._array, t._node, t._grad, t._storage, t._view = a._array, a._node, None, None, None
    return t


@functools.cache
def _with_casts(call, dtype):
    from .call import caller

    op = copy.copy(call.op)
    op.lowered = dtype
    return caller(op, call.node, short=False)
