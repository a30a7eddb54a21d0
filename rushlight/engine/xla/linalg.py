"""Factorizations for the XLA engine, under the names and signatures of ``engine.numpy.linalg``.

``info`` says only whether a result is usable (0) or not (1): XLA's kernels do not report where they failed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np

from ..numpy import linalg as on_numpy

__all__ = [
    "cholesky_ex", "cofactor", "det", "eig", "eigh", "geqrf", "inv_ex", "ldl_factor_ex", "ldl_solve", "lu_factor_ex",
    "lu_permutation", "matrix_exp", "qr", "slogdet", "solve_ex", "solve_triangular", "svd",
]  # fmt: skip

det = jnp.linalg.det
eig = jnp.linalg.eig
matrix_exp = jax.scipy.linalg.expm


def eigh(x, UPLO="L"):
    vectors, values = jax.lax.linalg.eigh(x, lower=UPLO == "L", symmetrize_input=False)
    return values, vectors


def svd(x, full_matrices=True):
    return tuple(jnp.linalg.svd(x, full_matrices=full_matrices))


def qr(x, mode="reduced"):
    out = jnp.linalg.qr(x, mode=mode)
    return out if mode == "r" else tuple(out)


def slogdet(x):
    return tuple(jnp.linalg.slogdet(x))


def geqrf(x):
    reflectors, tau = jnp.linalg.qr(x, mode="raw")
    return reflectors.mT, tau


def cholesky_ex(x, upper=False):
    x = x.mT.conj() if upper else x
    factor = jax.lax.linalg.cholesky(x, symmetrize_input=False)
    return (factor.mT.conj() if upper else factor), _unusable(factor)


def solve_ex(a, b):
    shape = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = jnp.linalg.solve(jnp.broadcast_to(a, shape + a.shape[-2:]), jnp.broadcast_to(b, shape + b.shape[-2:]))
    return x, _unusable(x)


def inv_ex(a):
    x = jnp.linalg.inv(a)
    return x, _unusable(x)


def _unusable(x):
    return (~jnp.isfinite(x).all(axis=(-2, -1))).astype(jnp.int32)


def cofactor(a):
    """The gradient of the determinant, finite for singular matrices too: by singular values, without dividing."""
    u, s, vh = jnp.linalg.svd(a)
    others = jnp.where(jnp.eye(s.shape[-1], dtype=bool), jnp.ones((), s.dtype), s[..., None, :])
    phase = jnp.linalg.det(u) * jnp.linalg.det(vh)
    return jnp.conj(phase)[..., None, None] * ((u * jnp.prod(others, axis=-1)[..., None, :]) @ vh)


def solve_triangular(a, b, upper=True, unitriangular=False):
    """``x`` with ``tri(a) @ x = b``."""
    shape = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jax.lax.linalg.triangular_solve(
        jnp.broadcast_to(a, shape + a.shape[-2:]),
        jnp.broadcast_to(b, shape + b.shape[-2:]),
        left_side=True,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


def lu_factor_ex(x):
    lu, pivots, _ = jax.lax.linalg.lu(x)
    diagonal = jnp.diagonal(lu, axis1=-2, axis2=-1) == 0
    first_zero = jnp.where(diagonal.any(axis=-1), diagonal.argmax(axis=-1) + 1, 0) if diagonal.shape[-1] else 0
    return lu, pivots + 1, jnp.broadcast_to(jnp.asarray(first_zero, dtype=jnp.int32), x.shape[:-2])


def ldl_factor_ex(x, hermitian=False):
    shapes = (x.shape, x.dtype), (x.shape[:-1], np.int32), (x.shape[:-2], np.int32)
    return _on_host(lambda x: on_numpy.ldl_factor_ex(x, hermitian), shapes, x)


def ldl_solve(factors, pivots, b, hermitian=False):
    shape = jnp.broadcast_shapes(factors.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    solve = lambda *arrays: (on_numpy.ldl_solve(*arrays, hermitian),)
    return _on_host(solve, [(shape, b.dtype)], factors, pivots, b)[0]


def _on_host(function, results, *arrays):
    """NumPy's function within a program of XLA's, for what XLA has no kernel for."""
    results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results)
    return tuple(jax.pure_callback(lambda *a: function(*map(np.asarray, a)), results, *arrays))


def lu_permutation(pivots, size):
    return jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, size)
