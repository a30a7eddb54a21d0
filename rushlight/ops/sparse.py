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
    from ..sparse import operators

    return operators.refuse_blocks(self)


@public(function=False)
def to_sparse_bsc(self, blocksize, dense_dim=None):
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


def _only_sparse(name: str, wanted: str):
    def method(self, *_):
        raise RuntimeError(f"{name} expected {wanted} layout but got Strided")

    method.__name__ = method.__qualname__ = name
    setattr(Tensor, name, method)


for _name in ("indices", "coalesce", "is_coalesced", "_indices", "_coalesced_"):
    _only_sparse(_name, "sparse coordinate tensor")
for _name in ("values", "_values", "_nnz"):
    _only_sparse(_name, "sparse tensor")
for _name in ("crow_indices", "col_indices"):
    _only_sparse(_name, "sparse row compressed tensor")
for _name in ("ccol_indices", "row_indices"):
    _only_sparse(_name, "sparse column compressed tensor")


@public(function=False)
def sparse_dim(self):
    return 0


@public(function=False)
def dense_dim(self):
    return self.ndim


@public(method=False, out=False)
def spmm(input, mat2):
    """``mm``, under the name that old code has for sparse matrices."""
    return PUBLIC["mm"](input, mat2)


def _later(name: str, place: str = "creation"):
    def make(*args, **kwargs):
        from .. import sparse

        return getattr(getattr(sparse, f"_{place}"), name)(*args, **kwargs)

    make.__name__ = make.__qualname__ = name
    return make


for _name in ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_compressed_tensor"):
    PUBLIC[_name] = _later(_name)
for _name in ("sparse_bsr_tensor", "sparse_bsc_tensor"):
    PUBLIC[_name] = _later("refuse_blocks")
for _name in ("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"):
    PUBLIC[_name] = _later(_name, "operators")
