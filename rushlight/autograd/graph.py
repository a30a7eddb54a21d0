"""Looking into the graph and bending it: edges, hooks on several gradients, hooks on what is saved for backward."""

from __future__ import annotations

import threading
from typing import NamedTuple

from ..tensor import Tensor
from . import mode
from .mode import state
from .mutation import allow_mutation_on_saved_tensors
from .tape import Node, Output

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def __dir__():
    return __all__


class GradientEdge(NamedTuple):
    """A place in the graph that stands for a tensor in ``grad`` and ``backward``, without keeping the tensor alive."""

    node: Node
    output_nr: int
    ownership_token: object = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place in the graph where ``tensor``'s gradient arrives."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor._node
    if type(node) is Output:
        return GradientEdge(node.parent.shown(), node.index, node)
    return GradientEdge(node.shown(), 0)


def node_of(place) -> Node | None:
    """The node where the gradient of a Tensor or a GradientEdge arrives."""
    if isinstance(place, GradientEdge):
        return place.node.output(place.output_nr)
    return place._node if place.requires_grad else None


def increment_version(tensor) -> None:
    """Count an in-place write that autograd could not see."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t._counted().version += 1


def register_multi_grad_hook(tensors, fn, *, mode: str = "all"):
    """``fn(grads)`` once all gradients of ``tensors`` that a backward pass computes are there; ``mode="any"``: the "
    "first.

    >>> a, b = rushlight.ones(1, requires_grad=True), rushlight.ones(1, requires_grad=True)
    >>> handle = rushlight.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (a * 2 + b).backward()
    [tensor([2.]), tensor([1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [node_of(t) for t in tensors]
    lock, passes = threading.Lock(), {}
    hook = _first_of(fn, lock) if mode == "any" else None
    handles = []
    for i, t in enumerate(tensors):
        handles.append(t.register_hook(hook or _one_of_all(i, nodes, fn, lock, passes)))
    return _Handles(handles)


def _one_of_all(index, nodes, fn, lock, passes):
    def hook(grad):
        waiting, useful = running = state.running
        with lock:
            if id(running) not in passes:
                coming = sum(n in waiting and (useful is None or n in useful) for n in nodes)
                passes[id(running)] = [coming, [None] * len(nodes)]
            entry = passes[id(running)]
            entry[0] -= 1
            entry[1][index] = grad
            if entry[0]:
                return
            del passes[id(running)]
        fn(entry[1])

    return hook


def _first_of(fn, lock):
    last = [None]

    def hook(grad):
        with lock:
            waiting = state.running[0]
            if last[0] is waiting:
                return
            last[0] = waiting
        fn(grad)

    return hook


class _Handles:
    """One handle for several registrations."""

    def __init__(self, handles) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


# -- what is saved for backward --------------------------------------------------------------------------------------

# Functions of a checkpointed function that say, in its first run, which context its recomputation needs: forward may
# have had something around it that is gone by then.
surroundings: list = []


class saved_tensors_hooks:
    """Inside, what backward will need is kept as ``pack_hook(tensor)``, and ``unpack_hook`` brings it back.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), rushlight.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    """

    def __init__(self, pack_hook, unpack_hook) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._pushed = []

    def __enter__(self):
        if state.saved_hooks_error is not None:
            raise RuntimeError(state.saved_hooks_error)
        pushed = mode.pushed("saved_hooks", (self.pack_hook, self.unpack_hook))
        pushed.__enter__()
        self._pushed.append(pushed)

    def __exit__(self, *_):
        self._pushed.pop().__exit__()


class save_on_cpu(saved_tensors_hooks):
    """Keep what backward needs in the host's memory, and bring it back to its device when it is needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks:
    """Inside, ``saved_tensors_hooks`` raises ``RuntimeError(error_message)``."""

    def __init__(self, error_message: str):
        self.error_message = error_message

    def __enter__(self):
        self._outer, state.saved_hooks_error = state.saved_hooks_error, self.error_message
        if state.saved_hooks:
            state.saved_hooks_error = self._outer
            raise RuntimeError(self.error_message)

    def __exit__(self, *_):
        state.saved_hooks_error = self._outer


class Packed:
    """A saved tensor in the form that the pack hook gave it; ``place`` says which input of the op it was, if any."""

    __slots__ = ("_unpack_hook", "item", "place")

    def __init__(self, tensor: Tensor, place: int | None = None):
        pack_hook, self._unpack_hook = state.saved_hooks[-1]
        self.place = place
        version = tensor._version
        self.item = mode.without_grad(pack_hook, tensor)
        if tensor._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )

    def unpack(self, node=None) -> Tensor:
        """The tensor as it was saved, with ``node`` as its place in the graph."""
        t = mode.without_grad(self._unpack_hook, self.item)
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}"
            )
        t._sync()
        return _with_node(t._array, node)


def pack(node) -> None:
    """Called for every recorded op while saved-tensor hooks or anomaly detection are on."""
    if state.anomaly:
        from .anomaly import remember

        remember(node)
    if state.saved_hooks:
        _pack_saved(node)


def _pack_saved(node) -> None:
    from .node import Details

    plan = node.plan
    inputs = zip(node.saved, plan.pick(range(len(node.edges))))
    packed = [_pack(value, place) for value, place in inputs]
    if plan.output:
        packed.append(_pack_output(node.saved[plan.count], node))
    for (kind, which), value in zip(plan.others, node.saved[len(packed) :]):
        many = kind == "inputs"
        packed.append(tuple(_pack(v, which + i) for i, v in enumerate(value)) if many else _pack(value))
    if node.details is None:
        node.details = Details()
    node.details.residuals = _pack(node.details.residuals)
    node.details.packed = True
    node.saved, node.versions = tuple(packed), ()  # versions cannot be followed through hooks


def pack_one(node, place: int):
    """One saved value of ``node``, packed by the hooks in force."""
    plan, value = node.plan, node.saved[place]
    if place < plan.count:
        return _pack(value, plan.pick(range(len(node.edges)))[place])
    return _pack_output(value, node) if plan.output and place == plan.count else _pack(value)


def _pack(value, place=None):
    if isinstance(value, tuple):
        return tuple(_pack(v) for v in value)
    if isinstance(value, Tensor):
        return Packed(value, place)
    return Packed(_with_node(value, None)) if hasattr(value, "dtype") else value


def _pack_output(array, node):
    if node.shape is None:  # several
        return _pack(array)
    t = _with_node(array, node)
    packed = Packed(t)
    t._node = None  # the node owns what was packed: a way back would be a cycle
    return packed


def unpack(value, edges):
    """What was packed: inputs as tensors in their place in the graph, which ``edges`` lead to, the rest as arrays."""
    if isinstance(value, tuple):
        return tuple(unpack(v, edges) for v in value)
    if not isinstance(value, Packed):
        return value
    return value.unpack()._array if value.place is None else value.unpack(edges[value.place])


def _with_node(array, node) -> Tensor:
    from .node import _with_node

    return _with_node(array, node)
