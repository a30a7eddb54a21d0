"""The dropout family."""

from __future__ import annotations

from ...ops.public import PUBLIC

__all__ = ["dropout"]


def dropout(input, p=0.5, training=True, inplace=False):
    """Each element zeroed with probability ``p``, the rest scaled by 1 / (1 - p)."""
    return PUBLIC["dropout_" if inplace else "dropout"](input, p, training)
