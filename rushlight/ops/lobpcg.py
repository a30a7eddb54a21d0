"""``lobpcg``: a few of the largest or smallest eigenvalues of a large symmetric matrix."""

from __future__ import annotations

from ..autograd.mode import no_grad
from ..autograd.op import differentiable as xp
from ..errors import warn_user
from .common import check_tensor
from .public import PUBLIC, public


@public(method=False, out=False)
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The ``k`` largest (or smallest) solutions of ``A x = e B x``: (eigenvalues, eigenvectors).

    Each turn looks for better vectors among the old ones, their (preconditioned) residuals and the last steps.
    Differs from PyTorch: the result has no gradient, and ``method`` and the orthogonalization options change nothing.
    """
    check_tensor("lobpcg", A, "A")
    if X is not None:
        n = X.shape[-1] if n is None else n
    k = (1 if n is None else n) if k is None else k
    n = max(k, n or k)
    rows = A.shape[-1]
    if rows < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if X is None:
        X = PUBLIC["randn"](*A.shape[:-2], rows, n, dtype=A.dtype, device=A.device)
    tol = (1.2e-7 if A.dtype.itemsize == 4 else 2.23e-16) ** 0.5 if tol is None else tol
    options = (1000 if niter is None else niter, tol, largest is None or largest, tracker)
    with no_grad():
        if A.ndim == 2:
            values, vectors = _solve(A, B, X, iK, options)
        else:
            values, vectors = _batched(A, B, X, iK, options)
    return values[..., :k], vectors[..., :k]


def _batched(A, B, X, iK, options):
    found = []
    flat = [None if t is None else t.reshape(-1, *t.shape[-2:]) for t in (A, B, X, iK)]
    for i in range(len(flat[0])):
        found.append(_solve(*[None if t is None else t[i] for t in flat], options))
    values, vectors = (PUBLIC["stack"](parts) for parts in zip(*found))
    return values.reshape(*A.shape[:-2], -1), vectors.reshape(*A.shape[:-2], *vectors.shape[1:])


def _solve(A, B, X, iK, options):
    niter, tol, largest, tracker = options
    if tracker is not None:
        warn_user("lobpcg: the tracker is not called")
    n = X.shape[-1]
    values, X = _best(A, B, X, n, largest)
    step = None
    for _ in range(niter):
        residual = A @ X - _times(B, X) * values
        scale = (A @ X).norm(dim=0) + values.abs() * X.norm(dim=0)
        if bool((residual.norm(dim=0) <= tol * scale).all()):
            break
        directions = residual if iK is None else iK @ residual
        parts = [X, directions] if step is None else [X, directions, step]
        values, better = _best(A, B, PUBLIC["cat"](parts, 1), n, largest)
        step = better - X @ (X.mT @ _times(B, better))
        X = better
    return values, X


def _times(B, X):
    return X if B is None else B @ X


def _best(A, B, S, n, largest):
    """The ``n`` best approximations in the space that the columns of ``S`` span (Rayleigh and Ritz)."""
    S = S / S.norm(dim=0).clamp(min=1e-30)
    weights, basis = xp.eigh(S.mT @ _times(B, S))
    kept = weights > weights.max() * 1e-6 if S.dtype.itemsize == 4 else weights > weights.max() * 1e-13
    S = S @ (basis[:, kept] / weights[kept].sqrt())  # now orthonormal, in B's sense
    values, turn = xp.eigh(S.mT @ (A @ S))
    if largest:
        values, turn = values.flip(0), turn.flip(1)
    return values[:n], S @ turn[:, :n]
