"""Collectives that gradients pass through: what one adds up forward, the other hands out backward."""

from __future__ import annotations

from ...autograd.function import Function
from ...ops.public import PUBLIC
from .. import collectives
from ..reduce_op import ReduceOp
from ..world import get_rank, get_world_size, rank_in, the
from ..world import group as _group

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def __dir__():
    return __all__


def broadcast(tensor, src, group=_group):
    """``tensor`` of process ``src``; its gradient there is the sum of all processes' gradients."""
    return _Broadcast.apply(src, _given(group), tensor)


def gather(tensor, dst=0, group=_group):
    """The tensors of all processes in process ``dst``, zeros elsewhere."""
    return _Gather.apply(dst, _given(group), tensor)


def scatter(tensors, src=0, group=_group):
    """This process's entry of the ``tensors`` of process ``src``."""
    return _Scatter.apply(src, _given(group), *tensors)


def reduce(tensor, dst, op=ReduceOp.SUM, group=_group):
    """The sum in process ``dst``; the other processes keep what they had."""
    return _Reduce.apply(dst, op, _given(group), tensor)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=_group):
    """The sum of all processes' entries for this one."""
    return _ReduceScatter.apply(op, _given(group), output, *input_list)


def all_gather(tensor, group=_group):
    """A tuple of the tensors of all processes."""
    return _AllGather.apply(_given(group), tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=_group):
    """What the processes have for this one; the shapes are those of ``output_tensor_list``."""
    return _AllToAll.apply(_given(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=_group):
    """``all_to_all`` of the rows of one tensor."""
    return _AllToAllSingle.apply(_given(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor, op=ReduceOp.SUM, group=_group):
    """The sum of all processes' tensors; so is its gradient."""
    return _AllReduce.apply(op, _given(group), tensor)


def _given(group):
    """PyTorch's default here is the class ``group``, which stands for the world."""
    return None if group is _group else group


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        ctx.here = rank_in(the(group), src, None) == get_rank(group)
        tensor = tensor.clone()
        collectives.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx, g):
        g = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, g)
        return None, None, g if ctx.here else PUBLIC["zeros_like"](g)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        here = rank_in(the(group), dst, None) == get_rank(group)
        found = [PUBLIC["zeros_like"](tensor) for _ in range(get_world_size(group))]
        collectives.gather(tensor.contiguous(), found if here else None, dst, group)
        return tuple(found)

    @staticmethod
    def backward(ctx, *gs):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gs)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        here = rank_in(the(group), src, None) == get_rank(group)
        out = PUBLIC["zeros_like"](tensors[0])
        collectives.scatter(out, [t.contiguous() for t in tensors] if here else None, src, group)
        return out

    @staticmethod
    def backward(ctx, g):
        return (None, None, *_Gather.apply(ctx.src, ctx.group, g))


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        collectives.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx, g):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *inputs):
        ctx.group = group
        out = PUBLIC["empty_like"](output)
        collectives.reduce_scatter(out, [t.contiguous() for t in inputs], op, group)
        return out

    @staticmethod
    def backward(ctx, g):
        return (None, None, None, *_AllGather.apply(ctx.group, g))


class _ReduceScatterSingle(_ReduceScatter):
    """Of one tensor, whose parts are the inputs: gloo adds it in another order than a list."""

    @staticmethod
    def forward(ctx, op, group, output, *inputs):
        ctx.group = group
        out = PUBLIC["empty_like"](output)
        collectives.reduce_scatter_single(out, PUBLIC["cat"]([t.reshape(-1) for t in inputs]), op, group)
        return out


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        found = [PUBLIC["empty_like"](tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(found, tensor.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx, *gs):
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, gs[get_rank(ctx.group)], *gs)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *inputs):
        ctx.group, ctx.like = group, [PUBLIC["empty_like"](t) for t in inputs]
        found = [PUBLIC["empty_like"](t) for t in outputs]
        collectives.all_to_all(found, [t.contiguous() for t in inputs], group)
        return tuple(found)

    @staticmethod
    def backward(ctx, *gs):
        return (None, None, *_AllToAll.apply(ctx.group, ctx.like, *gs))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, output_sizes, input_sizes, tensor):
        ctx.group, ctx.sizes, ctx.like = group, (output_sizes, input_sizes), PUBLIC["empty_like"](tensor)
        out = PUBLIC["empty_like"](output)
        collectives.all_to_all_single(out, tensor.contiguous(), output_sizes, input_sizes, group)
        return out

    @staticmethod
    def backward(ctx, g):
        output_sizes, input_sizes = ctx.sizes
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.like, input_sizes, output_sizes, g)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        tensor = tensor.clone()
        collectives.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx, g):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)
