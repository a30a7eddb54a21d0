"""What rows are called: PyTorch's names for the functions a program calls, and for the operators that run."""

from __future__ import annotations

import functools
import re

from ..ops.public import PUBLIC
from ..tensor import Tensor

__all__ = ["aten_name", "function_name", "is_watched", "is_written_in_python"]


def _words(text: str) -> frozenset:
    return frozenset(text.split())


# Functions whose operator PyTorch calls otherwise.
_FUNCTIONS = {"cross_entropy": "cross_entropy_loss", "__pow__": "pow", "__floordiv__": "floor_divide"}
# Nodes whose operator PyTorch calls otherwise.
_NODES = {
    "log_softmax": "_log_softmax", "softmax": "_softmax", "nll_loss": "nll_loss_forward",
    "nll_loss2d": "nll_loss2d_forward", "safe_softmax": "_safe_softmax", "to_copy": "_to_copy",
}  # fmt: skip
_OPERATORS = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "equal": "eq", "not_equal": "ne",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "power": "pow", "absolute": "abs",
    "astype": "_to_copy", "broadcast_to": "expand", "concatenate": "cat", "view_as_shape": "view",
}  # fmt: skip
# They run other functions, or say something of a tensor: what is in them has rows, they have none.
_UNWATCHED = _words(
    "__get__ __set__ __getitem__ __setitem__ __len__ __bool__ __float__ __int__ __index__ __repr__ __format__ "
    "__contains__ __array__ __deepcopy__ __reversed__ backward register_hook retain_grad size dim numel tolist numpy "
    "stride storage_offset is_contiguous data_ptr untyped_storage requires_grad_ is_floating_point is_complex"
)
# In PyTorch these are Python: the functions that they call are the rows.
_IN_PYTHON = _words("multi_head_attention_forward normalize gumbel_softmax")


def function_name(func) -> str:
    """``F.cross_entropy`` -> ``aten::cross_entropy_loss``"""
    name = func.__name__
    return "aten::" + _FUNCTIONS.get(name, name)


def is_watched(func) -> bool:
    """Does a call of it get a row?"""
    return getattr(func, "__name__", "__get__") not in _UNWATCHED


def is_written_in_python(func) -> bool:
    """Is it, in PyTorch, a Python function of others?"""
    return func.__name__ in _IN_PYTHON


def aten_name(call, args) -> str:
    """The name of an operator: its node's in the graph, which is PyTorch's; ``AddmmBackward0`` -> ``aten::addmm``"""
    name = _aten_name(call.op.name, call.node if call.op.rules else "")
    return _product_name(call.op.name, args) if name in ("aten::view", "aten::unsafe_view") else name


def _product_name(operator: str, args) -> str:
    """PyTorch's products of more than two dimensions are views of one of two, or of many; that one is meant."""
    if operator == "linear":
        return "aten::mm" if len(args) < 3 or args[2] is None else "aten::addmm"
    if operator == "matmul":
        return "aten::mm" if min(args[0].ndim, args[1].ndim) == 2 else "aten::bmm"
    return "aten::view"


@functools.cache
def _aten_name(name: str, node: str) -> str:
    if name in _OPERATORS:
        return "aten::" + _OPERATORS[name]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[0-9]D)(?=[A-Z])", "_", re.sub(r"Backward\d*$", "", node)).lower()
    if words and words != name:  # PyTorch's node, so its operator
        return "aten::" + _NODES.get(words, words)
    is_theirs = name in PUBLIC or hasattr(Tensor, name) or name in _NODES
    return f"aten::{_NODES.get(name, name)}" if is_theirs else f"rushlight::{name}"
