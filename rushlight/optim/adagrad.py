"""Adagrad."""

from __future__ import annotations

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .optimizer import PureOptimizer, add_rows, double, rows_of, scalar
from .options import check_fused, checked

__all__ = ["Adagrad"]


class Adagrad(PureOptimizer):
    """Steps scaled by the root of the sum of all squared gradients so far."""

    dynamic = ("lr", "lr_decay", "eps", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        accumulator = dict(initial_accumulator_value=initial_accumulator_value)
        checked(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, **accumulator)  # before eps, as PyTorch does
        defaults = checked(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay, **accumulator)
        defaults |= dict(foreach=foreach, maximize=maximize, differentiable=differentiable, fused=fused)
        check_fused(fused, foreach, differentiable)
        super().__init__(params, defaults)
        for group in self.param_groups:  # unlike the others', this state is there before the first step
            for p in group["params"]:
                self._start(group, p, self.state[p])

    def initial(self, group, p):
        value = group["initial_accumulator_value"]
        value = complex(value, value) if p.dtype.is_complex else value
        return {"sum": wrap(namespace_of(p._array).full_like(p._array, value))}

    def share_memory(self) -> None:
        """Accepted; state lives in ordinary memory."""

    @staticmethod
    def update(xp, p, g, state, option):
        step = state["step"] + 1
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        size = option["lr"] / (1 + (double(xp, step) - 1) * option["lr_decay"])
        total = state["sum"] + g * g
        p = p - scalar(xp, size, p) * (g / (xp.sqrt(total) + scalar(xp, option["eps"], p)))
        return p, {"step": step, "sum": total}

    def sparse_update(self, p, g, state, option):
        if option["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state["step"] += 1
        rate = option["lr"] / (1 + (float(state["step"]) - 1) * option["lr_decay"])
        rows, values = rows_of(-g if option["maximize"] else g)
        add_rows(state["sum"], rows, values * values)
        add_rows(p, rows, -rate * values / (state["sum"][rows].sqrt() + option["eps"]))

    @staticmethod
    def kernel(option):
        lr, slower, sign = option["lr"], option["lr_decay"], -1.0 if option["maximize"] else 1.0
        rest = (option["eps"], 1.0, 1.0, sign, option["weight_decay"])  # RMSprop that forgets nothing
        return "rmsprop", ("sum",), lambda step: (-lr / (1 + (step - 1) * slower), *rest)
