"""A node of a graph: what is called, with which values, and who uses the result."""

from __future__ import annotations

import builtins
import functools
import operator
import re
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

_PACKAGE = __name__.split(".")[0]
BASE_TYPES = (str, int, float, bool, complex, type(None), type(...), range)
Argument = Any  # what a node's arguments may be: numbers, texts, nodes, and lists, tuples, dicts and slices of them
_side_effects: set = set()


def has_side_effect(fn):
    """Calls of ``fn`` stay although nobody uses their result."""
    _side_effects.add(fn)
    return fn


class Node:
    """``op`` is placeholder, get_attr, call_function, call_method, call_module or output; ``target`` says of what."""

    def __init__(self, graph: Graph, name: str, op: str, target, args, kwargs, return_type=None):
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args: tuple = ()
        self._kwargs: dict = {}
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    # -- its place ---------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, x: Node) -> None:
        """Put ``x`` before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Put ``x`` after this node."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # -- what it is called with --------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple:
        return self._args

    @args.setter
    def args(self, value) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value) -> None:
        self._set(self._args, value)

    def _set(self, args, kwargs) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = map_aggregate(tuple(args), _same), map_aggregate(dict(kwargs), _same)
        self._input_nodes = {}
        for part in (self._args, self._kwargs):
            map_arg(part, lambda n: self._input_nodes.setdefault(n))
        for node in self._input_nodes:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes whose results it is called with."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg) -> None:
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg) -> None:
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg) -> None:
        self.kwargs = {**self._kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace) -> None:
        self.meta["stack_trace"] = trace

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Everybody who uses this node uses ``replace_with`` from now on; returns who."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb(user):
                changed.append(user)
                user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        swap = lambda n: new_input if n is old_input else n
        self._set(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Must it stay although nobody uses it?"""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or self.target in _asserts()
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    # -- text --------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.name

    def format_node(self, placeholder_names=None, maybe_return_typename=None, **_):
        """One line of the graph's text."""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(str(self.target) + _annotation(self.type))
                return None
            default = "(default=" + str(self._args[0]) + ")" if self._args else ""
            return f"{self._head()} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{self._head()} = {self.op}[target={self.pretty_target()}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self._args[0]}"
        return (
            f"{self._head()} = {self.op}[target={self.pretty_target()}]"
            f"(args = {_shown(self._args)}, kwargs = {_shown(self._kwargs)})"
        )

    def _head(self) -> str:
        return f"%{self.name} :{_kind(self.type)} [num_users={len(self.users)}]"

    def pretty_target(self) -> str:
        return (
            self.target
            if isinstance(self.target, str)
            else re.sub(r"^_operator\.", "operator.", qualified_name(self.target))
        )

    _pretty_print_target = pretty_target

    def __lt__(self, other):
        order = {n: i for i, n in enumerate(self.graph.nodes)}
        return order[self] < order[other]


def _same(value):
    return value


def map_arg(a, fn):
    """``a`` with ``fn`` of every node in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a, fn):
    """``a`` with ``fn`` of everything in it that is no tuple, list, dict or slice."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


# -- names of functions and types --------------------------------------------------------------------------------------

# Functions of nn.functional that PyTorch has elsewhere, written in C++: it shows them under those names.
_IN_TORCH = """
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity hardshrink pairwise_distance pdist pixel_shuffle
    pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_
"""
_IN_C = """
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus
    softshrink
"""
_IN_FUNCTIONAL = """
    atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist chain_matmul
    einsum istft lu norm meshgrid pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index
"""
BUILTIN = {
    **{name: f"torch.{name}" for name in _IN_TORCH.split()},
    **{name: f"torch._C._nn.{name}" for name in _IN_C.split()},
    "logsigmoid": "torch._C._nn.log_sigmoid",
}


@functools.cache
def _torch_names() -> dict:
    """Functions of ours -> PyTorch's names."""
    from .. import overrides

    found = dict(overrides._names())
    functional = sys.modules[_PACKAGE].nn.functional
    for name, function in vars(functional).items():
        ours = callable(function) and name[0] != "_" and not isinstance(function, type)
        if ours and found.get(function, "torch.nn.functional").startswith("torch.nn.functional"):
            found[function] = BUILTIN.get(name, f"torch.nn.functional.{name}")
    package = sys.modules[_PACKAGE]
    found.setdefault(package._assert, "torch._assert")
    found.update({getattr(package, name): f"torch.functional.{name}" for name in _IN_FUNCTIONAL.split()})
    return found


def in_functional(function) -> bool:
    """Is it one of those that PyTorch wrote in Python? They hand on all their arguments."""
    return str(_torch_names().get(function, "")).startswith(("torch.nn.functional.", "torch.functional."))


def qualified_name(function: Any) -> str:
    """``torch.nn.functional.relu``, ``operator.add``, ``builtins.getattr``, ``__main__.mine``"""
    try:
        known = _torch_names().get(function)
    except TypeError:
        known = None
    if known:
        return known
    name = getattr(function, "__name__", type(function).__name__)
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"torch.Tensor.{name}"
    module = getattr(function, "__module__", None) or ""
    module = "torch" + module[len(_PACKAGE) :] if module.split(".")[0] == _PACKAGE else module
    if "<lambda>" in name:
        raise RuntimeError(f"Unable to generate code for a lambda ({function}): give the function a name")
    return f"{module}.{name}" if module else name


def type_text(kind: Any) -> str:
    """A type as code writes it."""
    if not isinstance(kind, type) or hasattr(kind, "__origin__"):
        return str(kind).replace(_PACKAGE + ".tensor.", "torch.").replace("typing.", "typing_")
    module, name = kind.__module__, kind.__qualname__
    if module == "builtins":
        return name
    if module.split(".")[0] == _PACKAGE:
        at_top = getattr(sys.modules[_PACKAGE], name, None) is kind
        module = "torch" if at_top else "torch" + module[len(_PACKAGE) :]
    return f"{module}.{name}"


def _kind(kind) -> str:
    return f" {type_text(kind)}" if kind else ""


def _annotation(kind) -> str:
    return f" : {type_text(kind)}" if kind else ""


def _shown(value) -> str:
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return repr(value)
        inside = ", ".join(_shown(v) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in value.items()) + "}"
    return "%" + value.name if isinstance(value, Node) else str(value)


@functools.cache
def _asserts() -> set:
    return {sys.modules[_PACKAGE]._assert, operator.setitem}
