"""Stochastic gradient descent."""

from __future__ import annotations

import numpy as np

from ..tensor import Tensor
from .fused import SMALL, WORTH, Update, add_scaled, blend, constant, do, scratch
from .optimizer import PureOptimizer, add_rows, is_on, rows_of, scalar
from .options import check_fused, checked

__all__ = ["SGD"]

_WORTH = 4 * WORTH  # so little is done with an element that this many are done before another thread is awake


class SGD(PureOptimizer):
    """``p ← p - lr · g``, with momentum, Nesterov momentum and weight decay.

    >>> w = rushlight.ones(1, requires_grad=True)
    >>> optimizer = rushlight.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    counts_steps = False
    dynamic = ("lr", "momentum", "dampening", "weight_decay")
    switches = ("momentum",)

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        defaults = checked(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults |= dict(maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused)
        check_fused(fused, foreach, differentiable)
        super().__init__(params, defaults)

    @staticmethod
    def update(xp, p, g, state, option):
        g = -g if option["maximize"] else g
        g = g + scalar(xp, option["weight_decay"], p) * p
        momentum = scalar(xp, option["momentum"], p)
        if is_on(momentum):
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = xp.astype(g, dtype=p.dtype)
            else:
                buffer = momentum * buffer + scalar(xp, 1 - option["dampening"], p) * g
            state = {"momentum_buffer": buffer}
            g = g + momentum * buffer if option["nesterov"] else buffer
        return p - scalar(xp, option["lr"], p) * g, state

    def sparse_update(self, p, g, state, option):
        if option["weight_decay"]:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        g = -g if option["maximize"] else g
        momentum = option["momentum"]
        if momentum:
            buffer = state.get("momentum_buffer")
            buffer = g.clone() if buffer is None else buffer * momentum + g * (1 - option["dampening"])
            state["momentum_buffer"] = buffer
            g = g + buffer * momentum if option["nesterov"] else buffer
        rows, values = rows_of(g)
        add_rows(p, rows, values * -option["lr"])

    @staticmethod
    def kernel(option):
        momentum, sign = option["momentum"], -1.0 if option["maximize"] else 1.0
        numbers = (-option["lr"], option["weight_decay"], sign)
        if not is_on(momentum):
            return "sgd_plain", (), lambda step: numbers
        more = (momentum, 1 - option["dampening"], float(option["nesterov"]))
        return "sgd", ("momentum_buffer",), lambda step: (*numbers, *more)

    @classmethod
    def fused(cls, option):
        momentum, decay, flipped = option["momentum"], option["weight_decay"], option["maximize"]
        if not momentum and not decay:
            return _plain(option["lr"] if flipped else -option["lr"])
        rate, damped, nesterov = -option["lr"], 1 - option["dampening"], option["nesterov"]

        def update(p, g, *buffer):
            step = g
            if decay or flipped:
                step = np.multiply(p, constant(decay, p.dtype), scratch(p, 1))
                step = (np.subtract if flipped else np.add)(step, g, step)
            if buffer:
                blend(buffer[0], step, momentum, damped)
                if nesterov:
                    ahead = np.multiply(buffer[0], constant(momentum, p.dtype), scratch(p, 2))
                    step = np.add(ahead, step, ahead)
                else:
                    step = buffer[0]
            add_scaled(p, step, rate)

        kernel, _, numbers = cls.kernel(option)
        made = Update(update, kernel, numbers(None))

        def job(p, g, state, later):
            if not momentum:
                return do(later, made, p, g, worth=_WORTH)
            buffer = state.get("momentum_buffer")  # the first step makes it
            return buffer is not None and do(later, made, p, g, buffer._array, worth=_WORTH)

        return job


def _plain(rate):
    """The job of adding ``rate`` times the gradient; spelled out for small models, where each call counts."""

    def update(p, g):
        add_scaled(p, g, rate)

    made = Update(update, "sgd_plain", (rate, 0.0, 1.0))

    def job(p, g, state, later):
        if made.kernel is not None or p.size >= _WORTH:
            later.append((made, (p, g)))
        elif p.size < SMALL:
            np.add(p, np.multiply(g, constant(rate, p.dtype)), p)
        else:
            update(p, g)
        return True

    return job
