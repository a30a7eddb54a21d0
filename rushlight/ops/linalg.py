"""Matrix products."""

from __future__ import annotations

from ..autograd.op import op


@op(
    node="MmBackward0",
    promote=None,
    x=lambda xp, g, w: xp.matmul(g, xp.conj(xp.matrix_transpose(w))),
    w=lambda xp, g, x: xp.matmul(xp.conj(xp.matrix_transpose(x)), g),
)
def matmul(xp, x, w):
    """Matrix product over the last two axes, batched over the rest."""
    return xp.matmul(x, w)
