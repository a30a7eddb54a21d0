"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import PureOptimizer, double, scalar, zeros_like
from .options import checked

__all__ = ["Adamax"]


class Adamax(PureOptimizer):
    """Steps scaled by a decaying maximum of the gradient's magnitude."""

    dynamic = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 2e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        defaults = checked(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        defaults |= dict(foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        return {"exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    @staticmethod
    def update(xp, p, g, state, option):
        beta1, beta2 = option["betas"]
        step = state["step"] + 1
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        mean = state["exp_avg"] + scalar(xp, 1 - beta1, p) * (g - state["exp_avg"])
        largest = xp.maximum(scalar(xp, beta2, p) * state["exp_inf"], xp.abs(g) + scalar(xp, option["eps"], p))
        size = scalar(xp, option["lr"] / (1 - beta1 ** double(xp, step)), p)
        return p - size * (mean / largest), {"step": step, "exp_avg": mean, "exp_inf": largest}
