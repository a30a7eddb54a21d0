"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .fused import Update, add_scaled, blend, constant, do, scratch
from .optimizer import PureOptimizer, double, scalar, zeros_like
from .options import check_fused, checked

__all__ = ["Adam", "AdamW"]


class Adam(PureOptimizer):
    """Steps scaled by running means of the gradient and of its square: ``p ← p - lr · m̂ / (√v̂ + eps)``."""

    dynamic = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        _check_tensors(lr, betas, foreach, capturable)
        defaults = checked(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        defaults |= dict(amsgrad=amsgrad, maximize=maximize, foreach=foreach, capturable=capturable)
        defaults |= dict(differentiable=differentiable, fused=fused, decoupled_weight_decay=decoupled_weight_decay)
        check_fused(fused, foreach, differentiable)
        super().__init__(params, defaults)

    def sparse_update(self, p, g, state, option):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def initial(self, group, p):
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        return {name: zeros_like(p) for name in names}

    @staticmethod
    def update(xp, p, g, state, option):
        beta1, beta2 = option["betas"]
        lr = option["lr"]
        step = state["step"] + 1
        p, g = _decayed(xp, p, g, option)
        mean, square = _moments(xp, p, g, state, option)
        state = {"step": step, "exp_avg": mean, "exp_avg_sq": square} | (
            {"max_exp_avg_sq": xp.maximum(state["max_exp_avg_sq"], square)} if option["amsgrad"] else {}
        )
        t = double(xp, step)
        size = lr / (1 - beta1**t)
        correction = (1 - beta2**t) ** 0.5
        denominator = xp.sqrt(state.get("max_exp_avg_sq", square)) / scalar(xp, correction, p) + scalar(
            xp, option["eps"], p
        )
        return p - scalar(xp, size, p) * (mean / denominator), state

    @staticmethod
    def kernel(option):
        if option["amsgrad"]:
            return None
        (beta1, beta2), lr, decay, eps = option["betas"], option["lr"], option["weight_decay"], option["eps"]
        decay, shrink = (0.0, 1 - lr * decay) if option["decoupled_weight_decay"] else (decay, 1.0)
        rest = (beta1, 1 - beta1, beta2, 1 - beta2, -1.0 if option["maximize"] else 1.0, decay, shrink)

        def numbers(step):
            correction = (1 - beta2**step) ** 0.5
            # √v / c + eps = (√v + eps c) / c: one pass less over the parameters.
            return -lr / (1 - beta1**step) * correction, eps * correction, *rest

        return "adam", ("exp_avg", "exp_avg_sq"), numbers

    @classmethod
    def fused(cls, option):
        known = cls.kernel(option)
        if known is None:
            return super().fused(option)
        kernel, _, numbers = known
        (beta1, beta2), lr, decay = option["betas"], option["lr"], option["weight_decay"]
        decoupled, flipped = option["decoupled_weight_decay"], option["maximize"]

        def updating(step):
            """The update at one count of steps, which all parameters have as a rule."""
            given = numbers(step)
            rate, small = given[:2]

            def update(p, g, m, v):
                dtype = p.dtype
                if decay and decoupled:
                    np.multiply(p, constant(1 - lr * decay, dtype), p)
                elif decay:
                    with_decay = np.multiply(p, constant(decay, dtype), scratch(p, 1))
                    g = (np.subtract if flipped else np.add)(with_decay, g, with_decay)
                if flipped and (decoupled or not decay):
                    g = np.negative(g, scratch(p, 1))
                blend(m, g, beta1, 1 - beta1)
                u = np.multiply(g, g, scratch(p, 2))
                blend(v, u, beta2, 1 - beta2)
                u = np.sqrt(v, u)
                np.add(u, constant(small, dtype), u)
                add_scaled(p, np.divide(m, u, u), rate)

            return Update(update, kernel, given)

        updates: dict = {}

        def job(p, g, state, later):
            mean, square, count = state["exp_avg"]._array, state["exp_avg_sq"]._array, state["step"]._array
            step = count.item() + 1
            count[...] = step
            update = updates.get(step)
            if update is None:
                update = updates[step] = updating(step)
            return do(later, update, p, g, mean, square)

        return job


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself, not to its gradient."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        flags: dict[str, Any] = dict(maximize=maximize, capturable=capturable, differentiable=differentiable)
        flags |= dict(foreach=foreach, fused=fused)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True, **flags)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def _decayed(xp, p, g, option):
    """The parameter and its gradient (negated to maximize) with weight decay in one of them; for Adam's family."""
    lr, decay = option["lr"], option["weight_decay"]
    g = -g if option["maximize"] else g
    if option["decoupled_weight_decay"]:
        return p * scalar(xp, 1 - lr * decay, p), g
    return p, g + scalar(xp, decay, p) * p


def _moments(xp, p, g, state, option):
    """The running means of the gradient and of its square."""
    beta1, beta2 = option["betas"]
    mean = state["exp_avg"] + scalar(xp, 1 - beta1, p) * (g - state["exp_avg"])
    square = scalar(xp, beta2, p) * state["exp_avg_sq"] + scalar(xp, 1 - beta2, p) * (g * g)
    return mean, square


def _check_tensors(lr, betas, foreach, capturable) -> None:
    """What PyTorch asks of a rate and of betas that are Tensors; of this family only Adam and AdamW ask it."""
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    tensors = [isinstance(b, Tensor) for b in betas]
    if any(tensors) and not all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if tensors[i] and foreach and not capturable:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if tensors[i] and beta._array.size == 1:
            continue
        if tensors[i]:
            bool(beta)  # raises: more than one value is ambiguous
