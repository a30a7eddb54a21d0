"""Two tensors exchange everything but their identity."""

from __future__ import annotations

import weakref

from ..autograd.tape import AccumulateGrad
from ..tensor import Tensor

__all__ = ["swap_tensors"]

_SLOTS = ("_array", "_node", "_grad", "_storage", "_view", "__dict__")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange class, values, gradient and attributes: whoever holds ``t1`` then holds what ``t2`` was.

    A graph that was recorded before and needs one of them cannot be run back any more.
    Differs from PyTorch: a tensor with views is not refused; do not use those views afterwards.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors(): argument '{name}' must be Tensor, not {type(t).__name__}")
        if _is_watched(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if t1 is t2:
        return
    if _slots(t1) != _slots(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for t in (t1, t2):
        t._counted().version += 1  # a graph that saved one of them would find the other's values
    for slot in _SLOTS:
        first, second = _read(t1, slot), _read(t2, slot)
        object.__setattr__(t1, slot, second)
        object.__setattr__(t2, slot, first)
    for t in (t1, t2):
        _take_node_over(t)


def _slots(t: Tensor) -> set:
    return {name for base in type(t).__mro__ for name in getattr(base, "__slots__", ())}


def _read(t: Tensor, slot: str):
    return object.__getattribute__(t, slot)


def _is_watched(t: Tensor) -> bool:
    """Does anybody but the tape hold a weak reference?"""
    node = _read(t, "_node")
    own = node._variable if isinstance(node, AccumulateGrad) else None if node is None else _kept_for(node)
    return any(reference is not own for reference in weakref.getweakrefs(t))


def _kept_for(node):
    """The reference by which a node keeps the gradient of its output: ``retain_grad``."""
    return None if node.hooks is None else node.hooks.retain


def _take_node_over(t: Tensor) -> None:
    """The node that came with the values now serves ``t``."""
    node = _read(t, "_node")
    if isinstance(node, AccumulateGrad):
        fresh = AccumulateGrad(t)
        fresh.hooks, node.hooks = node.hooks, None
        node._variable = _poisoned  # type: ignore[assignment]  # raises where it is called
        object.__setattr__(t, "_node", fresh)
    elif node is not None and _kept_for(node) is not None:
        node.hooks.retain = weakref.ref(t)


def _poisoned():
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: this graph was recorded before a "
        "tensor that it ends in was swapped. Swap tensors, and convert modules that swap, before the forward pass."
    )
