"""RMSprop."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import PureOptimizer, is_on, scalar, zeros_like
from .options import check_not_negative, checked

__all__ = ["RMSprop"]


class RMSprop(PureOptimizer):
    """Steps scaled by a running root mean square of the gradient, optionally centered and with momentum."""

    dynamic = ("lr", "alpha", "eps", "weight_decay", "momentum")
    switches = ("momentum",)

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        defaults = checked(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay)
        check_not_negative("alpha", alpha)  # an alpha of ASGD may be: not in the table
        defaults |= dict(capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] > 0 else []
        names += ["grad_avg"] if group["centered"] else []
        return {name: zeros_like(p) for name in names}

    @staticmethod
    def update(xp, p, g, state, option):
        keep, new = scalar(xp, option["alpha"], p), scalar(xp, 1 - option["alpha"], p)
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        made = {"step": state["step"] + 1, "square_avg": keep * state["square_avg"] + new * (g * g)}
        variance = made["square_avg"]
        if option["centered"]:
            made["grad_avg"] = state["grad_avg"] + new * (g - state["grad_avg"])
            variance = variance - made["grad_avg"] * made["grad_avg"]
        direction = g / (xp.sqrt(variance) + scalar(xp, option["eps"], p))
        momentum = scalar(xp, option["momentum"], p)
        if is_on(momentum):
            direction = made["momentum_buffer"] = momentum * state["momentum_buffer"] + direction
        return p - scalar(xp, option["lr"], p) * direction, made

    @staticmethod
    def kernel(option):
        if option["centered"] or is_on(option["momentum"]):
            return None
        keep, sign = option["alpha"], -1.0 if option["maximize"] else 1.0
        numbers = (-option["lr"], option["eps"], keep, 1 - keep, sign, option["weight_decay"])
        return "rmsprop", ("square_avg",), lambda step: numbers
