"""Collectives that give new tensors. In PyTorch they are waited for when first used; here they are done."""

from __future__ import annotations

from ..ops.public import PUBLIC
from ..tensor import Tensor
from . import collectives
from .reduce_op import ReduceOp
from .world import get_world_size

__all__ = ["all_gather_tensor", "all_reduce", "all_to_all_single", "broadcast", "reduce_scatter_tensor", "wait_tensor"]

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
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    collectives.all_to_all_single(out, self.contiguous(), output_split_sizes, input_split_sizes, group)
    return out
