"""``nn.attention.bias``: the two causal masks of sequences of different length."""

from __future__ import annotations

import enum

from ...autograd.overriding import disabled
from ...dtypes import bool_
from ...ops import PUBLIC
from ...tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


def __dir__():
    return __all__


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask that is not square begins, or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for ``scaled_dot_product_attention``: True where a query may look.

    Differs from PyTorch: it is a boolean tensor, so that every operator takes it.
    """

    __torch_function__ = disabled

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        offset = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = PUBLIC["ones"](seq_len_q, seq_len_kv, dtype=bool_).tril(offset).as_subclass(cls)
        mask.variant, mask.seq_len_q, mask.seq_len_kv = variant, seq_len_q, seq_len_kv
        return mask

    def __init__(self, variant, seq_len_q, seq_len_kv):
        pass

    def _materialize(self, device=None):
        """The mask as a plain tensor."""
        return self.as_subclass(Tensor).to(device)

    def __repr__(self):
        return repr(self.as_subclass(Tensor))


def causal_upper_left(*size):
    """The mask whose diagonal begins in the upper left corner.

    >>> from rushlight.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size):
    """The mask whose diagonal ends in the lower right corner.

    >>> from rushlight.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))


def _two(name, size):
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size
