"""How a recorded op looks from outside: ``next_functions``, ``_saved_…`` and what a node's hooks are handed.

PyTorch's nodes list the inputs that can have gradients, in its own order; what is one op here may be several nodes
there: a linear layer is ``AddmmBackward0`` over bias, input and the ``TBackward0`` of the weight. Recording knows
nothing of this. The tables below say how to translate when somebody looks.
"""

from __future__ import annotations

import functools

from ..tensor import Tensor, wrap
from .graph import Packed
from .lowering import lowered
from .mode import pushed
from .registry import differentiable
from .tape import _TWICE, Node

# -- inputs ------------------------------------------------------------------------------------------------------------

# By node: the places of the inputs that PyTorch's overload for a Python number has.
_ONLY = {
    "ClampBackward1": (0,), "ClampMaxBackward0": (0,), "ClampMinBackward0": (0,), "CopysignBackward1": (0,),
    "EqBackward0": (0,), "FmodBackward0": (0,), "GeBackward0": (0,), "GtBackward0": (0,), "LeBackward0": (0,),
    "LerpBackward0": (0, 1), "LtBackward0": (0,), "MaskedFillBackward0": (0,), "NeBackward0": (0,),
    "PowBackward0": (0,), "PowBackward2": (1,), "RemainderBackward0": (0,), "RsubBackward1": (0,),
}  # fmt: skip


class Shown(Node):
    """A node of PyTorch's that is part of one here; nothing runs in it."""

    __slots__ = ()

    def __init__(self, *inputs):
        self.edges, self.hooks = inputs, None


@functools.cache
def _kind(name: str) -> type:
    return type(name, (Shown,), {"__slots__": ()})


def _over(name, *inputs):
    """The node called ``name`` over ``inputs``; None if none of them has gradients."""
    return None if all(edge is None for edge in inputs) else _kind(name)(*inputs)


def _t(w):
    return _over("TBackward0", w)


def _mm(x, w):
    return _over("MmBackward0", x, w)


def _addmm(b, x, w):
    return _over("AddmmBackward0", b, x, w)


# (op, node) -> the inputs shown, from the inputs there are.
_TREES: dict = {
    ("linear", "AddmmBackward0"): lambda x, w, b: (b, x, _t(w)),
    ("linear", "MmBackward0"): lambda x, w, b: (x, _t(w)),
    ("linear", "ViewBackward0"): lambda x, w, b: (_addmm(b, _over("ViewBackward0", x), _t(w)),),
    ("linear", "UnsafeViewBackward0"): lambda x, w, b: (_mm(_over("ViewBackward0", x), _t(w)),),
    ("linear", "SqueezeBackward4"): lambda x, w, b: (_mm(_over("UnsqueezeBackward0", x), _t(w)),),
    ("matmul", "SqueezeBackward4"): lambda x, w: (_mm(_over("UnsqueezeBackward0", x), w),),
}  # fmt: skip


def inputs(node) -> tuple:
    """The edges that ``next_functions`` shows."""
    plan, edges = node.plan, node.edges
    if plan.op.lowered is not None:
        edges = tuple(edge if _is_low(edge, plan) else _over("ToCopyBackward0", edge) for edge in edges)
    tree = _TREES.get((plan.op.name, plan.node))
    if tree is not None:
        return tree(*edges)
    return tuple(edges[place] for place in _places(plan, len(edges)))


def _is_low(edge, plan) -> bool:
    return edge is not None and edge.dtype == plan.op.lowered


def _places(plan, count: int) -> tuple:
    if plan.node in _ONLY:
        return _ONLY[plan.node]
    op = plan.op
    return tuple(i for i in range(count) if op.arrays[min(i, len(op.arrays) - 1)] in op.rules or not op.rules)


# (op, node) -> the order in which a hook sees the gradients, and which of them transposed.
_ORDERS = {("linear", "AddmmBackward0"): ((2, 0, 1), 1), ("linear", "MmBackward0"): ((0, 1), 1)}


def gradients(node, found) -> tuple:
    """The gradients a node has found as its hooks see them, Tensors in PyTorch's order."""
    order, turned = _order(node, len(found))
    return tuple(_transposed(found[place]) if place == turned else found[place] for place in order)


def replaced(node, found, given) -> tuple:
    """``found`` with what a hook has put in its place."""
    order, turned = _order(node, len(found))
    result = list(found)
    for place, value in zip(order, given):
        result[place] = _transposed(value) if place == turned else value
    return tuple(result)


def _order(node, count: int):
    plan = node.plan
    return _ORDERS.get((plan.op.name, plan.node)) or (_places(plan, count), None)


def _transposed(t):
    return None if t is None else t.t()


# -- what was saved ----------------------------------------------------------------------------------------------------

# PyTorch's word for what is saved -> ours, the likeliest first.
_WORDS = {
    "self": ("x", "a", "start", "w"), "input": ("x",), "other": ("w", "b"), "result": ("y",), "exponent": ("w",),
    "weight": ("w", "weight"), "target": ("t", "target", "w"), "mat1": ("a", "x"), "mat2": ("b", "w"), "mat": ("a",),
    "vec": ("b", "w"), "batch1": ("a",), "batch2": ("b",), "tensor1": ("t1",), "tensor2": ("t2",),
    "self_sym_sizes": ("x_shape",), "dim": ("axis", "axes"), "keepdim": ("keepdims",), "dim1": ("axis1",),
    "dim2": ("axis2",), "size": ("shape", "size"), "stride": ("strides", "stride", "step"),
    "storage_offset": ("offset",), "min": ("low",), "max": ("high",), "split_sizes": ("sizes",), "diagonal": ("k",),
    "indices": ("index",), "dimension": ("axis",), "align_corners": ("align",), "output": ("y",), "A": ("a", "x"),
    "result0": ("y",), "result1": ("y",), "result2": ("y",), "condition": ("condition",),
}  # fmt: skip
_NUMBERED = {"result0": 0, "result1": 1, "result2": 2}


def saved(node, attribute: str):
    """``node._saved_self`` and the like, or ``_raw_saved_self``; AttributeError for what the node does not save."""
    raw = attribute.startswith("_raw_saved_")
    word = attribute.removeprefix("_raw_saved_").removeprefix("_saved_")
    for name in (word, *_WORDS.get(word, ())):
        place = _kept(node.plan, name)
        if place is not None:
            if node.saved is None:
                raise RuntimeError(_TWICE)
            return SavedTensor(node, place) if raw else _value(node, place, name, _NUMBERED.get(word))
        if name in node.plan.op.static and not raw:
            return node._static(name)
    raise AttributeError(f"'{node.name()}' object has no attribute '{attribute}'")


def _kept(plan, name: str) -> int | None:
    """Where in a node's ``saved`` the value called ``name`` is."""
    if name not in plan.names or name in plan.op.static:
        return None
    return plan.names.index(name)


def _value(node, place: int, name: str, number=None):
    value = node.saved[place]
    if isinstance(value, Packed):
        return value.unpack(None if value.place is None else node.edges[value.place])
    if name == "y":
        value = node._output(value)
        return value if number is None else value[number]
    if not isinstance(value, Tensor):
        value = wrap(value) if hasattr(value, "dtype") else value
    if node.plan.op.lowered is not None:
        value = lowered(differentiable, value, node.plan.op.lowered)
    return value


class SavedTensor:
    """A tensor kept for backward; ``register_hooks(pack, unpack)`` says in which form."""

    __slots__ = ("_node", "_place")

    def __init__(self, node, place: int):
        self._node, self._place = node, place

    @property
    def data(self):
        return self._node.saved[self._place]

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError("incompatible function arguments: register_hooks takes two functions")
        node, place = self._node, self._place
        if node.saved is None:
            raise RuntimeError(_TWICE)
        if isinstance(node.saved[place], Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set is not allowed."
            )
        with pushed("saved_hooks", (pack_hook, unpack_hook)):
            node.repack(place)
