"""Activation functions."""

from __future__ import annotations

from ...ops.public import PUBLIC

__all__ = ["relu", "softmax", "log_softmax", "sigmoid", "tanh"]

sigmoid, tanh = PUBLIC["sigmoid"], PUBLIC["tanh"]


def relu(input, inplace=False):
    """max(0, x)."""
    return input.relu_() if inplace else PUBLIC["relu"](input)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return PUBLIC["softmax"](input, dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return PUBLIC["log_softmax"](input, dim, dtype)
