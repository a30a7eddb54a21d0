"""``context_parallel``: sequences that are cut over the processes of a mesh, and attention that still sees all of them.

A process has the queries, keys and values of its part. Keys and values of all parts are gathered, or go round
from each process to the next one, and each query looks at those it may. Causal attention leaves the first part little
to do and the last one much, so by default the sequence is cut in twice as many chunks as there are processes, and
process r has chunk r and, from the end, chunk r.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ....autograd.function import Function, once_differentiable
from ....autograd.mode import no_grad
from ....compat import missing as _missing
from ....dtypes import bool_
from ....nn.attention.bias import causal_lower_right
from ....nn.functional.attention import SUBSTITUTES, scaled_dot_product_attention
from ....ops.public import PUBLIC
from ....random import Generator
from ....tensor import Tensor
from ... import _functional_collectives as collectives
from ...collectives import permuted
from ...device_mesh import DeviceMesh
from ...world import ProcessGroup
from ..dtensor import DTensor, _is_local, distribute_tensor
from ..parallel.style import ParallelStyle
from ..placement_types import Shard

__all__ = ["context_parallel", "set_rotate_method"]
__getattr__ = _missing(__name__)


class _RotateMethod(enum.Enum):
    ALL_TO_ALL = enum.auto()
    ALL_GATHER = enum.auto()


@dataclass
class _ContextParallelOptions:
    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


@contextlib.contextmanager
def context_parallel(mesh: DeviceMesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """Inside, each of ``buffers`` is this process's part along its sequence dimension, and attention is over all parts.

    Buffers have their values again afterwards, but for those in ``no_restore_buffers``.
    """
    buffers, dims, left = buffers or [], buffer_seq_dims or [], no_restore_buffers or set()
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(all(b is not known for known in buffers) for b in left):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    balancer = _default_balancer(buffers[0].shape[dims[0]], mesh) if buffers else None
    balanced = _cp_options.enable_load_balance
    before = [None if any(b is other for other in left) else b.clone() for b in buffers]
    for buffer, part in zip(buffers, [_part(mesh, b, dim, balancer) for b, dim in zip(buffers, dims)]):
        _become(buffer, part)
    try:
        with _attention_over(mesh, balanced):
            yield
    finally:
        for buffer, values in zip(buffers, before):
            if values is not None:
                _become(buffer, values)


@no_grad()
def context_parallel_unshard(mesh: DeviceMesh, buffers, seq_dims, load_balancer=None) -> list[Tensor]:
    """The whole tensors, in their own order, of which each process has the part that ``context_parallel`` gave it."""
    balancer = load_balancer or _default_balancer(buffers[0].shape[seq_dims[0]] * mesh.size(), mesh)
    wholes = [collectives.all_gather_tensor(b, dim, mesh) for b, dim in zip(buffers, seq_dims)]
    if balancer is not None:
        order: Tensor = balancer._generate_indices(restore=True)  # type: ignore[assignment]  # None only of the base
        wholes = [_in_order(whole, dim, order) for whole, dim in zip(wholes, seq_dims)]
    return wholes


def set_rotate_method(rotate_method: str) -> None:
    """How parts of keys and values get to the others: "allgather", all at once, or "alltoall", one after the other."""
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
    _cp_options.rotate_method = methods[rotate_method]


class _LoadBalancer:
    """The order in which a sequence is cut: ``_generate_indices`` is of shape (1 or the batch's size, length)."""

    def _generate_indices(self, restore: bool = False) -> Tensor | None:
        raise NotImplementedError


class _HeadTailLoadBalancer(_LoadBalancer):
    """Chunk r from the front and chunk r from the end for process r."""

    def __init__(self, seq_length: int, world_size: int, device):
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore: bool = False) -> Tensor:
        if self.seq_length % (2 * self.world_size):
            raise AssertionError(
                f"a sequence of {self.seq_length} cannot be cut in {2 * self.world_size} chunks of one length: pad it"
            )
        chunks = PUBLIC["arange"](self.seq_length, device=self.device).chunk(2 * self.world_size)
        order = PUBLIC["cat"]([chunks[c] for r in range(self.world_size) for c in _chunks_of(r, self.world_size, True)])
        return (order.argsort() if restore else order).unsqueeze(0)


def _context_parallel_shard(mesh: DeviceMesh, buffers, seq_dims, load_balancer: _LoadBalancer | None = None):
    """This process's part of each buffer, for modules that are cut by ``_ContextParallel``."""
    _cp_options.enable_load_balance = load_balancer is not None
    if len(buffers) != len(seq_dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if isinstance(buffers, Mapping):
        return {name: _part(mesh, b, seq_dims[name], load_balancer) for name, b in buffers.items()}
    return [_part(mesh, b, dim, load_balancer) for b, dim in zip(buffers, seq_dims)]


def _enable_context_parallel_dispatcher() -> None:
    """Nothing: a module that ``_ContextParallel`` was applied to knows it."""


def _disable_context_parallel_dispatcher() -> None:
    """Nothing, as above."""


class _ContextParallel(ParallelStyle):
    """For ``parallelize_module``: a module around attention, whose arguments are parts of sequences."""

    class AttentionType(enum.Enum):
        FLEX = "flex_attention"
        SDPA = "scaled_dot_product_attention"

    def __init__(self, seq_dim: int, attention_type: AttentionType):
        self.seq_dim, self.attention_type = seq_dim, attention_type

    def _apply(self, module, device_mesh):
        if self.attention_type is not self.AttentionType.SDPA:
            raise NotImplementedError("_ContextParallel: only scaled_dot_product_attention, flex_attention is not cut")
        inside: list = []

        def enter(module, inputs):
            inside.append(contextlib.ExitStack())
            inside[-1].enter_context(_attention_over(device_mesh, _cp_options.enable_load_balance))

        def leave(module, inputs, output):
            inside.pop().close()

        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave, always_call=True)
        return module


# -- the parts ---------------------------------------------------------------------------------------------------------


def _chunks_of(rank: int, size: int, balanced: bool) -> list[int]:
    """The numbers of the chunks that a process has."""
    return [rank, 2 * size - 1 - rank] if balanced else [rank]


def _default_balancer(length: int, mesh: DeviceMesh) -> _LoadBalancer | None:
    return _HeadTailLoadBalancer(length, mesh.size(), "cpu") if _cp_options.enable_load_balance else None


@no_grad()
def _part(mesh: DeviceMesh, buffer: Tensor, dim: int, balancer: _LoadBalancer | None) -> Tensor:
    if not isinstance(buffer, Tensor):
        raise ValueError(f"Unknown buffer type: {type(buffer)}")
    _check_processes(mesh)
    order = None if balancer is None else balancer._generate_indices()
    whole = buffer.detach() if order is None else _in_order(buffer.detach(), dim, order)
    return distribute_tensor(whole, mesh, [Shard(dim)], src_data_rank=None).to_local()


def _in_order(whole: Tensor, dim: int, order: Tensor) -> Tensor:
    """Its places along ``dim`` in another order; one for all of the batch, or one for each entry of it."""
    if len(order) == 1:
        return whole.index_select(dim, order[0])
    if len(order) != whole.shape[0]:
        raise ValueError(f"Cannot rearrange buffer: the indices have shape {order.shape}, the buffer {whole.shape}.")
    return PUBLIC["stack"]([entry.index_select(dim - 1, places) for entry, places in zip(whole, order)])


@no_grad()
def _become(buffer: Tensor, values: Tensor) -> None:
    buffer.resize_(values.shape)
    buffer.copy_(values)


def _check_processes(mesh: DeviceMesh) -> None:
    if mesh.size() > 1 and _is_local(mesh):
        raise NotImplementedError(
            "context_parallel cuts sequences between processes; over the devices of one process use "
            "distribute_tensor(t, mesh, [Shard(2)]): attention of DTensors is over all of them"
        )


# -- attention ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _attention_over(mesh: DeviceMesh, balanced: bool):
    """``scaled_dot_product_attention`` is that of this process's queries to the keys of all."""
    _check_processes(mesh)
    SUBSTITUTES.append(functools.partial(_attend, mesh, balanced))
    try:
        yield
    finally:
        SUBSTITUTES.pop()


def _attend(mesh, balanced, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if attn_mask is not None:
        raise NotImplementedError("attn_bias is not supported yet")
    if is_causal and query.shape[-2] != key.shape[-2]:
        raise NotImplementedError("is_causal requires the same query and context sequence lengths")
    if balanced and not is_causal:
        raise RuntimeError("Load balancing requires `is_causal=True`.")
    query, key, value = (t.to_local() if isinstance(t, DTensor) else t for t in (query, key, value))
    if _cp_options.rotate_method is _RotateMethod.ALL_TO_ALL and mesh.size() > 1:
        return _attend_around(mesh, balanced, query, key, value, dropout_p, is_causal, scale, enable_gqa)
    key, value = _gathered(key, mesh, balanced), _gathered(value, mesh, balanced)
    options = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
    if not is_causal:
        return _plain(query, key, value, **options)
    mine = _chunks_of(mesh.get_local_rank(), mesh.size(), balanced)
    found = []
    for number, q in zip(mine, query.chunk(len(mine), -2)):
        end = (number + 1) * q.shape[-2]
        mask = causal_lower_right(q.shape[-2], end).as_subclass(Tensor)
        found.append(_plain(q, key[..., :end, :], value[..., :end, :], attn_mask=mask, **options))
    return PUBLIC["cat"](found, -2)


def _plain(*args, **options) -> Tensor:
    """Attention as it is elsewhere."""
    over_mesh = SUBSTITUTES[:]
    SUBSTITUTES.clear()
    try:
        return scaled_dot_product_attention(*args, **options)
    finally:
        SUBSTITUTES.extend(over_mesh)


def _gathered(t: Tensor, mesh: DeviceMesh, balanced: bool) -> Tensor:
    """Keys or values of all processes, in the sequence's order; their gradients are summed where they belong."""
    if mesh.size() == 1:
        return t
    parts = collectives.functional.all_gather(t.contiguous(), mesh.get_group())
    if not balanced:
        return PUBLIC["cat"](list(parts), -2)
    halves = [part.chunk(2, -2) for part in parts]
    return PUBLIC["cat"]([head for head, _ in halves] + [tail for _, tail in reversed(halves)], -2)


# -- keys and values that go round -------------------------------------------------------------------------------------


def _attend_around(mesh, balanced, query, key, value, dropout_p, is_causal, scale, enable_gqa):
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    seed = int(PUBLIC["randint"](2**40, ())) if dropout_p else 0
    around = _Around(mesh.get_group(), balanced, is_causal, scale, dropout_p, seed)
    if not enable_gqa:
        return _Attention.apply(around, query, key, value)
    query = query.unflatten(-3, (key.shape[-3], -1))  # the queries' heads that share one of the keys' are a dimension
    return _Attention.apply(around, query, key.unsqueeze(-3), value.unsqueeze(-3)).flatten(-4, -3)


@dataclass
class _Around:
    """One attention over a ring of processes. Each process's keys and values visit all others, one at a time."""

    group: ProcessGroup
    balanced: bool
    causal: bool
    scale: float
    dropout_p: float
    seed: int

    def sources(self) -> list[int]:
        """Whose keys are here, step by step; first are this process's own."""
        size = self.group.size()
        return [(self.group.rank() - step) % size for step in range(size)]

    def passed_on(self, block: Tensor) -> Tensor:
        """What the process before this one had, which now goes to the next one."""
        size = self.group.size()
        return permuted(block, tuple((i + 1) % size for i in range(size)), self.group)

    def pairs(self, source: int, length: int, other: int) -> list[_Pair]:
        """The chunks of ``length`` queries and ``source``'s ``other`` keys of which the first may see the second."""
        mine, theirs = (_chunks_of(r, self.group.size(), self.balanced) for r in (self.group.rank(), source))
        rows, columns = length // len(mine), other // len(theirs)
        return [
            _Pair(slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns), (a, b), self)
            for i, a in enumerate(mine)
            for j, b in enumerate(theirs)
            if b <= a or not self.causal
        ]


@dataclass
class _Pair:
    rows: slice  # among this process's queries
    columns: slice  # among the keys that are here
    numbers: tuple[int, int]  # of both chunks, in the whole sequence
    around: _Around

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        scores = q @ k.mT * self.around.scale
        if self.around.causal and self.numbers[0] == self.numbers[1]:
            later = PUBLIC["ones"](scores.shape[-2:], dtype=bool_, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return scores

    def dropped(self, weights: Tensor) -> Tensor:
        """Dropout, of the same places in forward and backward."""
        p = self.around.dropout_p
        if not p:
            return weights
        a, b = self.numbers
        random = Generator().manual_seed(self.around.seed + a * 2 * self.around.group.size() + b)
        stays = PUBLIC["rand"](weights.shape, generator=random).to(weights.device) >= p
        return weights * stays / (1 - p)


class _Attention(Function):
    """softmax(q kᵀ scale) v, to which each block of keys gives its own times exp(its logsumexp - that of all)."""

    @staticmethod
    def forward(ctx, around, query, key, value):
        q = _wide(query)
        block, found, sums = PUBLIC["cat"]([key, value], -1), {}, {}
        for step, source in enumerate(around.sources()):
            if step:
                block = around.passed_on(block)
            k, v = (_wide(t) for t in block.split([key.shape[-1], value.shape[-1]], -1))
            for pair in around.pairs(source, q.shape[-2], k.shape[-2]):
                at, columns = pair.rows.start, pair.columns
                scores = pair.scores(q[..., pair.rows, :], k[..., columns, :])
                total = scores.logsumexp(-1, keepdim=True)
                out = pair.dropped((scores - total).exp()) @ v[..., columns, :]
                if at in sums:
                    both = PUBLIC["logaddexp"](sums[at], total)
                    out = found[at] * (sums[at] - both).exp() + out * (total - both).exp()
                    total = both
                found[at], sums[at] = out, total
        out, total = (PUBLIC["cat"]([parts[at] for at in sorted(parts)], -2) for parts in (found, sums))
        out = out.to(query.dtype)
        ctx.around = around
        ctx.save_for_backward(query, key, value, out, total)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        around = ctx.around
        query, key, value, out, total = ctx.saved_tensors
        q, g = _wide(query), _wide(g)
        mean = (g * out).sum(-1, keepdim=True)  # of the weights' gradients, weighted
        dq, dk, dv = (PUBLIC["zeros_like"](_wide(t)) for t in (query, key, value))
        block = PUBLIC["cat"]([_wide(key), _wide(value), dk, dv], -1)
        for source in around.sources():
            k, v, dk, dv = block.split([key.shape[-1], value.shape[-1]] * 2, -1)
            for pair in around.pairs(source, q.shape[-2], k.shape[-2]):
                rows, columns = pair.rows, pair.columns
                qs, gs, ks, vs = q[..., rows, :], g[..., rows, :], k[..., columns, :], v[..., columns, :]
                weights = (pair.scores(qs, ks) - total[..., rows, :]).exp()
                dv[..., columns, :] += (pair.dropped(weights).mT @ gs).sum_to_size(vs.shape)
                ds = weights * (pair.dropped(gs @ vs.mT) - mean[..., rows, :]) * around.scale
                dq[..., rows, :] += (ds @ ks).sum_to_size(qs.shape)
                dk[..., columns, :] += (ds.mT @ qs).sum_to_size(ks.shape)
            block = around.passed_on(block)  # after the last step everybody has its own again
        _, _, dk, dv = block.split([key.shape[-1], value.shape[-1]] * 2, -1)
        return None, dq.to(query.dtype), dk.to(key.dtype), dv.to(value.dtype)


def _wide(t: Tensor) -> Tensor:
    """Sums over blocks are made in float32 at least."""
    return t.float() if t.dtype.itemsize < 4 else t
