"""``__torch_dispatch__``: modes and subclasses of Tensor that answer for operators, below autograd.

An operator that concerns one of them is turned into the call of PyTorch's ``aten`` that it is (``ops/calls/``), and
that call is handed over; nothing is recorded meanwhile. What comes back is the operator's output, and is recorded as
such, with the operator's own gradient rules. Those run on Tensors then, so the backward pass is handed over too.

Nobody pays who does not dispatch: a mode is an interceptor, and a subclass is met where operators meet one anyway.
"""

from __future__ import annotations

import functools
import sys
import weakref

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from . import mode as switches
from . import overriding
from .node import Details, OpNode
from .plan import Plans
from .record import versions_of
from .tape import Output, _sequence, nodes_below

state, DISPATCHING = overriding.dispatch, overriding.DISPATCHING


def concerns(args, kwargs=None) -> bool:
    """Does a mode, or one of these, dispatch now?"""
    return not state.off and (bool(state.modes) or bool(DISPATCHING and _dispatching(args, kwargs)))


def _dispatching(args, kwargs=None) -> list:
    """One tensor of each class that dispatches, subclasses first."""
    found: list = []
    for a in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(a, (list, tuple)):
            for part in a:
                _enter(part, found)
        else:
            _enter(a, found)
    return found


def _enter(value, found: list) -> None:
    kind = type(value)
    if kind in DISPATCHING:
        overriding.add_by_class(value, kind, found)


# -- handing over ------------------------------------------------------------------------------------------------------


def send(overload, args, kwargs):
    """The first answer of the innermost mode and of the subclasses among the arguments; else what is computed."""
    found = [] if state.off else _dispatching(args, kwargs)
    if state.off or not (state.modes or found):
        return computed(overload, args, kwargs)
    types, tried = tuple([type(a) for a in found]), []
    if state.modes:
        modes, kept = state.modes, state.inside
        state.modes, state.inside = modes[:-1], kept + 1
        try:
            result = modes[-1].__torch_dispatch__(overload, types, args, kwargs)
        finally:
            state.modes, state.inside = modes, kept
        if result is not NotImplemented:
            return result
        tried.append(f"mode object {modes[-1]}")
    for a in found:
        state.inside += 1
        try:
            result = type(a).__torch_dispatch__(overload, types, args, kwargs)
        finally:
            state.inside -= 1
        if result is not NotImplemented:
            return result
        tried.append(f"tensor subclass {type(a)}")
    lines = "\n\n".join(f"  - {line}" for line in tried)
    raise overriding.Refused(
        f"Multiple dispatch failed for '{overload}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        f"{lines}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def computed(overload, args, kwargs):
    """The operator itself, whoever dispatches."""
    return undispatched(overload.function, *args, **kwargs)


def undispatched(function, *args, **kwargs):
    """``function(*args, **kwargs)``, in which nobody dispatches."""
    outer, state.off = state.off, True
    try:
        return function(*args, **kwargs)
    finally:
        state.off = outer


def disabled(func, types, args=(), kwargs=None):
    """A ``__torch_dispatch__`` for subclasses that do not want one."""
    return undispatched(func, *args, **(kwargs or {}))


class Disabled:
    """Inside, nobody dispatches."""

    def __enter__(self):
        self._outer, state.off = state.off, True

    def __exit__(self, *_):
        state.off = self._outer


def below(function, *args):
    """``function(*args)`` below autograd: nothing is recorded. No ``with`` block, for the reason of without_grad."""
    outer, state.writing = state.writing, None
    try:
        return switches.without_grad(function, *args)
    finally:
        state.writing = outer


# -- modes -------------------------------------------------------------------------------------------------------------


def push(mode) -> None:
    overriding.begun = True
    overriding.watch_methods()
    if not state.modes:  # the outermost interceptor: autocast and transforms come first, as they do in PyTorch
        switches.state.interceptors = (_intercepted, *switches.state.interceptors)
        switches.active += 1
    state.modes = (*state.modes, mode)


def pop():
    *rest, mode = state.modes
    state.modes = tuple(rest)
    if not rest:
        switches.stop_intercepting(_intercepted)
    overriding.unwatch_methods()
    return mode


def _intercepted(call, args, static):
    if not state.modes or state.off:
        return call(*args, **static)
    outer = switches.state.interceptors
    switches.state.interceptors = (_intercepted,)  # what the handlers do themselves concerns the modes outside
    try:
        return run(call, args, static)
    finally:
        switches.state.interceptors = outer


# -- operators ---------------------------------------------------------------------------------------------------------


def run(call, args, static):
    """An op that concerns somebody who dispatches. Where PyTorch has several operators, they come here one by one."""
    from ..ops import calls

    o = call.op
    expand = calls.EXPANSIONS.get(o.name)
    if expand is not None:
        made = expand(call.node, *args, **static)
        if made is not None:
            return made
    nodes = [a._node if isinstance(a, Tensor) else None for a in args]
    needs = sum(1 << i for i, node in enumerate(nodes) if node is not None)
    recorded = bool(needs and o.rules and switches.state.grad)
    overload, given, options, adapt = calls.lowered(call, args, static)
    writing = state.writing

    def answered():
        found = send(overload if writing is None else calls.in_place(overload), given, options)
        out = found if adapt is None else adapt(found)
        if not recorded:
            return out
        rest = tuple(found[1:]) if isinstance(found, (tuple, list)) else ()
        return _recorded(_plans(o, call.node)[needs], args, nodes, static, out, writing, rest)

    return below(answered)


@functools.cache
def _plans(o, node: str) -> Plans:
    return Plans(o, node)


def _recorded(plan, args, nodes, static, out, writing, rest):
    """The output with its node: in the graph, the op is what was handed over, whatever was done with it."""
    from ..ops import calls

    several = isinstance(out, (tuple, list))
    outs = tuple(out) if several else (out,)
    for t in outs:
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"{plan.op.name}: __torch_dispatch__ returned {type(t).__name__}, where a Tensor is needed")
    if writing is None:
        outs = tuple([calls.detached(t) if any(t is a for a in args) else t for t in outs])
    kept = tuple([calls.detached(t) for t in outs]) if plan.output else None
    node = Dispatched(plan, args, nodes, outs, kept if several or kept is None else kept[0], static, several, rest)
    if writing is not None:
        node.versions = tuple([None if v is None else (v[0], v[0].version - 1) for v in node.versions])
    for i, t in enumerate(outs):
        if t is None or t._array.dtype.kind in "biu":
            continue
        if several:
            t._node = Output(node, i, t._array.shape, t._array.dtype)
        elif writing is None:
            t._node = node
        else:
            writing._node = node
        if t._view is not None and t._view.path:
            t._view.recorded = True
    if several:
        node.details.outputs = tuple([_described(t) for t in outs])
        return outs
    return outs[0]


def _described(t):
    if t is None or t._node is None:
        return None
    return weakref.ref(t._node), t._array.shape, t._array.dtype


class Dispatched(OpNode):
    """A recorded call that somebody answered for: what it keeps are Tensors, and its rules run on them."""

    __slots__ = ("arguments", "given", "rest")

    def __init__(self, plan, args, edges, outs, kept, static, several, rest):
        self.plan, self.edges, self.static = plan, edges, static
        self.xp = namespace_of(outs[0]._array)
        hooked = switches.active and (switches.state.saved_hooks or switches.state.anomaly)
        if hooked and kept is not None:
            kept = tuple([_array(t) for t in kept]) if several else _array(kept)
        self.saved = plan.keep(args, kept, self._aux_of(args) if hooked else None)
        self.versions = versions_of(self.saved[: plan.count])
        self.shape, self.dtype = (None, None) if several else (outs[0]._array.shape, outs[0]._array.dtype)
        self.sequence = next(_sequence)
        self.hooks = self.guard = None
        self.details = Details()
        self.arguments, self.given = args, state.given
        self.rest = rest  # what the call returned beside the first output
        if hooked:  # what hooks hold, nobody else may
            from .graph import pack

            self.arguments, self.rest = None, ()
            pack(self)

    def shown(self) -> OpNode:
        self.__class__ = _named(self.plan.node)
        return self

    def _output(self, y):
        from ..ops import calls

        if self.details.packed:
            return super()._output(y)
        return tuple([calls.detached(t) for t in y]) if isinstance(y, tuple) else calls.detached(y)

    def _release(self) -> None:
        super()._release()
        self.arguments = self.rest = None

    def _aux_again(self, xp, values, aux):
        op = self.plan.op
        known = {**op.static, **self.static, **dict(zip(self.plan.names, values))}
        if self.plan.differentiates_aux:
            return op.aux(xp, *[known[n] for n in op.aux_names])
        if aux is None:  # a constant of this pass: places of maxima, say
            aux = self._aux_of(self.arguments)
        return tuple([wrap(v) for v in aux]) if isinstance(aux, tuple) else wrap(aux)

    def _aux_of(self, args):
        """The op's auxiliary value, of arrays."""
        op = self.plan.op
        if op.aux is None or not any(kind == "aux" for kind, _ in self.plan.others):
            return None
        known = {**op.static, **self.static, **dict(zip(op.arrays, [_array(a) for a in args]))}
        return op.aux(self.xp, *[known[n] for n in op.aux_names])


def _array(value):
    return value._array if isinstance(value, Tensor) else value


@functools.cache
def _named(node: str) -> type:
    return type(node, (Dispatched,), {"__slots__": ()})


# -- backward ----------------------------------------------------------------------------------------------------------


def on_tensors(roots) -> bool:
    """Must this backward pass work on Tensors, because somebody dispatches or did so in forward?"""
    if state.off:
        return False
    if state.modes:
        return True
    return any(isinstance(node, Dispatched) for node in nodes_below(roots))


def gradients(node: OpNode, g):
    """The gradients of a node as calls that are handed over; None where they are left to the op's rules."""
    from ..ops import calls

    o, saved = node.plan.op, node.saved
    rule = calls.GRADIENTS.get(o.name)
    packed = node.details is not None and node.details.packed  # hooks hand out what they hold once
    if rule is None or packed or switches.state.grad:
        return None
    if not concerns((*(g if type(g) is list else (g,)), *saved)):
        return None
    known = {**o.static, **(node.static or {}), **dict(zip(node.plan.names, saved))}
    if isinstance(node, Dispatched):
        known.update(zip(o.arrays, node.arguments or ()), given=node.given, rest=node.rest)
    known.update(g=g, wanted=tuple([edge is not None for edge in node.edges]))
    for name in o.arrays:
        if isinstance(known.get(name), Tensor):
            known.setdefault(f"{name}_shape", tuple(known[name]._array.shape))
    names = rule.__code__.co_varnames[: rule.__code__.co_argcount]
    known.setdefault("given", None)
    if not all(name in known for name in names):
        return None
    state.inside += 1
    try:
        if "y" in names:
            known["y"] = node._output(known["y"])
        return rule(*[known[name] for name in names])
    finally:
        state.inside -= 1


def one_like(t):
    """Where a backward pass starts."""
    from .. import preserve_format
    from ..ops.calls import aten

    return below(send, aten.ones_like.default, (t,), {"pin_memory": False, "memory_format": preserve_format})


def summed_to(g, shape):
    """A gradient summed to the shape that was broadcast, as PyTorch does; None if nobody dispatches."""
    from ..ops.calls import aten

    if not concerns((g,)) or switches.state.grad or len(g.shape) < len(shape):
        return None
    extra = len(g.shape) - len(shape)
    if any(n not in (1, m) for n, m in zip(shape, g.shape[extra:])):
        return None
    dims = [i for i, n in enumerate(g.shape) if i < extra or (shape[i - extra] == 1 and n != 1)]
    g = send(aten.sum.dim_IntList, (g, dims, True), {}) if dims else g
    return send(aten.view.default, (g, list(shape)), {}) if extra else g


def accumulated(variable, old, g):
    """A leaf's new ``.grad``: the gradient itself where nobody else has it and it lies as the leaf does, or a copy."""
    from .. import strided
    from ..ops.calls import aten

    if old is not None:
        return below(send, aten.add_.Tensor, (old, g), {})
    if sys.getrefcount(g) <= _HOLDERS and g.stride() == variable.stride():
        return below(send, aten.detach.default, (g,), {})
    options = {"dtype": g.dtype, "layout": strided, "device": g.device}
    places = (g, list(variable.shape), list(variable.stride()))
    made = below(send, aten.new_empty_strided.default, places, options)
    return below(send, aten.copy_.default, (made, g), {})


_HOLDERS = 5  # the loop, the leaf's node, its helper, this function and the count itself
