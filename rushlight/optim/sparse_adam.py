"""SparseAdam."""

from __future__ import annotations

import math

from ..autograd.mode import without_grad
from ..tensor import Tensor
from .optimizer import Optimizer, add_rows, rows_of, zeros_like
from .options import check_betas, check_one_element

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that only touches the rows a sparse gradient has: their moments, and the rows themselves."""

    def __init__(
        self, params, lr: float | Tensor = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ):
        check_one_element(lr)
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas("betas", betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse(lambda p: p.is_sparse, "Sparse params at indices {}: SparseAdam requires dense parameter tensors")
        self._refuse(
            lambda p: p.dtype.is_complex,
            "Complex params at indices {}: SparseAdam does not support complex parameters",
        )

    def _refuse(self, wrong, message: str) -> None:
        places = [
            [i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if wrong(p)
        ]
        if places:
            raise ValueError(message.format(places))

    def step(self, closure=None):
        """One update of the rows that have gradients."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is None:
                    continue
                if not p._grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                without_grad(self._update, group, p)
        return loss

    def _update(self, group, p) -> None:
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        rows, g = rows_of(-p._grad if group["maximize"] else p._grad)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        add_rows(mean, rows, (g - mean[rows]) * (1 - beta1))
        add_rows(square, rows, (g * g - square[rows]) * (1 - beta2))
        size = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        add_rows(p, rows, -size * mean[rows] / (square[rows].sqrt() + group["eps"]))
