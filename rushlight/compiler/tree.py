"""Nested containers of tensors, flattened and put back."""

from __future__ import annotations

from ..engine import SPREAD
from ..ops import returns
from ..tensor import Tensor


class Leaf:
    """A tensor's place in a flattened structure."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


def flatten(value, tensors: list):
    """``value`` with each Tensor replaced by a Leaf; the tensors are appended to ``tensors``."""

    def place(tensor):
        tensors.append(tensor)
        return Leaf(len(tensors) - 1)

    return _mapped(value, Tensor, place)


def unflatten(value, tensors: list):
    """The inverse of ``flatten``."""
    return _mapped(value, Leaf, lambda leaf: tensors[leaf.index])


def _mapped(value, kind: type, change):
    """``value`` with ``change(x)`` in the place of each ``x`` of this kind."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple):
        parts = [_mapped(v, kind, change) for v in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts) if isinstance(value, returns.Named) else tuple(parts)
    if isinstance(value, list):
        return [_mapped(v, kind, change) for v in value]
    if isinstance(value, dict):
        made = {k: _mapped(v, kind, change) for k, v in value.items()}
        return made if type(value) is dict else _like(value, made)
    return value


def _like(value, items):
    copy = value.copy()
    copy.update(items)
    return copy


def distinct(tensors: list) -> tuple[list[Tensor], tuple]:
    """Each of the tensors once, and who is who: for each its place among them."""
    places: dict[int, int] = {}
    who = tuple([places.setdefault(id(t), len(places)) for t in tensors])
    return list({id(t): t for t in tensors}.values()), who


def others(value) -> list:
    """What is in ``value`` besides tensors and the containers that ``flatten`` knows."""
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in others(v)]
    if isinstance(value, dict):
        return [x for v in value.values() for x in others(v)]
    return [] if isinstance(value, Tensor) else [value]


def signature(value):
    """A hashable description of an argument: shapes and dtypes of tensors, the values of everything else."""
    if isinstance(value, Tensor):
        array, node = value._array, value._node
        kind = array.__class__ if array.__class__ is not SPREAD.array else (array.how, array.mesh)
        if node is None and value._grad is None:
            return (array.shape, array.dtype, kind)
        gradient = None if value._grad is None else signature(value._grad)
        return (array.shape, array.dtype, kind, None if node is None else node.is_leaf, gradient)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple([signature(v) for v in value]))
    if isinstance(value, dict):
        return (type(value), tuple([(k, signature(v)) for k, v in value.items()]))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return (type(value), value)
