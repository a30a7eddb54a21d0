"""ASGD: averaged stochastic gradient descent."""

from __future__ import annotations

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .optimizer import PureOptimizer, _step_dtype, double, scalar, zeros_like
from .options import checked

__all__ = ["ASGD"]


class ASGD(PureOptimizer):
    """SGD with a decaying rate; ``state[p]["ax"]`` is the average of the parameter from step ``t0`` on."""

    dynamic = ("lr", "lambd", "alpha", "t0", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        defaults = checked(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay)
        defaults |= dict(foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        xp, dtype = namespace_of(p._array), _step_dtype(p)
        eta = wrap(xp.full((), float(group["lr"]), dtype=dtype))
        return {"eta": eta, "mu": wrap(xp.ones((), dtype=dtype)), "ax": zeros_like(p)}

    @staticmethod
    def update(xp, p, g, state, option):
        lr, lambd = option["lr"], option["lambd"]
        step = state["step"] + 1
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        eta = double(xp, state["eta"])
        p = p * scalar(xp, 1 - lambd * eta, p) - scalar(xp, eta, p) * g
        mu = scalar(xp, state["mu"], p)
        average = xp.where(state["mu"] == 1, p, state["ax"] + (p - state["ax"]) * mu)
        t = double(xp, step)
        eta = lr / (1 + lambd * lr * t) ** option["alpha"]
        mu = 1 / xp.maximum(t - option["t0"], 1.0)
        counters = {"eta": scalar(xp, eta, state["eta"]), "mu": scalar(xp, mu, state["mu"])}
        return p, {"step": step, **counters, "ax": average}
