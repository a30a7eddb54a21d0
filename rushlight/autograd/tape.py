"""The dynamic graph: nodes, edges, and the loop that runs them backwards.

An edge points from a node to the node that made its input, never to a tensor. A tensor that needs gradients holds
its node; a leaf's node is an ``AccumulateGrad``. Gradients travel as raw arrays, or as Tensors when the backward
pass is itself recorded (``create_graph``); the same rules serve both.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
import weakref
from collections import OrderedDict
from functools import cache, partial

import numpy as np

from .. import dtypes
from ..engine import LOW_PRECISION, SPREAD, WIDER, namespace_of, replaced
from ..engine.native import library
from ..engine.numpy import layouts
from ..engine.numpy import namespace as numpy_engine
from ..engine.numpy.kernels import chains, copies
from ..layout import is_dense
from ..tensor import Storage, Tensor, wrap
from . import mode, overriding
from .mode import state

_sequence = itertools.count()
WRAPPERS: dict = {}  # of gradients that are no arrays of an engine, by class: what makes a Tensor of one
_MANY = 1 << 10  # halves: what adding them one by one takes is more than to convert them
_SOON = 1 << 62  # AccumulateGrad's sequence: run as soon as its gradient is complete

_TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class Node:
    """One recorded operation. ``shape`` and ``dtype`` are its output's: what an incoming gradient must look like."""

    __slots__ = ("edges", "shape", "dtype", "xp", "sequence", "hooks", "_metadata", "__weakref__")
    aliases_inputs = False  # its outputs are its inputs, unchanged: writing to one in place is forbidden
    is_leaf = False  # whether the tensor that holds this node is a leaf

    def __init__(self, edges, shape, dtype, xp):
        self.edges, self.shape, self.dtype, self.xp = edges, shape, dtype, xp
        self.sequence = next(_sequence)
        self.hooks = None

    def apply(self, xp, g, graph: bool, keep: bool):
        """The gradients for ``edges`` from ``g``, the gradient of the output; None where an edge is None."""
        raise NotImplementedError

    def name(self) -> str:
        return type(self).__name__

    def shown(self) -> Node:
        """This node, ready for a user's eyes."""
        return self

    lost = False  # no gradient arrives here, see ``Nowhere``

    def _laid(self, which: int, found, g):
        """The gradient ``found`` for one of the inputs from ``g``, as it lies in memory in PyTorch."""
        return found

    def watch(self, storage: Storage, index: int | None = None) -> None:
        """The tensor that this node made might be written to from now on: notice it, if its values are needed.

        ``index`` says which one, of several.
        """

    def remember(self, tangents: dict, index: int = 0) -> None:
        """The output has these tangents, by level; for a node that makes a Tensor of an output that it kept."""

    def output(self, index: int) -> Node:
        """The node where the gradient of one of the outputs arrives: itself, unless there are several."""
        return self

    def _sequence_nr(self) -> int:
        return self.sequence

    @property
    def next_functions(self):
        return tuple(as_function(e) for e in self.edges)

    _metadata: dict

    @property
    def metadata(self) -> dict:
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    def register_prehook(self, hook):
        """``hook(grad_outputs) -> None | grad_outputs``, before this node runs."""
        return self._hooks().add("pre", hook)

    def register_hook(self, hook):
        """``hook(grad_inputs, grad_outputs) -> None | grad_inputs``, after this node ran."""
        return self._hooks().add("post", hook)

    def turns(self):
        """The places of the edges in the order in which leaves among them get their gradients, for hooks to see."""
        return range(len(self.edges))

    def hooked(self, hooks, found, outputs) -> tuple:
        """The gradients that this node ``found``, after its ``hooks``, which see them as PyTorch's node has them."""
        for hook in hooks:
            given = overriding.hooked(hook, found, outputs)
            if given is not None:
                found = given if isinstance(given, tuple) else (given,)
        return found

    def _hooks(self) -> NodeHooks:
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"


def as_function(edge):
    if edge is None or type(edge) is Nowhere:
        return (None, 0)
    return (edge.parent.shown(), edge.index) if type(edge) is Output else (edge.shown(), 0)


class AccumulateGrad(Node):
    """Where gradients of a leaf end: adds them into ``variable.grad``."""

    __slots__ = ("_variable",)
    is_leaf = True
    _lock = threading.RLock()  # one for all leaves: two threads, or a signal, may bring gradients to one at once

    def __init__(self, variable: Tensor):
        # Not Node.__init__: a leaf is made for every parameter, and has no edges to speak of.
        self.edges, self.hooks, self.sequence = (), None, _SOON
        self._variable = weakref.ref(variable)  # the leaf owns this node; a strong reference would be a cycle

    @property
    def variable(self):
        return self._variable()

    @property
    def shape(self):
        v = self._variable()
        return None if v is None else v._array.shape

    @property
    def dtype(self):
        v = self._variable()
        if v is None:
            return None
        wanted = v.__dict__.get("_grad_dtype")
        return v._array.dtype if wanted is None else wanted.numpy

    @property
    def xp(self):
        v = self._variable()
        return None if v is None else namespace_of(v._array)

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def next_functions(self):
        return ()

    def take(self, g) -> None:
        """A raw gradient, complete and without hooks to run: straight from the rule into ``.grad``."""
        variable = self._variable()
        if variable is not None and variable._node is not None:
            array = variable._array
            if g.shape != array.shape or g.dtype != array.dtype:
                g = _fit(g, array.shape, array.dtype, graph=False)
            self.apply(namespace_of(g), g, graph=False, keep=False, holders=5)

    def apply(self, xp, g, graph, keep, holders=3):
        variable = self._variable()
        if variable is None or variable._node is None:  # gone, or frozen since
            return ()
        if g.__class__ is SPREAD.array and variable._array.__class__ is not SPREAD.array:
            g = xp.gathered(g)  # an ordinary tensor that met one over a mesh
        with self._lock:
            old = variable._grad
            if old is not None and old._view is not None:
                old._come_home()
            if graph:
                variable._grad = _dispatched_sum(variable, old, g) if overriding.begun else _recorded_sum(old, g)
            elif old is None:
                # Take the array over when nobody but its known holders has it (``g`` here, the caller's, getrefcount's
                # own; by way of ``take`` also the list of gradients). The same test lets PyTorch steal a gradient.
                if g.__class__ is np.ndarray and (
                    sys.getrefcount(g) > holders
                    or g.base is not None
                    or g.strides != getattr(variable._array, "strides", None)
                ):
                    g = _laid_out_as(variable._array, g)
                variable._grad = _to_tensor(g, graph)
            elif old._node is not None:
                variable._grad = wrap(xp.add(old._array, g))  # part of a graph: leave the old tensor as it was
            elif g.__class__ is np.ndarray and old._array.__class__ is np.ndarray:
                _add_to(old._array, g)
                old._counted().version += 1
            elif g.__class__ in WRAPPERS or old._array.__class__ in WRAPPERS:
                variable._grad = _to_tensor(old._array + g, graph)
            else:
                total = xp.add(old._array, g)
                replaced([(old, total)])
                old._array = total
        if self.hooks is not None:
            for hook in list(self.hooks.after_accumulate.values()):
                overriding.hooked(hook, variable)
        return ()


def _add_to(array, g) -> None:
    """``array += g``, on all threads where that is worth it."""
    if array.size >= _MANY and array.dtype in LOW_PRECISION:
        array[...] = _sum(array, g)
        return
    if array.size < chains.ONE_STEP or not (array.flags.c_contiguous and array.dtype.char in "fd"):
        np.add(array, g, out=array)
        return
    total = chains.into(array, numpy_engine.add, array, g)
    if total is not array:
        array[...] = total


def _sum(x, g):
    """``x + g``; of many halves in single precision: NumPy's own loops do the same one by one."""
    if g.size < _MANY or g.dtype not in LOW_PRECISION or x.__class__ is not np.ndarray:
        return numpy_engine.add(x, g)
    wide = WIDER[g.dtype]
    total = numpy_engine.add(numpy_engine.astype(x, wide), numpy_engine.astype(g, wide))
    return numpy_engine.astype(total, g.dtype)


def _laid_out_as(array, g):
    """A copy of a leaf's gradient that lies in memory as the leaf does; in plain order if that has gaps."""
    if array.__class__ is not np.ndarray:
        return g.copy()
    if array.flags.c_contiguous and (made := copies.copied(g)).strides == array.strides:
        return made
    strides = layouts.strides_of(array)
    dense = is_dense(array.shape, strides, layouts.order_of(array.shape, strides))
    made = np.empty(array.size, g.dtype)
    made = np.ndarray(g.shape, g.dtype, made, 0, [s * g.itemsize for s in strides]) if dense else made.reshape(g.shape)
    copies.put(made, g)
    return made


class Nowhere(AccumulateGrad):
    """The node of a view that was made without gradients: it requires grad as its base does, but gradients get lost."""

    __slots__ = ()
    lost = True

    def __init__(self):
        self.edges, self.hooks, self.sequence = (), None, _SOON
        self._variable = _nothing  # as of a leaf that is gone


def _nothing():
    return None


def _dispatched_sum(variable, old, g):
    if state.grad:
        return _recorded_sum(old, g)
    from .dispatching import accumulated

    return accumulated(variable, old, g)


def _recorded_sum(old, g):
    return _recorded_copy(g) if old is None else old + g


def _recorded_copy(g: Tensor) -> Tensor:
    """A copy that is part of the graph: two leaves' gradients must not be one tensor."""
    global _copy
    if _copy is None:
        from .op import differentiable, variant

        _copy = variant(differentiable.clone, "CopyBackwards")
    return _copy(g)


_copy = None


class Output(Node):
    """One output of a node that has several; it hands its gradient to ``parent`` at ``index``."""

    __slots__ = ("parent", "index")

    def __init__(self, parent: Node, index: int, shape, dtype):
        self.edges, self.shape, self.dtype, self.xp = (parent,), shape, dtype, parent.xp
        self.sequence, self.hooks = next(_sequence), None
        self.parent, self.index = parent, index

    def watch(self, storage, index=None):
        self.parent.watch(storage, self.index)

    def remember(self, tangents, index=0):
        self.parent.remember(tangents, self.index)

    def apply(self, xp, g, graph, keep):
        return (Slot(g, self.index),)


class Slot:
    """A gradient on its way to one of several outputs of a node."""

    __slots__ = ("value", "index")

    def __init__(self, value, index):
        self.value, self.index = value, index


class NodeHooks:
    """The hooks of one node, by kind; each kind is an ordered dict of id to function."""

    __slots__ = ("tensor", "retain", "pre", "post", "after_accumulate", "__weakref__")
    known = False  # has there been one?

    def __init__(self):
        NodeHooks.known = True
        # OrderedDicts, because a handle refers to its table weakly and plain dicts do not allow that.
        self.tensor, self.pre, self.post, self.after_accumulate = (OrderedDict() for _ in range(4))
        self.retain = None  # weak reference to the tensor whose .grad is kept

    def add(self, kind: str, hook):
        from ..utils.hooks import RemovableHandle

        table = getattr(self, kind)
        handle = RemovableHandle(table)
        table[handle.id] = hook
        return handle


def run_backward(roots, gradients, *, retain=False, graph=False, wanted=None, accumulate=False, tensors=False):
    """Push ``gradients`` from ``roots`` (nodes) down the graph.

    A node runs when everything above it has run; of those ready, the youngest first, leaves at once. With ``wanted``
    (a set of nodes) only paths that lead to one of them are followed, and what arrives there is returned as
    ``{node: gradient}`` without being accumulated; with ``accumulate`` the wanted nodes run too, so that leaves among
    them accumulate. Without ``wanted`` all leaves accumulate. With ``graph`` the pass is recorded; then, or with
    ``tensors``, gradients are given, travel and are returned as Tensors.
    """
    if overriding.watching and overriding.state.subclasses:  # gradient rules are nobody's to override
        options = {"retain": retain, "graph": graph, "wanted": wanted, "accumulate": accumulate, "tensors": tensors}
        return overriding.for_rules(run_backward, roots, gradients, **options)
    recorded, graph = graph, graph or tensors
    waiting = count_waiting(roots)
    useful = None if wanted is None else _paths_to(roots, wanted)
    if accumulate:
        useful.update(dict.fromkeys(wanted, True))
    pending: dict[Node, object] = {}
    owned: set = set()  # nodes whose pending array was allocated here, and may be added to in place
    captured: dict[Node, object] = {}
    for node, g in zip(roots, gradients):
        _deliver(node, g, pending, owned, graph)
    ready = []
    for turn, node in enumerate(dict.fromkeys(roots)):
        if not waiting[node]:
            heapq.heappush(ready, (-node.sequence, turn, node))

    looked_at = wanted is not None or NodeHooks.known
    watched = mode.active and (state.anomaly or state.profile is not None)
    short = useful is None and not watched  # a gradient may be handed to a leaf as soon as it is there
    outer, outer_running = state.grad, state.running
    state.grad, state.running = recorded, (waiting, useful)
    quickly = None if watched or graph else _run_ready
    try:
        while ready:
            if quickly is not None:
                turn = quickly(ready, pending, waiting, owned, retain, turn, useful, wanted, captured)
                if not ready:
                    break
            node = heapq.heappop(ready)[2]
            g = pending.pop(node, None)
            grads = value = ()
            if g is not None:
                hooks = node.hooks
                if hooks is not None and type(g) is not list:  # with several outputs, the Output nodes have these hooks
                    g = _tensor_hooks(hooks, g, graph)
                if wanted is not None and node in wanted:
                    captured[node] = g
                if useful is None or useful.get(node):
                    if hooks is not None and hooks.pre:
                        g = _pre_hooks(hooks, g, graph)
                    xp = node.xp if g.__class__ is np.ndarray else _namespace(node, g, graph)
                    grads = watch(node, xp, g, graph, retain) if watched else node.apply(xp, g, graph, retain)
                    if looked_at:
                        grads = _as_seen(node, grads, g, wanted)
                    if hooks is not None and hooks.post:
                        grads = _after(node, grads, g, graph)
                g = None  # let go of the arrays before the next node runs
            edges = node.edges
            for i in node.turns() if NodeHooks.known else range(len(edges)):  # without hooks nobody sees it
                edge = edges[i]
                if edge is None:
                    continue
                left = waiting[edge] - 1
                waiting[edge] = left
                value = grads[i] if grads else None
                if value is not None and (useful is None or edge in useful):
                    plain = left == 0 and edge.is_leaf and value.__class__ is np.ndarray
                    if plain and short and edge.hooks is None and edge not in pending:
                        edge.take(value)
                        continue
                    _deliver(edge, value, pending, owned, graph)
                if left == 0:
                    turn += 1  # leaves all have one sequence number: among them, the first to be complete
                    heapq.heappush(ready, (-edge.sequence, turn, edge))
    finally:
        state.grad, state.running = outer, outer_running
        callbacks = state.callbacks
        if callbacks and outer_running is None:
            state.callbacks = ()
    if callbacks and outer_running is None:
        for callback in callbacks:
            overriding.hooked(callback)
    return captured


def nodes_below(roots):
    """These nodes and all that their graphs lead to, each once."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        yield node
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)


def _count_waiting(roots) -> dict:
    """``{node: how many edges of this backward pass lead to it}``."""
    waiting = dict.fromkeys(roots, 0)
    stack = list(waiting)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                if edge in waiting:
                    waiting[edge] += 1
                else:
                    waiting[edge] = 1
                    stack.append(edge)
    return waiting


# The same in C; ``_run_ready`` goes on in the loop of ``run_backward`` for as long as what is next is common.
count_waiting = _count_waiting if library is None else library.count_waiting
_run_ready = None if library is None else library.run_ready


def _deliver(node, g, pending, owned, graph):
    """Fit ``g`` to the node's output and add it to what has already arrived there."""
    if g.__class__ is Slot:
        slots = pending.setdefault(node, [None] * len(node.outputs))
        # Twice only if an Output was made again for a tensor that had died: see ``OpNode.output``.
        slots[g.index] = g.value if slots[g.index] is None else slots[g.index] + g.value
        return
    shape = node.shape
    if shape is None:  # a leaf that is gone
        return
    if g.__class__ is not np.ndarray and not graph:
        if isinstance(g, np.generic):
            g = np.asarray(g)  # of 0-dim arrays NumPy makes scalars
        elif g.__class__ in WRAPPERS and not node.is_leaf:
            g = g.dense()  # only leaves take gradients that are not arrays
    array = g._array if graph else g
    if array.shape != shape or array.dtype != node.dtype:
        g = _fit(g, shape, node.dtype, graph)
    if node not in pending:
        pending[node] = g
    elif graph or g.__class__ is not np.ndarray:
        pending[node] = pending[node] + g
        owned.discard(node)
    elif node in owned:
        _add_to(pending[node], g)
    else:
        total = np.asarray(_sum(pending[node], g))
        pending[node] = layouts.each(total, (pending[node], g)) if layouts.watched else total
        owned.add(node)


def _as_seen(node, grads, g, wanted):
    """The gradients that a node found, laid in memory as PyTorch's: those that hooks see, all on a way to some."""
    found = None
    for i, edge in enumerate(node.edges):
        if edge is not None and (edge.hooks is not None or (wanted and (layouts.watched or edge in wanted))):
            if grads[i].__class__ is np.ndarray:
                found = found or list(grads)
                found[i] = node._laid(i, grads[i], g)
            elif grads[i].__class__ is Tensor and not mode.active:
                found = found or list(grads)
                found[i] = _recorded_as_seen(node, i, grads[i], g)
    return found or grads


def _recorded_as_seen(node, i, found, g):
    arrays = [None if x is None else x._array for x in g] if type(g) is list else g._array
    laid = node._laid(i, found._array, arrays) if found._array.__class__ is np.ndarray else found._array
    if laid is not found._array:
        if laid.shape != found._array.shape:  # of a mean: as yet one element for all that it is of
            found = _fit(found, laid.shape, laid.dtype, graph=True)
        if found._view is not None or found._storage is not None:  # somebody else's memory too
            found = _recorded_copy(found)
        found._array = laid
    return found


def watch(node, xp, g, graph, retain):
    """``node.apply`` under ``detect_anomaly`` or a profiler."""
    apply = node.apply
    if state.anomaly:
        from . import anomaly

        apply = partial(anomaly.watch, node)
    if state.profile is None:
        return apply(xp, g, graph, retain)
    return state.profile.gradient(node, partial(apply, xp, g, graph, retain), g)


@cache
def _differentiable():
    from .op import differentiable  # which imports this module

    return differentiable


def _namespace(node, g, graph):
    if graph:
        return _differentiable()
    if g.__class__ is np.ndarray:
        return node.xp
    if g.__class__ is list:  # of several outputs; what only one of them is decides
        found = [namespace_of(x) for x in g if x is not None and x.__class__ is not np.ndarray]
        return found[0] if found else node.xp
    return namespace_of(g)


def _fit(g, shape, dtype, graph):
    """Sum, broadcast or reshape ``g`` to ``shape`` and cast it to ``dtype``: done here once for every rule."""
    if graph:
        xp, array = _differentiable(), g._array
    else:
        xp, array = namespace_of(g), g
    if array.shape != shape:
        g = _fit_shape(xp, g, array.shape, shape)
    if array.dtype != dtype:
        check_differentiable(dtype)
        if array.dtype.kind in "cW" and dtype.kind not in "cW":
            g = xp.real(g)
        g = xp.astype(g, dtype=dtype)
    return np.asarray(g) if isinstance(g, np.generic) else g


def check_differentiable(dtype) -> None:
    """Raise for a gradient of an integer ``dtype``: of a tensor that was written with one that requires grad."""
    if dtype is not None and dtype.kind in "biu":
        raise RuntimeError(f"no gradient goes through a tensor of {dtypes.of_numpy(dtype)!r}")


def _fit_shape(xp, g, have, want):
    if overriding.begun and isinstance(g, Tensor):
        from .dispatching import summed_to

        if (made := summed_to(g, want)) is not None:
            return made
    if _size(have) == _size(want):  # nothing to sum; (2, 1) for (2,) is another shape, not a batch of two
        return xp.reshape(g, shape=want)
    extra = len(have) - len(want)
    axes = (
        tuple(range(extra)) + tuple(i + extra for i, n in enumerate(want) if n == 1 and have[i + extra] != 1)
        if extra >= 0
        else ()
    )
    if axes:
        g = xp.sum(g, axis=axes, keepdims=False)
        if len(want) == 0 or 1 in want:
            g = xp.reshape(g, shape=want)
        return g
    if g.__class__ is np.ndarray and g.size == 1:  # as after a sum; NumPy's own way takes ten times as long
        wide = np.ndarray(want, g.dtype, g, 0, (0,) * len(want))
        wide.flags.writeable = False
        return wide
    try:
        return xp.broadcast_to(g, shape=want)
    except ValueError:  # of a leaf whose shape was changed since
        raise RuntimeError(
            f"invalid gradient - got {list(have)} but expected shape compatible with {list(want)}"
        ) from None


def _size(shape) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _paths_to(roots, wanted):
    """``{node: does a path from it lead on to a wanted node}`` for nodes worth running; post-order, on a stack."""
    useful: dict[Node, bool] = {}
    seen = {None}
    stack = [*roots]
    while stack:
        node = stack[-1]
        if node not in seen:
            seen.add(node)
            stack += [e for e in node.edges if e not in seen]
            continue
        stack.pop()  # what it leads to is done; perhaps it is, too, if several lead to it
        onward = False
        for e in node.edges:
            onward = onward or e in useful
        if onward or node in wanted:
            useful[node] = onward
    for node in roots:
        useful.setdefault(node, False)
    return useful


def _tensor_hooks(hooks, g, graph):
    """What ``Tensor.register_hook`` and ``retain_grad`` asked for."""
    t = _to_tensor(g, graph)
    for hook in list(hooks.tensor.values()):
        t = _checked(hook, overriding.hooked(hook, t), t)
    keeper = hooks.retain and hooks.retain()
    if keeper is not None:
        keeper._grad = t.clone() if keeper._grad is None else keeper._grad + t
    return _to_raw(t, graph)


def _pre_hooks(hooks, g, graph):
    grads = tuple(_to_tensor(x, graph) for x in (g if type(g) is list else [g]))
    for hook in list(hooks.pre.values()):
        replaced = overriding.hooked(hook, grads)
        if replaced is not None:
            grads = replaced if isinstance(replaced, tuple) else (replaced,)
    grads = [_to_raw(x, graph) for x in grads]
    return grads if type(g) is list else grads[0]


def _checked(hook, replaced, t):
    if replaced is None:
        return t
    if not isinstance(replaced, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    if replaced.shape != t.shape:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value")
    return replaced


def _after(node, grads, g, graph):
    found = tuple(_to_tensor(x, graph) for x in grads)
    outputs = tuple(_to_tensor(x, graph) for x in (g if type(g) is list else [g]))
    found = node.hooked(list(node.hooks.post.values()), found, outputs)
    return tuple(_to_raw(x, graph) for x in found)


def _to_tensor(g, graph):
    if g is None or graph:
        return g
    return wrap(g) if g.__class__ is np.ndarray else WRAPPERS.get(g.__class__, wrap)(g)


def _to_raw(t, graph):
    return t if t is None or graph else t._array
