"""Collectives that give new tensors, and that gradients pass. In PyTorch they are waited for when first used; here they
are done.

A group is a ``ProcessGroup``, its name, a list of ranks, a mesh of one dimension, or a mesh and one of its dimensions.
"""

from __future__ import annotations

import functools

from ..engine import counting
from ..ops.public import PUBLIC
from ..tensor import Tensor
from . import collectives, world
from .device_mesh import DeviceMesh
from .nn import functional
from .reduce_op import ReduceOp
from .world import get_process_group_ranks, get_rank, get_world_size, new_group

__all__ = [
    "all_gather_into_tensor_coalesced", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce",
    "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor",
    "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced", "wait_tensor",
]  # fmt: skip


def _counted(name: str):
    """Counts as one collective of this name, in ``CommDebugMode``."""

    def decorate(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            if not counting.WATCHERS:
                return function(*args, **kwargs)
            with counting.as_one(f"c10d_functional.{name}"):
                return function(*args, **kwargs)

        return called

    return decorate


AsyncCollectiveTensor = type("AsyncCollectiveTensor", (Tensor,), {"__doc__": "No tensor is one: they are done."})


def wait_tensor(tensor):
    return tensor


@_counted("all_reduce")
def all_reduce(self, reduceOp: str, group=None, tag: str = ""):
    return functional.all_reduce(self.contiguous(), _op(reduceOp), _group(group))


@_counted("broadcast")
def broadcast(self, src: int, group=None, tag: str = ""):
    out = self.clone()
    collectives.broadcast(out, src, _group(group))
    return out


@_counted("all_gather_into_tensor")
def all_gather_tensor(self, gather_dim: int, group=None, tag: str = ""):
    return PUBLIC["cat"](list(functional.all_gather(self.contiguous(), _group(group))), gather_dim)


@_counted("reduce_scatter_tensor")
def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group=None, tag: str = ""):
    group = _group(group)
    if self.shape[scatter_dim] % get_world_size(group):
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of the group's size "
            f"{get_world_size(group)}"
        )
    parts = [p.contiguous() for p in self.chunk(get_world_size(group), scatter_dim)]
    return functional._ReduceScatterSingle.apply(_op(reduceOp), group, PUBLIC["empty_like"](parts[0]), *parts)


@_counted("all_to_all_single")
def all_to_all_single(self, output_split_sizes, input_split_sizes, group=None, tag: str = ""):
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(out, self.contiguous(), output_split_sizes, input_split_sizes, _group(group))


all_gather_tensor_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single


@_counted("all_reduce_coalesced")
def all_reduce_coalesced(self, reduceOp: str, group=None, tag: str = ""):
    return [all_reduce(t, reduceOp, group) for t in self]


@_counted("all_gather_into_tensor_coalesced")
def all_gather_into_tensor_coalesced(self, group=None, tag: str = ""):
    return [all_gather_tensor(t, 0, group) for t in self]


@_counted("reduce_scatter_tensor_coalesced")
def reduce_scatter_tensor_coalesced(inputs, reduceOp: str, scatter_dim: list[int], group=None, tag: str = ""):
    return [reduce_scatter_tensor(t, reduceOp, dim, group) for t, dim in zip(inputs, scatter_dim)]


def permute_tensor(self, src_dst: list[int], group=None, tag: str = ""):
    """Process i sends its tensor to process ``src_dst[i]``; all are of one shape."""
    group = _group(group)
    rank, size = get_rank(group), get_world_size(group)
    count = self.numel()
    sent = [count if i == src_dst[rank] else 0 for i in range(size)]
    come = [count if src_dst[i] == rank else 0 for i in range(size)]
    return all_to_all_single(self.flatten(), come, sent, group).view(self.shape)


# ``torch.ops._c10d_functional``, and the same by its older name; there the size of the group is an argument too
OPERATORS = {
    "all_reduce": all_reduce,
    "all_reduce_coalesced": all_reduce_coalesced,
    "all_gather_into_tensor": lambda x, group_size, group_name: all_gather_tensor(x, 0, group_name),
    "all_gather_into_tensor_coalesced": lambda x, group_size, group_name: all_gather_into_tensor_coalesced(
        x, group_name
    ),
    "reduce_scatter_tensor": lambda x, op, group_size, group_name: reduce_scatter_tensor(x, op, 0, group_name),
    "reduce_scatter_tensor_coalesced": lambda x, op, group_size, group_name: reduce_scatter_tensor_coalesced(
        x, op, [0] * len(x), group_name
    ),
    "all_to_all_single": all_to_all_single,
    "broadcast": broadcast,
    "wait_tensor": wait_tensor,
}


def _op(name: str):
    found = getattr(ReduceOp, name.upper(), None)
    if found is None:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return found


def _group(given):
    if isinstance(given, DeviceMesh):
        return given.get_group()
    if isinstance(given, tuple) and isinstance(given[0], DeviceMesh):
        return given[0].get_group(given[1])
    if not isinstance(given, (str, list, tuple)):
        return given
    for known in (world.the(None), *world._world.groups):
        if given in (known.group_name, get_process_group_ranks(known)):
            return known
    if isinstance(given, str):
        raise ValueError(f"no group of this process has the name '{given}'")
    return new_group(list(given), use_local_synchronization=True)
