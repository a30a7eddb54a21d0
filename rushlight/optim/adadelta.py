"""Adadelta."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import PureOptimizer, scalar, zeros_like
from .options import checked

__all__ = ["Adadelta"]


class Adadelta(PureOptimizer):
    """Steps scaled by the ratio of past steps' size to past gradients' size."""

    dynamic = ("lr", "rho", "eps", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        defaults = checked(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        defaults |= dict(maximize=maximize, capturable=capturable, foreach=foreach, differentiable=differentiable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        return {"square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    @staticmethod
    def update(xp, p, g, state, option):
        keep, new = scalar(xp, option["rho"], p), scalar(xp, 1 - option["rho"], p)
        eps = scalar(xp, option["eps"], p)
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        square = keep * state["square_avg"] + new * (g * g)
        delta = xp.sqrt(state["acc_delta"] + eps) / xp.sqrt(square + eps) * g
        moved = keep * state["acc_delta"] + new * (delta * delta)
        p = p - scalar(xp, option["lr"], p) * delta
        return p, {"step": state["step"] + 1, "square_avg": square, "acc_delta": moved}

    @staticmethod
    def kernel(option):
        keep, sign = option["rho"], -1.0 if option["maximize"] else 1.0
        numbers = (-option["lr"], option["eps"], keep, 1 - keep, sign, option["weight_decay"])
        return "adadelta", ("square_avg", "acc_delta"), lambda step: numbers
