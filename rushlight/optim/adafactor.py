"""Adafactor: second moments of a matrix kept as one row and one column."""

from __future__ import annotations

import ml_dtypes

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .optimizer import PureOptimizer, double, scalar, zeros_like
from .options import check_one_element

__all__ = ["Adafactor"]


class Adafactor(PureOptimizer):
    """Adam's second moment in factored form, with updates clipped by their root mean square."""

    dynamic = ("lr", "beta2_decay", "d", "weight_decay")
    complex_error = "Adafactor does not support complex parameters"

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps=(None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        check_one_element(lr)
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def initial(self, group, p: Tensor):
        if p.dtype.is_complex:
            raise RuntimeError(self.complex_error)
        if p.ndim < 2:
            return {"variance": zeros_like(p)}
        xp, shape, dtype = namespace_of(p._array), p._array.shape, p._array.dtype
        row, column = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
        return {"row_var": wrap(xp.zeros(row, dtype=dtype)), "col_var": wrap(xp.zeros(column, dtype=dtype))}

    @staticmethod
    def update(xp, p, g, state, option):
        step = state["step"] + 1
        t = double(xp, step)
        g = -g if option["maximize"] else g
        smallest, floor = option["eps"]
        smallest = float(ml_dtypes.finfo(p.dtype).eps) if smallest is None else smallest
        new = scalar(xp, t ** option["beta2_decay"], p)
        rate = xp.minimum(option["lr"], 1 / xp.sqrt(t))
        size = scalar(xp, rate, p) * xp.maximum(_rms(xp, p), floor)
        p = p * scalar(xp, 1 - option["lr"] * option["weight_decay"], p)
        made = {"step": step}
        if g.ndim > 1:
            row = made["row_var"] = _mixed(state["row_var"], xp.mean(g * g, axis=-1, keepdims=True), new)
            column = made["col_var"] = _mixed(state["col_var"], xp.mean(g * g, axis=-2, keepdims=True), new)
            variance = row * column / xp.maximum(xp.mean(row, axis=-2, keepdims=True), smallest)
        else:
            variance = made["variance"] = _mixed(state["variance"], g * g, new)
        update = g / xp.sqrt(xp.maximum(variance, smallest * smallest))
        clipped = xp.maximum(_rms(xp, update) / scalar(xp, option["d"], p), 1.0)
        return p - size / clipped * update, made


def _mixed(old, value, weight):
    return old + weight * (value - old)


def _rms(xp, x):
    return xp.sqrt(xp.mean(x * x, axis=None, keepdims=False))
