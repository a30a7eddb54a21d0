"""Linear algebra under PyTorch's names: `rushlight.linalg`.

Made by tools/stubs.py; do not edit.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from typing_extensions import TypeIs

from rushlight.device import device as _device
from rushlight.dtypes import dtype as _dtype
from rushlight.layout import layout as _layout, memory_format as _memory_format
from rushlight.ops import returns as _returns
from rushlight.random import Generator as _Generator
from rushlight.storage import UntypedStorage as _UntypedStorage
from rushlight.tensor import Size as _Size, Tensor as _Tensor
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

from rushlight.errors import _LinAlgError as LinAlgError
def cholesky(A: _Tensor, *, upper: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """L with `L L.mH = A` for positive-definite A; LinAlgError for another."""
def cholesky_ex(A: _Tensor, *, upper: _bool = False, check_errors: _bool = False, out: Any = None) -> _returns.linalg_cholesky_ex:
    """L, and an info per matrix that is zero where it could be computed."""
def cond(A: _Tensor, p: _float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The condition number with respect to the norm `p`."""
def cross(input: _Tensor, other: _Tensor | _Scalar, *, dim: _int | Sequence[_int] = -1, out: _Tensor | None = None) -> _Tensor:
    """The cross product of vectors of three along `dim`."""
def det(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The determinant of square matrices."""
def diagonal(A: _Tensor, *, offset: _float = 0, dim1: _int = -2, dim2: _int = -1, out: _Tensor | None = None) -> _Tensor:
    """The diagonal of matrices, as a view."""
def eig(A: _Tensor, *, out: Any = None) -> _returns.linalg_eig:
    """Eigenvalues and eigenvectors of square matrices, complex."""
def eigh(A: _Tensor, UPLO: _str = 'L', *, out: Any = None) -> _returns.linalg_eigh:
    """Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices."""
def eigvals(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Eigenvalues of square matrices, complex."""
def eigvalsh(A: _Tensor, UPLO: _str = 'L', *, out: _Tensor | None = None) -> _Tensor:
    """Eigenvalues, ascending, of symmetric or Hermitian matrices."""
def householder_product(A: _Tensor, tau: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The first columns of the product of Householder reflectors, as `geqrf` packs them."""
def inv(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of square matrices; LinAlgError for a singular one."""
def inv_ex(A: _Tensor, *, check_errors: _bool = False, out: Any = None) -> _returns.linalg_inv_ex:
    """The inverse, and an info per matrix that is zero where it could be computed."""
def ldl_factor(A: _Tensor, *, hermitian: _bool = False, out: Any = None) -> _returns.linalg_ldl_factor:
    """`L D L.T` of symmetric (`hermitian`: Hermitian) matrices, packed as LAPACK does, and its pivots."""
def ldl_factor_ex(A: _Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: Any = None) -> _returns.linalg_ldl_factor_ex:
    """`ldl_factor`, and an info per matrix."""
def ldl_solve(LD: _Tensor, pivots: _Tensor, B: _Tensor, *, hermitian: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = B` from A's packed `L D L.T`."""
def lstsq(A: _Tensor, B: _Tensor, rcond: Any = None, *, driver: Any = None, out: Any = None) -> _returns.linalg_lstsq:
    """The X that makes `A X - B` smallest; with residuals, rank and singular values where the driver gives them."""
def lu(A: _Tensor, *, pivot: _bool = True, out: Any = None) -> _returns.linalg_lu:
    """P, L and U with `P L U = A`."""
def lu_factor(A: _Tensor, *, pivot: _bool = True, out: Any = None) -> _returns.linalg_lu_factor:
    """LU packed into one matrix, and the pivots."""
def lu_factor_ex(A: _Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: Any = None) -> _returns.linalg_lu_factor_ex:
    """LU packed, the pivots, and an info per matrix: the first zero pivot."""
def lu_solve(LU: _Tensor, pivots: _Tensor, B: _Tensor, *, left: _bool = True, adjoint: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = B` from A's packed LU."""
def matmul(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The product of two tensors: dot, matrix-vector or batched matrix product, by their dimensions."""
def matrix_exp(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The exponential of square matrices."""
def matrix_norm(A: _Tensor, ord: _str = 'fro', dim: _int | Sequence[_int] = (-2, -1), keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The norm of matrices in two dimensions: `'fro'`, `'nuc'`, ±1, ±2 or ±inf."""
def matrix_power(A: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The n-th power of square matrices, of their inverses if n is negative."""
def matrix_rank(A: _Tensor, tol: Any = None, hermitian: _bool = False, *, atol: _float | None = None, rtol: _float | None = None, out: _Tensor | None = None) -> _Tensor:
    """How many singular values are above `max(atol, rtol * the largest)`."""
def multi_dot(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """The product of several matrices (the first and last may be vectors), in the cheapest order."""
def norm(A: _Tensor, ord: Any = None, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """A vector or a matrix norm, by the number of dimensions it is taken over."""
def pinv(A: _Tensor, rcond: Any = None, hermitian: _bool = False, *, atol: _float | None = None, rtol: _float | None = None, out: _Tensor | None = None) -> _Tensor:
    """The pseudo-inverse, from the singular values above `max(atol, rtol * the largest)`."""
def qr(A: _Tensor, mode: _str = 'reduced', *, out: Any = None) -> _returns.linalg_qr:
    """Q with orthonormal columns and upper triangular R with `Q R = A`."""
def slogdet(A: _Tensor, *, out: Any = None) -> _returns.linalg_slogdet:
    """The sign and the log of the absolute value of the determinant."""
def solve(A: _Tensor, B: _Tensor, *, left: _bool = True, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = B`, or `X A = B` if not `left`; LinAlgError for singular A."""
def solve_ex(A: _Tensor, B: _Tensor, *, left: _bool = True, check_errors: _bool = False, out: Any = None) -> _returns.linalg_solve_ex:
    """The solution, and an info per matrix that is zero where it could be computed."""
def solve_triangular(A: _Tensor, B: _Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = B` for triangular A; the other triangle is not read."""
def svd(A: _Tensor, full_matrices: _bool = True, *, driver: Any = None, out: Any = None) -> _returns.linalg_svd:
    """U, S and Vh with `U diag(S) Vh = A`."""
def svdvals(A: _Tensor, *, driver: Any = None, out: _Tensor | None = None) -> _Tensor:
    """Singular values, descending."""
def tensorinv(A: _Tensor, ind: _float = 2, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of A as a map from its last dimensions to its first `ind`."""
def tensorsolve(A: _Tensor, B: _Tensor, dims: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """X with `tensordot(A, X, X.ndim) = B`."""
def vander(x: Any, N: Any = None, *, out: _Tensor | None = None) -> _Tensor:
    """The powers 0 to N-1 of every element."""
def vecdot(x: Any, y: Any, *, dim: _int = -1, out: _Tensor | None = None) -> _Tensor:
    """The dot products of vectors along `dim`, the first conjugated."""
def vector_norm(x: Any, ord: _float = 2, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The `ord`-norm of all elements or over `dim`."""
