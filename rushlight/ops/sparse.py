"""What dense tensors have for sparse ones: conversions, and PyTorch's errors for what only those can do.

Sparse tensors themselves are in ``sparse/``, imported when one is made.
"""

from __future__ import annotations

from ..layout import strided
from ..tensor import Tensor
from .public import PUBLIC, public


@public(function=False)
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The elements that are not zero, with their places.

    >>> rushlight.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    from ..sparse import operators

    if layout is not None:
        return self if layout is strided else operators.convert(self, layout)
    return operators.from_dense(self, sparse_dim)


@public(function=False)
def to_sparse_csr(self, dense_dim=None):
    """A matrix by rows, without its zeros."""
    return self.to_sparse().to_sparse_csr()


@public(function=False)
def to_sparse_csc(self, dense_dim=None):
    """A matrix by columns, without its zeros."""
    return self.to_sparse().to_sparse_csc()


@public(function=False)
def to_sparse_bsr(self, blocksize, dense_dim=None):
    """Not here: blocks of rows; use ``to_sparse_csr``."""
    from ..sparse import operators

    return operators.refuse_blocks(self)


@public(function=False)
def to_sparse_bsc(self, blocksize, dense_dim=None):
    """Not here: blocks of columns; use ``to_sparse_csc``."""
    from ..sparse import operators

    return operators.refuse_blocks(self)


@public(function=False)
def to_dense(self, dtype=None, *, masked_grad=None):
    """A tensor with all elements: itself, unless it is sparse."""
    return self if dtype is None else self.to(dtype)


@public(function=False)
def sparse_mask(self, mask):
    """The elements at the places of a sparse ``mask``."""
    from ..sparse import operators

    return operators.sparse_mask(self, mask)


def _only_sparse(name: str, wanted: str, doc: str = ""):
    def method(self, *_):
        raise RuntimeError(f"{name} expected {wanted} layout but got Strided")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    setattr(Tensor, name, method)


_COO, _CSR, _CSC = "sparse coordinate tensor", "sparse row compressed tensor", "sparse column compressed tensor"
_only_sparse("indices", _COO, "The places of a coalesced sparse tensor's values.")
_only_sparse("coalesce", _COO, "The sparse tensor with each place once, in order.")
_only_sparse("is_coalesced", _COO, "Is each place of a sparse tensor there once, in order?")
_only_sparse("values", "sparse tensor", "The values of a sparse tensor.")
_only_sparse("crow_indices", _CSR, "Where in the values each row begins.")
_only_sparse("col_indices", _CSR, "The column of each value.")
_only_sparse("ccol_indices", _CSC, "Where in the values each column begins.")
_only_sparse("row_indices", _CSC, "The row of each value.")
for _name in ("_indices", "_coalesced_"):
    _only_sparse(_name, _COO)
for _name in ("_values", "_nnz"):
    _only_sparse(_name, "sparse tensor")


@public(function=False)
def sparse_dim(self):
    """How many dimensions of a sparse tensor are given by indices."""
    return 0


@public(function=False)
def dense_dim(self):
    """How many dimensions the values of a sparse tensor have."""
    return self.ndim


@public(method=False, out=False)
def spmm(input, mat2):
    """``mm``, under the name that old code has for sparse matrices."""
    return PUBLIC["mm"](input, mat2)


def _later(name: str, doc: str, place: str = "creation"):
    def make(*args, **kwargs):
        from .. import sparse

        return getattr(getattr(sparse, f"_{place}"), name)(*args, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


for _name, _doc in {
    "sparse_coo_tensor": "A sparse tensor from the places of its values, and the values.",
    "sparse_csr_tensor": "A sparse matrix from where its rows begin, the columns of its values, and the values.",
    "sparse_csc_tensor": "A sparse matrix from where its columns begin, the rows of its values, and the values.",
    "sparse_compressed_tensor": "A sparse matrix by rows or by columns, as ``layout`` says.",
}.items():
    PUBLIC[_name] = _later(_name, _doc)
for _name in ("sparse_bsr_tensor", "sparse_bsc_tensor"):
    PUBLIC[_name] = _later("refuse_blocks", "Not here: sparse matrices of blocks.")
for _name in ("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"):
    PUBLIC[_name] = _later(_name, "The same indices in the other form.", "operators")
