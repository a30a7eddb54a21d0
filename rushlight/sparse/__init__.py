"""Sparse tensors: COO, CSR and CSC, as graph networks and embeddings use them.

>>> adjacency = rushlight.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 1.0], (2, 2))
>>> rushlight.sparse.mm(adjacency, rushlight.tensor([[1.0], [2.0]]))
tensor([[2.],
        [1.]])
"""

from __future__ import annotations

from ..compat import missing as _missing
from ..ops.public import PUBLIC
from . import creation as _creation
from . import operators as _operators

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def mm(mat1, mat2, reduce="sum"):
    """The product of two matrices of which at least one is sparse; a CSR matrix may ``reduce`` by mean, amax, amin."""
    if reduce == "sum":
        return _operators.sparse_mm(mat1, mat2)
    return _operators.mm_reduce(mat1, mat2, reduce)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """``beta · mat + alpha · mat1 @ mat2``, with a sparse ``mat1``."""
    return _operators.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum of all elements, or along dimensions: sparse where dimensions with places are left."""
    return _operators.total(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """Softmax over the elements that are there."""
    return _operators.softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of ``softmax``."""
    return _operators.softmax(input, dim, dtype, log=True)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """``alpha · mat1 @ mat2`` at the places of ``input``, and ``beta · input`` added."""
    row, col = _operators.places(input)
    product = (mat1[row] * mat2.t()[col]).sum(-1)
    return input._like(alpha * product + beta * input._values_)


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix with the rows of ``diagonals`` on its diagonals; element j of a row is in column j.

    >>> rushlight.sparse.spdiags(rushlight.ones(1, 2), rushlight.tensor([0]), (2, 2)).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    diagonals, offsets = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)
    col = PUBLIC["arange"](diagonals.shape[1]).expand(diagonals.shape)
    row = col - offsets.unsqueeze(1)
    kept = (row >= 0) & (row < shape[0]) & (col < shape[1])
    made = _creation.sparse_coo_tensor(PUBLIC["stack"]([row[kept], col[kept]]), diagonals[kept], shape)
    return made if layout is None else made.to_sparse(layout=layout)


class check_sparse_tensor_invariants:
    """Sparse tensors are always checked when they are made; this only answers."""

    def __init__(self, enable=True):
        self.state = enable

    @staticmethod
    def is_enabled() -> bool:
        return True

    @staticmethod
    def enable() -> None:
        return

    @staticmethod
    def disable() -> None:
        return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function


def _typed(name: str):
    """``torch.sparse.FloatTensor`` and its kin, which old code calls."""
    kind = getattr(PUBLIC["zeros"](0), name)().dtype

    def make(*args, **kwargs):
        sizes = all(isinstance(a, int) for a in args)
        made = (args,) if args and sizes else args
        return _creation.sparse_coo_tensor(*made, dtype=kind, **kwargs)

    make.__name__ = make.__qualname__ = name.capitalize() + "Tensor"
    return make


FloatTensor, DoubleTensor, LongTensor, IntTensor = map(_typed, ("float", "double", "long", "int"))
ByteTensor, CharTensor, ShortTensor = map(_typed, ("byte", "char", "short"))


def __dir__():
    return sorted(__all__)


__getattr__ = _missing(__name__)
