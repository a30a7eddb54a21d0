"""Factorizations for the NumPy engine: LAPACK's through ``numpy.linalg``, and in NumPy what that lacks.

Functions named ``…_ex`` return an ``info`` per matrix, as LAPACK does, instead of raising.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import LinAlgError

__all__ = [
    "cholesky_ex", "cofactor", "det", "eig", "eigh", "geqrf", "inv_ex", "ldl_factor_ex", "ldl_solve", "lu_factor_ex",
    "lu_permutation", "matrix_exp", "qr", "slogdet", "solve_ex", "solve_triangular", "svd",
]  # fmt: skip

_quiet = np.errstate(all="ignore")  # written in Python, they would warn under NumPy's name, not under ours
det = _quiet(np.linalg.det)
qr = np.linalg.qr
slogdet = _quiet(np.linalg.slogdet)


def svd(x, full_matrices=True):
    """Singular values and vectors: NaN for a matrix with infinities, of which LAPACK may never come back."""
    finite = _finite(x)
    if finite.all():
        return np.linalg.svd(x, full_matrices)
    if np.isnan(x).any():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    return [_nan_unless(finite, part) for part in np.linalg.svd(_zero_unless(finite, x), full_matrices)]


def eigh(x, UPLO="L"):
    """Eigenvalues and vectors of symmetric matrices: NaN for one that is not finite."""
    finite = _finite(np.tril(x) if UPLO == "L" else np.triu(x))
    if finite.all():
        return np.linalg.eigh(x, UPLO)
    return [_nan_unless(finite, part) for part in np.linalg.eigh(_zero_unless(finite, x), UPLO)]


def _finite(x):
    """Which matrices of a batch are finite: the iterations of LAPACK need not end on others."""
    return np.isfinite(x).all(axis=(-2, -1))


def _zero_unless(finite, x):
    return np.where(finite[..., None, None], x, np.zeros((), x.dtype))


def _nan_unless(finite, part):
    finite = finite.reshape(finite.shape + (1,) * (part.ndim - finite.ndim))
    return np.where(finite, part, np.asarray(np.nan, part.dtype))


def eig(x):
    if not np.isfinite(x).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np.linalg.eig(x)
    wanted = np.result_type(x.dtype, np.complex64)
    return values.astype(wanted, copy=False), vectors.astype(wanted, copy=False)


def geqrf(x):
    reflectors, tau = np.linalg.qr(x, mode="raw")
    return np.ascontiguousarray(reflectors.mT), tau


def cholesky_ex(x, upper=False):
    x = x.mT.conj() if upper else x
    try:
        factor, info = np.linalg.cholesky(x), np.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        factor, info = np.full(x.shape, np.nan, x.dtype), np.zeros(x.shape[:-2], np.int32)
        for i in np.ndindex(info.shape):
            info[i] = _first_bad_minor(x[i])
            if info[i] == 0:
                factor[i] = np.linalg.cholesky(x[i])
    return (factor.mT.conj() if upper else factor), info


def _first_bad_minor(a) -> int:
    """The order of the first leading minor that is not positive-definite; 0 if all are."""
    for order in range(1, a.shape[-1] + 1):
        try:
            np.linalg.cholesky(a[:order, :order])
        except np.linalg.LinAlgError:
            return order
    return 0


def solve_ex(a, b):
    return _unless_singular(
        lambda: np.linalg.solve(a, b), a, np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    )


def inv_ex(a):
    return _unless_singular(lambda: np.linalg.inv(a), a, a.shape)


def _unless_singular(compute, a, shape):
    try:
        return compute(), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        return np.full(shape, np.nan, a.dtype), lu_factor_ex(a)[2]


def cofactor(a):
    """The gradient of the determinant, finite for singular matrices too: by singular values, without dividing."""
    u, s, vh = svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), np.ones((), s.dtype), s[..., None, :])
    phase = det(u) * det(vh)
    return np.conj(phase)[..., None, None] * ((u * np.prod(others, axis=-1)[..., None, :]) @ vh)


def solve_triangular(a, b, upper=True, unitriangular=False):
    """``x`` with ``tri(a) @ x = b``."""
    a = np.triu(a) if upper else np.tril(a)
    n = a.shape[-1]
    if unitriangular:
        a[..., range(n), range(n)] = 1
    if not upper:  # upside down, a lower triangle is an upper one, on which LU with pivoting is plain substitution
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    try:
        x = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        x = _back_substitution(a, b)
    return x if upper else x[..., ::-1, :]


def _back_substitution(a, b):
    """For a zero on the diagonal: divide by it, as PyTorch does, where LAPACK's solver refuses."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]))
    with np.errstate(all="ignore"):
        for i in reversed(range(n)):
            x[..., i, :] = (x[..., i, :] - (a[..., i, None, i + 1 :] @ x[..., i + 1 :, :])[..., 0, :]) / a[
                ..., i, i, None
            ]
    return x


def lu_factor_ex(x):
    """LU with partial pivoting in one array, LAPACK's pivots (from 1), and the first zero pivot or 0."""
    *batch, m, n = x.shape
    a = np.array(x).reshape(math.prod(batch), m, n)
    k, each = min(m, n), np.arange(len(a))
    pivots, info = np.empty((len(a), k), np.int32), np.zeros(len(a), np.int32)
    for j in range(k):
        p = _size(a[:, j:, j]).argmax(axis=1) + j
        pivots[:, j] = p + 1
        a[each, p], a[:, j] = a[:, j].copy(), a[each, p]
        pivot = a[:, j, j]
        info[(info == 0) & (pivot == 0)] = j + 1
        a[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)[:, None]
        a[:, j + 1 :, j + 1 :] -= a[:, j + 1 :, j, None] * a[:, None, j, j + 1 :]
    return a.reshape(x.shape), pivots.reshape(*batch, k), info.reshape(batch)


def _size(x):
    """What LAPACK compares when it looks for a pivot."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def lu_permutation(pivots, size):
    """The row order that LAPACK's pivots lead to."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order, each = np.tile(np.arange(size), (len(flat), 1)), np.arange(len(flat))
    for j in range(flat.shape[1]):
        p = flat[:, j] - 1
        order[each, p], order[:, j] = order[:, j].copy(), order[each, p]
    return order.reshape(*pivots.shape[:-1], size)


def matrix_exp(x):
    """Scaling and squaring around a Taylor polynomial of degree 18, long enough for float64 at norm 1/2.

    Each matrix is scaled by its own norm: a large one does not spoil the others of its batch.
    """
    n, real = x.shape[-1], x.real.dtype
    norm = abs(x).sum(axis=-1).max(axis=-1, initial=0)
    finite = np.isfinite(norm)
    squarings = np.where(finite, np.maximum(0, np.frexp(np.where(finite, norm, 0))[1] + 1), 0)
    scale = np.where(finite, np.ldexp(np.ones((), real), -squarings), np.asarray(np.nan, real))
    x = x * scale[..., None, None]
    y = np.broadcast_to(np.eye(n, dtype=x.dtype), x.shape)
    for degree in range(18, 0, -1):
        y = np.eye(n, dtype=x.dtype) + x @ y / np.asarray(degree, dtype=real)
    for done in range(squarings.max(initial=0)):
        y = np.where((squarings > done)[..., None, None], y @ y, y)
    return y


def ldl_factor_ex(x, hermitian=False):
    """Bunch and Kaufman's factorization of the lower triangle, pivots as LAPACK's sytrf and hetrf give them."""
    *batch, n, _ = x.shape
    a = np.tril(x).reshape(math.prod(batch), n, n)
    pivots, info = np.zeros((len(a), n), np.int32), np.zeros(len(a), np.int32)
    for i in range(len(a)):
        info[i] = _ldl(a[i], pivots[i], hermitian and x.dtype.kind == "c")
    return a.reshape(x.shape), pivots.reshape(*batch, n), info.reshape(batch)


def _ldl(a, pivots, hermitian) -> int:
    n, info, k = len(a), 0, 0
    threshold = (1 + math.sqrt(17)) / 8
    flip = np.conj if hermitian else lambda v: v
    while k < n:
        size, other = 1, k
        here = abs(a[k, k].real) if hermitian else _size(a[k : k + 1, k])[0]
        column = _size(a[k + 1 :, k])
        largest = column.max(initial=0)
        if max(here, largest) == 0:
            info = info or k + 1
        elif here < threshold * largest:
            r = k + 1 + int(column.argmax())
            row = max(_size(a[r, k:r]).max(initial=0), _size(a[r + 1 :, r]).max(initial=0))
            diagonal = abs(a[r, r].real) if hermitian else _size(a[r : r + 1, r])[0]
            if here < threshold * largest * (largest / row):
                size, other = (1, r) if diagonal >= threshold * row else (2, r)
        _ldl_swap(a, k, k + size - 1, other, flip)
        rest = slice(k + size, n)
        block = a[k : k + size, k : k + size]
        full = np.tril(block) + flip(np.tril(block, -1)).T
        if not (size == 1 and full[0, 0] == 0):
            columns = a[rest, k : k + size].copy()
            scaled = np.linalg.solve(full.T, columns.T).T
            a[rest, rest] -= np.tril(scaled @ flip(columns).T)
            a[rest, k : k + size] = scaled
        pivots[k : k + size] = other + 1 if size == 1 else -(other + 1)
        k += size
    return info


def _ldl_swap(a, k, i, j, flip):
    """Exchange rows and columns i and j (i < j) of the lower triangle of what is left, from column k on."""
    if i == j:
        return
    a[i, i], a[j, j] = a[j, j], a[i, i]
    a[j + 1 :, i], a[j + 1 :, j] = a[j + 1 :, j].copy(), a[j + 1 :, i].copy()
    between = a[i + 1 : j, i].copy()
    a[i + 1 : j, i], a[j, i + 1 : j] = flip(a[j, i + 1 : j]), flip(between)
    a[j, i] = flip(a[j, i])
    a[i, k:i], a[j, k:i] = a[j, k:i].copy(), a[i, k:i].copy()


def ldl_solve(factors, pivots, b, hermitian=False):
    *batch, n, _ = factors.shape
    batch = np.broadcast_shapes(batch, b.shape[:-2])
    hermitian = hermitian and factors.dtype.kind == "c"
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    factors, pivots = np.broadcast_to(factors, (*batch, n, n)), np.broadcast_to(pivots, (*batch, n))
    for i in np.ndindex(*batch):
        _ldl_solve(factors[i], pivots[i], x[i], np.conj if hermitian else lambda v: v)
    return x


def _ldl_solve(a, pivots, x, flip):
    n, k, steps = len(a), 0, []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        steps.append((k, size, abs(int(pivots[k])) - 1))
        k += size
    for k, size, other in steps:
        end = k + size
        x[[end - 1, other]] = x[[other, end - 1]]
        x[end:] -= a[end:, k:end] @ x[k:end]
        block = np.tril(a[k:end, k:end])
        x[k:end] = np.linalg.solve(block + flip(np.tril(block, -1)).T, x[k:end])
    for k, size, other in reversed(steps):
        end = k + size
        x[k:end] -= flip(a[end:, k:end]).T @ x[end:]
        x[[end - 1, other]] = x[[other, end - 1]]
