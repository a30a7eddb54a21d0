"""What wrappers of modules need: the same values, and the same shapes, in all processes."""

from __future__ import annotations

from ..autograd.mode import no_grad
from ..compat import missing as _missing
from ..ops.public import PUBLIC
from ..tensor import Tensor
from .collectives import broadcast
from .objects import all_gather_object
from .world import ProcessGroup, get_rank, get_world_size

__all__: list[str] = []
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


def _sync_module_states(
    module, process_group: ProcessGroup, broadcast_bucket_size: int, src: int, params_and_buffers_to_ignore,
    broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """The parameters and buffers of process ``src`` of the group, for all; in one message, whatever its size."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    same_values([t.detach() for name, t in named if name not in params_and_buffers_to_ignore], process_group, src)


def _verify_param_shape_across_processes(process_group: ProcessGroup, tensors, logger=None) -> None:
    """All processes must have the same parameters; else an exchange would mix them up."""
    if get_world_size(process_group) == 1:
        return
    mine = [tuple(t.shape) for t in tensors]
    every: list = [None] * get_world_size(process_group)
    all_gather_object(every, mine, group=process_group)
    for rank, theirs in enumerate(every):
        if len(theirs) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {get_rank()} has {len(mine)} params, "
                f"while rank {rank} has inconsistent {len(theirs)} params."
            )
        for i, (a, b) in enumerate(zip(mine, theirs)):
            if a != b:
                raise RuntimeError(
                    f"[{get_rank()}]: params[{i}] in this process with sizes {list(a)} appears not to match "
                    f"sizes of the same param in process {rank}."
                )


def same_values(tensors: list[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """One process's values for all; few messages for many tensors."""
    if get_world_size(group) == 1:
        return
    by_kind: dict = {}
    for t in tensors:
        by_kind.setdefault((t.dtype, t.device), []).append(t)
    with no_grad():
        for together in by_kind.values():
            flat = PUBLIC["cat"]([t.reshape(-1) for t in together])
            broadcast(flat, group=group, group_src=source)
            at = 0
            for t in together:
                t.copy_(flat[at : at + t.numel()].view(t.shape))
                at += t.numel()


def _broadcast_coalesced(process_group: ProcessGroup, tensors, buffer_size: int, src: int = 0) -> None:
    """Process ``src``'s tensors for all. ``buffer_size`` changes nothing."""
    same_values(list(tensors), process_group, src)
