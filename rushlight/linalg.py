"""Linear algebra under PyTorch's names: ``rushlight.linalg``."""

from __future__ import annotations

import functools
import math

import numpy as np

from . import dtypes
from .autograd.mode import state
from .autograd.op import differentiable as xp
from .engine import namespace_of
from .errors import warn_once
from .ops import returns
from .ops.common import refuse, type_word
from .ops.decompositions import (
    PIVOT,
    LinAlgError,
    check_info,
    check_matrices,
    check_packed,
    check_reflectors,
    not_positive,
    permutation,
    singular,
)
from .ops.dims import as_int, as_ints, wrap_dim, wrap_dims
from .ops.linalg import matmul
from .ops.public import public
from .ops.shape import broadcast_shapes
from .storage import affordable
from .tensor import Tensor, wrap

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
    "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
    "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__():
    return __all__


_function = functools.partial(public, function=False, method=False)  # only out=

# -- determinants, inverses, solving ---------------------------------------------------------------------------------


@_function
def det(A):
    """The determinant of square matrices."""
    check_matrices("linalg.det", A, square=True)
    return xp.det(A)


@_function
def slogdet(A):
    """The sign and the log of the absolute value of the determinant."""
    check_matrices("linalg.slogdet", A, square=True)
    return returns.linalg_slogdet(xp.slogdet(A))


@_function
def inv(A):
    """The inverse of square matrices; LinAlgError for a singular one."""
    inverse, info = _inv_ex("linalg.inv", A)
    check_info("linalg.inv", info, singular)
    return inverse


@_function
def inv_ex(A, *, check_errors=False):
    """The inverse, and an info per matrix that is zero where it could be computed."""
    inverse, info = _inv_ex("linalg.inv", A)
    if check_errors:
        check_info("linalg.inv_ex", info, singular)
    return returns.linalg_inv_ex((inverse, info))


def _inv_ex(name, A):
    check_matrices(name, A, square=True)
    return xp.inv_ex(A)


@_function
def solve(A, B, *, left=True):
    """X with ``A X = B``, or ``X A = B`` if not ``left``; LinAlgError for singular A."""
    result, info = _solve_ex("linalg.solve", A, B, left)
    check_info("torch.linalg.solve", info, lambda code: "The solver failed because the input matrix is singular.")
    return result


@_function
def solve_ex(A, B, *, left=True, check_errors=False):
    """The solution, and an info per matrix that is zero where it could be computed."""
    result, info = _solve_ex("linalg.solve", A, B, left)
    if check_errors:
        check_info(
            "torch.linalg.solve_ex", info, lambda code: "The solver failed because the input matrix is singular."
        )
    return returns.linalg_solve_ex((result, info))


def _solve_ex(name, A, B, left):
    check_matrices(name, A, square=True, low_precision=True)
    if A._array.dtype != B._array.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {_word(A)} and B of type {_word(B)} "
            "instead"
        )
    if not B._array.ndim:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    a, b = A._array.shape, B._array.shape
    if len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1]):
        if not left:
            raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported for left=False.")
        _check_solvable(name, a, (*b, 1), left)
        check_matrices(name, A, square=True)
        return xp.solve_ex(A, B, vector=True)
    _check_solvable(name, a, b, left)
    check_matrices(name, A, square=True)
    return xp.solve_ex(A, B, left=left)


def _check_solvable(name, a, b, left) -> None:
    if a[-2 if left else -1] != b[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


@_function
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """X with ``A X = B`` for triangular A; the other triangle is not read."""
    check_matrices("linalg.solve_triangular", A, square=True)
    _check_solvable("linalg.solve_triangular", A._array.shape, B._array.shape, left)
    B = B.to(A.dtype)
    return xp.solve_triangular(A, B, upper=upper, unitriangular=unitriangular, left=left)


@_function
def lstsq(A, B, rcond=None, *, driver=None):
    """The X that makes ``A X - B`` smallest; with residuals, rank and singular values where the driver gives them."""
    if state.casting is not None:
        A, B = state.casting.raise_(A, B)
    check_matrices("torch.linalg.lstsq", A, argument="input")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B._array.shape == A._array.shape[:-1])
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            "<= 1"
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{type_word(A.dtype)} and other's dtype {type_word(B.dtype)}"
        )
    if A.ndim > B.ndim and not vector:  # the rows of B count as a batch then, as PyTorch has it
        batch = broadcast_shapes(A._array.shape[:-2], B._array.shape[:-1])
        A, B = A.expand(*batch, *A._array.shape[-2:]), B.expand(*batch, *B._array.shape[-2:])
    B = xp.expand_dims(B, axis=-1) if vector else B
    m, n = A._array.shape[-2:]
    if B._array.shape[-2] != m:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size(-{1 if vector else 2})")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        if not isinstance(driver, str):
            raise TypeError(f"linalg_lstsq(): argument 'driver' must be str, not {type(driver).__name__}")
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    driver = driver or "gelsy"
    rcond = dtypes.finfo(A.dtype).eps * max(m, n) if rcond is None else rcond
    values = svdvals(A.detach())
    if min(m, n):
        rank = xp.sum(values > rcond * xp.max(values, axis=-1, keepdims=True), axis=-1)
    else:
        rank = _empty(A, A._array.shape[:-2], np.int64)
    with_residuals = m > n and (driver == "gels" or (driver != "gelsy" and _full_rank(rank, n)))
    cut = 0.0 if driver == "gels" else float(rcond)
    solution, residuals = xp.lstsq(A, B, rcond=cut, residuals=with_residuals)
    return returns.linalg_lstsq(
        (
            xp.squeeze(solution, axis=-1) if vector else solution,
            residuals,
            _empty(A, (0,), np.int64) if driver == "gels" else rank,
            values if driver in ("gelsd", "gelss") else xp.real(_empty(A, (0,))),
        )
    )


def _full_rank(rank, n) -> bool:
    return not namespace_of(rank._array).is_known(rank._array) or bool((rank._array == n).all())


@_function
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The pseudo-inverse, from the singular values above ``max(atol, rtol * the largest)``."""
    check_matrices("linalg.pinv", A, square=hermitian and A.numel() > 0)
    atol, rtol = _tolerances("pinv", A, atol, rcond if rtol is None else rtol)
    return xp.pinv(A, atol, rtol, hermitian=hermitian and A.numel() > 0)


def _tolerances(name, A, atol, rtol):
    for word, given in (("atol", atol), ("rtol", rtol)):
        if isinstance(given, Tensor) and given.dtype.is_complex:
            raise RuntimeError(
                f"torch.linalg.{name}: {word} tensor of complex type is not supported. Got {type_word(given.dtype)}"
            )
        if given is not None and not isinstance(given, (Tensor, int, float, np.number)):
            raise TypeError(f"linalg_{name}(): argument '{word}' must be float or Tensor, not {type(given).__name__}")
    if rtol is None:
        default = dtypes.finfo(A.dtype).eps * max(A._array.shape[-2:])
        if atol is None:
            rtol = default
        elif isinstance(atol, Tensor):
            rtol = xp.where(atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol > 0 else default
    real = A.dtype.to_real() if A.dtype.is_complex else A.dtype
    atol, rtol = (t.to(real) if isinstance(t, Tensor) else t for t in (atol, rtol))
    return 0.0 if atol is None else atol, rtol


@_function
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """How many singular values are above ``max(atol, rtol * the largest)``."""
    if state.casting is not None:
        (A,) = state.casting.raise_(A)
    check_matrices("linalg.matrix_rank", A, square=hermitian and A.numel() > 0)
    one_number = isinstance(atol, (int, float)) or isinstance(rtol, (int, float))
    if one_number and any(isinstance(t, Tensor) and t.ndim for t in (atol, rtol)):
        raise TypeError(
            "linalg_matrix_rank() received an invalid combination of arguments: atol and rtol must both be numbers or "
            "both Tensors"
        )
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerances("matrix_rank", A, atol, rtol)
    A = A.detach()
    values = xp.abs(eigvalsh(A)) if hermitian and A.numel() else svdvals(A)
    if not values._array.size:
        return _empty(A, A._array.shape[:-2], np.int64)
    largest = xp.max(values, axis=-1, keepdims=True)
    low = xp.maximum(_last(atol, largest), _last(rtol, largest) * largest)
    return xp.sum(values > low, axis=-1)


def _last(tol, like):
    """A tolerance, one per matrix or one for all, shaped as ``like``."""
    if isinstance(tol, Tensor):
        return xp.astype(xp.expand_dims(tol, axis=-1) if tol.ndim else tol, dtype=like._array.dtype)
    return xp.zeros_like(like) + float(tol)


# -- factorizations --------------------------------------------------------------------------------------------------


@_function
def cholesky(A, *, upper=False):
    """L with ``L L.mH = A`` for positive-definite A; LinAlgError for another."""
    check_matrices("linalg.cholesky", A, square=True)
    factor, info = xp.cholesky_ex(A, upper=upper)
    check_info("linalg.cholesky", info, not_positive)
    return factor


@_function
def cholesky_ex(A, *, upper=False, check_errors=False):
    """L, and an info per matrix that is zero where it could be computed."""
    check_matrices("linalg.cholesky", A, square=True)
    factor, info = xp.cholesky_ex(A, upper=upper)
    if check_errors:
        check_info("linalg.cholesky_ex", info, not_positive)
    return returns.linalg_cholesky_ex((factor, info))


@_function
def qr(A, mode="reduced"):
    """Q with orthonormal columns and upper triangular R with ``Q R = A``."""
    check_matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    q, r = xp.qr(A, mode=mode)
    return returns.linalg_qr((_empty(A, (0,)) if mode == "r" else q, r))


@_function
def eigh(A, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices."""
    check_matrices("linalg.eigh", A, square=True)
    return returns.linalg_eigh(xp.eigh(A, UPLO=_triangle(UPLO)))


@_function
def eigvalsh(A, UPLO="L"):
    """Eigenvalues, ascending, of symmetric or Hermitian matrices."""
    check_matrices("linalg.eigvalsh", A, square=True)
    return xp.eigh(A, UPLO=_triangle(UPLO))[0]


def _triangle(UPLO) -> str:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@_function
def eig(A):
    """Eigenvalues and eigenvectors of square matrices, complex."""
    check_matrices("linalg.eig", A, square=True)
    return returns.linalg_eig(xp.eig(A))


@_function
def eigvals(A):
    """Eigenvalues of square matrices, complex."""
    check_matrices("linalg.eigvals", A, square=True)
    return xp.eig(A)[0]


@_function
def svd(A, full_matrices=True, *, driver=None):
    """U, S and Vh with ``U diag(S) Vh = A``."""
    check_matrices("linalg.svd", A)
    return returns.linalg_svd(xp.svd(A, full_matrices=full_matrices))


@_function
def svdvals(A, *, driver=None):
    """Singular values, descending."""
    check_matrices("linalg.svdvals", A)
    return xp.svd(A, full_matrices=False)[1]


@_function
def lu(A, *, pivot=True):
    """P, L and U with ``P L U = A``."""
    check_matrices("linalg.lu", A)
    _check_pivot("linalg.lu", pivot)
    pivots, lower, upper = xp.lu(A)
    return returns.linalg_lu((permutation(xp, pivots, A), lower, upper))


@_function
def lu_factor(A, *, pivot=True):
    """LU packed into one matrix, and the pivots."""
    packed, pivots, info = _lu_factor("linalg.lu_factor", A, pivot)
    check_info("torch.linalg.lu_factor", info, _zero_pivot, RuntimeError)
    return returns.linalg_lu_factor((packed, pivots))


@_function
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """LU packed, the pivots, and an info per matrix: the first zero pivot."""
    packed, pivots, info = _lu_factor("linalg.lu_factor_ex", A, pivot)
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", info, _zero_pivot, RuntimeError)
    return returns.linalg_lu_factor_ex((packed, pivots, info))


def _zero_pivot(code) -> str:
    return (
        f"U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
        "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def _lu_factor(name, A, pivot):
    check_matrices(name, A)
    _check_pivot(name, pivot)
    return xp.lu_factor_ex(A)


def _check_pivot(name, pivot) -> None:
    if not pivot:
        raise RuntimeError(PIVOT.replace("linalg.lu_factor", name))


@_function
def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X with ``A X = B`` from A's packed LU."""
    check_packed(LU, pivots, B)
    return xp.lu_solve(LU, pivots, B, left=left, adjoint_=adjoint)


@_function
def ldl_factor(A, *, hermitian=False):
    """``L D L.T`` of symmetric (``hermitian``: Hermitian) matrices, packed as LAPACK does, and its pivots."""
    factors, pivots, info = _ldl(A, hermitian)
    check_info("torch.linalg.ldl_factor", info, lambda code: f"D[{code},{code}] is exactly zero.")
    return returns.linalg_ldl_factor((factors, pivots))


@_function
def ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """``ldl_factor``, and an info per matrix."""
    factors, pivots, info = _ldl(A, hermitian)
    if check_errors:
        check_info("torch.linalg.ldl_factor_ex", info, lambda code: f"D[{code},{code}] is exactly zero.")
    return returns.linalg_ldl_factor_ex((factors, pivots, info))


def _ldl(A, hermitian):
    check_matrices("torch.linalg.ldl_factor_ex", A, square=True)
    return xp.ldl_factor_ex(A, hermitian=hermitian)


@_function
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """X with ``A X = B`` from A's packed ``L D L.T``."""
    check_matrices("torch.linalg.ldl_solve", LD, square=True)
    if B.ndim < 2:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim}")
    if B.dtype is not LD.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_word(B.dtype)} and A of type "
            f"{type_word(LD.dtype)} instead."
        )
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {type_word(pivots.dtype)}")
    if pivots._array.shape != LD._array.shape[:-1]:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    n, (rows, columns) = LD._array.shape[-1], B._array.shape[-2:]
    if rows != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {n} by {n} but each b matrix is "
            f"{rows} by {columns}"
        )
    return xp.ldl_solve(LD, pivots, B, hermitian=hermitian)


@_function
def householder_product(A, tau):
    """The first columns of the product of Householder reflectors, as ``geqrf`` packs them."""
    check_matrices("torch.linalg.householder_product", A, argument="input")
    m, n = A._array.shape[-2:]
    if m < n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.ndim and n < tau._array.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    check_reflectors("torch.linalg.householder_product", A, tau)
    return xp.householder_product(A, tau)


# -- norms -----------------------------------------------------------------------------------------------------------


@_function
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The ``ord``-norm of all elements or over ``dim``."""
    from .ops.reduce import check_norm_not_empty, count_of, norm_input

    x = norm_input("linalg.vector_norm", x, dtype)
    axis = (
        tuple(range(x.ndim)) if dim is None or (not isinstance(dim, int) and not len(dim)) else wrap_dims(dim, x.ndim)
    )
    if ord < 0 or math.isinf(ord):
        check_norm_not_empty(x, axis, ord)
    if ord and count_of(x._array.shape, axis if x.ndim else None) == 1:
        ord = 1  # the size of one number, whatever its powers are
    return xp.vector_norm(x, ord=ord, axis=axis if x.ndim else None, keepdims=keepdim)


@_function
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices in two dimensions: ``"fro"``, ``"nuc"``, ±1, ±2 or ±inf."""
    from .ops.reduce import norm_input

    A = norm_input("linalg.matrix_norm", A, dtype)
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got " + " ".join(map(str, dim)))
    rows, columns = (wrap_dim(d, A.ndim) for d in as_ints(dim, "dim"))
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({rows}, {columns})")
    if ord == "fro":
        return xp.vector_norm(A, ord=2, axis=(rows, columns), keepdims=keepdim)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        values = svdvals(_to_the_end(A, rows, columns))
        if ord == 2 and not values._array.shape[-1]:
            values = xp.zeros_like(values.sum(-1, keepdim=True))  # the largest of none is 0
        result = values.sum(-1) if ord == "nuc" else (xp.max if ord > 0 else xp.min)(values, axis=-1)
        if keepdim:
            for d in sorted((rows, columns)):
                result = xp.expand_dims(result, axis=d)
        return result
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = xp.vector_norm(A, ord=1, axis=summed, keepdims=keepdim)
    other -= not keepdim and summed < other
    if ord > 0 and not sums._array.shape[other]:
        return xp.sum(sums, axis=other, keepdims=keepdim)  # the largest of none is 0
    return (xp.max if ord > 0 else xp.min)(sums, axis=other, keepdims=keepdim)


def _to_the_end(A, rows, columns):
    others = tuple(i for i in range(A.ndim) if i not in (rows, columns))
    return xp.transpose(A, axes=(*others, rows, columns))


@_function
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A vector or a matrix norm, by the number of dimensions it is taken over."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if len(dims) == 2 if dims is not None else A.ndim == 2:
        return matrix_norm(A, ord, tuple(dims or (0, 1)), keepdim, dtype=dtype)
    if isinstance(ord, str):
        return matrix_norm(A, ord, dims or (-2, -1), keepdim, dtype=dtype)  # which says why not
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@_function
def cond(A, p=None):
    """The condition number with respect to the norm ``p``."""
    spectral = p in (None, 2, -2)
    check_matrices("linalg.cond" if spectral else f"linalg.cond(ord={p})", A, square=not spectral)
    if spectral:
        if not A._array.size:
            return A.new_zeros(A.shape[:-2], dtype=A.real.dtype)
        values = svdvals(A)
        first, last = values[..., 0], values[..., -1]
        return last / first if p == -2 else first / last
    inverse, info = xp.inv_ex(A)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return xp.where(xp.equal(info, 0), result, math.inf)


# -- products --------------------------------------------------------------------------------------------------------


@_function
def multi_dot(tensors):
    """The product of several matrices (the first and last may be vectors), in the cheapest order."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if first:
        tensors[0] = xp.expand_dims(tensors[0], axis=0)
    if last:
        tensors[-1] = xp.expand_dims(tensors[-1], axis=-1)
    for i, t in enumerate(tensors):
        if t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
    result = _product(tensors, _cheapest([tensors[0]._array.shape[0]] + [t._array.shape[1] for t in tensors]))
    shape = result._array.shape
    return result if not (first or last) else xp.reshape(result, shape=shape[first : 2 - last])


def _cheapest(sizes):
    """``split[i, j]``: after which factor to cut the product of factors i to j so that it costs least."""
    n = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(n)}, {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _product(tensors, split):
    def part(i, j):
        return tensors[i] if i == j else matmul(part(i, split[i, j]), part(split[i, j] + 1, j))

    return part(0, len(tensors) - 1)


@_function
def matrix_power(A, n):
    """The n-th power of square matrices, of their inverses if n is negative."""
    shape = A._array.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        check_matrices("linalg.matrix_power", A, square=True)
    if n == 0:
        return xp.where(xp.equal(xp.zeros_like(A), 0), _eye(A), A)  # still a function of A, as in PyTorch
    if n == 1:
        return xp.clone(A)
    if n < 0:
        A, n = inv(A), -n
    result = None
    while n:
        if n & 1:
            result = A if result is None else matmul(result, A)
        n >>= 1
        A = matmul(A, A) if n else A
    return result


def _eye(A):
    return wrap(namespace_of(A._array).eye(A._array.shape[-1], dtype=A._array.dtype))


@_function
def matrix_exp(A):
    """The exponential of square matrices."""
    check_matrices("linalg.matrix_exp", A, square=True)
    return xp.matrix_exp(A)


@_function
def cross(input, other, *, dim=-1):
    """The cross product of vectors of three along ``dim``."""
    a, b = input._array.shape, other._array.shape
    if len(a) != len(b):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, len(a))
    if a[axis] != 3 or b[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a[axis]} and {b[axis]}")
    refuse("cross", lambda d: d is dtypes.bool_, input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"linalg.cross: expected both of one dtype, got {input.dtype} and {other.dtype}")
    return xp.cross(input, other, axis=axis)


@_function
def vecdot(x, y, *, dim=-1):
    """The dot products of vectors along ``dim``, the first conjugated."""
    if state.casting is not None:
        x, y = state.casting.lower(x, y)
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {type_word(x.dtype)} and "
            f"y of type {type_word(y.dtype)} instead"
        )
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {type_word(x.dtype)}"
        )
    return xp.multiply(xp.conj(x), y).sum(dim)


@_function
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonal of matrices, as a view."""
    return A.diagonal(offset, dim1, dim2)


@_function
def vander(x, N=None):
    """The powers 0 to N-1 of every element."""
    if x._array.dtype.kind == "b" or (x.dtype.is_floating_point and x.dtype.itemsize < 4):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {type_word(x.dtype)}"
        )
    if N is not None:
        N = as_int(N, "N")
    x = x if x.ndim else xp.expand_dims(x, axis=0)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    affordable(count * x._array.size * x._array.dtype.itemsize)
    return _powers(x, count)


def _powers(x, count):
    if x._array.dtype.kind in "biu":  # as products of integers are
        x = xp.astype(x, dtype=np.dtype(np.int64))
    return xp.vander_powers(x, count=count)


@_function
def tensorinv(A, ind=2):
    """The inverse of A as a map from its last dimensions to its first ``ind``."""
    shape = A._array.shape
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    if math.prod(shape[:ind]) != math.prod(shape[ind:]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(shape[ind:])} != {math.prod(shape[:ind])}"
        )
    inverse = inv(xp.reshape(A, shape=(math.prod(shape[ind:]), math.prod(shape[:ind]))))
    return xp.reshape(inverse, shape=shape[ind:] + shape[:ind])


@_function
def tensorsolve(A, B, dims=None):
    """X with ``tensordot(A, X, X.ndim) = B``."""
    if dims is not None:
        moved = [wrap_dim(d, A.ndim) for d in dims]
        if len(set(moved)) < len(moved):
            raise RuntimeError(f"movedim: repeated dim in `source` ({list(dims)})")
        A = xp.transpose(A, axes=(*(i for i in range(A.ndim) if i not in moved), *moved))
    rest = A._array.shape[B.ndim :]
    if math.prod(rest) != math.prod(B._array.shape) or math.prod(A._array.shape[: B.ndim]) != math.prod(rest):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(rest)} != {math.prod(B._array.shape)}"
        )
    flat = xp.reshape(A, shape=(math.prod(B._array.shape), math.prod(rest)))
    return xp.reshape(solve(flat, xp.reshape(B, shape=(-1,))), shape=rest)


def _empty(like, shape, dtype=None):
    return wrap(namespace_of(like._array).zeros(shape, dtype=dtype or like._array.dtype))


def _word(t) -> str:
    return t.dtype.char.removesuffix("Tensor")


# -- PyTorch's other names, outside linalg ---------------------------------------------------------------------------


def _published(name, **places):
    """``public`` under a name that here belongs to another function."""

    def publish(f):
        f.__name__ = f.__qualname__ = name
        return public(f, **places)

    return publish


@_published("inverse")
def _inverse(input):
    """The inverse of square matrices."""
    return inv(input)


@_published("pinverse", out=False)
def _pinverse(input, rcond=1e-15):
    """The pseudo-inverse."""
    if state.casting is not None:
        return state.casting.single(pinv, (input, rcond), {})
    return pinv(input, rcond)


@_published("matrix_power")
def _matrix_power(input, n):
    """The n-th power of square matrices, of their inverses if n is negative."""
    return matrix_power(input, n)


@_published("cross")
def _cross(input, other, dim=None):
    """The cross product of vectors of three along ``dim`` (the first of size 3 if not given)."""
    if dim is None:
        dim = next((i for i, n in enumerate(input._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release."
        )
    return cross(input, other, dim=dim)


@_published("chain_matmul", method=False)
def _chain_matmul(*matrices):
    """The product of several matrices, in the cheapest order."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    return multi_dot(matrices)


@_published("vander", method=False, out=False)
def _vander(x, N=None, increasing=False):
    """The powers of a vector's elements as rows, highest first unless ``increasing``."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.shape[0] if N is None else N
    powers = _powers(x if count > 1 else x.detach(), count)
    return powers if increasing else xp.flip(powers, axis=-1)


@_published("svd_lowrank", method=False, out=False)
def _svd_lowrank(A, q=6, niter=2, M=None):
    """The leading singular values and vectors of a large matrix (minus M), approximated from a random projection."""
    if M is not None:
        A = A - xp.broadcast_to(M, shape=A._array.shape)
    m, n = A._array.shape[-2:]
    wide = m < n
    A = _mH(A) if wide else A
    basis = _range_basis(A, q, niter)
    u, s, vh = svd(matmul(_mH(basis), A), full_matrices=False)
    u, v = matmul(basis, u), _mH(vh)
    return (v, s, u) if wide else (u, s, v)


@_published("pca_lowrank", method=False, out=False)
def _pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A: ``svd_lowrank`` of A with its columns' means taken off."""
    m, n = A._array.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _svd_lowrank(A - xp.mean(A, axis=-2, keepdims=True) if center else A, q, niter=niter)


def _range_basis(A, q, niter):
    """Orthonormal columns that nearly span the range of A (Halko, Martinsson and Tropp, algorithm 4.4)."""
    from .ops.random import randn

    start = randn(A._array.shape[-1], q, dtype=A.dtype, device=A.device)
    basis = qr(matmul(A, start))[0]
    for _ in range(niter):
        basis = qr(matmul(_mH(A), basis))[0]
        basis = qr(matmul(A, basis))[0]
    return basis


def _mH(t):
    return xp.conj(xp.matrix_transpose(t))
