"""Forward mode: beside a value travels its tangent, the derivative in one direction.

No operator has a rule for it. A gradient rule is linear in ``g``, and says all there is to know of a derivative:

- element by element, the rule applied to the tangent is the tangent;
- an operator that is linear gives the tangent of its result when it is applied to the tangent;
- any other rule is transposed twice: run on a ``g`` that is recorded, it is a graph; the tangent pulled back through
  that graph is the tangent of the result.

A ``Level`` is one pass of forward differentiation. It is an interceptor: it sees each operator after those outside of
it have, so tangents of tangents need nothing more. While no level is on, operators pay nothing.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .. import storage
from ..engine import namespace_of
from ..tensor import Tensor, wrap
from . import mode
from .linearity import ADDED, LINEAR, MULTILINEAR, POINTWISE
from .mode import levels, state
from .node import _plan
from .registry import differentiable
from .tape import AccumulateGrad, _fit, run_backward


class Level(mode.Differentiating):
    """One pass of forward differentiation, and who has tangents of it."""

    def __init__(self):
        self._holders: list = []

    def of(self, t) -> Tensor | None:
        """The tangent of ``t``, if it has one."""
        held = t.__dict__.get("_tangents") if isinstance(t, Tensor) else None
        return None if held is None else held.get(self)

    def give(self, t: Tensor, tangent: Tensor) -> None:
        """Make ``tangent`` that of ``t``."""
        held = t.__dict__.get("_tangents")
        if held is None:
            held = t.__dict__["_tangents"] = {}
        if self not in held:
            self._holders.append(weakref.ref(t))
        held[self] = tangent

    def close(self) -> None:
        """Forget all tangents."""
        for holder in self._holders:
            t = holder()
            held = None if t is None else t.__dict__.get("_tangents")
            if held is not None:
                held.pop(self, None)
                if not held:
                    del t.__dict__["_tangents"]
        self._holders = []

    def __call__(self, call, args, static):
        out = call(*args, **static)
        o = call.op
        if o.rules and any(isinstance(y, Tensor) and y._array.dtype.kind not in "biu" for y in _tuple(out)):
            tangents = [self.of(a) for a in args]
            if any(t is not None and _counts(o, i) for i, t in enumerate(tangents)):
                found = self._found(o, call, args, static, tangents, out)
                for y, tangent in zip(_tuple(out), _tuple(found)):
                    if tangent is not None and isinstance(y, Tensor) and y._array.dtype.kind not in "biu":
                        self.give(y, _own(_fitted(tangent, y), y, tangents))
                _remember(out)
        return out

    def _found(self, o, call, args, static, tangents, out):
        if o.derive:
            return self._derived(o, args, static)
        if o.name == "strided":
            return call(_laid_out_like(args[0], tangents[0]), **static)
        if o.view or o.name in LINEAR:
            return call(*_together(o, args, tangents), **static)
        if o.name in MULTILINEAR:
            return _each(o, call, args, static, tangents)
        if o.name in POINTWISE and not _complex(args, out):
            return _element_by_element(o, args, static, tangents, out)
        return _transposed_twice(o, args, static, tangents, out)

    def _derived(self, o, args, static):
        """The forward function again, in terms of other operators, of which this level sees each."""
        static = {**o.static, **static}
        with mode.intercepting(self):
            if o.aux is not None:
                known = {**static, **dict(zip(o.arrays, args))}
                static["aux"] = o.aux(differentiable, *[known[name] for name in o.aux_names])
            again = o.forward(differentiable, *args, **static)
        return tuple(map(self.of, again)) if isinstance(again, tuple) else self.of(again)


class Tangents:
    """A block with a level of its own: ``with Tangents() as level:``."""

    def __enter__(self):
        self._level = Level()
        mode.intercepting(self._level).__enter__()
        return self._level

    def __exit__(self, *_):
        mode.stop_intercepting(self._level)
        self._level.close()


class outside:
    """Inside the block only what is outside of ``level`` sees operators: a tangent of that level is being computed."""

    def __init__(self, level):
        self._level = level

    def __enter__(self):
        self._outer = state.interceptors
        state.interceptors = self._outer[: self._outer.index(self._level)]

    def __exit__(self, *_):
        state.interceptors = self._outer


class suspended:
    """Inside the block no level sees operators."""

    def __enter__(self):
        self._outer = state.interceptors
        state.interceptors = tuple(handler for handler in self._outer if not isinstance(handler, Level))

    def __exit__(self, *_):
        state.interceptors = self._outer


# -- the three ways ----------------------------------------------------------------------------------------------------


def _together(o, args, tangents):
    """The arguments with tangents in the place of all that have gradients; zeros for those that have none."""
    given = list(args)
    for i, a in enumerate(args):
        if _counts(o, i) and isinstance(a, Tensor):
            given[i] = zeros_like(a) if tangents[i] is None else tangents[i]
        elif _counts(o, i) and a is not None:
            given[i] = 0  # a Python number that is put somewhere
    return given


def _each(o, call, args, static, tangents):
    """A sum with one argument after the other replaced by its tangent."""
    added = o.arrays.index(ADDED[o.name]) if o.name in ADDED else None
    total = None
    for name in MULTILINEAR[o.name]:
        i = o.arrays.index(name)
        if tangents[i] is not None:
            given = list(args)
            given[i] = tangents[i]
            if added is not None and len(given) > added:
                given[added] = None
            part = call(*given, **static)
            total = part if total is None else differentiable.add(total, part)
    if added is not None and len(args) > added and tangents[added] is not None:
        part = _bias(o, tangents[added], args, total, call, static)
        total = part if total is None else differentiable.add(total, part)
    return total


def _bias(o, tangent, args, total, call, static):
    """What is only added, in the result's shape: for a convolution its channels come second of the last axes."""
    if o.name == "linear":
        return tangent
    spatial = args[o.arrays.index("w")].ndim - 2
    return differentiable.reshape(tangent, shape=(*tangent.shape, *(1,) * spatial))


def _laid_out_like(x: Tensor, tangent: Tensor) -> Tensor:
    """``tangent`` in memory as ``x`` is, for what reads memory by strides."""
    if not isinstance(x._array, np.ndarray):
        return tangent
    have, want = (storage.memory_of(storage.owner(t._array)) for t in (tangent, x))
    if x._array.strides == tangent._array.strides and have.nbytes == want.nbytes:
        return tangent
    start = (storage.pointer(x._array) - storage.pointer(storage.owner(x._array))) // x._array.itemsize
    made = storage.placed(np.zeros_like(want), x._array.dtype, x._array.shape, x.stride(), start)
    np.copyto(made, tangent._array)
    return wrap(made)


def _element_by_element(o, args, static, tangents, out):
    plan = _plan(o, _needs(o, tangents))
    values = _values(plan, args, static, out)
    total = None
    for i, rule, places in plan.rules:
        part = rule(differentiable, _fitted(tangents[i], out), *[values[p] for p in places])
        if part is not None:
            total = part if total is None else differentiable.add(total, part)
    return total


def _transposed_twice(o, args, static, tangents, out):
    """The rules on a gradient that is recorded, and the tangents back through what was recorded."""
    outs = _tuple(out)
    recorded = state.grad
    outer, state.grad = state.grad, True
    try:
        g = [_leaf(y) if y._array.dtype.kind not in "biu" else None for y in outs]
        plan = _plan(o, _needs(o, tangents))
        values = _values(plan, args, static, out)
        rows: list[Any] = [None] * len(args)
        for i, rule, places in plan.rules:
            rows[i] = rule(differentiable, g if isinstance(out, tuple) else g[0], *[values[p] for p in places])
        if plan.many is not None:
            rows[plan.many :] = rows[plan.many]
    finally:
        state.grad = outer
    pairs = []
    for row, a, tangent in zip(rows, args, tangents):
        if isinstance(row, Tensor) and tangent is not None and row._node is not None:
            pairs.append((mode_on(_fit, row, a._array.shape, a._array.dtype, True), tangent))
    graph = recorded and any(_has_node(t) for t in (*args, *tangents))
    wanted = {t._node for t in g if t is not None}
    found = run_backward(
        [row._node for row, _ in pairs], [t for _, t in pairs], retain=True, graph=graph, wanted=wanted, tensors=True
    )
    columns = [None if t is None else found.get(t._node) for t in g]
    return tuple(zeros_like(y) if c is None and t is not None else c for c, t, y in zip(columns, g, outs))


def mode_on(function, *args):
    """``function(*args)``, recorded."""
    outer, state.grad = state.grad, True
    try:
        return function(*args)
    finally:
        state.grad = outer


def _values(plan, args, static, out):
    """What the plan's rules ask for, by name, as Tensors."""
    o = plan.op
    values = list(plan.pick(args))
    if plan.output:
        values.append(out)
    for kind, which in plan.others:
        if kind == "static":
            values.append(static[which] if which in static else o.static[which])
        elif kind == "shape":
            values.append(_shape(args[which]))
        elif kind == "shapes":
            values.append(tuple([_shape(a) for a in args[which:]]))
        elif kind == "inputs":
            values.append(args[which:])
        else:
            values.append(_aux(plan, args, static, values))
    return values


def _aux(plan, args, static, values):
    """aux as a function of what the rules ask for; where they ask for less than it takes, a constant."""
    o = plan.op
    known = {**o.static, **static, **dict(zip(plan.names, values))}
    if plan.differentiates_aux:
        return o.aux(differentiable, *[known[name] for name in o.aux_names])
    known = {**known, **dict(zip(o.arrays, args))}
    arrays = [t._array if isinstance(t, Tensor) else t for t in (known[name] for name in o.aux_names)]
    found = o.aux(next(namespace_of(a._array) for a in args if isinstance(a, Tensor)), *arrays)
    return tuple(wrap(v) for v in found) if isinstance(found, tuple) else wrap(found)


def _needs(o, tangents) -> int:
    return sum(1 << i for i, t in enumerate(tangents) if t is not None and _counts(o, i))


def _counts(o, place: int) -> bool:
    """Does the op have a gradient for its argument there?"""
    return o.arrays[min(place, len(o.arrays) - 1)] in o.rules


def _complex(args, out) -> bool:
    return any(isinstance(t, Tensor) and t._array.dtype.kind == "c" for t in (*args, *_tuple(out)))


def _leaf(y: Tensor) -> Tensor:
    t = mode.fresh(zeros_like(y))
    t._node = AccumulateGrad(t)
    return t


def _has_node(t) -> bool:
    return isinstance(t, Tensor) and t._node is not None


def _shape(value) -> tuple:
    return value._array.shape if isinstance(value, Tensor) else ()


def _tuple(value) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def _fitted(tangent: Tensor, y: Tensor) -> Tensor:
    """``tangent`` in the shape and dtype of ``y``."""
    if tangent._array.shape == y._array.shape and tangent._array.dtype == y._array.dtype:
        return tangent
    return _fit(tangent, y._array.shape, y._array.dtype, True)


def zeros_like(t: Tensor) -> Tensor:
    return wrap(namespace_of(t._array).zeros_like(t._array))


def _own(tangent: Tensor, y: Tensor, others) -> Tensor:
    """``tangent`` in memory of its own, as ``y`` is: ``y`` may be written in place, and with it this and no other."""
    from . import views

    if y._view is not None:
        return tangent
    known = [t for t in others if t is not None]
    if tangent._array.__class__ is not np.ndarray:
        shared = tangent._view is not None or any(t is tangent for t in known)
    else:
        arrays = [t._array for t in known if t._array.__class__ is np.ndarray]
        shared = views.has_shared_places(tangent) or any(np.may_share_memory(a, tangent._array) for a in arrays)
    return differentiable.clone(tangent) if shared else tangent


# -- where values go other ways than by operators ----------------------------------------------------------------------


def moved(t: Tensor, to: Tensor, function) -> Tensor:
    """Give ``to``, which ``function`` made of ``t``, the tangents that it makes of those of ``t``."""
    for level in levels():
        tangent = level.of(t)
        if tangent is not None:
            with outside(level):
                level.give(to, function(tangent))
    return to


def written(t: Tensor, result: Tensor | None) -> None:
    """``t`` was written in place with ``result``, or with what has no tangent: so are its tangents."""
    from . import views

    for level in levels():
        new, old = None if result is None else level.of(result), level.of(t)
        if new is old:
            continue
        with outside(level):
            if old is None:
                old = _made_for(t, level, views)
            if old is None and new is not None:
                level.give(t, _own(_fitted(new, t), t, [new]))
            elif old is not None:
                views.assign(old, zeros_like(old) if new is None else _fitted(new, old))


def _made_for(t: Tensor, level: Level, views):
    """The tangent of a view whose base has none: the part of one that begins with zeros."""
    view = t._view
    if view is None or not view.path or view.base is None or view.recorded is None:
        return None
    base = level.of(view.base)
    if base is None:
        base = zeros_like(view.base)
        level.give(view.base, base)
    made = views.read(None, base, view.path, recorded=True)
    level.give(t, made)
    return made


def _remember(out) -> None:
    """A node that kept its output only as an array must find the tangents again, in a backward pass that has them."""
    for y in _tuple(out):
        held = y.__dict__.get("_tangents")
        if held is not None and y._node is not None:
            y._node.remember(dict(held))
