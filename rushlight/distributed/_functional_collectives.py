"""Collectives that give new tensors. In PyTorch they are waited for when first used; here they are done."""

from __future__ import annotations

from ..ops.public import PUBLIC
from ..tensor import Tensor
from . import collectives
from .reduce_op import ReduceOp
from .world import get_rank, get_world_size

__all__ = [
    "all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor",
    "reduce_scatter_tensor", "wait_tensor",
]  # fmt: skip

AsyncCollectiveTensor = type("AsyncCollectiveTensor", (Tensor,), {"__doc__": "No tensor is one: they are done."})


def wait_tensor(tensor):
    return tensor


def all_reduce(self, reduceOp: str, group=None, tag: str = ""):
    out = self.clone()
    collectives.all_reduce(out, getattr(ReduceOp, reduceOp.upper()), group)
    return out


def broadcast(self, src: int, group=None, tag: str = ""):
    out = self.clone()
    collectives.broadcast(out, src, group)
    return out


def all_gather_tensor(self, gather_dim: int, group=None, tag: str = ""):
    found = [PUBLIC["empty_like"](self) for _ in range(get_world_size(group))]
    collectives.all_gather(found, self.contiguous(), group)
    return PUBLIC["cat"](found, gather_dim)


def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group=None, tag: str = ""):
    parts = [p.contiguous() for p in self.chunk(get_world_size(group), scatter_dim)]
    out = PUBLIC["empty_like"](parts[0])
    collectives.reduce_scatter(out, parts, getattr(ReduceOp, reduceOp.upper()), group)
    return out


def all_to_all_single(self, output_split_sizes, input_split_sizes, group=None, tag: str = ""):
    out = _rows_to_come(self, output_split_sizes)
    collectives.all_to_all_single(out, self.contiguous(), output_split_sizes, input_split_sizes, group)
    return out


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group=None, tag: str = ""):
    """``all_to_all_single`` whose gradient goes the way back."""
    from .nn import functional

    out = _rows_to_come(self, output_split_sizes)
    return functional.all_to_all_single(out, self.contiguous(), output_split_sizes, input_split_sizes, group)


def permute_tensor(self, src_dst: list[int], group=None, tag: str = ""):
    """Process i sends its tensor to process ``src_dst[i]``; all are of one shape."""
    rank, size = get_rank(group), get_world_size(group)
    count = self.numel()
    sent = [count if i == src_dst[rank] else 0 for i in range(size)]
    come = [count if src_dst[i] == rank else 0 for i in range(size)]
    return all_to_all_single(self.flatten(), come, sent, group).view(self.shape)


def _rows_to_come(self, output_split_sizes):
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    return self.new_empty((rows, *self.shape[1:]))
