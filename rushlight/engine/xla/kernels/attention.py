"""Attention on XLA: ``jax.nn.dot_product_attention``, cuDNN's fused kernel where there is one for the case.

On the CPU it is the kernel in C, which does not make the matrix of weights.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...fallback import FORWARDS
from ..devices import device_of
from . import native
from .vjp import with_backward

WORTH = 1 << 14  # multiplications from which on the kernel in C is called; XLA fuses what is smaller


def attention(needs, q, k, v, mask, noise, *, scale, causal):
    if not needs & 8 and _for_kernel(q, k, v, mask, noise):  # a mask's gradient is for XLA
        return _by_kernel(needs, q, k, v, mask, noise, scale, causal)
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


_body, _fused_backward = with_backward(_dot_product)


def attention_backward(g, edges, known):
    if known["aux"] is not None and known["aux"][0] == _BY_KERNEL:
        return _kernel_backward(g, edges, known)
    return _fused_backward(g, edges, known)


# -- by a kernel, the same as on NumPy (``numpy/kernels/attention.py``) ------------------------------------------------

_BY_KERNEL = "kernel"
_BY_QUERY = (0, 2, 1, 3)  # the heads of a query lie together in memory, as those of a projection do


def _for_kernel(q, k, v, mask, noise) -> bool:
    floats = None if mask is None or mask.dtype == bool else mask
    return native.serves(q, k, v, floats, noise) and q.size * k.shape[-2] >= WORTH


def _by_kernel(needs, q, k, v, mask, noise, scale, causal):
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in (q, k, v, mask, noise) if a is not None])
    arguments, numbers = _arguments(batch, q, k, v, mask, noise, scale, causal)
    place = _place((*_two(batch), q.shape[-2], v.shape[-1]), q.dtype)
    logarithms = native.Place((np.prod(batch, dtype=int) * q.shape[-2],), q.dtype)
    out, logarithms = native.call("attention", *arguments, place, logarithms, *numbers)
    out = jnp.reshape(out, (*batch, *out.shape[-2:]))
    return out, (_BY_KERNEL, out, logarithms) if needs else None


def _kernel_backward(g, edges, known):
    q, k, v, mask, noise = (known[name] for name in ("q", "k", "v", "mask", "noise"))
    _, out, logarithms = known["aux"]
    batch = g.shape[:-2]
    arguments, numbers = _arguments(batch, q, k, v, mask, noise, known["scale"], known["causal"])
    places = [_place((*_two(batch), *a.shape[-2:]), a.dtype) for a in (q, k, v)]
    out, g = (_laid(_four(a, batch)) for a in (out, g))
    found = native.call("attention_backward", *arguments, out, logarithms, g, *places, *numbers)
    gradients = [jnp.reshape(a, (*batch, *a.shape[-2:])) for a in found]
    return [a if e is not None else None for a, e in zip((*gradients, None, None), edges)]


def _arguments(batch, q, k, v, mask, noise, scale, causal):
    """What the kernel takes: arrays, and the numbers at its end."""
    exclude = mask is not None and mask.dtype == bool
    if exclude:
        mask = jnp.where(mask, jnp.zeros((), q.dtype), -jnp.inf)
    if mask is not None:
        mask = jnp.broadcast_to(mask, (*mask.shape[:-1], k.shape[-2]))
    projections = [_laid(_four(jnp.broadcast_to(a, (*batch, *a.shape[-2:])), batch)) for a in (q, k, v)]
    others = [None if a is None else _laid(_four(a, batch), (0, 1, 2, 3)) for a in (mask, noise)]
    return [*projections, *others], (int(causal), int(exclude), float(scale))


def _four(a, batch):
    """With two dimensions of a batch; one that is there once stays so."""
    if len(batch) > 2:
        a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
        return a.reshape(*_two(batch), *a.shape[-2:])
    return a.reshape((1,) * (4 - a.ndim) + a.shape)


def _two(batch):
    return (1,) * (2 - len(batch)) + tuple(batch) if len(batch) <= 2 else (int(np.prod(batch[:-1])), batch[-1])


def _laid(a, order=_BY_QUERY):
    return native.Laid(a, order)


def _place(shape, dtype):
    return native.Place(shape, dtype, _BY_QUERY)
