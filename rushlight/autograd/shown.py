"""How a recorded op looks from outside: ``next_functions``, ``_saved_…`` and what a node's hooks are handed.

PyTorch's nodes list the inputs that can have gradients, in its own order; what is one op here may be several nodes
there: a linear layer is ``AddmmBackward0`` over bias, input and the ``TBackward0`` of the weight. Recording knows
nothing of this. The tables below say how to translate when somebody looks.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..tensor import Tensor, wrap
from .graph import Packed
from .lowering import lowered
from .mode import pushed
from .node import _plan
from .registry import differentiable
from .tape import _TWICE, Node

# -- inputs ------------------------------------------------------------------------------------------------------------

# By node: the places of the inputs that PyTorch's node has; most of these are overloads for a Python number.
_ONLY = {
    "ClampBackward1": (0,), "ClampMaxBackward0": (0,), "ClampMinBackward0": (0,), "CopysignBackward1": (0,),
    "EqBackward0": (0,), "FmodBackward0": (0,), "GeBackward0": (0,), "GtBackward0": (0,), "LeBackward0": (0,),
    "LerpBackward0": (0, 1), "LtBackward0": (0,), "MaskedFillBackward0": (0,), "NeBackward0": (0,),
    "PowBackward0": (0,), "PowBackward2": (1,), "RemainderBackward0": (0,), "RsubBackward1": (0,),
    "FillBackward0": (0,), "FillBackward2": (0,), "IndexFillBackward0": (0,), "ZeroBackward0": (0,),
    "EmbeddingBagBackward0": (0, 3), "MultiMarginLossBackward0": (0,), "MultilabelMarginLossBackward0": (0,),
    "PdistBackward0": (0,),
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


def _repeated(p):
    return _over("RepeatBackward0", p)


# (op, node) -> the inputs shown, from the inputs there are.
_TREES: dict = {
    ("linear", "AddmmBackward0"): lambda x, w, b: (b, x, _t(w)),
    ("linear", "MmBackward0"): lambda x, w, b: (x, _t(w)),
    ("linear", "ViewBackward0"): lambda x, w, b: (_addmm(b, _over("ViewBackward0", x), _t(w)),),
    ("linear", "UnsafeViewBackward0"): lambda x, w, b: (_mm(_over("ViewBackward0", x), _t(w)),),
    ("linear", "SqueezeBackward4"): lambda x, w, b: (_mm(_over("UnsqueezeBackward0", x), _t(w)),),
    ("native_dropped", "MulBackward0"): lambda x, *mask: (x, None),
    ("normalized", "ViewBackward0"): lambda x, w, b: (
        _over("NativeBatchNormBackward0", _over("ViewBackward0", x), _repeated(w), _repeated(b)),
    ),
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


@functools.cache
def turns(op: str, node: str, count: int) -> tuple:
    """The places of a node's inputs in the order in which leaves among them get their gradients.

    Leaves get theirs as soon as the node above them has run, in its order; PyTorch's other nodes run after that, the
    youngest first. So a linear layer's bias comes before its weight, which is behind a node of its own.
    """
    tree = _TREES.get((op, node))
    if tree is None:
        return tuple(range(count))
    found, waiting = [], [_kind(node)(*tree(*range(count)))]
    while waiting:
        edges = waiting.pop().edges
        found += [edge for edge in edges if edge.__class__ is int]
        waiting += [edge for edge in edges if isinstance(edge, Shown)]
    return (*found, *(place for place in range(count) if place not in found))


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
    "self": ("x", "a", "start"), "input": ("x",), "other": ("w", "b"), "result": ("y",), "exponent": ("w",),
    "weight": ("w", "weight"), "target": ("t", "target", "w"), "mat1": ("a", "x"), "mat2": ("b", "w"), "mat": ("a",),
    "vec": ("b", "w"), "batch1": ("a",), "batch2": ("b",), "tensor1": ("t1",), "tensor2": ("t2",),
    "self_sym_sizes": ("x_shape",), "dim": ("axis", "axes"), "keepdim": ("keepdims",), "dim1": ("axis1",),
    "dim2": ("axis2",), "size": ("shape", "size"), "stride": ("strides", "stride", "step"),
    "storage_offset": ("offset",), "min": ("low",), "max": ("high",), "split_sizes": ("sizes",), "diagonal": ("k",),
    "indices": ("index",), "dimension": ("axis",), "align_corners": ("align",), "output": ("y",), "A": ("a", "x"),
    "result0": ("y",), "result1": ("y",), "result2": ("y",), "condition": ("condition",), "dims": ("axes", "axis"),
    "shifts": ("shift",), "dim0": ("axis1",), "min_val": ("low",), "max_val": ("high",), "threshold": ("limit",),
    "upscale_factor": ("factor",), "downscale_factor": ("factor",), "x1": ("x",), "x2": ("w",), "tensor": ("w",),
    "p": ("ord",), "scale_grad_by_freq": ("by_freq",), "source": ("src",),
}  # fmt: skip
_NUMBERED = {"result0": 0, "result1": 1, "result2": 2}
# By node: PyTorch's words for the outputs, where there are several or the word is the node's own.
_OUTPUTS = {
    "AminmaxBackward0": ("min", "max"), "LinalgCholeskyExBackward0": ("L",), "LinalgInvExBackward0": ("inverse",),
    "LinalgEighBackward0": ("eigenvalues", "eigenvectors"), "LinalgLuBackward0": ("P", "L", "U"),
    "LinalgQrBackward0": ("Q", "R"), "LinalgSlogdetBackward0": ("sign",), "LinalgSolveExBackward0": ("result",),
    "LinalgSvdBackward0": ("U", "S", "Vh"),
    **dict.fromkeys(("CummaxBackward0", "CumminBackward0", "KthvalueBackward0", "MaxBackward0", "MedianBackward1",
                     "MinBackward0", "ModeBackward0", "NanmedianBackward1", "SortBackward0", "TopkBackward0"),
                    ("values", "indices")),
}  # fmt: skip


def saved(node, attribute: str):
    """``node._saved_self`` and the like, or ``_raw_saved_self``; AttributeError for what the node does not save."""
    raw = attribute.startswith("_raw_saved_")
    word = attribute.removeprefix("_raw_saved_").removeprefix("_saved_")
    plan = node.plan
    names, number = _ours(plan, word)
    for name in names:
        place = _kept(plan, name)
        if place is not None:
            if node.saved is None:
                raise RuntimeError(_TWICE)
            return SavedTensor(node, place) if raw else _as_there(node, word, _value(node, place, name, number))
        if name in plan.op.static and not raw:
            return _as_there(node, word, node._static(name))
    if not raw:
        derive = _DERIVED.get((plan.op.name, word)) or _DERIVED.get((plan.node, word))
        if derive is not None:
            return derive(node)
        if any(name in plan.op.arrays and name in _full(plan).names for name in names):
            return None  # only the gradient of an input that has none asks for it
    raise AttributeError(f"'{node.name()}' object has no attribute '{attribute}'")


def _ours(plan, word: str):
    """Our names for PyTorch's ``word``, the likeliest first, and which of several outputs it is."""
    if word in _OUTPUTS.get(plan.node, ()):
        return ("y",), _OUTPUTS[plan.node].index(word)
    if (plan.node, word) == ("TransposeBackward0", "dim1"):
        return ("axis2",), None
    return (word, *_WORDS.get(word, ())), _NUMBERED.get(word)


def _full(plan):
    """The plan of the same op when every input needs a gradient."""
    return _plan(plan.op, (1 << len(plan.op.arrays)) - 1)


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


# Nodes whose ``dim`` is a tuple, whatever was given.
_SEVERAL_DIMS = {
    "AmaxBackward0", "AminBackward0", "LinalgVectorNormBackward0", "LogsumexpBackward0", "MeanBackward1",
    "NormBackward1", "StdBackward0", "SumBackward1", "VarBackward0", "VarMeanBackward0",
}  # fmt: skip
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _as_there(node, word: str, value):
    """A saved value in the form that PyTorch's node has it in."""
    name = node.plan.node
    if word == "reduction":
        return _REDUCTIONS.get(value, value)
    if isinstance(value, int) and (word in ("dims", "shifts") or (word == "dim" and name in _SEVERAL_DIMS)):
        return (value,)
    if word == "dim" and value is None and name in ("AmaxBackward0", "AminBackward0"):
        return ()
    if word == "dim" and name == "SqueezeBackward1" and len(value) == 1:
        return value[0]
    if word == "other" and isinstance(value, (int, float, complex)) and name in ("DivBackward0", "MulBackward0"):
        return wrap(np.asarray(value))
    if word in ("ignore_index", "padding_idx"):  # unsigned there, and -1 is none
        return (-1 if value is None else value) % 2**64
    if word == "mat2" and node.plan.op.name == "linear":
        return _transposed(value)
    return value


def _shape(node, place: int = 0, word: str | None = None):
    """The shape of an input, from the node that made it or from the value kept as ``word``; None if it is gone."""
    edge = node.edges[place]
    found = getattr(saved(node, f"_saved_{word}") if edge is None and word else edge, "shape", None)
    return None if found is None else tuple(found)


def _factor_shape(node, which: int):
    """The shape of a factor of a product; the second of a linear layer is its weight, transposed."""
    op = node.plan.op.name
    found = _shape(node, which + (op == "add_matmul"), ("mat1", "other")[which])
    return found[::-1] if found and which and op == "linear" else found


def _always(value):
    return lambda node: value


# (op or node, PyTorch's word) -> what it saved, from what is known of the call though nothing was kept for it here.
_DERIVED: dict = {
    **{(name, "self_sym_sizes"): _shape for name in ("broadcast_to", "split_sizes", "unsafe_view", "view_as_shape")},
    **{(f"MeanBackward{i}", "self_sym_numel"): lambda node: math.prod(saved(node, "_saved_x_shape")) for i in (0, 1)},
    **{(f"{name}Backward0", "alpha"): _always(1) for name in ("Add", "Addmm", "Sub")},
    ("AddmmBackward0", "beta"): _always(1),
    ("AddmmBackward0", "mat1_sym_sizes"): lambda node: _factor_shape(node, 0),
    ("MmBackward0", "self_sym_sizes"): lambda node: _factor_shape(node, 0),
    **{(name, "mat2_sym_sizes"): lambda node: _factor_shape(node, 1) for name in ("AddmmBackward0", "MmBackward0")},
    ("EmbeddingBackward0", "weight_sym_argsize_0"): lambda node: _shape(node)[0],
    ("MseLossBackward0", "reduction"): lambda node: {"mse_mean": 1, "mse_sum": 2}.get(node.plan.op.name, 0),
    ("SplitBackward0", "split_size"): lambda node: node._static("sizes")[0],
    ("conv", "transposed"): _always(False), ("conv_input", "transposed"): _always(True),
    ("conv", "output_padding"): lambda node: (0,) * len(node._static("stride")),
}  # fmt: skip


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
