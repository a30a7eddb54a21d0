"""Matrix factorizations, solvers and functions of matrices; ``rushlight.linalg`` gives most of them their names.

Gradients are PyTorch's: with respect to a matrix that is used in full even where only a triangle of it is read. Where
a factorization is not unique (equal singular values, a free phase) its gradient means something only for functions
that do not depend on the choice; differences of equal eigenvalues are then kept out of denominators.
"""

from __future__ import annotations

from .. import dtypes
from ..autograd.mode import in_single_precision, state
from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant
from ..engine import expect
from ..errors import LinAlgError, warn_once
from ..tensor import Tensor
from . import returns
from .common import bool_dtype, no_gradient, refuse, type_word
from .linalg import adjoint, check_batch_shapes, column, row
from .public import public

# -- building blocks of the rules ------------------------------------------------------------------------------------


def _diagonal_part(xp, x):
    return xp.tril(xp.triu(x, k=0), k=0)


def _diagonal_matrix(xp, v):
    n = v.shape[-1]
    return _diagonal_part(xp, xp.broadcast_to(row(xp, v), shape=(*v.shape[:-1], n, n)))


def _nonzero(xp, x):
    return xp.where(xp.equal(x, 0), 1, x)


def _skew(xp, x):
    return x - adjoint(xp, x)


def _is_complex(x) -> bool:
    return (x._array if isinstance(x, Tensor) else x).dtype.kind == "c"


def _solve(xp, a, b):
    return xp.solve_ex(a, b)[0]


# -- Cholesky --------------------------------------------------------------------------------------------------------


def _cholesky_x(xp, g, y, upper):
    g, factor = g[0], y[0]
    if upper:
        g, factor = adjoint(xp, g), adjoint(xp, factor)
    inner = xp.matmul(adjoint(xp, factor), g)
    inner = 0.5 * (xp.tril(inner, k=0) + adjoint(xp, xp.tril(inner, k=-1)))
    left = xp.solve_triangular(adjoint(xp, factor), inner, upper=True)
    return adjoint(xp, xp.solve_triangular(adjoint(xp, factor), adjoint(xp, left), upper=True))


@op(node="LinalgCholeskyExBackward0", x=_cholesky_x)
def _cholesky_ex(xp, x, *, upper=False):
    factor, info = xp.cholesky_ex(x, upper=upper)
    return factor, info


_old_cholesky = variant(xp.cholesky_ex, "CholeskyBackward0")


def _cholesky_solve_factor(xp, g, factor, y, upper):
    # PyTorch's gradient: of the full factor, although only a triangle is read.
    inner = xp.matmul(xp.cholesky_solve(g, factor, upper=upper), adjoint(xp, y))
    inner = inner + adjoint(xp, inner)
    return -(xp.matmul(factor, inner) if upper else xp.matmul(inner, factor))


def _cholesky_inverse_x(xp, g, factor, y, upper):
    inner = xp.matmul(xp.matmul(y, g + adjoint(xp, g)), y)
    return -(xp.matmul(factor, inner) if upper else xp.matmul(inner, factor))


@op(
    node="CholeskySolveBackward0",
    b=lambda xp, g, factor, upper: xp.cholesky_solve(g, factor, upper=upper),
    factor=_cholesky_solve_factor,
)
def _cholesky_solve(xp, b, factor, *, upper=False):
    factor = adjoint(xp, factor) if upper else factor
    half = xp.solve_triangular(factor, b, upper=False)
    return xp.solve_triangular(adjoint(xp, factor), half, upper=True)


@op(node="CholeskyInverseBackward0", factor=_cholesky_inverse_x)
def _cholesky_inverse(xp, factor, *, upper=False):
    factor = xp.triu(factor, k=0) if upper else adjoint(xp, xp.tril(factor, k=0))
    inverse = xp.solve_triangular(factor, _diagonal_part(xp, xp.ones_like(factor)), upper=True)
    return xp.matmul(inverse, adjoint(xp, inverse))


# -- solving ---------------------------------------------------------------------------------------------------------


def _solve_b(xp, g, a, left, vector):
    g = column(xp, g[0]) if vector else g[0]
    if left:
        return _solve(xp, adjoint(xp, a), g)
    return xp.matrix_transpose(_solve(xp, xp.conj(a), xp.matrix_transpose(g)))


def _solve_a(xp, g, a, y, left, vector):
    gb, y = _solve_b(xp, g, a, left, vector), column(xp, y[0]) if vector else y[0]
    return -(xp.matmul(gb, adjoint(xp, y)) if left else xp.matmul(adjoint(xp, y), gb))


@op(node="LinalgSolveExBackward0", a=_solve_a, b=_solve_b)
def _solve_ex(xp, a, b, *, left=True, vector=False):
    """X with ``a X = b`` (``X a = b`` if not ``left``); ``vector``: b is one column per matrix."""
    b = column(xp, b) if vector else b
    if left:
        x, info = xp.solve_ex(a, b)
    else:
        x, info = xp.solve_ex(xp.matrix_transpose(a), xp.matrix_transpose(b))
        x = xp.matrix_transpose(x)
    return (x[..., 0] if vector else x), info


@op(
    node="LinalgInvExBackward0",
    x=lambda xp, g, y: -xp.matmul(xp.matmul(adjoint(xp, y[0]), g[0]), adjoint(xp, y[0])),
)
def _inv_ex(xp, x):
    return xp.inv_ex(x)


def _triangular_b(xp, g, a, upper, unitriangular, left):
    if left:
        return xp.solve_triangular(adjoint(xp, a), g, upper=not upper, unitriangular=unitriangular)
    solved = xp.solve_triangular(xp.conj(a), xp.matrix_transpose(g), upper=upper, unitriangular=unitriangular)
    return xp.matrix_transpose(solved)


def _triangular_a(xp, g, a, y, upper, unitriangular, left):
    gb = _triangular_b(xp, g, a, upper, unitriangular, left)
    full = xp.matmul(gb, adjoint(xp, y)) if left else xp.matmul(adjoint(xp, y), gb)
    return -(xp.triu(full, k=int(unitriangular)) if upper else xp.tril(full, k=-int(unitriangular)))


@op(node="LinalgSolveTriangularBackward0", a=_triangular_a, b=_triangular_b)
def _solve_triangular(xp, a, b, *, upper=True, unitriangular=False, left=True):
    if left:
        return xp.solve_triangular(a, b, upper=upper, unitriangular=unitriangular)
    a, b = xp.matrix_transpose(a), xp.matrix_transpose(b)
    return xp.matrix_transpose(xp.solve_triangular(a, b, upper=not upper, unitriangular=unitriangular))


_old_triangular_solve = variant(xp.solve_triangular, "TriangularSolveBackward0")


def _pinv_x(xp, g, x, y):
    yh, gh = adjoint(xp, y), adjoint(xp, g)
    left = xp.matmul(xp.matmul(gh, y), yh)  # gᴴ y yᴴ
    right = xp.matmul(yh, xp.matmul(y, gh))  # yᴴ y gᴴ
    gradient = left - xp.matmul(x, xp.matmul(y, left)) + right - xp.matmul(xp.matmul(right, y), x)
    return gradient - xp.matmul(xp.matmul(yh, g), yh)


@op(node="LinalgPinvBackward0", x=_pinv_x)
def _pinv(xp, x, atol, rtol, *, hermitian=False):
    if hermitian:
        values, vectors = xp.eigh(x)
        size, left, right = xp.abs(values), vectors, adjoint(xp, vectors)
    else:
        left, values, right = xp.svd(x, full_matrices=False)
        size = values
    if not size.shape[-1]:
        return xp.conj(xp.matrix_transpose(x))
    largest = xp.max(size, axis=-1, keepdims=True)
    keep = size > xp.maximum(_threshold(xp, atol, size), _threshold(xp, rtol, size) * largest)
    inverse = xp.where(keep, 1 / xp.where(keep, values, 1), 0)
    return xp.matmul(adjoint(xp, right) * inverse[..., None, :], adjoint(xp, left))


def _threshold(xp, tol, like):
    tol = xp.asarray(tol, dtype=like.dtype)
    return tol[..., None] if tol.ndim else tol


# -- determinants ----------------------------------------------------------------------------------------------------


def _matrices(xp, v):
    """Numbers, one per matrix, shaped to multiply them."""
    return column(xp, column(xp, v))


@op(node="LinalgDetBackward0", x=lambda xp, g, x: _matrices(xp, g) * xp.cofactor(x))
def _det(xp, x):
    return xp.det(x)


def _cofactor_x(xp, g, x):
    """By singular values, as engines compute cofactors: finite where a matrix is singular."""
    u, s, vh = xp.svd(x, full_matrices=False)
    phase = xp.conj(xp.det(u) * xp.det(vh))
    zero = xp.equal(s, 0)
    size = xp.where(zero, 1, s)
    # The product of all singular values but two; where a third is zero, so is that.
    pairs = xp.prod(size, axis=-1, keepdims=True)[..., None] / (column(xp, size) * row(xp, size))
    zeros = xp.sum(zero, axis=-1, keepdims=True)[..., None] - column(xp, zero) - row(xp, zero)
    pairs = xp.where(zeros > 0, 0, pairs)
    pairs = pairs - _diagonal_part(xp, pairs)
    inner = xp.conj(xp.matmul(xp.matmul(adjoint(xp, u), g), adjoint(xp, vh)))
    along = xp.sum(_diagonal_part(xp, inner), axis=-2)
    turned = _diagonal_matrix(xp, xp.sum(pairs * row(xp, along), axis=-1)) - pairs * xp.matrix_transpose(inner)
    return _matrices(xp, phase) * xp.matmul(xp.matmul(u, turned), vh)


@op(x=_cofactor_x)
def _cofactor(xp, x):
    """What the determinant's gradient multiplies: ``conj(det(x)) * inv(x).H``. Engines compute it without dividing."""
    return _matrices(xp, xp.conj(xp.det(x))) * adjoint(xp, xp.inv_ex(x)[0])


def _slogdet_x(xp, g, x, y):
    g_sign, g_log = g
    if _is_complex(x):
        turned = xp.conj(g_sign) * y[0]
        g_log = g_log - 0.5 * (turned - xp.conj(turned))
    return _matrices(xp, g_log) * adjoint(xp, xp.inv_ex(x)[0])


@op(node="LinalgSlogdetBackward0", uses=(0,), x=_slogdet_x)
def _slogdet(xp, x):
    return tuple(xp.slogdet(x))


# -- eigenvalues and singular values ---------------------------------------------------------------------------------


def _eigh_x(xp, g, y):
    (values, vectors), (g_values, g_vectors) = y, g
    inner = xp.matmul(adjoint(xp, vectors), g_vectors)
    gaps = _nonzero(xp, row(xp, values) - column(xp, values))
    inner = (inner - _diagonal_part(xp, inner)) / gaps + _diagonal_matrix(xp, g_values)
    gradient = xp.matmul(xp.matmul(vectors, inner), adjoint(xp, vectors))
    return 0.5 * (gradient + adjoint(xp, gradient))


@op(node="LinalgEighBackward0", x=_eigh_x)
def _eigh(xp, x, *, UPLO="L"):
    return tuple(xp.eigh(x, UPLO=UPLO))


def _eig_x(xp, g, y):
    (values, vectors), (g_values, g_vectors) = y, g
    vh = adjoint(xp, vectors)
    inner = xp.matmul(vh, g_vectors)
    along = _diagonal_part(xp, inner)
    inner = inner - xp.matmul(xp.matmul(vh, vectors), 0.5 * (along + xp.conj(along)))
    gaps = _nonzero(xp, row(xp, values) - column(xp, values))
    inner = (inner - _diagonal_part(xp, inner)) / xp.conj(gaps) + _diagonal_matrix(xp, g_values)
    return _solve(xp, vh, xp.matmul(inner, vh))


@op(node="LinalgEigBackward0", x=_eig_x)
def _eig(xp, x):
    return tuple(xp.eig(x))


def _svd_x(xp, g, y, full_matrices):
    (u, s, vh), (gu, gs, gvh) = y, g
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    if full_matrices:
        u, gu, vh, gvh = u[..., :k], gu[..., :k], vh[..., :k, :], gvh[..., :k, :]
    uh, v = adjoint(xp, u), adjoint(xp, vh)
    uhgu, vhgv = xp.matmul(uh, gu), xp.matmul(vh, adjoint(xp, gvh))
    across, down, safe = row(xp, s), column(xp, s), _nonzero(xp, s)
    gaps = _nonzero(xp, (across - down) * (across + down))
    skew_u = _skew(xp, uhgu)
    inner = skew_u / gaps * across + down * (_skew(xp, vhgv) / gaps) + _diagonal_matrix(xp, gs)
    if _is_complex(u):
        inner = inner + _diagonal_part(xp, skew_u) / (2 * row(xp, safe))
    gradient = xp.matmul(xp.matmul(u, inner), vh)
    if m > k:
        gradient = gradient + xp.matmul((gu - xp.matmul(u, uhgu)) / row(xp, safe), vh)
    if n > k:
        gradient = gradient + xp.matmul(u, (gvh - xp.matmul(xp.matmul(gvh, v), vh)) / column(xp, safe))
    return gradient


@op(node="LinalgSvdBackward0", x=_svd_x)
def _svd(xp, x, *, full_matrices=True):
    return tuple(xp.svd(x, full_matrices=full_matrices))


# -- QR and Householder reflectors -----------------------------------------------------------------------------------


def _qr_x(xp, g, y, mode, x_shape):
    (q, r), (gq, gr), (m, n) = y, g, x_shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients through linalg.qr."
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Please use "
            "linalg.qr(A, mode='reduced')."
        )
    if m >= n:
        return _qr_tall(xp, q, r, gq, gr)
    # A = Q [R1 R2]: R2 = Qᴴ A2 is a product, and the rest is a square QR.
    g_rest, rest = gr[..., m:], r[..., m:]
    gq = gq + xp.matmul(xp.matmul(q, rest), adjoint(xp, g_rest))
    first = _qr_tall(xp, q, r[..., :m], gq, gr[..., :m])
    return xp.concatenate([first, xp.matmul(q, g_rest)], axis=q.ndim - 1)


def _qr_tall(xp, q, r, gq, gr):
    inner = xp.triu(xp.matmul(gr, adjoint(xp, r)) - xp.matmul(adjoint(xp, q), gq), k=0)
    along = _diagonal_part(xp, inner)
    inner = inner + adjoint(xp, inner) - 0.5 * (along + xp.conj(along))
    # x rᴴ = (gq + q inner), solved from the right
    return adjoint(xp, xp.solve_triangular(r, adjoint(xp, gq + xp.matmul(q, inner)), upper=True))


@op(node="LinalgQrBackward0", x=_qr_x)
def _qr(xp, x, *, mode="reduced"):
    if mode == "r":
        return x[..., :0, :0], xp.qr(x, mode="r")
    return tuple(xp.qr(x, mode=mode))


@op(x=no_gradient("geqrf"))
def _geqrf(xp, x):
    return tuple(xp.geqrf(x))


@op(node="LinalgHouseholderProductBackward0", derive=True)
def _householder_product(xp, x, tau):
    return _reflect(xp, x, tau, _diagonal_part(xp, xp.ones_like(x)))


@op(node="OrmqrBackward0", derive=True)
def _ormqr(xp, x, tau, w, *, left=True, transpose=False):
    if not left:  # w Q = (Qᴴ wᴴ)ᴴ
        return adjoint(xp, _reflect(xp, x, tau, adjoint(xp, w), not transpose))
    return _reflect(xp, x, tau, w, transpose)


def _reflect(xp, x, tau, w, adjoint_first=False):
    """``H1 H2 … Hk w`` for the reflectors ``H = 1 - tau v vᴴ`` packed in x; or their adjoint applied to w."""
    k = tau.shape[-1]
    vectors = (xp.tril(x, k=-1) + _diagonal_part(xp, xp.ones_like(x)))[..., :k]
    for i in range(k) if adjoint_first else reversed(range(k)):
        v = vectors[..., i : i + 1]
        factor = tau[..., i : i + 1, None]
        factor = xp.conj(factor) if adjoint_first else factor
        w = w - factor * xp.matmul(v, xp.matmul(adjoint(xp, v), w))
    return w


# -- LU --------------------------------------------------------------------------------------------------------------


@op
def _permutation_matrix(xp, pivots, *, size, dtype):
    """The P of ``A = P L U``."""
    order = xp.lu_permutation(pivots, size)
    return xp.astype(xp.arange(size)[:, None] == order[..., None, :], dtype=dtype)


def permutation(xp, pivots, like):
    dtype = (like._array if isinstance(like, Tensor) else like).dtype
    return xp.permutation_matrix(pivots, size=like.shape[-2], dtype=dtype)


def _lower(xp, lu):
    """L out of a packed LU: unit diagonal, and as many columns as it has."""
    lu = lu[..., : min(lu.shape[-2:])]
    return xp.tril(lu, k=-1) + _diagonal_part(xp, xp.ones_like(lu))


def _upper(xp, lu):
    return xp.triu(lu[..., : min(lu.shape[-2:]), :], k=0)


def _lu_gradient(xp, p, lower, upper, g_lower, g_upper):
    """The gradient of ``A = P L U`` from those of L and U, for square, wide and tall A."""
    m, n = lower.shape[-2], upper.shape[-1]
    k = min(m, n)
    square_l, square_u = lower[..., :k, :], upper[..., :k]
    inner_l = xp.matmul(adjoint(xp, square_l), g_lower[..., :k, :])
    inner_u = xp.matmul(g_upper[..., :k], adjoint(xp, square_u))
    if n > k:
        inner_l = inner_l - xp.matmul(g_upper[..., k:], adjoint(xp, upper[..., k:]))
    if m > k:
        inner_u = inner_u - xp.matmul(adjoint(xp, lower[..., k:, :]), g_lower[..., k:, :])
    inner = xp.tril(inner_l, k=-1) + xp.triu(inner_u, k=0)
    after = _divide_upper(xp, inner, square_u)
    g = xp.solve_triangular(adjoint(xp, square_l), after, upper=True, unitriangular=True)
    if n > k:
        rest = xp.solve_triangular(adjoint(xp, square_l), g_upper[..., k:], upper=True, unitriangular=True)
        g = xp.concatenate([g, rest], axis=g.ndim - 1)
    if m > k:
        g = xp.concatenate([g, _divide_upper(xp, g_lower[..., k:, :], square_u)], axis=g.ndim - 2)
    return xp.matmul(p, g)


def _divide_upper(xp, x, u):
    """``x u⁻ᴴ``."""
    return adjoint(xp, xp.solve_triangular(u, adjoint(xp, x), upper=True))


def _lu_factor_x(xp, g, y):
    packed, g = y[0], g[0]
    k = min(packed.shape[-2:])
    g_lower, g_upper = xp.tril(g, k=-1)[..., :k], xp.triu(g, k=0)[..., :k, :]
    p = permutation(xp, y[1], packed)
    return _lu_gradient(xp, p, _lower(xp, packed), _upper(xp, packed), g_lower, g_upper)


@op(node="LinalgLuFactorExBackward0", x=_lu_factor_x)
def _lu_factor_ex(xp, x):
    return xp.lu_factor_ex(x)


@op(
    node="LinalgLuBackward0",
    x=lambda xp, g, y: _lu_gradient(
        xp, permutation(xp, y[0], y[1]), y[1], y[2], xp.tril(g[1], k=-1), xp.triu(g[2], k=0)
    ),
)
def _lu(xp, x):
    """The pivots, L and U."""
    packed, pivots, _ = xp.lu_factor_ex(x)
    return pivots, _lower(xp, packed), _upper(xp, packed)


@op(node="LuUnpackBackward0", derive=True)
def _lu_unpack(xp, packed):
    return _lower(xp, packed), _upper(xp, packed)


@op(node="LinalgLuSolveBackward0", derive=True)
def _lu_solve(xp, packed, pivots, b, *, adjoint_=False, left=True):
    if not left:
        b = adjoint(xp, b)
        adjoint_ = not adjoint_
    p = permutation(xp, pivots, packed)
    if adjoint_:
        y = xp.solve_triangular(adjoint(xp, packed), b, upper=False)
        y = xp.solve_triangular(adjoint(xp, packed), y, upper=True, unitriangular=True)
        y = xp.matmul(p, y)
    else:
        y = xp.solve_triangular(packed, xp.matmul(xp.matrix_transpose(p), b), upper=False, unitriangular=True)
        y = xp.solve_triangular(packed, y, upper=True)
    return y if left else adjoint(xp, y)


def _no_derivative(name):
    def rule(xp, g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule


@op(node="NotImplemented", x=_no_derivative("linalg_ldl_factor_ex"))
def _ldl_factor_ex(xp, x, *, hermitian=False):
    return xp.ldl_factor_ex(x, hermitian=hermitian)


# -- functions of matrices -------------------------------------------------------------------------------------------


def _matrix_exp_x(xp, g, x):
    n = x.shape[-1]
    return xp.matrix_exp(xp.augmented(adjoint(xp, x), g))[..., :n, n:]


@op(node="LinalgMatrixExpBackward0", x=_matrix_exp_x)
def _matrix_exp(xp, x):
    return xp.matrix_exp(x)


def _augmented_a(xp, g, a_shape):
    n = a_shape[-1]
    return g[..., :n, :n] + g[..., n:, n:]


@op(a=_augmented_a, b=lambda xp, g, a_shape: g[..., : a_shape[-1], a_shape[-1] :])
def _augmented(xp, a, b):
    """``[[a, b], [0, a]]``: a function of it has the function's derivative at a, towards b, in its corner."""
    above = xp.concatenate([a, b], axis=-1)
    return xp.concatenate([above, xp.concatenate([xp.zeros_like(a), a], axis=-1)], axis=-2)


@op(node="TraceBackward0", x=lambda xp, g, x_shape: _trace_x(xp, g, x_shape))
def _trace(xp, x):
    return xp.sum(xp.diagonal(x, offset=0, axis1=0, axis2=1))


def _trace_x(xp, g, shape):
    return _diagonal_part(xp, xp.broadcast_to(g, shape=shape))


@op(
    node="LinalgCrossBackward0",
    promote="common",
    x=lambda xp, g, w, axis: xp.cross(xp.conj(w), g, axis=axis),
    w=lambda xp, g, x, axis: xp.cross(g, xp.conj(x), axis=axis),
)
def _cross(xp, x, w, *, axis=-1):
    return xp.cross(x, w, axis=axis)


@op(node="CdistBackward0", derive=True)
def _cdist(xp, x, w, *, p=2.0):
    difference = xp.expand_dims(x, axis=-2) - xp.expand_dims(w, axis=-3)
    distance = xp.vector_norm(difference, ord=p, axis=-1)
    # Where points meet, the gradient is 0, whatever comes.
    return xp.where(xp.equal(distance, 0), xp.zeros_like(distance), distance) if p == 2 else distance


@op(node="FlipBackward0", x=lambda xp, g, x, count: _powers_x(xp, g, x, count))
def _vander_powers(xp, x, *, count):
    """The powers 0 to ``count - 1`` of every element, along a new last axis."""
    ones = xp.expand_dims(xp.ones_like(x), axis=-1)
    if count < 2:
        return ones[..., :count]
    repeated = xp.broadcast_to(xp.expand_dims(x, axis=-1), shape=(*x.shape, count - 1))
    return xp.concatenate([ones, xp.cumprod(repeated, axis=-1)], axis=-1)


def _powers_x(xp, g, x, count):
    if count < 2:
        return xp.zeros_like(x)
    total = xp.zeros_like(x)
    for n in range(count - 1, 0, -1):  # Horner's scheme for the polynomial's derivative
        total = total * xp.conj(x) + n * g[..., n]
    return total


@op(node="LinalgLstsqBackward0", derive=True)
def _lstsq(xp, a, b, *, rcond, residuals):
    """The solution, and the squared lengths of what is left where asked for."""
    solution = xp.matmul(xp.pinv(a, 0.0, rcond), b)
    if not residuals:
        return solution, xp.reshape(xp.real(b[..., :0, :]), shape=(0,))
    left = xp.abs(xp.matmul(a, solution) - b)
    return solution, xp.sum(left * left, axis=left.ndim - 2)


@op(node="NotImplemented", factors=_no_derivative("linalg_ldl_solve"), b=_no_derivative("linalg_ldl_solve"))
def _ldl_solve(xp, factors, pivots, b, *, hermitian=False):
    return xp.ldl_solve(factors, pivots, b, hermitian=hermitian)


# -- PyTorch's names outside linalg ----------------------------------------------------------------------------------


def check_matrices(name, a, *, square=False, argument="A", low_precision=False):
    """Raise PyTorch's error for what is no batch of (square) matrices of numbers that can be divided."""
    if not isinstance(a, Tensor):
        raise TypeError(f"{name.replace('.', '_')}(): argument '{argument}' must be Tensor, not {type(a).__name__}")
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if square and a._array.shape[-1] != a._array.shape[-2]:
        m, n = a._array.shape[-2:]
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {m} by {n} matrices")
    d = a.dtype
    if not (d.is_floating_point or d.is_complex):
        word = d.char.removesuffix("Tensor")
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {word}")
    low_precision = low_precision or (not a._array.size and name not in _LOOKS_AT_NOTHING)
    if d.itemsize < 4 and not low_precision and state.casting is None:
        if name in _KERNELS:
            raise NotImplementedError(f"\"{_KERNELS[name]}\" not implemented for '{d.char.removesuffix('Tensor')}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {d.char.removesuffix('Tensor')}")


# What PyTorch refuses in half precision only when it looks for a kernel.
_KERNELS = {"linalg.det": "lu_cpu", "linalg.solve": "lu_cpu", "linalg.cholesky": "cholesky_cpu"}
# What PyTorch refuses in half precision even where there are no elements.
_LOOKS_AT_NOTHING = {
    "linalg.qr", "linalg.eig", "linalg.eigvals", "linalg.inv", "linalg.inv_ex", "linalg.slogdet", "linalg.pinv",
    "cholesky_inverse", "torch.geqrf", "linalg.matrix_rank", "qr",
}  # fmt: skip


def check_info(name, info, reason, error=LinAlgError) -> None:
    """Raise if LAPACK reported a failure; XLA reports none, its results are then nan."""
    array = info._array
    expect(array, lambda code: code == 0)
    if not hasattr(array, "flags") or not array.any():
        return
    batch = int(array.reshape(-1).nonzero()[0][0])
    where = f"(Batch element {batch}): " if array.ndim else ""
    raise error(f"{name}: {where}{reason(int(array.reshape(-1)[batch]))}")


def singular(code) -> str:
    return (
        f"The diagonal element {code} is zero, the inversion could not be completed because the input matrix is "
        "singular."
    )


def not_positive(code) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite "
        f"(the leading minor of order {code} is not positive-definite)."
    )


@public
def cholesky(input, upper=False):
    """The triangular factor of positive-definite matrices."""
    if isinstance(input, Tensor) and not input.numel():
        return input.clone()  # before PyTorch looks at its sizes
    check_matrices("cholesky", input, square=True)
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = "
        "torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
        "produce equivalent results for all valid (symmetric positive definite) inputs."
    )
    factor, info = _old_cholesky(input, upper=upper)
    check_info("cholesky", info, not_positive)
    return factor


@public
def cholesky_solve(input, L, upper=False):
    """X with ``A X = input``, from A's Cholesky factor."""
    if input.ndim < 2 or L.ndim < 2:
        which = "b should have at least 2 dimensions" if input.ndim < 2 else "u should have at least 2 dimensions"
        raise RuntimeError(f"{which}, but has {min(input.ndim, L.ndim)} dimensions instead")
    _check_square(L)
    if L.dtype is not input.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_word(input.dtype)} and A of type "
            f"{type_word(L.dtype)} instead."
        )
    return xp.cholesky_solve(input, L, upper=upper)


def _check_square(a) -> None:
    m, n = a._array.shape[-2:]
    if m != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m} by {n} matrices")


@public
def cholesky_inverse(L, upper=False):
    """The inverse of A, from A's Cholesky factor."""
    check_matrices("cholesky_inverse", L, square=True)
    return xp.cholesky_inverse(L, upper=upper)


@public
def logdet(input):
    """The log of the determinant: nan where that is negative, -inf where it is zero."""
    sign, value = xp.slogdet(_square("logdet", input))
    if _is_complex(input):
        return value + xp.log(sign)
    return xp.where(xp.equal(sign, -1), float("nan"), value)


@public
def slogdet(input):
    """The sign and the log of the absolute value of the determinant."""
    return returns.slogdet(xp.slogdet(_square("linalg.slogdet", input)))


@public
def det(input):
    """The determinant."""
    return xp.det(_square("linalg.det", input))


def _square(name, input):
    check_matrices(name, input, square=True)
    return input


@public(out=False)
def qr(input, some=True):
    """Q and R; ``some`` for the reduced ones."""
    check_matrices("qr", input)
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
        "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
        "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return returns.qr(xp.qr(input, mode="reduced" if some else "complete"))


@public(out=False)
def svd(input, some=True, compute_uv=True):
    """U, S and V (not its adjoint) with ``U diag(S) V.H = input``."""
    check_matrices("svd", input)
    u, s, vh = xp.svd(input, full_matrices=not some)
    if not compute_uv:
        m, n = input._array.shape[-2:]
        batch = input._array.shape[:-2]
        u, vh = (_zeros(input, (*batch, k, k)) for k in (m, n))
    return returns.svd((u, s, xp.conj(xp.matrix_transpose(vh))))


def _zeros(like, shape):
    from ..engine import namespace_of
    from ..tensor import wrap

    return wrap(namespace_of(like._array).zeros(shape, dtype=like._array.dtype))


@public
def geqrf(input):
    """QR as LAPACK packs it: R above, reflectors below the diagonal, and their factors."""
    check_matrices("torch.geqrf", input, argument="input")
    return returns.geqrf(xp.geqrf(input))


@public
def orgqr(input, tau):
    """The matrix Q from what ``geqrf`` returns."""
    return xp.householder_product(input, tau)


@public
def ormqr(input, tau, other, left=True, transpose=False):
    """The product of the Q that ``geqrf`` packed with a matrix, without forming Q."""
    check_reflectors("torch.ormqr", input, tau)
    if other.dtype is not input.dtype:
        raise RuntimeError(
            f"torch.ormqr: Expected input and other to have the same dtype, but input has dtype "
            f"{type_word(input.dtype)} and other has dtype {type_word(other.dtype)}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other.ndim} and input.ndim is equal to {input.ndim}"
        )
    side = other._array.shape[-2 if left else -1]
    if side != input._array.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if tau._array.shape[-1] != min(side, input._array.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])"
        )
    return xp.ormqr(input, tau, other, left=left, transpose=transpose)


def check_reflectors(function, input, tau) -> None:
    """PyTorch's errors for reflectors whose factors do not go with them."""
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"{function}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if tau.dtype is not input.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {type_word(tau.dtype)} does not match input dtype {type_word(input.dtype)}"
        )
    if tau._array.shape[:-1] != input._array.shape[:-2]:
        raise RuntimeError(
            f"{function}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {tau.shape[:-1]}"
        )


def check_packed(packed, pivots, b) -> None:
    """PyTorch's errors for an LU, its pivots and a right side that do not go together."""
    check_matrices("torch.linalg.lu_solve", packed, square=True)
    if packed.dtype is not b.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
            f"{type_word(packed.dtype)} and B of type {type_word(b.dtype)} instead"
        )
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if pivots._array.shape != packed._array.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )


def _check_system(function, b, a, b_name, a_name) -> None:
    for name, t in ((b_name, b), (a_name, a)):
        if t.ndim < 2:
            raise RuntimeError(
                f"torch.{function}: Expected {name} to have at least 2 dimensions, but it has {t.ndim} "
                "dimensions instead"
            )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected {b_name} and {a_name} to have the same dtype, but found {b_name} of type {type_word(b.dtype)} "
            f"and {a_name} of type {type_word(a.dtype)} instead."
        )


@public(method=False)
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U out of a packed LU and its pivots."""
    if unpack_pivots:
        _check_pivots(LU_data._array.shape, LU_pivots)
    empty = _zeros(LU_data, (0,))
    p = permutation(xp, LU_pivots, LU_data) if unpack_pivots else empty
    lower, upper = xp.lu_unpack(LU_data) if unpack_data else (empty, empty)
    return returns.lu_unpack((p, lower, upper))


def _check_pivots(shape, pivots) -> None:
    """PyTorch reads beyond the end of pivots of another shape."""
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    if pivots._array.shape != (*shape[:-2], min(shape[-2:])):
        raise RuntimeError(
            f"torch.lu_unpack: Expected LU_pivots of the shape {[*shape[:-2], min(shape[-2:])]}, for LU_data of "
            f"{list(shape)}, but got {list(pivots.shape)}"
        )
    values, rows = pivots._array, shape[-2]
    expect(values, lambda p: (p >= 1) & (p <= rows))
    if hasattr(values, "flags") and ((values < 1) | (values > rows)).any():
        raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.")


@public(out=False)
def lu(A, pivot=True, get_infos=False):
    """LU with partial pivoting, packed; the pivots; and on request an info per matrix."""
    check_matrices("linalg.lu_factor_ex", A)
    _check_pivot(pivot)
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
        "get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    packed, pivots, info = xp.lu_factor_ex(A)
    return returns._lu_with_info((packed, pivots, info)) if get_infos else (packed, pivots)


PIVOT = "linalg.lu_factor: LU without pivoting is not implemented on the CPU"


def _check_pivot(pivot) -> None:
    if not pivot:
        raise RuntimeError(PIVOT)


@public
def lu_solve(input, LU_data, LU_pivots):
    """X with ``A X = input``, from A's packed LU."""
    check_packed(LU_data, LU_pivots, input)
    return xp.lu_solve(LU_data, LU_pivots, input)


@public
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    """X with ``A X = input`` for triangular A."""
    _check_system("triangular_solve", input, A, "b", "A")
    _check_square(A)
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a "
        "future PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy "
        "of one of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        "torch.linalg.solve_triangular(A, B)."
    )
    if state.casting is not None:
        input, A = state.casting.raise_(input, A)
    a = A
    if transpose:
        A, upper = xp.matrix_transpose(A), not upper
    solution = _old_triangular_solve(A, input, upper=upper, unitriangular=unitriangular)
    coefficients = xp.clone(xp.broadcast_to(a, shape=(*solution._array.shape[:-2], *a._array.shape[-2:])))
    return returns.triangular_solve((solution, coefficients))


@public
def matrix_exp(input):
    """The exponential of square matrices."""
    if input.ndim < 2 or input._array.shape[-1] != input._array.shape[-2]:
        check_matrices("linalg.matrix_exp", input, square=True)
    if input._array.dtype.kind in "biu":
        check_matrices("linalg.matrix_exp", input)
    return xp.matrix_exp(input)


@public
def trace(input):
    """The sum of a matrix's diagonal."""
    refuse("trace", bool_dtype, input)
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return xp.trace(input.long() if input._array.dtype.kind in "iu" else input)


_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@public(method=False)
@in_single_precision
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance of every row of x1 to every row of x2."""
    for which, t in (("X1", x1), ("X2", x2)):
        if not t.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {which} got: {type_word(t.dtype)}")
    if x1.ndim < 2 or x2.ndim < 2:
        which, t = ("X1", x1) if x1.ndim < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {t.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}"
        )
    check_batch_shapes(x1._array.shape[:-2], x2._array.shape[:-2])
    if not (x1._array.size and x2._array.size):
        return xp.cdist(x1, xp.astype(x2, dtype=x1._array.dtype), p=p)
    refuse("cdist", lambda d: d.itemsize == 2, x1)
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {type_word(x1.dtype)} but found {type_word(x2.dtype)}")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return xp.cdist(x1, x2, p=p)
