"""Recording a call: the node it leaves in the graph, and the view it may have made."""

from __future__ import annotations

import weakref

import numpy as np

from .. import dtypes
from ..engine.numpy import layouts
from ..engine.numpy import namespace as numpy_engine
from ..tensor import Mirror, Tensor, View, wrap
from . import mode
from .mode import state
from .node import Details, OpNode
from .tape import Nowhere, Output, _sequence

_ndarray = np.ndarray
_new = object.__new__
_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


def make_node(plan, edges, xp, out, saved, static, versions):
    node = _new(OpNode)
    node.plan, node.edges, node.xp, node.saved, node.static = plan, edges, xp, saved, static
    node.versions = versions
    node.shape, node.dtype, node.sequence = out.shape, out.dtype, next(_sequence)
    node.hooks = node.guard = node.details = None
    return node


def record(plan, args, edges, xp, out, auxiliary, static, compute):
    """Make the node of one call of any kind; ``out`` is a tuple for an op with several outputs."""
    op, several = plan.op, out.__class__ is tuple
    saved, edges = plan.keep(args, out, auxiliary), tuple(edges)  # which the loop in C wants
    node = make_node(plan, edges, xp, out[0] if several else out, saved, static, versions_of(saved[: plan.count]))
    if layouts.watched:
        note_layouts(node, args)
    if several:
        node.shape = node.dtype = None
    if several or compute is not None or op.residuals:
        node.details = Details(auxiliary if op.residuals else None, compute)
    if auxiliary.__class__ is tuple and [kept for kept in auxiliary if kept is out]:
        node.details = node.details or Details(compute=compute)
        node.details.kept_output = out
    if mode.active and (state.saved_hooks or state.anomaly):
        from .graph import pack

        pack(node)
    return node


def note_layouts(node, args) -> None:
    """Let a node know how its inputs lie, if one of them does not in plain order: see ``OpNode._laid``."""
    arrays = [a._array if isinstance(a, Tensor) else a for a in args]
    for a in arrays:
        if a.__class__ is _ndarray and not a.flags.c_contiguous:
            break
    else:
        return
    from ..engine.meta.array import Meta

    node.inputs = [Meta(a.shape, a.dtype, layouts.strides_of(a)) if a.__class__ is _ndarray else None for a in arrays]


def versions_of(saved) -> tuple:
    """See ``OpNode.versions``."""
    versions = []
    for value in saved:
        storage = value._storage if isinstance(value, Tensor) else None
        if storage is not None and storage.inference:
            raise RuntimeError(_INFERENCE)
        versions.append(None if storage is None else (storage, storage.version))
    return tuple(versions)


def record_several(o, plans, args, nodes, needs, xp, outs, auxiliary, static, compute, first=False):
    """Wrap and record an op with several outputs: one node, and an Output node for each differentiable output, or for
    the ``first`` alone."""
    if xp is numpy_engine:
        outs = tuple([a if a.__class__ is _ndarray else np.asarray(a) for a in outs])
    tensors = tuple([wrap(a) for a in outs])
    if o.view:
        for i, t in enumerate(tensors):
            link_view(o, args[0], t, static, index=i)
    if needs and o.rules and state.grad and outs:
        integral = outs[0].dtype.kind in "biu" and all(a.dtype.kind in "biu" for a in outs)
        if integral and not has_gradient(o, args[0], outs[0].dtype):
            return tensors
        node = record(plans[needs], args, nodes, xp, outs, auxiliary, static, compute)
        made = []
        for i, t in enumerate(tensors):
            if t._array.dtype.kind not in "biu" and not (first and i):
                t._node = Output(node, i, t._array.shape, t._array.dtype)
                made.append((weakref.ref(t._node), t._array.shape, t._array.dtype))
            else:
                made.append(None)
                if node.plan.output:
                    node.watch(t._counted(), i)
        node.details.outputs = tuple(made)
    return tensors


def has_gradient(o, t, dtype) -> bool:
    """May what ``o`` makes of ``t`` have a gradient? Integers must not; that ``t`` is written in place is recorded."""
    if dtype.kind not in "biu":
        return True
    if t._storage is not None and t._storage.views is not None:  # see ``views.inplace``
        return True
    if o.name == "astype" or o.node == "NotImplemented":
        return False
    raise no_gradient_of(dtype)


def no_gradient_of(dtype) -> RuntimeError:
    return RuntimeError(f"Autograd not support dtype: {dtypes.of_numpy(dtype).char.removesuffix('Tensor')}")


def link_view(o, base, t, static, index=None):
    """Remember what ``t`` is a view of and how it was cut out; on NumPy that only matters if it really aliases."""
    array, whole, view = t._array, base._array, base._view
    turned = (view.__class__ is Mirror or o.view is not True) and array.__class__ is _ndarray
    if turned:  # look at memory, not at what is shown of it
        whole = base._strided_array()
        array = whole if o.view is not True else o.forward(numpy_engine, whole, **static)
        array = array if index is None else array[index]
    if array.__class__ is _ndarray:
        owner = array.base
        if owner is not whole and (owner is None or owner is not whole.base) and not _aliases(array, whole):
            return
    if o.turns:
        layouts.watch()
    storage = t._storage = base._storage or base._counted()
    if storage.views is not None:
        storage.views.append(t)
    step = (o, static if len(static) == len(o.static) else {**o.static, **static}, index)
    grad = state.grad
    recorded = True if grad else "inference" if state.inference else "no_grad"
    root = base if view is None or view.recorded is None else view.base
    if not grad:
        if root._node is not None:
            t._node = Nowhere()
    elif root is not base and view.recorded is not True:
        recorded = view.recorded  # a view of a view that was made without gradients
    elif index is not None and base._node is None:
        recorded = "no_grad"  # there is no node that could refuse a write to one of several views
    if turned:
        _link_mirror(t, array, base, step, recorded)
    else:
        t._view = View(root, (step,), storage.version, recorded, None if root is base else view)


def _link_mirror(t, array, base, step, recorded):
    """Make ``t`` a view that shows ``array``, which lies in memory, conjugated or negated; or as it is, turned back."""
    view = base._view
    if view is None or (view.recorded is None and view.__class__ is not Mirror):
        root, path = base, (step,)
    else:  # through what was detached, too: only its path says how it shows memory
        root, path = view.base, (*view.path, step)
        recorded = None if view.recorded is None else recorded
    if mirrored(path):
        t._view = Mirror(root, path, t._storage.version, recorded)
    else:
        t._array, t._view = array, View(root, physical(path) or path, t._storage.version, recorded)


def mirrored(path) -> int:
    """How a view shows its memory: 1 conjugated, 2 negated, 3 both, 0 as it is."""
    bits = 0
    for op, _, _ in path:
        if op.view is not True:
            bits ^= op.view
        elif bits & 1 and op.name in ("real", "imag"):
            bits = bits - 1 if op.name == "real" else (bits - 1) ^ 2
    return bits


def physical(path) -> tuple:
    """The path through memory alone."""
    return tuple([step for step in path if step[0].view is True])


def _aliases(array, whole) -> bool:
    return not array.size or np.may_share_memory(array, whole)
