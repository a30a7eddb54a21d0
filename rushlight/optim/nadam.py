"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .adam import _decayed, _moments
from .optimizer import PureOptimizer, _step_dtype, double, scalar, zeros_like
from .options import checked

__all__ = ["NAdam"]


class NAdam(PureOptimizer):
    """Adam whose momentum looks one step ahead."""

    dynamic = ("lr", "betas", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 2e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        defaults = checked(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults |= dict(decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach)
        defaults |= dict(capturable=capturable, differentiable=differentiable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        one = namespace_of(p._array).ones((), dtype=_step_dtype(p))
        return {"mu_product": wrap(one), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    @staticmethod
    def update(xp, p, g, state, option):
        beta1, beta2 = option["betas"]
        lr, momentum_decay = option["lr"], option["momentum_decay"]
        step = state["step"] + 1
        t = double(xp, step)
        p, g = _decayed(xp, p, g, option)
        mean, square = _moments(xp, p, g, state, option)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
        product = state["mu_product"] * scalar(xp, mu, state["mu_product"])
        state = {"step": step, "mu_product": product, "exp_avg": mean, "exp_avg_sq": square}
        denominator = xp.sqrt(square / scalar(xp, 1 - beta2**t, p)) + scalar(xp, option["eps"], p)
        product = double(xp, product)
        p = p - scalar(xp, lr * (1 - mu) / (1 - product), p) * (g / denominator)
        return p - scalar(xp, lr * mu_next / (1 - product * mu_next), p) * (mean / denominator), state
