"""PyTorch's collectives: what every process of a group calls, and what each then has.

Each flattens its tensors, has a thread run the collective (``engine/xla/collectives.py``), and writes what came
back when it is waited for. A group of one needs no JAX.
"""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.mode import state as mode_state
from ..autograd.views import put
from ..engine import computed, counting, namespace_of
from ..engine.numpy.alignment import is_same_memory
from ..errors import warn_user
from ..ops.public import PUBLIC
from ..tensor import Tensor, wrap
from . import world
from .errors import DistBackendError
from .reduce_op import ReduceOp
from .work import Work, done
from .world import ProcessGroup, checked_root, checked_timeout, is_outside, number_in, rank_in, refuse_in_trace, the

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


# -- the collectives ---------------------------------------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """``tensor`` becomes the sum (or what ``op`` says) of all processes' tensors, in all of them."""
    check_tensor(tensor, "tensor")
    if is_outside(group, "all_reduce"):
        return None
    group = the(group)
    _check_op(tensor, op, "all_reduce")
    if _coalescing:
        _coalescing[-1].append(functools.partial(all_reduce, tensor, op, group, True))
        return None
    if tensor.is_sparse:
        return _sum_of_sparse(tensor, op, group, async_op)
    x = flat(tensor)
    what, x = _reducible(op, x)
    # Nobody looks at the tensor while its process waits here, so sums go straight into it.
    into = x if not async_op and x.__class__ is np.ndarray and x.flags.writeable else None
    write = _there if into is not None and is_same_memory(x, tensor._array) else _back
    return _start(group, "all_reduce", tensor, lambda ring: ring.all_reduce(x, what, into), [tensor], write, async_op)


def _sum_of_sparse(tensor, op, group, async_op):
    """Everybody's places and values; values of one place add up."""
    if op != ReduceOp.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation (allreduce of sparse tensors only works with "
            "ReduceOp.SUM)"
        )
    mine = tensor.detach().coalesce()
    places, values = (np.asarray(t.cpu()._array) for t in (mine.indices().t(), mine.values()))

    def run(ring):
        counts = ring.all_gather(np.array([len(values)], np.int64)).reshape(-1)
        every = []
        for rows in (places, values):
            padded = np.zeros((int(counts.max()), *rows.shape[1:]), rows.dtype)
            padded[: len(rows)] = rows
            found = np.asarray(ring.all_gather(padded.reshape(-1))).view(rows.dtype).reshape(len(counts), *padded.shape)
            every.append(np.concatenate([part[:n] for part, n in zip(found, counts)]))
        return every

    def write(outputs, found):
        indices, elements = (wrap(part).to(tensor.device) for part in found)
        outputs[0]._array = PUBLIC["sparse_coo_tensor"](indices.t(), elements, tensor.shape).coalesce()._array

    return _start(group, "all_reduce", None, run, [tensor], write, async_op)


def start_sum(tensor: Tensor, group: ProcessGroup) -> Work:
    """``all_reduce`` of a tensor that nobody needs any more; the ``result()`` is the array that came, for reading."""
    x = flat(tensor)
    run = lambda ring: ring.all_reduce(x, "sum", x if ring.swaps else None)
    return _start(group, "all_reduce", tensor, run, [], _kept, True)


def start_exchange(group: ProcessGroup, what: str, x, static: dict, is_spent: bool) -> Work:
    """A collective that a program has recorded, of an array that it computed; the ``result()`` is what came.

    What ``is_spent`` nobody needs any more: a sum may be made in its memory.
    """
    from ..engine.xla.exchange import laid_out

    def run(ring):
        if is_spent and what == "all_reduce" and ring.swaps and x.__class__ is np.ndarray:
            return ring.all_reduce(x, into=x, **static)
        return getattr(ring, what)(laid_out(x), **static)

    return _start(group, what, wrap(x), run, [], _kept, True)


def gathered_numbers(group: ProcessGroup, numbers: list[int], what: str) -> list[list[int]]:
    """Every member's whole numbers; ``what`` they are for is what errors name."""
    mine, found = np.array(numbers, np.int64), []
    _start(group, what, None, lambda ring: ring.all_gather(mine), found, _kept, False)
    return found[0].tolist()


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """``tensor`` of process ``src`` for all."""
    check_tensor(tensor, "tensor")
    if is_outside(group, "broadcast"):
        return None
    group = the(group)
    source = rank_in(group, src, group_src)
    x = flat(tensor)
    return _start(group, "broadcast", tensor, lambda ring: ring.broadcast(x, source), [tensor], _back, async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """``all_reduce``, of which only process ``dst`` gets the result."""
    check_tensor(tensor, "tensor")
    if is_outside(group, "reduce"):
        return None
    group = the(group)
    target = rank_in(group, dst, group_dst, "reduce")
    _check_op(tensor, op, "reduce")
    what, x = _reducible(op, flat(tensor))
    write = _back if group.rank() == target else _nothing
    return _start(group, "reduce", tensor, lambda ring: ring.all_reduce(x, what), [tensor], write, async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """``tensor_list`` becomes the tensors of all processes, in the order of their ranks."""
    check_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if is_outside(group, "all_gather"):
        return None
    group = the(group)
    if len(tensor_list) != group.size():
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid output tensor list at index 0 "
            f"(expected length {group.size()}, got {len(tensor_list)})"
        )
    for i, t in enumerate(tensor_list):
        if t.shape != tensor.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::allgather: invalid tensor size at index {i} "
                f"(expected {_size(tensor)}, got {_size(t)})"
            )
    x = flat(tensor)
    return _start(group, "all_gather", tensor, lambda ring: ring.all_gather(x), tensor_list, _back_rows, async_op)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """``output_tensor`` becomes all processes' ``input_tensor``, one after the other or stacked."""
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    if is_outside(group, "all_gather_into_tensor"):
        return None
    group = the(group)
    if output_tensor.dtype is not input_tensor.dtype:
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected {input_tensor.dtype}, got "
            f"{output_tensor.dtype})"
        )
    if output_tensor.numel() != input_tensor.numel() * group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected {_size(input_tensor)} from each of "
            f"{group.size()} processes, got {_size(output_tensor)})"
        )
    x = flat(input_tensor)
    gather_all = lambda ring: ring.all_gather(x)
    return _start(group, "all_gather_into_tensor", input_tensor, gather_all, [output_tensor], _back, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """``all_gather_single`` by its older name."""
    _deprecated("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """``gather_list`` of process ``dst`` becomes the tensors of all."""
    check_tensor(tensor, "tensor")
    if gather_list is not None and gather_list != []:
        check_list(gather_list, "gather_list")
        _check_same_dtype(gather_list, tensor)
    if is_outside(group, "gather"):
        return None
    group = the(group)
    target = number_in(group, 0 if dst is None and group_dst is None else dst, group_dst)
    here = group.rank() == target
    if here and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    checked_root(group, target, "gather")
    if here and len(gather_list) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::gather: Incorrect output list size {len(gather_list)}. Output list size should be "
            f"{group.size()}, same as size of the process group."
        )
    x = flat(tensor)
    outputs, write = (gather_list, _back_rows) if here else ([], _nothing)
    return _start(group, "gather", tensor, lambda ring: ring.all_gather(x), outputs, write, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """``tensor`` becomes this process's entry of the ``scatter_list`` of process ``src``."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_list(scatter_list, "scatter_list")
        _check_same_dtype(scatter_list, tensor)
    if is_outside(group, "scatter"):
        return None
    group = the(group)
    source = number_in(group, 0 if src is None and group_src is None else src, group_src)
    here = group.rank() == source
    if here and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if not here and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    checked_root(group, source, "scatter")
    if here:
        _check_lengths("scatter", scatter_list, [tensor] * group.size())
    xp = _arrays(tensor)
    rows = xp.stack([flat(t) for t in scatter_list]) if here else _zeros(tensor, (group.size(), tensor.numel()))
    write = functools.partial(_back_row, source)
    return _start(group, "scatter", tensor, lambda ring: ring.all_to_all(rows), [tensor], write, async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """``output`` becomes the sum of all processes' ``input_list`` entries for this process, of whatever sizes."""
    check_tensor(output, "output")
    check_list(input_list, "input_list")
    _check_same_dtype(input_list, output)
    if is_outside(group, "reduce_scatter"):
        return None
    group = the(group)
    _check_op(output, op, "reduce_scatter")
    if len(input_list) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::reduce_scatter: invalid input list: expected length {group.size()}, "
            f"got {len(input_list)}"
        )
    _check_lengths("reduce_scatter", [input_list[group.rank()]], [output])
    arrays, longest = _arrays(output), max(t.numel() for t in input_list)
    rows = arrays.stack([arrays.pad(flat(t), (0, longest - t.numel())) for t in input_list])
    lengths = [t.numel() for t in input_list]
    return _reduce_scatter("reduce_scatter", output, rows, op, group, async_op, lengths)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """``output`` becomes this process's part of the sum of all processes' ``input``."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if is_outside(group, "reduce_scatter_tensor"):
        return None
    group = the(group)
    _check_same_dtype([input], output)
    _check_op(output, op, "reduce_scatter_tensor")
    if output.numel() * group.size() != input.numel():
        raise RuntimeError(
            f"reduce_scatter_tensor: input has {input.numel()} elements, which is not {group.size()} times output's "
            f"{output.numel()}"
        )
    return _reduce_scatter("reduce_scatter_tensor", output, flat(input).reshape(group.size(), -1), op, group, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """``reduce_scatter_single`` by its older name."""
    _deprecated("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def _reduce_scatter(name, output, rows, op, group, async_op, lengths=None):
    what, parts = _reducible(op, rows)
    pair = parts.shape[1] // max(rows.shape[1], 1)  # two, for complex numbers
    sizes = None if lengths is None else tuple(n * pair for n in lengths)
    work = lambda ring: ring.reduce_scatter(parts, what, sizes)[: output.numel() * pair]
    return _start(group, name, output, work, [output], _back, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Process j gets entry j of ``input_tensor_list``, as entry i of its outputs if this process is i."""
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype([*output_tensor_list, *input_tensor_list], input_tensor_list[0])
    if is_outside(group, "all_to_all"):
        return None
    group = the(group)
    for name, tensors in (("output", output_tensor_list), ("input", input_tensor_list)):
        if len(tensors) != group.size():
            raise RuntimeError(
                f"ProcessGroupGloo::alltoall: invalid {name} tensor list: expected {group.size()} tensors, one for "
                f"each process, got {len(tensors)}"
            )
    parts = [flat(t) for t in input_tensor_list]
    sizes = [t.numel() for t in output_tensor_list]
    return _exchange("all_to_all", group, input_tensor_list[0], parts, sizes, output_tensor_list, _back_parts, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Rows of ``input`` go to the processes in turn; ``output`` becomes what they sent. Sizes say how many rows."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    _check_same_dtype([output], input)
    if is_outside(group, "all_to_all_single"):
        return None
    group = the(group)
    if not output_split_sizes and not input_split_sizes and output.numel() != input.numel():
        raise RuntimeError(
            f"all_to_all_single: output has {output.numel()} elements and input {input.numel()}; without split sizes "
            "they must have equally many"
        )
    sent, got = _split(input, input_split_sizes, group), _split(output, output_split_sizes, group)
    x, parts, at = flat(input), [], 0
    for n in sent:
        parts.append(x[at : at + n])
        at += n
    if not output_split_sizes and not input_split_sizes:
        rows = x.reshape(group.size(), -1)
        swap = lambda ring: ring.all_to_all(rows)
        return _start(group, "all_to_all_single", input, swap, [output], _back, async_op)
    return _exchange("all_to_all_single", group, input, parts, got, [output], _back_joined, async_op)


def permuted(tensor: Tensor, targets: tuple[int, ...], group: ProcessGroup) -> Tensor:
    """The tensor of the process whose target this one is: process i sends to ``targets[i]``; all are of one shape.

    An ``all_to_all_single`` would have room for a tensor of each process.
    """
    x, out = flat(tensor), PUBLIC["empty"](tensor.shape, dtype=tensor.dtype, device=tensor.device)
    _start(group, "all_to_all_single", tensor, lambda ring: ring.permute(x, targets), [out], _back, False)
    return out


def _split(tensor: Tensor, sizes, group: ProcessGroup) -> list[int]:
    """How many elements of a tensor are for each process."""
    rows, each = (
        (tensor.shape[0] if tensor.ndim else 1),
        tensor.numel() // max(tensor.shape[0] if tensor.ndim else 1, 1),
    )
    if not sizes:
        if rows % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [rows // group.size() * each] * group.size()
    if len(sizes) != group.size():
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return [n * each for n in sizes]


def _exchange(name, group, like, parts, sizes, outputs, write, async_op):
    """Parts of any lengths: padded to the longest that any process sends."""
    xp = _arrays(like)
    longest = np.array([max([len(p) for p in parts] + sizes)], np.int64)

    def run(ring):
        width = int(ring.all_reduce(longest, "max")[0]) if group.size() > 1 else int(longest[0])
        rows = xp.stack([xp.pad(p, (0, width - len(p))) for p in parts])
        found = ring.all_to_all(rows)
        return [found[i][:n] for i, n in enumerate(sizes)]

    return _start(group, name, like, run, outputs, write, async_op)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all processes of the group are here, for as long as ``timeout`` says or the group's own does."""
    if is_outside(group, "barrier"):
        return None
    group = the(group)
    nothing = np.zeros(1, np.int32)
    meet = lambda ring: ring.all_reduce(nothing, "sum", nothing)
    return _start(group, "barrier", None, meet, [], _nothing, async_op, timeout)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that names who did not come in time; process 0 of the group waits for each in turn."""
    if is_outside(group, "monitored_barrier"):
        return
    group = the(group)
    refuse_in_trace("monitored_barrier")
    timeout = checked_timeout(timeout, None, group.timeout)
    store, name = world._world.store, f"rushlight/barrier/{group.number}"
    turn = world._world.counts[name] = world._world.counts.get(name, 0) + 1
    if group.rank() != 0:
        store.set(f"{name}/{turn}/{group.rank()}", b"")
        try:
            store.wait([f"{name}/{turn}/all"], timeout)
        except RuntimeError as error:
            raise DistBackendError(
                f"[Rank {group.rank()}]: Rank {group.rank()} successfully reached monitoredBarrier, but received "
                f"errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank. ({error})"
            ) from None
        return
    late = []
    for rank in range(1, group.size()):
        try:
            store.wait([f"{name}/{turn}/{rank}"], timeout)
        except RuntimeError:
            late.append(rank)
            if not wait_all_ranks:
                break
    if late:
        which = f"Ranks {', '.join(map(str, late))}" if wait_all_ranks else f"Rank {late[0]}"
        milliseconds = int(timeout.total_seconds() * 1000)
        raise RuntimeError(f"[Rank 0]: {which} failed to pass monitoredBarrier in {milliseconds} ms")
    store.set(f"{name}/{turn}/all", b"")


# -- several at once ---------------------------------------------------------------------------------------------------

_coalescing: list[list[Callable]] = []


class _CoalescingManager:
    """What ``_coalescing_manager`` gives: the works that were started together."""

    def __init__(self):
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """The ``all_reduce`` calls inside are started together when it ends."""
    manager = _CoalescingManager()
    _coalescing.append([])
    try:
        yield manager
    finally:
        calls = _coalescing.pop()
    for call in calls:
        manager.append(call())
    if not async_ops:
        manager.wait()


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """``all_reduce`` of several tensors of one dtype as one."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    check_list(tensors, "tensor")
    if not tensors:
        raise NotImplementedError("all_reduce_coalesced: there are no tensors to reduce")
    _check_same_dtype(tensors, tensors[0])
    if is_outside(group, "all_reduce_coalesced"):
        return None
    group = the(group)
    for t in tensors:
        _check_op(t, op, "all_reduce")
    what, x = _reducible(op, _arrays(tensors[0]).concatenate([flat(t) for t in tensors]))
    sum_all = lambda ring: ring.all_reduce(x, what)
    return _start(group, "all_reduce_coalesced", tensors[0], sum_all, tensors, _back_in_turn, async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """``all_gather`` of several tensors; ``output_tensor_lists`` has a list for each process."""
    check_list(input_tensor_list, "input_tensor_list")
    if is_outside(group, "all_gather_coalesced"):
        return None
    group = the(group)
    works = []
    for i, tensor in enumerate(input_tensor_list):
        works.append(all_gather([outputs[i] for outputs in output_tensor_lists], tensor, group, True))
    if async_op:
        return works[-1]
    for work in works:
        work.wait()
    return None


# -- starting, and writing what came back ------------------------------------------------------------------------------


def _start(
    group: ProcessGroup, what: str, like: Tensor | None, run, outputs: list, write, async_op: bool, timeout=None
):
    """Have the thread of collectives call ``run(ring)``; ``write(outputs, found)`` when it is waited for."""
    commit = functools.partial(write, outputs)
    if counting.WATCHERS and not mode_state.rings:
        counting.tell(what)
    if group.size() == 1 or mode_state.rings:
        commit(run(_ALONE if group.size() == 1 else mode_state.rings[-1](group)))
        return done(outputs) if async_op else None
    platform = "cpu" if like is None else _platform(like)
    label = f"{what} of rank {group.rank()} among ranks {group.ranks}"
    seconds = timeout.total_seconds() if timeout else group.seconds()
    carried = functools.partial(_run, group, platform, run, label, group.is_one_of_several)
    work = group.lane.start(label, carried, commit, outputs, seconds)
    if async_op:
        return work
    try:
        work.wait()
    except BaseException:
        world._world.failed = True
        raise
    return None


def _run(group: ProcessGroup, platform: str, run, label: str, is_one_of_several: bool):
    try:
        ring = group.ring(platform)
        if is_one_of_several:
            _check_turn(ring, group)
        return run(ring)
    except Exception as error:
        world._world.failed = True
        from ..engine.xla.world import cause

        raise DistBackendError(f"{label} failed: {cause(error)}") from None


def _check_turn(ring, group: ProcessGroup) -> None:
    """Raise unless it is this group's turn for all: XLA would not tell it from others of the same processes."""
    mine = np.array([zlib.crc32(group.group_name.encode())], np.uint32)
    if (ring.all_gather(mine) != mine).any():
        raise RuntimeError(
            "the others are in a collective of another group of the same processes; start those of all groups in the "
            "same order everywhere"
        )


class _Alone:
    """The ring of a group of one process: nothing to do."""

    swaps = False

    def all_reduce(self, x, op, into=None):
        return x

    def broadcast(self, x, source):
        return x

    def all_gather(self, x):
        return x[None]

    def reduce_scatter(self, rows, op, lengths=None):
        return rows[0]

    def all_to_all(self, rows):
        return rows

    def permute(self, x, targets):
        return x


_ALONE = _Alone()


def flat(tensor: Tensor):
    """A tensor's values in a row: NumPy's or JAX's array."""
    if tensor.is_sparse:
        raise NotImplementedError("of the collectives only all_reduce takes sparse tensors; use to_dense()")
    tensor._sync()
    array = tensor._array
    if array.__class__ is np.ndarray:
        return np.ascontiguousarray(array).reshape(-1)
    xp = namespace_of(array)
    if xp.is_traced(array):
        if not mode_state.rings or array.dtype.kind == "c":
            raise NotImplementedError("a collective cannot be part of this program")
        return array.reshape(-1)
    return computed(array).reshape(-1)


def store(tensor: Tensor, values) -> None:
    """Write a row of values into a tensor."""
    if mode_state.rings and values.__class__ is not np.ndarray:
        put(tensor, values.reshape(tensor._array.shape))
    elif tensor._array.__class__ is np.ndarray:
        values = np.asarray(values)
        if values.dtype != tensor._array.dtype:  # booleans went as bytes, complex numbers as pairs
            values = values.view(tensor._array.dtype)
        put(tensor, values.reshape(tensor._array.shape))
    else:
        xp = namespace_of(tensor._array)
        put(tensor, xp.to_device(values.reshape(tensor._array.shape), tensor.device))


def _platform(tensor: Tensor) -> str:
    if tensor._array.__class__ is np.ndarray:
        return "cpu"
    return next(iter(computed(tensor._array).devices())).platform


def _arrays(tensor: Tensor):
    """NumPy, or its like for arrays on a device."""
    if tensor._array.__class__ is np.ndarray:
        return np
    from ..engine.xla import collectives

    return collectives.jnp


def _zeros(tensor: Tensor, shape):
    return _arrays(tensor).zeros(shape, tensor._array.dtype)


def _nothing(outputs, found) -> None:
    pass


def _kept(outputs, found) -> None:
    outputs.append(found)


def _there(outputs, found) -> None:
    """The values lie in the tensor's memory already: the write is counted."""
    put(outputs[0], outputs[0]._array)


def _back(outputs, found) -> None:
    store(outputs[0], found.reshape(-1))


def _back_rows(outputs, found) -> None:
    for tensor, row in zip(outputs, found):
        store(tensor, row)


def _back_row(index: int, outputs, found) -> None:
    store(outputs[0], found[index])


def _back_parts(outputs, found) -> None:
    for tensor, part in zip(outputs, found):
        store(tensor, part)


def _back_joined(outputs, found) -> None:
    store(outputs[0], _arrays(outputs[0]).concatenate(found))


def _back_in_turn(outputs, found) -> None:
    at, like = 0, outputs[0]._array
    if like.__class__ is np.ndarray and found.dtype != like.dtype:  # complex numbers went as pairs
        found = np.asarray(found).view(like.dtype)
    for tensor in outputs:
        store(tensor, found[at : at + tensor.numel()])
        at += tensor.numel()


# -- how to reduce -----------------------------------------------------------------------------------------------------

_OF_BOOL = {"sum": "max", "max": "max", "bor": "max", "product": "min", "min": "min", "band": "min", "bxor": "bxor"}


def _reducible(op, x):
    """(the engine's word, the array) for a reduction: booleans as bytes, complex numbers as pairs."""
    what = op.name.lower()
    if what == "premul_sum":
        factor = op.factor
        if isinstance(factor, Tensor):
            factor = flat(factor)
        return "sum", (x * factor).astype(x.dtype)
    if x.dtype == bool:
        return _OF_BOOL[what], x.view(np.uint8) if x.__class__ is np.ndarray else x.astype(np.uint8)
    if x.dtype.kind == "c" and x.__class__ is np.ndarray:
        return what, np.ascontiguousarray(x).view(x.real.dtype)
    return what, x


def _check_op(tensor: Tensor, op, what: str) -> None:
    name = getattr(op, "name", None)
    if name is None or not hasattr(ReduceOp, name):
        raise TypeError(f"{what}: op must be a torch.distributed.ReduceOp such as ReduceOp.SUM, but got {op!r}")
    dtype = tensor.dtype
    if dtype.is_complex and name not in ("SUM", "AVG", "PREMUL_SUM"):
        kind = ValueError if what == "all_reduce" else RuntimeError
        raise kind(f"{what} does not support RedOpType.{name} on complex tensors")
    if name == "PREMUL_SUM" and getattr(op, "factor", None) is None:
        raise TypeError(f"{what}: PREMUL_SUM needs a factor, as _make_nccl_premul_sum(factor) gives it one")
    if name in ("BAND", "BOR", "BXOR") and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{name} with non-integral dtype")
    if name == "AVG" and not dtype.is_floating_point and not dtype.is_complex:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {_scalar_name(dtype)}")


def _scalar_name(dtype) -> str:
    return {
        dtypes.uint8: "Byte", dtypes.int8: "Char", dtypes.int16: "Short", dtypes.int32: "Int", dtypes.int64: "Long",
        dtypes.bool_: "Bool",
    }.get(dtype, dtype.name)  # fmt: skip


# -- checks ------------------------------------------------------------------------------------------------------------


def check_tensor(given: Any, name: str) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(given)} instead."
        )


def check_list(given: Any, name: str) -> None:
    if not isinstance(given, list) or not all(isinstance(t, Tensor) for t in given):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(given)} instead."
        )


def _check_same_dtype(tensors, last: Tensor) -> None:
    first = (tensors or [last])[0]
    for t in [*tensors, last]:
        if t.dtype is not first.dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {first.dtype} and  {t.dtype}")


def _check_lengths(what: str, tensors, expected) -> None:
    if len(tensors) != len(expected):
        raise RuntimeError(f"ProcessGroupGloo::{what}: expected {len(expected)} tensors, got {len(tensors)}")
    for i, (t, e) in enumerate(zip(tensors, expected)):
        if t.numel() != e.numel():
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor size at index {i} (expected {_size(e)}, got {_size(t)})"
            )


def _size(t: Tensor) -> str:
    return f"({', '.join(map(str, t.shape))})"


def _deprecated(old: str, new: str) -> None:
    warn_user(f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{new}` instead.", FutureWarning)
