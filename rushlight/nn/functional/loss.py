"""Losses."""

from __future__ import annotations

from .activation import log_softmax

__all__ = ["cross_entropy", "mse_loss"]


def mse_loss(input, target, reduction="mean"):
    return ((input - target) ** 2).mean()


def cross_entropy(input, target, reduction="mean"):
    return -log_softmax(input, 1).gather(1, target.unsqueeze(1)).mean()
