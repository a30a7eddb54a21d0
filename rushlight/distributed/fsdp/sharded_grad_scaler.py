"""``ShardedGradScaler``: a gradient that overflowed in one process is skipped by all."""

from __future__ import annotations

from typing import Any

from ...amp.grad_scaler import GradScaler
from ...ops.public import PUBLIC
from .. import world
from ..collectives import all_reduce
from ..reduce_op import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """``GradScaler`` for models whose gradients are cut: all processes of ``process_group`` step, or none."""

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5,
        growth_factor: float = 2.0, growth_interval: int = 2000, enabled: bool = True, process_group=None,
    ):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divide gradients by the scale, and ask the others whether theirs overflowed."""
        super().unscale_(optimizer)
        if not self._enabled or not world.is_initialized():
            return
        per = self._per(optimizer)
        found = PUBLIC["tensor"](float(bool(per.found_inf)))
        all_reduce(found, ReduceOp.MAX, self.process_group)
        if per.found_inf is not None or found.item():
            per.found_inf = bool(found.item())
