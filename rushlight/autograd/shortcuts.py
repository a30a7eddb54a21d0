"""Short cuts for the commonest calls: float32 or float64 on NumPy, nothing to convert, no mode but the grad switch.

Whole numbers alone, and indices or a mask beside others, where the op takes them as they are: the library's, too.

Whatever else comes, bad arguments among them, is handed to the general caller. The three repeat lines of it and of each
other because nearly each of those lines may end in that hand-over, which a shared function could not do for its caller.

The library in C does the same for calls where nothing at all is special (``_in_c``); what it leaves comes here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from ..engine.native import library
from ..engine.numpy import layouts
from ..engine.numpy import namespace as numpy_engine
from ..tensor import Storage, Tensor, View, wrap
from . import mode
from .mode import state
from .node import OpNode
from .overriding import PLAIN
from .plan import Plan, Plans
from .record import link_view, make_node, note_layouts, record_several, versions_of
from .tape import Node, _sequence

if TYPE_CHECKING:
    from .op import Op

_ndarray = np.ndarray
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_INT, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_SCALARS = frozenset({int, float, bool, type(None)})
_new = object.__new__


def _numpy_function(o: Op):
    """What computes the op on NumPy arrays: its body; the function of its name, where forward only calls that."""
    function, *first = _function_and_engine(o)
    return functools.partial(function, *first) if first else function


def _function_and_engine(o: Op):
    body = numpy_engine.BODIES.get(o.name)
    if body is None and _only_calls(o):
        return (getattr(numpy_engine, o.name),)
    return body or o.forward, numpy_engine


def _only_calls(o: Op) -> bool:
    """Does forward do nothing but call the function of the op's name with its arrays? Told by running it on tokens."""
    tokens, probe = [object() for _ in o.arrays], _Probe()
    try:
        return o.forward(probe, *tokens) is probe and probe.called == [(o.name, *tokens)]
    except Exception:
        return False


class _Probe:
    """A namespace that notes which of its functions are called, with what; each returns the namespace."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        return lambda *args: self.called.append((name, *args)) or self


# Results of these lie in plain order where all operands do.
_PLAIN_IN_PLAIN_OUT = (
    None, layouts.channels, layouts.each, layouts.each_alone, layouts.joined, layouts.like, layouts.padded,
    layouts.plain
)  # fmt: skip


def _in_c(o: Op, plans: Plans, layout, some=False):
    """``short(static, *arrays)``: the Tensor, or several, or None if a call is not so common; None without the library.

    ``some``: arrays but the first may be truths and None, beside Python's numbers.
    """
    if library is None:
        return None
    function, *engine = _function_and_engine(o)
    first, link = engine[0] if engine else None, link_view if o.view else None
    plain, statics = layout in _PLAIN_IN_PLAIN_OUT, len(o.static) if o.view is True else -1
    many, mask = bool(o.variadic), o.keep[0] if o.keep else -1
    index, ints = (o.promote == kind and o.check is None for kind in (None, "common"))
    return library.short_call(
        o, len(o.arrays), function, first, plans, bool(o.rules), link, some, plain, o.turns, statics, many, index, ints,
        mask
    )  # fmt: skip


def pair(o: Op, plans: Plans, general):
    """For ops of two arrays, or one and a Python number."""
    compute, recorded, known = _numpy_function(o), bool(o.rules), [None] * 4
    as_they_are = o.promote == "common" and o.check is None
    layout = layouts.rule_of(o, general.node)
    short = _in_c(o, plans, layout)

    def whole(x, w, a, dtype):
        """For integers or truth values on both sides: there is nothing to convert, and nothing is recorded."""
        if w.__class__ is Tensor:
            if w._view is not None and w._view.seen != w._storage.version:
                w._refresh(recorded)
            b = w._array
        else:
            b = np.asarray(w) if w.__class__ is int else None  # what does not fit into 64 bits is of another dtype
        if b.__class__ is not _ndarray or b.dtype is not dtype or not (dtype is _INT or dtype is _BOOL):
            return general(x, w)
        try:
            out = compute(a, b)
        except (ValueError, TypeError, OverflowError, MemoryError, NotImplementedError):
            out = None
        if out is None or out.__class__ is tuple or out is a or out is b:
            return general(x, w)
        out = out if out.__class__ is _ndarray else np.asarray(out)
        if dtype is _BOOL and out.dtype is not _BOOL:
            return general(x, w)
        return wrap(layout(out, (a, b)) if layouts.watched and layout is not None and out.ndim > 1 else out)

    def call(x, w):
        if short is not None:
            t = short(None, x, w)
            if t is not None:
                return t
        if mode.active or not (x.__class__ is Tensor or x.__class__ in PLAIN):
            return general(x, w)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh(recorded)
        a, node = x._array, x._node
        dtype = a.dtype
        if a.__class__ is not _ndarray or (dtype is not _F32 and dtype is not _F64):
            return whole(x, w, a, dtype) if a.__class__ is _ndarray and as_they_are and node is None else general(x, w)
        if w.__class__ is float or w.__class__ is int:
            b, other, storage = w, None, None
        elif w.__class__ is Tensor or w.__class__ in PLAIN:
            if w._view is not None and w._view.seen != w._storage.version:
                w._refresh(recorded)
            b, other, storage = w._array, w._node, w._storage
            if b.__class__ is not _ndarray or b.dtype is not dtype:
                return general(x, w)
        else:
            return general(x, w)
        try:
            out = compute(a, b)
        except (ValueError, TypeError, MemoryError, NotImplementedError):
            out = None
        if out.__class__ is not _ndarray:
            if out is None or out.__class__ is tuple:
                return general(x, w)  # which knows how to say what is wrong
            out = np.asarray(out)
        if layouts.watched and layout is not None and out.ndim > 1:
            out = layout(out, (a, b))
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if recorded and (node is not None or other is not None) and state.grad:
            if out.dtype is not dtype and out.dtype.kind in "biu":
                return t
            needs = 1 if other is None else 2 if node is None else 3
            plan = known[needs]
            if plan is None:
                plan = known[needs] = plans[needs]
            saved = plan.keep((x, w), out) if plan.output or plan.saves_more else plan.pick((x, w))
            mine = x._storage
            if (mine is None or not (mine.version or mine.inference)) and (
                storage is None or not (storage.version or storage.inference)
            ):
                versions = ()
            else:
                versions = versions_of(saved[: plan.count])
            t._node = make_node(plan, (node, other), numpy_engine, out, saved, None, versions)
            if layouts.watched:
                note_layouts(t._node, (x, w))
        return t

    return call


def single(o: Op, plans: Plans, general):
    """For ops of one array, with or without static arguments, and for views."""
    compute, recorded, is_view = _numpy_function(o), bool(o.rules), o.view
    takes_integers = is_view or (o.promote is None and o.check is None)  # as they are
    layout = layouts.rule_of(o, general.node)
    several = False  # outputs: such an op is the general caller's from its second call on, not computed twice
    short = _in_c(o, plans, layout)

    def call(x, **static):
        nonlocal several
        if short is not None:
            t = short(static, x)
            if t is not None:
                return t
        if (several and not is_view) or mode.active or not (x.__class__ is Tensor or x.__class__ in PLAIN):
            return general(x, **static)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh(recorded)
        a, node = x._array, x._node
        dtype = a.dtype
        if a.__class__ is not _ndarray:
            return general(x, **static)
        if dtype is not _F32 and dtype is not _F64:
            integral = dtype.kind in "biu"
            if not takes_integers or (integral and node is not None) or not (integral or is_view):
                return general(x, **static)
        try:
            out = compute(a, **static) if static else compute(a)
        except (MemoryError, ValueError, TypeError):
            out = None
        if out is a:  # it is no view, or not known to be one
            return general(x, **static)
        if out.__class__ is not _ndarray:
            several = out.__class__ is tuple
            if several and is_view:
                needs, static = int(node is not None), {**o.static, **static}
                return record_several(o, plans, (x,), [node], needs, numpy_engine, out, None, static, None)
            if out is None or several:
                return general(x, **static)  # which knows how to say what is wrong
            out = np.asarray(out)
        if layouts.watched and layout is not None and out.ndim > 1:
            out = layout(out, (a,))
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if is_view:
            link_view(o, x, t, static)
        if node is not None and recorded and state.grad and (out.dtype is dtype or out.dtype.kind not in "biu"):
            plan, storage = plans[1], x._storage
            saved = plan.keep((x,), out) if plan.names else ()
            plain = storage is None or not (storage.version or storage.inference)
            versions = () if plain else versions_of(saved[: plan.count])
            t._node = make_node(plan, (node,), numpy_engine, out, saved, static, versions)
            if layouts.watched:
                note_layouts(t._node, (x,))
        return t

    return call


def others(o: Op, plans: Plans, general):
    """For ops of two arrays with static arguments, and of any number of arrays: the library, or the general caller."""
    short = _in_c(o, plans, layouts.rule_of(o, general.node))

    def call(*args, **static):
        t = short(static, *args)
        return general(*args, **static) if t is None else t

    return general if short is None else call


def trio(o: Op, plans: Plans, general):
    """For ops of three arrays, the second and third of which may be Python numbers or None."""
    compute, recorded = _numpy_function(o), bool(o.rules)
    layout = layouts.rule_of(o, general.node)
    several = False  # as in ``single``
    short = _in_c(o, plans, layout, some=True)

    def call(x, w, b=None, **static):
        nonlocal several
        if short is not None:
            t = short(static, x, w, b)
            if t is not None:
                return t
        if several or mode.active or not (x.__class__ is Tensor or x.__class__ in PLAIN):
            return general(x, w, b, **static)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh(recorded)
        a, node, mine = x._array, x._node, x._storage
        dtype = a.dtype
        if a.__class__ is not _ndarray or (dtype is not _F32 and dtype is not _F64):
            return general(x, w, b, **static)
        if w.__class__ is Tensor or w.__class__ in PLAIN:
            if w._view is not None and w._view.seen != w._storage.version:
                w._refresh(recorded)
            second, other, storage = w._array, w._node, w._storage
            if second.__class__ is not _ndarray or second.dtype is not dtype:
                return general(x, w, b, **static)
        elif w.__class__ in _SCALARS:
            second, other, storage = w, None, None
        else:
            return general(x, w, b, **static)
        if b.__class__ is Tensor or b.__class__ in PLAIN:
            if b._view is not None and b._view.seen != b._storage.version:
                b._refresh(recorded)
            third, last, its = b._array, b._node, b._storage
            if third.__class__ is not _ndarray or third.dtype is not dtype:
                return general(x, w, b, **static)
        elif b.__class__ in _SCALARS:
            third, last, its = b, None, None
        else:
            return general(x, w, b, **static)
        try:
            out = compute(a, second, third, **static) if static else compute(a, second, third)
        except (ValueError, TypeError, MemoryError, NotImplementedError):
            out = None
        if out.__class__ is not _ndarray:
            several = out.__class__ is tuple
            if out is None or several:
                return general(x, w, b, **static)  # which knows how to say what is wrong
            out = np.asarray(out)
        if layouts.watched and layout is not None and out.ndim > 1:
            out = layout(out, (a, second, third))
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if recorded and (node is not None or other is not None or last is not None) and state.grad:
            if out.dtype is not dtype and out.dtype.kind in "biu":
                return t
            plan = plans[(node is not None) + 2 * (other is not None) + 4 * (last is not None)]
            saved = plan.keep((x, w, b), out)
            written = [s for s in (mine, storage, its) if s is not None and (s.version or s.inference)]
            versions = versions_of(saved[: plan.count]) if written else ()
            t._node = make_node(plan, (node, other, last), numpy_engine, out, saved, static, versions)
            if layouts.watched:
                note_layouts(t._node, (x, w, b))
        return t

    return call


if library is not None:
    library.calls_use(
        Tensor, OpNode, View, PLAIN, numpy_engine, _F32, _F64, _BOOL, _INT, state, vars(mode), vars(layouts), _sequence,
        np.asarray, (Plan, Node, OpNode, Tensor, Storage, View),
    )  # fmt: skip
