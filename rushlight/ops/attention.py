"""Attention: one op, whose plain form is a product, a softmax and a product."""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd.op import op


@op(node="ScaledDotProductFlashAttentionForCpuBackward0", derive=True, residuals=True)
def attention(xp, q, k, v, mask=None, noise=None, *, scale, causal):
    """softmax(q kᵀ scale + mask) v, where ``noise`` is dropout's: 0 or 1 / (1 - p), multiplied to the weights.

    A boolean mask says where to look, a float one is added. A row that may look nowhere gives 0.
    """
    scores = xp.matmul(q * scale, xp.matrix_transpose(k))
    if causal:
        scores = xp.where(xp.tril(xp.ones_like(scores), k=0) > 0, scores, -math.inf)
    if mask is not None:
        scores = xp.where(mask, scores, -math.inf) if mask.dtype in (bool, dtypes.bool_) else scores + mask
    if not k.shape[-2]:
        return xp.matmul(scores, v)
    nowhere = xp.max(scores, axis=-1, keepdims=True) == -math.inf
    weights = xp.where(nowhere, 0.0, xp.softmax(xp.where(nowhere, 0.0, scores), axis=-1))
    return xp.matmul(weights if noise is None else weights * noise, v)
