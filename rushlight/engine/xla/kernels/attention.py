"""Attention on XLA: ``jax.nn.dot_product_attention``, cuDNN's fused kernel where there is one for the case."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...fallback import FORWARDS
from ..devices import device_of
from .vjp import with_backward


def attention(needs, q, k, v, mask, noise, *, scale, causal):
    if noise is None and _regular(q, k, v):
        on_gpu = device_of(q).type == "cuda"
        wide = q.dtype == jnp.float16 and not on_gpu  # XLA's CPU has no half-precision product that adds in float32
        return _body(needs, q, k, v, mask, scale=scale, causal=causal, wide=wide, cudnn=on_gpu and _cudnn(q, needs))
    from .. import namespace as xla

    return FORWARDS["attention"](xla, q, k, v, mask, noise, scale=scale, causal=causal), None


def _regular(q, k, v) -> bool:
    """Is it what JAX's function takes? Its softmax is float32's, so float64 is not for it."""
    return (
        q.ndim == 4
        and k.shape == v.shape
        and q.shape[:2] + q.shape[3:] == k.shape[:2] + k.shape[3:]
        and q.dtype != "float64"
    )


def _dot_product(q, k, v, mask, *, scale, causal, wide, cudnn):
    bias, dtype = None, q.dtype
    if wide:
        q, k, v = (a.astype(jnp.float32) for a in (q, k, v))
    seeing = None
    if mask is not None:
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        if mask.dtype != bool:
            hidden = jnp.isneginf(mask)
            bias, mask = jnp.where(hidden, 0, mask).astype(q.dtype), ~hidden
        if causal:
            mask, causal = mask & np.tri(q.shape[2], k.shape[2], dtype=bool), False
        # A row that may look nowhere is 0. It looks everywhere until then, for cuDNN's gradient of it would be NaN.
        seeing = jnp.any(mask, axis=-1, keepdims=True)
        mask = mask | ~seeing
    out = jax.nn.dot_product_attention(
        *(jnp.swapaxes(a, 1, 2) for a in (q, k, v)),
        bias,
        mask,
        scale=scale,
        is_causal=causal,
        implementation="cudnn" if cudnn else "xla",
    )
    out = jnp.swapaxes(out, 1, 2).astype(dtype)
    return out if seeing is None else jnp.where(seeing, out, 0)


def _cudnn(q, needs) -> bool:
    mask_wants_gradient = needs >> 3 & 1
    size = q.shape[-1]
    half = q.dtype in (jnp.float16, jnp.bfloat16)
    return half and size % 8 == 0 and size <= 128 and not mask_wants_gradient


_body, attention_backward = with_backward(_dot_product)
