"""Muon: momentum whose direction is made orthogonal by a Newton–Schulz iteration."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from ..tensor import Tensor
from .optimizer import PureOptimizer, scalar, zeros_like
from .options import check_one_element

__all__ = ["Muon"]


class Muon(PureOptimizer):
    """For 2-dimensional hidden weights; give everything else to AdamW."""

    dynamic = ("lr", "weight_decay", "momentum")
    complex_error = "Muon does not support complex parameters"
    counts_steps = False

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        check_one_element(lr)
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}"
                    )

    def _step_group(self, group, option):
        for p in group["params"]:
            if p._grad is not None and not self.state[p]:
                if p.dtype.is_complex:
                    raise RuntimeError(self.complex_error)
                self.state[p]["momentum_buffer"] = zeros_like(p)
        super()._step_group(group, option)

    @staticmethod
    def update(xp, p, g, state, option):
        momentum = scalar(xp, option["momentum"], p)
        buffer = _between(xp, state["momentum_buffer"], g, 1 - momentum)
        direction = _between(xp, g, buffer, momentum) if option["nesterov"] else buffer
        direction = _orthogonal(xp, direction, option["ns_coefficients"], option["ns_steps"], option["eps"])
        rows, columns = p.shape
        if option["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / columns))
        p = p * scalar(xp, 1 - option["lr"] * option["weight_decay"], p)
        p = p - scalar(xp, option["lr"] * ratio, p) * xp.astype(direction, dtype=p.dtype)
        return p, {"momentum_buffer": buffer}


def _between(xp, start, end, weight):
    """``lerp``, reckoned from the nearer end as PyTorch does: what follows is sensitive to the last digit."""
    way = end - start
    if isinstance(weight, (int, float)):
        return start + weight * way if weight < 0.5 else end - (1 - weight) * way
    return xp.where(weight < 0.5, start + weight * way, end - (1 - weight) * way)


def _orthogonal(xp, g, coefficients, steps, eps):
    """Push the singular values of ``g`` towards 1, in bfloat16 as PyTorch does."""
    a, b, c = coefficients
    x = _half(xp, g)
    tall = g.shape[0] > g.shape[1]
    x = xp.matrix_transpose(x) if tall else x
    wide = _single(xp, x)
    x = _half(
        xp, wide / _single(xp, _half(xp, xp.maximum(xp.sqrt(xp.sum(wide * wide, axis=None, keepdims=False)), eps)))
    )
    for _ in range(steps):
        wide = _single(xp, x)
        gram = _single(xp, _half(xp, xp.matmul(wide, xp.matrix_transpose(wide))))
        polynomial = _single(xp, _half(xp, b * gram + c * xp.matmul(gram, gram)))
        x = _half(xp, a * wide + xp.matmul(polynomial, wide))
    return xp.matrix_transpose(x) if tall else x


def _half(xp, x):
    return xp.astype(x, dtype=np.dtype(ml_dtypes.bfloat16))


def _single(xp, x):
    return xp.astype(x, dtype=np.dtype(np.float32))
