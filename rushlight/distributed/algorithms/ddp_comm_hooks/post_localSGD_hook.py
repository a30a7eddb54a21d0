"""The mean of all processes' gradients at first, later of some: ``PeriodicModelAverager`` then keeps them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....futures import Future
from ... import world
from .debugging_hooks import noop_hook
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


@dataclass(eq=False)
class PostLocalSGDState:
    """``process_group`` exchanges until step ``start_localSGD_iter``, ``subgroup`` (a machine's own) from then on."""

    process_group: Any
    subgroup: Any
    start_localSGD_iter: int
    post_local_gradient_allreduce: bool = True
    iter: int = 0

    def maybe_increase_iter(self, bucket) -> None:
        """The last bucket of a backward pass ends a step."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket) -> Future:
    """The mean of the processes whose turn it is; of none, if the state says so."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = world.new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
