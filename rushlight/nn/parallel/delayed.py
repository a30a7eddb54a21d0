"""Parameters of ``DistributedDataParallel`` whose gradients are exchanged by themselves, later than all others'."""

from __future__ import annotations

from typing import Any

from ... import distributed as dist
from ...autograd.mode import no_grad
from ...autograd.variable import Variable
from ...ops.public import PUBLIC
from ...tensor import Tensor


class Delayed:
    """The gradients of ``named`` are averaged, all at once, when that of ``last`` has come."""

    unguarded = True  # by compile: what changes in it is what is under way

    def __init__(self, named: list[tuple[str, Tensor]], last: Tensor, reducer):
        self._named, self._reducer, self._work = named, reducer, None
        self._flat: Any = None
        self._handles = [p.register_post_accumulate_grad_hook(self._check_in_time) for _, p in named]
        self._handles.append(last.register_post_accumulate_grad_hook(self._start))

    def _check_in_time(self, p: Tensor) -> None:
        if self._work is not None:
            self._work = None
            name = next(name for name, q in self._named if q is p)
            raise RuntimeError(
                f"the gradient of '{name}' came after that of param_to_hook_all_reduce, when those of "
                "delay_all_reduce_named_params were on their way; choose a parameter whose gradient comes last"
            )

    def _start(self, _) -> None:
        now = self._reducer.under_way
        if now is None or not now.armed:  # ``no_sync``
            return
        factor = 1.0 / self._reducer.divide_by
        with no_grad():
            parts = [PUBLIC["zeros_like"](p) if p.grad is None else p.grad * factor for _, p in self._named]
            self._flat = PUBLIC["cat"]([part.reshape(-1) for part in parts])
        self._work = dist.all_reduce(self._flat, group=self._reducer.group, async_op=True)
        Variable._execution_engine.queue_callback(self._end)

    def _end(self) -> None:
        """Backward is over: the means are the gradients."""
        work, self._work = self._work, None
        if work is None:
            return
        work.wait()
        at = 0
        with no_grad():
            for _, p in self._named:
                part = self._flat[at : at + p.numel()].view(p.shape)
                at += p.numel()
                if p.grad is None:
                    p.grad = part.clone()
                else:
                    p.grad.copy_(part)
