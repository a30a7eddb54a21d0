"""Attention: ``scaled_dot_product_attention`` and the whole of ``MultiheadAttention`` as a function."""

from __future__ import annotations

import math

from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...backends import cuda
from ...dtypes import bool_
from ...errors import warn_user
from ...ops import PUBLIC
from ...ops.common import check_tensor
from ...tensor import Tensor
from ..attention.bias import CausalBias
from .activation import softmax
from .dropout import dropout
from .linear import linear

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_KERNELS = cuda.attention
SUBSTITUTES: list = []  # the last one is called instead: inside ``context_parallel``, attention over processes
# Where PyTorch has no fused kernel, the last node is a product's, or a cast back to half precision.
_composed, _composed_matrix, _composed_half = (
    variant(xp.attention, node) for node in ("UnsafeViewBackward0", "MmBackward0", "ToCopyBackward0")
)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(q kᵀ scale + mask) v, with ``scale`` 1/√E if not given.

    A boolean ``attn_mask`` is True where a query may look, a float one is added to the scores.

    >>> q = k = v = rushlight.ones(1, 2, 3, 4)
    >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
    torch.Size([1, 2, 3, 4])
    """
    if SUBSTITUTES:
        return SUBSTITUTES[-1](query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    check_tensor("scaled_dot_product_attention", query, "query")
    _check_operands(query, key, value, dropout_p)
    if 0 in (*query._array.shape[:-1], *key._array.shape[:-1], *value._array.shape):
        return _of_nothing(query, key, value)
    _check_attention(query, key, value, attn_mask)
    fused = _is_fused(query, key, value, attn_mask, dropout_p, enable_gqa)
    if not (_KERNELS["flash"] and _KERNELS["math"]):
        fused = _allowed(fused)
    if is_causal and isinstance(attn_mask, CausalBias):
        raise ValueError("CausalBias should not be used with causal=True")
    if attn_mask is not None and is_causal and not fused:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    for other in (key, value):
        _check_broadcast(query._array.shape[:-2], other._array.shape[:-2])
    if attn_mask is not None:
        _check_mask(query, key, attn_mask, fused)
    if scale is None:
        scale = 1 / math.sqrt(width) if (width := query._array.shape[-1]) else 1.0
    noise = None
    if dropout_p > 0:
        shape = PUBLIC["broadcast_shapes"](query.shape[:-2], key.shape[:-2])
        noise = dropout(query.new_ones((*shape, query.shape[-2], key.shape[-2])), dropout_p)
    call = xp.attention if fused else _composition(query, key)
    return call(query, key, value, attn_mask, noise, scale=float(scale), causal=bool(is_causal))


def _of_nothing(query, key, value):
    """Attention without a query, key or value: zeros, on which everything has a gradient of zeros."""
    zeros = query.new_zeros((*query._array.shape[:-1], value._array.shape[-1]))
    return zeros + (query.sum() + key.sum() + value.sum()) * 0


def _composition(query, key):
    if query.dtype.itemsize == 2:
        return _composed_half
    return _composed_matrix if query.dim() == key.dim() == 2 else _composed


def _allowed(fused) -> bool:
    """The same under ``sdpa_kernel``: its fused kernel or its composition may be switched off."""
    if not (_KERNELS["flash"] or _KERNELS["math"]):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    if not fused and not _KERNELS["math"]:
        raise RuntimeError("No available kernel.  Aborting execution.")
    return fused and _KERNELS["flash"]


def _is_fused(query, key, value, mask, dropout_p, grouped) -> bool:
    """Would PyTorch's fused kernel take these? What it allows differs a little from what its composition does."""
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    return (
        len(q) == len(k) == len(v) == 4
        and not dropout_p > 0
        and not (mask is not None and mask.requires_grad)
        and q[-1] == v[-1]
        and q[0] == k[0] == v[0]
        and (grouped or q[1] == k[1])
        and k[1] == v[1]
    )


def _repeated_heads(query, key, value):
    for t in (query, key, value):
        if t.dim() < 3:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{t.dim()}, {t.dim() - 1}], but got -3)"
            )
    heads = [t.shape[-3] for t in (query, key, value)]
    if heads[0] % heads[1] or heads[0] % heads[2]:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{heads[0]} heads in query, {heads[1]} in key and {heads[2]} in value."
        )
    return tuple(
        t if n == heads[0] else t.repeat_interleave(heads[0] // n, -3) for t, n in zip((key, value), heads[1:])
    )


def _check_operands(query, key, value, dropout_p) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{_word(query)} key.dtype: {_word(key)} and value.dtype: {_word(value)} instead."
        )
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    if len(q) < 2 or len(k) < 2 or len(v) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if dropout_p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")


def _check_attention(query, key, value, attn_mask) -> None:
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    for name, a, b in (("query", q[-1], k[-1]), ("value", v[-2], k[-2])):
        if a != b:
            raise RuntimeError(
                f"Expected {name} and key to agree in dimension {-1 if name == 'query' else -2}, but got "
                f"{name}.shape: {list((query if name == 'query' else value).shape)} and key.shape: {list(key.shape)}."
            )
    if query.dtype.is_complex:
        raise NotImplementedError(f"\"softmax_lastdim_kernel_impl\" not implemented for '{query.dtype.word}'")
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.word}")
    if attn_mask is not None and attn_mask.dtype not in (bool_, query.dtype) and _word(attn_mask) != "float":
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{_word(attn_mask)} and  query.dtype: {_word(query)} instead."
        )


def _check_mask(query, key, attn_mask, fused) -> None:
    if fused and attn_mask.dim() < 2:
        last = attn_mask.dim() - 1
        raise IndexError(f"Dimension out of range (expected to be in range of [{-last - 1}, {last}], but got -2)")
    scores = (*PUBLIC["broadcast_shapes"](query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
    if attn_mask.dim() > len(scores) and not attn_mask.requires_grad:
        raise RuntimeError(
            f"output with shape {list(scores)} doesn't match the broadcast shape "
            f"{list(PUBLIC['broadcast_shapes'](scores, attn_mask.shape))}"
        )
    _check_broadcast((*query.shape[:-1], key.shape[-2]), attn_mask.shape)


def _check_broadcast(want, have) -> None:
    if want == have:
        return
    for i, (a, b) in enumerate(zip(reversed(want), reversed(have)), 1):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                f"{len(want) - i}"
            )


def _word(t: Tensor) -> str:
    """A dtype as PyTorch's C++ names it."""
    name = str(t.dtype).removeprefix("torch.")
    return {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
            "int64": "long int", "int32": "int", "uint8": "unsigned char"}.get(name, name)  # fmt: skip


# -- several heads -----------------------------------------------------------------------------------------------------


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """(output, weights or None) of attention with several heads, on (length, batch, features) or (length, features)."""
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (t.unsqueeze(1) for t in _once(query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the hint says all that the mask does
    else:
        is_causal = False
    key_padding_mask, attn_mask = _float_masks(key_padding_mask, attn_mask, query.dtype)

    length, batch, width = query.shape
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    _check_width(query, key, value, embed_dim_to_check, num_heads, separate)
    q, k, v = _in_projection(query, key, value, in_proj_weight, in_proj_bias, separate)
    attn_mask = _per_head_mask(attn_mask, length, key.shape[0], batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must both be given, or neither")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k, v = (PUBLIC["cat"]([t, b.repeat(1, batch, 1)]) for t, b in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)

    def heads(t):
        return t.view(t.shape[0], batch * num_heads, width // num_heads).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else _static(static_k, "static_k", batch * num_heads, width // num_heads)
    v = heads(v) if static_v is None else _static(static_v, "static_v", batch * num_heads, width // num_heads)
    if add_zero_attn:
        k, v = (PUBLIC["cat"]([t, t.new_zeros((t.shape[0], 1, t.shape[2]))], 1) for t in (k, v))
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    mask = _merged(attn_mask, key_padding_mask, batch, num_heads, k.shape[1])
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        output, weights = _with_weights(q, k, v, mask, dropout_p)
    else:
        weights = None
        q, k, v = (t.view(batch, num_heads, t.shape[1], t.shape[2]) for t in (q, k, v))
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, num_heads, -1, k.shape[2])
        output = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal).flatten(0, 1)
    output = output.transpose(0, 1).contiguous().view(length * batch, width)
    output = linear(output, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.shape[0])
    if weights is not None:
        weights = weights.view(batch, num_heads, length, k.shape[1])
        weights = weights.mean(1) if average_attn_weights else weights
    if not batched:
        output, weights = output.squeeze(1), None if weights is None else weights.squeeze(0)
    return output, weights


def _with_weights(q, k, v, mask, dropout_p):
    q = q * math.sqrt(1 / q.shape[-1])
    scores = q.bmm(k.transpose(-2, -1)) if mask is None else PUBLIC["baddbmm"](mask, q, k.transpose(-2, -1))
    weights = softmax(scores, -1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return weights.bmm(v), weights


def _once(query, key, value):
    """The same three, to be changed alike: what was one tensor stays one, so that one product serves it."""
    return query, query if key is query else key, query if value is query else key if value is key else value


def _in_projection(query, key, value, weight, bias, separate):
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    if separate is not None:
        return tuple(linear(t, w, b) for t, w, b in zip((query, key, value), separate, biases))
    width = query.shape[-1]
    if key is value:
        if query is key:
            return _thirds(linear(query, weight, bias), 3)
        (w_q, w_kv), (b_q, b_kv) = ((None, None) if t is None else t.split([width, 2 * width]) for t in (weight, bias))
        return linear(query, w_q, b_q), *_thirds(linear(key, w_kv, b_kv), 2)
    return tuple(linear(t, w, b) for t, w, b in zip((query, key, value), weight.chunk(3), biases))


def _thirds(t, parts):
    """The equal parts of the last dimension, each contiguous."""
    apart = t.unflatten(-1, (parts, t.shape[-1] // parts)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return apart.unbind(0)


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as one to add: -inf where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype != bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn_user(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.is_floating_point():
        return mask
    return PUBLIC["zeros_like"](mask, dtype=target_type).masked_fill(mask, -math.inf)


def _none_or_dtype(input):
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _float_masks(key_padding_mask, attn_mask, dtype):
    other = _none_or_dtype(attn_mask)
    padding = _canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", dtype)
    return padding, _canonical_mask(attn_mask, "attn_mask", None, "", dtype, check_other=False)


def _per_head_mask(mask, length, source, heads):
    if mask is None:
        return None
    want = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != want:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {want}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _one_more(mask):
    """A mask for one more key, which all may look at."""
    if mask is None:
        return None
    return PUBLIC["cat"]([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _merged(mask, padding, batch, heads, source):
    if padding is None:
        return mask
    if tuple(padding.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}")
    padding = padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1).reshape(batch * heads, 1, source)
    return padding if mask is None else mask + padding


def _static(t, name, heads, width):
    if t.shape[0] != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {t.shape[0]}")
    if t.shape[2] != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {t.shape[2]}")
    return t


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Raise PyTorch's error if the numbers of dimensions do not go together; whether there is a batch."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    word = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {word} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {word} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if key_padding_mask is not None:
        lengths = (key.shape[1], key.shape[0]) if dims == 3 else (key.shape[0],)
        for i, (have, expected) in enumerate(zip(key_padding_mask.shape, lengths)):
            if have != expected:
                raise AssertionError(f"Expected key_padded_mask.shape[{i}] to be {expected}, but got {have}")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {word} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        want = (num_heads, query.shape[0], key.shape[0])
        if dims == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != want:
            raise AssertionError(f"Expected `attn_mask` shape to be {want} but got {attn_mask.shape}")
    return dims == 3


def _check_width(query, key, value, width, num_heads, separate) -> None:
    if query.shape[-1] != width:
        raise AssertionError(f"was expecting embedding dimension of {width}, but got {query.shape[-1]}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        for name, t, weight in zip(("query", "key", "value"), (query, key, value), separate):
            if tuple(weight.shape) != (width, t.shape[-1]):
                raise AssertionError(
                    f"expecting {name} weights shape of {(width, t.shape[-1])}, but got {weight.shape}"
                )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if key.shape[1] != query.shape[1]:
        raise RuntimeError(
            f"Expected query and key to have the same batch size, but got {query.shape[1]} and {key.shape[1]}."
        )
