"""Rprop: resilient backpropagation."""

from __future__ import annotations

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .optimizer import PureOptimizer, scalar, zeros_like
from .options import checked

__all__ = ["Rprop"]


class Rprop(PureOptimizer):
    """Steps by the gradient's sign; each element's step grows while the sign stays and shrinks when it turns."""

    dynamic = ("etas", "step_sizes")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        defaults = checked(lr=lr, etas=etas, step_sizes=step_sizes)
        defaults |= dict(foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable)
        super().__init__(params, defaults)

    def initial(self, group, p):
        lr = float(group["lr"])
        start = complex(lr, lr) if p.dtype.is_complex else lr
        return {"prev": zeros_like(p), "step_size": wrap(namespace_of(p._array).full_like(p._array, start))}

    @staticmethod
    def update(xp, p, g, state, option):
        shrink, grow = (scalar(xp, eta, p) for eta in option["etas"])
        smallest, largest = (scalar(xp, size, p) for size in option["step_sizes"])
        g = -g if option["maximize"] else g
        agreement = g * state["prev"]
        turned = agreement < 0
        one = xp.ones_like(p)
        factor = xp.where(agreement > 0, grow * one, xp.where(turned, shrink * one, one))
        size = xp.minimum(xp.maximum(state["step_size"] * factor, smallest), largest)
        g = xp.where(turned, xp.zeros_like(p), g)  # where the sign turned, stay and forget
        return p - xp.sign(g) * size, {"step": state["step"] + 1, "prev": g, "step_size": size}
