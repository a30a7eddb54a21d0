"""``flex_attention``: attention whose scores pass through a function of the user's, and whose mask is one.

The functions are written for one score: ``score_mod(score, b, h, q_idx, kv_idx)``. ``vmap`` runs them once for all
of them. Eager code makes the whole matrix of scores; compiled code leaves to XLA what of it is ever in memory.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, NamedTuple

from ...compat import missing as _missing
from ...dtypes import bool_, float32, float64
from ...errors import warn_user
from ...func.mapping import vmap
from ...ops import PUBLIC
from .block_mask import BlockMask, blocks_of, noop_mask, rounded_up

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def __dir__():
    return __all__


class AuxRequest(NamedTuple):
    """What ``flex_attention`` is asked for beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What ``flex_attention`` gives beside the output."""

    lse: Any = None
    max_scores: Any = None


class FlexKernelOptions(dict):
    """Settings of PyTorch's kernels: accepted, without effect."""


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(q kᵀ scale)) v, where ``block_mask`` allows a query to look.

    >>> from rushlight.nn.attention.flex_attention import flex_attention
    >>> q = k = v = rushlight.ones(1, 2, 3, 4)
    >>> flex_attention(q, k, v, lambda score, b, h, q_idx, kv_idx: score - (q_idx - kv_idx).abs()).shape
    torch.Size([1, 2, 3, 4])

    Differs from PyTorch: it has a gradient on the CPU too.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warn_user("return_lse is deprecated. Please use return_aux=AuxRequest(lse=True) instead.", FutureWarning)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = float64 if query.dtype is float64 else float32
    key, value = (_heads_repeated(t, query.shape[1], query.shape[0]) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)).to(wide) * scale
    if score_mod is not None:
        scores = _over_scores(score_mod, scores).to(wide)
    if block_mask is not None:
        mask = create_mask(block_mask.mask_mod, *block_mask.shape[:-2], *scores.shape[-2:], scores.device)
        scores = scores.masked_fill(~(mask & _within_blocks(block_mask, *scores.shape[-2:])), -math.inf)
    out, lse, highest = _weighted(scores, value.to(wide))
    out = out.to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, highest if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


def _weighted(scores, value):
    """(the values weighted by the softmax of their scores, log of the sum of exponentials, largest score)"""
    highest = scores.detach().amax(-1, keepdim=True)
    empty = highest == -math.inf  # rows that may look nowhere: their output is 0
    weights = (scores - highest.masked_fill(empty, 0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    out = (weights / total.masked_fill(empty, 1.0)) @ value
    lse = total.masked_fill(empty, 1.0).log() + highest
    return out, lse.squeeze(-1), highest.squeeze(-1)


def _heads_repeated(t, heads, batch):
    if t.shape[1] != heads:
        t = t.repeat_interleave(heads // t.shape[1], 1)
    return t if t.shape[0] == batch else t.expand(batch, *t.shape[1:])


def _over_scores(score_mod, scores):
    places = [PUBLIC["arange"](n, device=scores.device) for n in scores.shape]
    return _mapped(score_mod, 1)(scores, *places)


def _mapped(function, given):
    """A function of one place (b, h, q, kv), and of ``given`` arrays of scores there, as one of all places."""
    for mapped in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, in_dims=(0,) * given + mapped)
    return function


# -- masks -------------------------------------------------------------------------------------------------------------


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The boolean mask (B, H, Q_LEN, KV_LEN) of a ``mask_mod``; of a ``score_mod``, where it leaves a score finite.

    >>> from rushlight.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = [PUBLIC["arange"](n, device=device) for n in sizes]
    if _is_score_mod(mod_fn):
        scores = _mapped(mod_fn, 1)(PUBLIC["zeros"](sizes, device=device), *places)
        return ~PUBLIC["isneginf"](scores)
    mask = _mapped(mod_fn, 0)(*places)
    return mask.expand(sizes)


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
):
    """The ``BlockMask`` of ``mask_mod(b, h, q_idx, kv_idx)``: which blocks of scores are needed, and which whole."""
    if compute_dq_write_order:
        raise NotImplementedError("compute_dq_write_order is an order of PyTorch's GPU kernels: leave it False")
    if _is_score_mod(mask_mod):
        raise AssertionError("create_block_mask requires a mask_mod function of (b, h, q_idx, kv_idx)")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    counts = _counts(mask, size)
    full = counts == size[0] * size[1]
    partial = (counts > 0) & ~full if separate_full_blocks else counts > 0
    wholes = blocks_of(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(*blocks_of(partial), *wholes, size, mask_mod, (Q_LEN, KV_LEN))


def and_masks(*mask_mods):
    """The ``mask_mod`` that allows what all of them allow."""
    _check_callable(mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=bool_)
        for mask_mod in mask_mods:
            result = result & mask_mod(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods):
    """The ``mask_mod`` that allows what any of them allows."""
    _check_callable(mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=bool_)
        for mask_mod in mask_mods:
            result = result | mask_mod(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _counts(mask, size):
    """How many scores of each block are wanted; those beyond the end are not."""
    rows, columns = (rounded_up(n, s) for n, s in zip(mask.shape[-2:], size))
    padded = PUBLIC["zeros"]((*mask.shape[:-2], rows * size[0], columns * size[1]), dtype=bool_, device=mask.device)
    padded[..., : mask.shape[-2], : mask.shape[-1]] = mask
    return padded.unflatten(-1, (columns, size[1])).unflatten(-3, (rows, size[0])).sum((-3, -1))


def _within_blocks(block_mask, rows, columns):
    """The blocks of a ``BlockMask`` as a mask of single scores; all of them where they cover everything."""
    dense = block_mask.to_dense().bool()
    for dim, size, length in ((-2, block_mask.BLOCK_SIZE[0], rows), (-1, block_mask.BLOCK_SIZE[1], columns)):
        dense = dense.repeat_interleave(size, dim).narrow(dim, 0, length)
    return dense


def _is_score_mod(function) -> bool:
    if not callable(function):
        raise TypeError(f"{function!r} is not a callable object")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p for p in inspect.signature(function).parameters.values() if p.kind in kinds and p.default is p.empty]
    if len(given) not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {len(given)}")
    return len(given) == 5


def _check_callable(mask_mods) -> None:
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _check(query, key, value, block_mask, grouped) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    batch, heads, length, width = query.shape
    if width != key.shape[-1]:
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={width} and E={key.shape[-1]}."
        )
    if batch != key.shape[0] and block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask=None, "
            f"Bq={batch}, and Bkv={key.shape[0]}."
        )
    if heads != key.shape[1] and not grouped:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
        )
    if heads % key.shape[1]:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and "
            f"Hkv={key.shape[1]}."
        )
    if key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"key and value must have the same length, but got {key.shape[-2]} and {value.shape[-2]}")
    if block_mask is not None:
        _check_lengths(block_mask, length, key.shape[-2])


def _check_lengths(block_mask, q_len, kv_len) -> None:
    made_q, made_kv = block_mask.shape[-2:]
    said = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and kv_len={kv_len}. "
    if q_len > made_q or kv_len > made_kv:
        raise ValueError(
            said + "As the block mask was created for a smaller length than you're using it for, you likely need to "
            "create a new block mask."
        )
    if q_len < made_q or kv_len < made_kv:
        raise ValueError(
            said + "As the block mask was created for a larger length than you're using it for, you can either 1. "
            "create a new block mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
            "length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper "
            "left corner, which does not work for all mask_mods!"
        )


__getattr__ = _missing(__name__)
