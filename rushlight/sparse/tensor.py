"""The sparse tensor: where its elements are, and what they are.

The places are index tensors, the elements a plain tensor, and only that one is part of the graph: every operator on
sparse tensors (``operators.py``) is a composition of plain operators on it. So gradients flow, and a sparse leaf is
one whose values are a leaf.
"""

from __future__ import annotations

from ..autograd import tape
from ..autograd.carried import Carrier
from ..engine import KINDS
from ..engine import sparse as engine
from ..engine.sparse import Coordinates
from ..layout import layout, sparse_coo, sparse_csc, sparse_csr
from ..tensor import Size, Tensor, wrap

__all__ = ["SparseTensor"]

_WORDS = {sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc"}


class SparseTensor(Carrier):
    """``values`` at places; the layout says how the places are written.

    sparse_coo  index = (indices,): a column of ``indices`` for each element, (sparse_dim, nnz)
    sparse_csr  index = (crow_indices, col_indices): where each row begins, and the column of each element
    sparse_csc  index = (ccol_indices, row_indices)
    """

    __slots__ = ("_form", "_index", "_is_coalesced", "_size", "_values_")
    _form: layout
    _index: tuple
    _is_coalesced: bool
    _size: Size
    _values_: Tensor

    def __new__(cls, form, index, values, size, coalesced=True):
        t = object.__new__(cls)
        t._start()
        t._form, t._index, t._values_ = form, tuple(index), values
        t._size, t._is_coalesced = Size(size), coalesced
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from .operators import find

        return find(func, args)(*args, **(kwargs or {}))

    @property
    def _array(self):
        """Shape and dtype for whoever only asks these, and what the tape adds."""
        values = self._values_
        values._sync()
        index = self._index[0]._array if self._form is sparse_coo else None
        return Coordinates(index, values._array, self._size, self._is_coalesced)

    @_array.setter
    def _array(self, array):
        if not isinstance(array, Coordinates) or self._form is not sparse_coo:
            raise RuntimeError("a sparse tensor cannot take the values of a dense one; use to_dense()")
        self._index, self._values_, self._is_coalesced = (wrap(array.indices),), wrap(array.values), array.coalesced

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def layout(self):
        return self._form

    @property
    def is_sparse(self):
        return self._form is sparse_coo

    @property
    def is_sparse_csr(self):
        return self._form is sparse_csr

    @property
    def shape(self):
        return self._size

    @property
    def ndim(self):
        return len(self._size)

    def dim(self):
        return len(self._size)

    ndimension = dim

    @property
    def is_cuda(self):
        return self._values_.is_cuda

    @property
    def is_cpu(self):
        return self._values_.is_cpu

    @property
    def is_meta(self):
        return self._values_.is_meta

    def numel(self):
        return self._size.numel()

    nelement = numel

    def __len__(self):
        if not self._size:
            raise TypeError("len() of a 0-d tensor")
        return self._size[0]

    def __repr__(self, *, tensor_contents=None):
        from .printing import text

        return text(self)

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def _indices(self):
        _require_coo(self, "_indices")
        return self._index[0]

    def _values(self):
        return self._values_

    def _nnz(self):
        return self._values_.shape[0]

    def _coalesced_(self, coalesced):
        self._is_coalesced = bool(coalesced)
        return self

    # -- its place in the graph: that of its values ------------------------------------------------------------------

    @property
    def _inside(self):
        return self._values_

    def _carrying(self, inside):
        return self._like(inside)

    def requires_grad_(self, requires_grad=True):
        if self._values_.is_leaf and self._values_.requires_grad != requires_grad:
            self._values_ = self._values_.detach()
        return super().requires_grad_(requires_grad)

    def detach_(self):
        self._values_ = self._values_.detach()
        return self

    @property
    def data(self):
        return self._like(self._values_.data)

    @data.setter
    def data(self, value):
        _take(self, value)

    # -- copies ------------------------------------------------------------------------------------------------------

    def _like(self, values, coalesced=None) -> SparseTensor:
        """The same places with other values."""
        return SparseTensor(
            self._form, self._index, values, self._size, self._is_coalesced if coalesced is None else coalesced
        )

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        made = SparseTensor(
            self._form, [i.clone() for i in self._index], self._values_.__deepcopy__(memo), self._size,
            self._is_coalesced,
        )  # fmt: skip
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol):
        from ..io.rebuild import rebuild_sparse_tensor

        values = self._values_ if self._values_.is_leaf else self._values_.detach()
        rest = (self._is_coalesced,) if self._form is sparse_coo else ()
        return rebuild_sparse_tensor, (self._form, (*self._index, values, self._size, *rest))

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    def __bool__(self):
        return bool(self.to_dense())


def _take(target: SparseTensor, source: SparseTensor) -> None:
    """``target`` becomes what ``source`` is."""
    target._form, target._index, target._values_ = source._form, source._index, source._values_
    target._size, target._is_coalesced = source._size, source._is_coalesced


def _require_coo(s: SparseTensor, name: str) -> None:
    if s._form is not sparse_coo:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {_WORDS[s._form]}")


def from_gradient(g: Coordinates) -> SparseTensor:
    """A gradient that the tape hands out."""
    return SparseTensor(sparse_coo, (wrap(g.indices),), wrap(g.values), g.shape, g.coalesced)


def word(t: Tensor) -> str:
    """A layout as PyTorch's messages write it."""
    return _WORDS[t._form] if isinstance(t, SparseTensor) else "Strided"


KINDS[Coordinates] = engine
tape.WRAPPERS[Coordinates] = from_gradient
