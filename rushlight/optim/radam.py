"""RAdam: Adam that waits for its second moment to mean something."""

from __future__ import annotations

from ..tensor import Tensor
from .adam import _decayed, _moments
from .optimizer import PureOptimizer, double, scalar, zeros_like
from .options import checked

__all__ = ["RAdam"]


class RAdam(PureOptimizer):
    """Adam with its adaptive step rectified by the variance it has in the first steps."""

    dynamic = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        defaults = checked(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        defaults |= dict(maximize=maximize, foreach=foreach, capturable=capturable)
        defaults |= dict(decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    @staticmethod
    def update(xp, p, g, state, option):
        beta1, beta2 = option["betas"]
        lr = option["lr"]
        step = state["step"] + 1
        t = double(xp, step)
        p, g = _decayed(xp, p, g, option)
        mean, square = _moments(xp, p, g, state, option)
        correction = 1 - beta2**t
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * t * beta2**t / correction  # of the simple moving average that v amounts to
        steady = length > 5.0
        safe = xp.where(steady, length, longest)  # no root of a negative number in the branch not taken
        rectified = ((safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe)) ** 0.5
        adaptive = scalar(xp, rectified * correction**0.5, p) / (xp.sqrt(square) + scalar(xp, option["eps"], p))
        scale = xp.where(steady, adaptive, xp.ones_like(adaptive))
        p = p - scalar(xp, lr / (1 - beta1**t), p) * (mean * scale)
        return p, {"step": step, "exp_avg": mean, "exp_avg_sq": square}
