"""Hooks for ``FullyShardedDataParallel.register_comm_hook``: what it does without one, and in 16 bits."""

from __future__ import annotations

from ....dtypes import bfloat16, float16, float32
from ... import world
from ...collectives import all_reduce, reduce_scatter_tensor

__all__ = [
    "DefaultState", "LowPrecisionState", "allreduce_hook", "bf16_compress_hook", "fp16_compress_hook",
    "reduce_scatter_hook",
]  # fmt: skip


class DefaultState:
    """Who takes part, and by what gradients are divided: near the root of their number before the sum, the rest after.

    So sums are neither too large nor too small for few bits.
    """

    def __init__(self, process_group):
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = world.get_world_size(process_group)
        factor = 1
        while self.world_size % factor == 0 and self.world_size / factor > factor:
            factor *= 2
        self.gradient_predivide_factor = float(factor)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor


class LowPrecisionState(DefaultState):
    """For hooks that send few bits: ``parameter_type`` is PyTorch's word for the dtype that gradients come back in.

    Differs from PyTorch: they come back in the dtype that they had.
    """

    def __init__(self, process_group, parameter_type=float32):
        super().__init__(process_group)
        self.parameter_type = parameter_type


def allreduce_hook(state: DefaultState, grad) -> None:
    """The mean over all processes, in place: for ``NO_SHARD``."""
    grad.div_(state.gradient_predivide_factor)
    all_reduce(grad, group=state.process_group)
    grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad, output) -> None:
    """This process's part of the mean over all processes, into ``output``."""
    grad.div_(state.gradient_predivide_factor)
    reduce_scatter_tensor(output, grad, group=state.process_group)
    output.div_(state.gradient_postdivide_factor)


def fp16_compress_hook(state: LowPrecisionState, grad, output=None) -> None:
    """The mean, sent and added in float16."""
    _compressed(float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad, output=None) -> None:
    """The mean, sent and added in bfloat16."""
    _compressed(bfloat16, state, grad, output)


def _compressed(dtype, state, grad, output) -> None:
    low = grad.to(dtype)
    if output is None:
        allreduce_hook(state, low)
        grad.copy_(low)
    else:
        part = output.to(dtype)
        reduce_scatter_hook(state, low, part)
        output.copy_(part)
