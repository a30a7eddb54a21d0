"""The nested tensor: the examples' elements in one tensor, and where each example begins.

Only the values are part of the graph, so every operator on nested tensors (``operators.py``) is a composition of plain
operators on them, and a nested leaf is one whose values are a leaf.
"""

from __future__ import annotations

import itertools

from ..autograd.carried import Carrier
from ..layout import jagged
from ..ops.common import known_values
from ..ops.public import PUBLIC
from ..tensor import Size, Tensor

__all__ = ["NestedInt", "NestedTensor"]


class NestedTensor(Carrier):
    """Example i is ``values[offsets[i] : offsets[i + 1]]`` along the dimension ``ragged - 1``.

    The shape is that of the values with the number of examples before it, and ``j1`` for the size that differs. With
    ``lengths`` an example ends before the next one begins.
    """

    __slots__ = ("_known", "_lengths", "_offsets", "_ragged_idx", "_symbol", "_values")
    _values: Tensor
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _symbol: NestedInt
    _known: tuple  # (shortest, longest), None where nobody asked yet

    def __new__(cls, values, offsets, lengths=None, ragged=1, known=(None, None), symbol=None):
        t = object.__new__(cls)
        t._start()
        t._values, t._offsets, t._lengths, t._ragged_idx, t._known = values, offsets, lengths, ragged, known
        t._symbol = symbol or _symbol_of(offsets if lengths is None else lengths)
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from .operators import call

        return call(func, args, kwargs or {})

    @property
    def _array(self):
        """The values', for whoever asks for a dtype or device."""
        self._values._sync()
        return self._values._array

    # -- what it is --------------------------------------------------------------------------------------------------

    is_nested = True
    layout = jagged

    @property
    def shape(self):
        sizes = list(self._values.shape)
        sizes[self._ragged_idx - 1] = self._symbol
        return tuple.__new__(Size, (self._offsets.shape[0] - 1, *sizes))

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[_place(dim, self.ndim)]

    @property
    def ndim(self):
        return self._values.ndim + 1

    def dim(self):
        return self._values.ndim + 1

    ndimension = dim

    def stride(self, dim=None):
        steps = self._values.stride()
        made = (self._symbol * max(steps[0], 1) if steps else self._symbol, *steps)
        return made if dim is None else made[_place(dim, self.ndim)]

    def is_contiguous(self, *_, **__):
        return self._lengths is None and self._values.is_contiguous()

    def __len__(self):
        return self._offsets.shape[0] - 1

    def __iter__(self):
        return iter(self.unbind())

    def __repr__(self, *, tensor_contents=None):
        return _text(self)

    __str__ = __repr__

    def __format__(self, form):
        return format(repr(self), form)

    def offsets(self):
        return self._offsets

    def lengths(self):
        return self._lengths

    @property
    def _min_seqlen(self):
        return self._bound(0)

    @property
    def _max_seqlen(self):
        return self._bound(1)

    def _bound(self, which: int) -> int:
        if self._known[which] is None:
            counts = known_lengths(self)
            self._known = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
        return self._known[which]

    # -- copies ------------------------------------------------------------------------------------------------------

    @property
    def _inside(self):
        return self._values

    def _with(self, values, ragged=None) -> NestedTensor:
        """The same examples with other values."""
        place = self._ragged_idx if ragged is None else ragged
        return NestedTensor(values, self._offsets, self._lengths, place, self._known, self._symbol)

    def _carrying(self, inside):
        return self._with(inside)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self._with(self._values.__deepcopy__(memo))
        return made

    def __reduce_ex__(self, protocol):
        values = self._values if self._values.is_leaf else self._values.detach()
        return NestedTensor, (values, self._offsets, self._lengths, self._ragged_idx, self._known)


class NestedInt:
    """A size that differs from example to example: equal only to itself, or the same multiple of it."""

    __slots__ = ("factor", "number")

    def __init__(self, number: int, factor: int = 1):
        self.number, self.factor = number, factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other) -> bool:
        same = isinstance(other, NestedInt)
        return same and (self.number, self.factor) == (other.number, other.factor)

    def __hash__(self):
        return hash((NestedInt, self.number, self.factor))

    def __mul__(self, factor: int):
        return NestedInt(self.number, self.factor * factor)

    __rmul__ = __mul__

    def __index__(self):
        raise TypeError(f"{self!r} is the size of a dimension that differs from example to example: it is no number")

    __int__ = __index__


_count = itertools.count(1)


def _symbol_of(rows: Tensor) -> NestedInt:
    """One size for all nested tensors made with the same tensor of offsets."""
    found = rows.__dict__.get("_nested_int")
    if found is None:
        found = rows.__dict__["_nested_int"] = NestedInt(next(_count))
    return found


def from_list(parts: list) -> NestedTensor:
    """Tensors one after the other along the one dimension in which they differ."""
    _check_parts(parts)
    differing = [d for d in range(parts[0].ndim) if len({t.shape[d] for t in parts}) > 1]
    if len(differing) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            "only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    ragged = differing[0] if differing else 0
    sizes = [t.shape[ragged] for t in parts]
    offsets = PUBLIC["tensor"]([0, *itertools.accumulate(sizes)], device=parts[0].device)
    return NestedTensor(PUBLIC["cat"](parts, ragged), offsets, None, ragged + 1, (min(sizes), max(sizes)))


def _check_parts(parts: list) -> None:
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what in ("dim", "dtype", "device"):
        if len({t.dim() if what == "dim" else getattr(t, what) for t in parts}) > 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must have the same {what}")
    if parts[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def known_lengths(nt: NestedTensor):
    """How long each example is, as an array; an error while a program is compiled, where nobody knows."""
    counts = known_values(nt._offsets.diff() if nt._lengths is None else nt._lengths)
    if counts is None:
        raise RuntimeError(
            "the lengths of a nested tensor's examples are not known while a program is compiled; give "
            "nested_tensor_from_jagged() a max_seqlen, or keep to functions of its values"
        )
    return counts


def _place(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _sizes(t: Tensor) -> str:
    """``(2, j1, 4)``"""
    return "(" + ", ".join(map(str, t.shape)) + ("," if t.ndim == 1 else "") + ")"


def _text(nt: NestedTensor) -> str:
    notes = f"size={_sizes(nt)}, offsets={nt._offsets}"
    if nt.grad_fn is not None:
        notes += f", grad_fn={nt.grad_fn}"
    elif nt.requires_grad:
        notes += ", requires_grad=True"
    return f"NestedTensor({notes}, contiguous={nt.is_contiguous()})"
