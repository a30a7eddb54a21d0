"""``OpNode``: a recorded call of an op, and how its gradients are computed from what it kept."""

from __future__ import annotations

import copy
import functools
import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine import WIDER, operand
from ..engine.native import library
from ..engine.numpy import gradient_layouts
from ..engine.numpy import namespace as numpy_engine
from ..tensor import Storage, Tensor, wrap
from . import flat, mode, overriding
from .lowering import lowered
from .mode import state
from .plan import Plan
from .promotion import cast, type_name_of
from .registry import differentiable
from .tape import _TWICE, AccumulateGrad, Node, Output, _as_seen, _deliver, _fit, _to_raw, as_function, run_backward

if TYPE_CHECKING:
    from .op import Op


class Details:
    """What an OpNode keeps beyond saved values, when there is anything: most nodes have none."""

    __slots__ = ("residuals", "compute", "outputs", "packed", "kept_output", "tangents")

    def __init__(self, residuals=None, compute=None):
        self.residuals = residuals
        self.compute = compute  # the dtype forward computed in, where that was not the inputs' own
        self.outputs = None  # of several: (weak reference to its node, shape, dtype) each
        self.packed = False  # saved-tensor hooks hold what was saved
        self.kept_output = None  # the output, where the residuals or aux hold it too
        self.tangents = None  # of outputs that are kept, by number and level: see ``remember``


class OpNode(Node):
    """A recorded call of an op. ``saved`` holds a value for each of the plan's names but the static arguments."""

    __slots__ = ("plan", "saved", "static", "versions", "guard", "details", "inputs")
    plan: Plan
    saved: Any
    static: dict | None  # as given; a default may be missing
    versions: Any  # (storage, version), or None if it was never written, of each saved input; () if none ever was
    guard: Any  # ((storage, version, which of several), …) of outputs that were saved, once one might be written to
    details: Details | None
    inputs: list  # how they lay in memory, where one did not in plain order; else there is no such attribute

    @property
    def op(self) -> Op:
        return self.plan.op

    def name(self) -> str:
        return self.plan.node

    def rename(self, node: str) -> None:
        """Be called ``node`` from now on."""
        plan = self.plan
        self.plan = copy.copy(plan)
        self.plan.node = node

    @property
    def next_functions(self):
        from . import shown

        return tuple(as_function(edge) for edge in shown.inputs(self))

    def __getattr__(self, name: str):
        if name.startswith(("_saved_", "_raw_saved_")):
            from . import shown

            return shown.saved(self, name)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __dir__(self):
        names = [name for name in self.plan.names if name not in self.plan.op.static]
        return [*super().__dir__(), *[f"_saved_{_WORDS.get(name, name)}" for name in names]]

    def turns(self):
        from . import shown

        return shown.turns(self.plan.op.name, self.plan.node, len(self.edges))

    def hooked(self, hooks, found, outputs) -> tuple:
        from . import shown

        for hook in hooks:
            given = overriding.hooked(hook, shown.gradients(self, found), outputs)
            if given is not None:
                found = shown.replaced(self, found, given if isinstance(given, tuple) else (given,))
        return found

    def repack(self, place: int) -> None:
        """Keep one saved value as the saved-tensor hooks in force want it."""
        from .graph import pack_one

        self.details = self.details or Details()
        kept = list(self.saved)
        kept[place] = pack_one(self, place)
        self.saved, self.details.packed = tuple(kept), True
        self.versions = self.versions and tuple(v if i != place else None for i, v in enumerate(self.versions))

    def shown(self) -> OpNode:
        """This node for a user's eyes. To record is cheaper with one class for all; the name comes when it is seen."""
        if type(self).__name__ != self.plan.node:
            self.__class__ = _named(self.plan.node)
        return self

    def watch(self, storage: Storage, index: int | None = None) -> None:
        details, uses = self.details, self.plan.op.uses
        if index is not None and uses is not None and index not in uses:
            return
        kept = self.plan.output or (details is not None and details.kept_output is not None)
        if kept and (details is None or not details.packed):
            others = [] if self.guard is None else [entry for entry in self.guard if entry[2] != index]
            self.guard = (*others, (storage, storage.version, index))

    def apply(self, xp, g, graph, keep):
        """The gradient for each edge; None for those that this pass does not go along."""
        useful = None if state.running is None else state.running[1]
        asked = self.edges if useful is None else tuple([e if e in useful else None for e in self.edges])
        return self._apply(xp, g, graph, keep, asked)

    def _apply(self, xp, g, graph, keep, edges):
        saved, plan, details = self.saved, self.plan, self.details
        if saved is None:
            raise RuntimeError(_TWICE)
        self._check_versions(saved)
        if not graph:
            if xp.DEFERS:
                return self._apply_once(xp, g, keep, edges)
        elif overriding.begun:
            grads = self._dispatched(g)
            if grads is not None:
                if not keep and plan.frees:
                    self._release()
                return grads
        if details is None and not graph and plan.plain:
            values = [v._array if isinstance(v, Tensor) else v for v in saved]
            values += [self._static(name) for name in plan.asked]
        else:
            values, g = self._values(xp, graph), self._incoming(xp, g, graph)
        backward = None if graph else xp.BACKWARD.get(plan.op.name)
        known = None if backward is None else self._known(values)
        if not keep and plan.frees:
            self._release()
        if known is not None:
            grads = backward(g, edges, known)
            if grads is not None:  # else it is left to the rules
                return grads
        if plan.op.derive:
            return _derive(plan.op, edges, plan.names, values, g, graph)
        grads = [None] * len(edges)
        for i, rule, places in plan.rules:
            if edges[i] is not None or i == plan.many:
                grads[i] = rule(xp, g, *[values[p] for p in places])
        if plan.many is not None:
            grads[plan.many :] = grads[plan.many]
        return flat.tied(self, grads) if graph and plan.node in flat.NODES else grads

    def _laid(self, which, found, g):
        rule = gradient_layouts.rule_of(self.plan.op, self.plan.node)
        g = next((x for x in g if x is not None), None) if g.__class__ is list else g
        if rule is None or not found.ndim or g.__class__ is not np.ndarray:
            return found
        try:
            inputs = _inputs_of(self)
        except AttributeError:  # all in plain order; of which shape matters to none that wants no gradient
            if rule is gradient_layouts.after_gradient and _is_new(found, g) and _says_nothing(g):
                return found
            from ..engine.meta.array import Meta

            shapes = [None if edge is None else edge.shape for edge in self.edges]
            inputs = [Meta(found.shape if shape is None else shape, found.dtype) for shape in shapes]
        return rule(found, g, inputs, which)

    def _dispatched(self, g):
        """All gradients as the call that PyTorch has for them, if somebody dispatches and there is one."""
        from .dispatching import gradients

        return gradients(self, g)

    def _apply_once(self, xp, g, keep, edges):
        """All of ``apply``, and the fitting of gradients to inputs, as one call that the engine records."""
        details, saved = self.details, self._unpacked(self.saved)
        arrays = tuple([operand(xp, v) if v.__class__ is int else _arrays(v) for v in saved])
        residuals = compute = outputs = None
        if details is not None:
            residuals, compute = self._unpacked(details.residuals), details.compute
            outputs = details.outputs and tuple([meta and meta[1:] for meta in details.outputs])
        if not keep and self.plan.frees:
            self._release()
        wanted = tuple([None if e is None or e.shape is None else (e.shape, e.dtype) for e in edges])
        plan = self.plan
        if plan.op.lowered is not None and self.hooks is not None:  # which see gradients as they are before a cast
            wanted = tuple([w and (w[0], plan.op.lowered) for w in wanted])
        constants = plan.op, plan.node, plan.needs, compute, outputs, wanted
        return xp.once(plan.node, _gradients, constants, self.static, g, arrays, residuals)

    def _release(self) -> None:
        """Let go of what was kept: this was the only backward pass."""
        self.saved = None
        if self.details is not None:
            self.details.residuals = None

    def _check_versions(self, saved) -> None:
        """Raise if something saved was written in place since."""
        if self.guard is not None:
            for storage, version, index in self.guard:
                if storage.version != version:
                    raise RuntimeError(self._output_modified(saved, index, storage.version, version))
        versions = self.versions
        for i in range(self.plan.count):
            value = saved[i]
            if isinstance(value, Tensor):
                storage, version = (versions and versions[i]) or (value._storage, 0)
                if storage is not None and storage.version != version:
                    raise RuntimeError(modified_in_place(value, value._node, storage.version, version))
                if value._node is None and self.edges:
                    edge = self.edges[self.plan.inputs[i]]
                    if edge is not None and not edge.is_leaf:
                        raise RuntimeError(_DETACHED)

    def _output_modified(self, saved, index, version, expected) -> str:
        value: Any = saved[self.plan.count] if self.plan.output else self.details and self.details.kept_output
        if index is None:
            return modified_in_place(wrap(value), self, version, expected)
        return modified_in_place(wrap(value[index]), self.output(index), version, expected)

    def _known(self, values):
        """What an engine's backward gets, by name; None where the fused forward left backward to the rules."""
        known = dict(zip(self.plan.names, values))
        for name in self.plan.unasked:
            known[name] = self._static(name)
        if self.plan.op.residuals:
            if [value for value in values if getattr(value, "size", 1) == 0]:
                return None  # forward was the plain one, see ``call``
            known["aux"] = self._unpacked(self.details.residuals)
            if known["aux"] is None:
                return None
        return known

    def _unpacked(self, saved):
        """``saved`` as it was before saved-tensor hooks had it, if they had."""
        if self.details is None or not self.details.packed:
            return saved
        from .graph import unpack

        return unpack(saved, self.edges)

    def _values(self, xp, graph):
        """What rules asked for, as this pass wants it: raw arrays in forward's dtype, or Tensors in the graph."""
        plan, saved = self.plan, self._unpacked(self.saved)
        values = [value if graph else self._raw(xp, value) for value in saved[: plan.count]]
        if plan.op.lowered is not None:
            values = [lowered(xp, value, plan.op.lowered) for value in values]
        if plan.output:
            values.append(self._output(saved[plan.count]) if graph else self._raw(xp, saved[plan.count]))
        for kind, which in plan.others:
            value = self._static(which) if kind == "static" else saved[len(values)]
            if kind == "inputs" and not graph:
                value = [self._raw(xp, v) for v in value]
            elif kind == "aux" and graph:
                value = self._aux_again(xp, values, value)
            values.append(value)
        return values

    def _static(self, name):
        return self.static[name] if name in self.static else self.plan.op.static[name]

    def _incoming(self, xp, g, graph):
        details = self.details
        if details is None:
            return g
        if type(g) is list:
            g = [self._zeros(meta, graph) if x is None else x for x, meta in zip(g, details.outputs)]
        if graph or details.compute is None:
            return g
        return [self._raw(xp, x) for x in g] if type(g) is list else self._raw(xp, g)

    def _raw(self, xp, value):
        """An array in the dtype forward computed in: everything for a promoting op, else only half precision."""
        if isinstance(value, Tensor):
            value = value._array
        details = self.details
        if details is None or details.compute is None or not hasattr(value, "dtype"):
            return tuple([self._raw(xp, v) for v in value]) if isinstance(value, tuple) else value
        if self.plan.op.promote and value.dtype.kind != "b":
            return cast(xp, value, details.compute)
        return cast(xp, value, WIDER.get(value.dtype, value.dtype))

    def _output(self, y):
        """The output as a Tensor of this graph; built here, for holding on to it would be a cycle."""
        several = isinstance(y, tuple)
        made = tuple([_with_node(a, self.output(i) if several else self) for i, a in enumerate(y if several else (y,))])
        if self.details is not None and self.details.tangents is not None:
            for i, held in self.details.tangents.items():
                for level, tangent in held.items():
                    level.give(made[i], tangent)
        return made if several else made[0]

    def remember(self, tangents: dict, index: int = 0) -> None:
        """These are the tangents of an output: if it is kept, it is only as an array, and a later pass wants them."""
        if self.plan.output:
            self.details = self.details or Details()
            self.details.tangents = {**(self.details.tangents or {}), index: tangents}

    def output(self, index):
        """The node of one of several outputs; made again if its tensor is gone."""
        if self.shape is not None:
            return self
        meta = self.details.outputs[index]
        if meta is None:  # not differentiable
            return None
        made, shape, dtype = meta
        return made() or Output(self, index, shape, dtype)

    def _aux_again(self, xp, values, aux):
        """aux as a differentiable function of the inputs; a constant if the rules kept no input it depends on."""
        op = self.plan.op
        known = {**op.static, **self.static, **dict(zip(self.plan.names, values))}
        if self.plan.differentiates_aux:
            return op.aux(xp, *[known[n] for n in op.aux_names])
        return tuple(wrap(v) for v in aux) if isinstance(aux, tuple) else wrap(aux)

    def _zeros(self, meta, graph):
        if meta is None:
            return None
        *_, shape, dtype = meta
        zeros = self.xp.zeros(shape, dtype=dtype)
        return wrap(zeros) if graph else zeros

    @property
    def outputs(self):
        return self.details.outputs

    @property
    def saved_tensors(self):
        if self.saved is None:
            raise RuntimeError(_TWICE)
        return tuple(v for v in self._unpacked(self.saved) if isinstance(v, Tensor))


_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please "
    "use out-of-place `.detach()` instead"
)
_WORDS = {"x": "self", "w": "other", "y": "result", "x_shape": "self_sym_sizes"}  # for ``dir``; see ``shown``


def _arrays(value):
    if isinstance(value, Tensor):
        return value._array
    return tuple([_arrays(v) for v in value]) if isinstance(value, tuple) else value


def _gradients(xp, op, name, needs, compute, outputs, wanted, static, g, arrays, residuals):
    """What ``OpNode.apply`` does with these values, in namespace ``xp``: a node like it is made, and asked."""
    node = object.__new__(OpNode)
    node.plan, node.edges, node.xp, node.saved, node.static = _plan(op, needs, name), wanted, xp, arrays, static
    node.versions, node.guard, node.details = (), None, None
    if op.residuals or compute is not None or outputs is not None:
        node.details = Details(residuals, compute)
        node.details.outputs = outputs
    grads = node._apply(xp, g, False, True, wanted)
    return [None if w is None or x is None else _fit(x, *w, graph=False) for w, x in zip(wanted, grads)]


_gradients.trains = True  # type: ignore[attr-defined] # see engine/deferred/kinds.py


@functools.cache
def _plan(op, needs: int, node: str = "") -> Plan:
    return Plan(op, node or op.node, needs)


@functools.cache
def _named(node: str) -> type:
    return type(node, (OpNode,), {"__slots__": ()})


def modified_in_place(value, node, version, expected) -> str:
    """The message about a saved tensor that was written before backward could use it; ``node`` is what made it."""
    made_by = ""
    if node is not None and type(node) is not AccumulateGrad:
        index, node = (node.index, node.parent) if type(node) is Output else (0, node)
        made_by = f", which is output {index} of {node.name().removesuffix('0').replace('Backward', '')},"
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
        "was changed in there or anywhere later. Good luck!"
        if state.anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name_of(value._array.dtype)} {list(value.shape)}]{made_by} is at version {version}; expected version "
        f"{expected} instead. Hint: {hint}"
    )


def _with_node(array, node):
    t = wrap(array)
    t._node = node
    return t


def _derive(o: Op, edges, names, values, g, graph):
    """Gradients of ``o`` by differentiating its forward function, run again in the ``differentiable`` namespace."""
    known = dict(zip(names, values))
    arrays = [known[name] for name in o.arrays]
    if o.variadic:
        arrays[-1:] = arrays[-1]
    static = {name: _alias(known[name], False, graph) for name in o.static}  # a number may be an input of a program
    outer, state.grad = state.grad, True
    try:
        # Fresh aliases: a path that leads on from one input to another must not be followed here.
        inputs = [_alias(a, wanted is not None, graph) for a, wanted in zip(arrays, edges)]
        if o.aux is not None:
            named = dict(zip(o.arrays, inputs))
            static["aux"] = o.aux(differentiable, *[named.get(n, static.get(n)) for n in o.aux_names])
        out = o.forward(differentiable, *inputs, **static)
        roots, gradients = [], []
        for t, gt in zip(out, g) if isinstance(out, tuple) else [(out, g)]:
            if isinstance(t, Tensor) and t._node is not None and gt is not None:
                roots.append(t._node)
                gradients.append(gt)
        wanted = [t._node for t, edge in zip(inputs, edges) if edge is not None]
        found = run_backward(roots, gradients, retain=graph, graph=graph, wanted=set(wanted))
    finally:
        state.grad = outer
    # An input that does not matter here, as those of a distance by p = 0, has a gradient all the same: zeros.
    return [
        None
        if edge is None
        else found[t._node]
        if t._node in found
        else _to_raw(differentiable.zeros_like(t.detach()), graph)
        for t, edge in zip(inputs, edges)
    ]


def _alias(array, wanted, graph):
    if graph and isinstance(array, Tensor):
        return differentiable.alias(array) if wanted else array
    if not hasattr(array, "dtype"):
        return array
    t = wrap(array)
    if wanted:
        t = mode.fresh(t) if mode.active else t
        t._node = AccumulateGrad(t)
    return t


_inputs_of = OpNode.__dict__["inputs"].__get__  # by name, `__getattr__` would be asked where there are none


def _is_new(found, g) -> bool:
    """Is it in plain order, in memory of its own?"""
    return found is not g and found.base is None and found.flags.c_contiguous


def _says_nothing(g) -> bool:
    """Does it lie in plain order, or is it one number for all places, so that others decide?"""
    return g.flags.c_contiguous or not any(g.strides)


if library is not None:
    _lock = AccumulateGrad._lock
    library.tape_uses(
        OpNode, Output, AccumulateGrad, Tensor, numpy_engine, numpy_engine.BACKWARD, _deliver, heapq.heappush,
        heapq.heappop, _lock.acquire, _lock.release, _as_seen,
        (Plan, Node, OpNode, Output, AccumulateGrad, Tensor, Details, Storage),
    )  # fmt: skip
