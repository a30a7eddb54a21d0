"""The reducer of ``DistributedDataParallel``: gradients in buckets, each on its way as soon as it is full.

Buckets are cut as PyTorch cuts them, because gloo's sums depend on where an array is cut: in the order in which
gradients came in the first backward pass, or as the parameters stand in the module, where that order may change.

PyTorch's first pass has other buckets than all later ones. Here it has the same: a training that begins again at a
checkpoint would otherwise sum its first gradients in another order, and end with other last bits. Only a communication
hook, which can look at buckets, is given PyTorch's.
"""

from __future__ import annotations

import enum
import sys
from typing import Any

import numpy as np

from ... import distributed as dist
from ... import dtypes
from ...autograd.mode import no_grad, state
from ...autograd.variable import Variable
from ...autograd.views import put
from ...distributed.collectives import start_sum
from ...engine.numpy.alignment import aligned
from ...errors import ValuesNeeded
from ...ops.public import PUBLIC
from ...tensor import Tensor, wrap

__all__ = ["BuiltinCommHookType", "GradBucket", "Reducer"]

FIRST = 1 << 20  # bytes of the first bucket: small, so that the exchange begins early


class BuiltinCommHookType(enum.Enum):
    """The communication hooks that PyTorch has in C++, by its numbers."""

    ALLREDUCE, FP16_COMPRESS = 1, 2

    def __repr__(self):
        return f"<BuiltinCommHookType.{self.name}: {self.value}>"


class GradBucket:
    """Some parameters' gradients, flat, as a communication hook sees them."""

    unguarded = True  # what is in it is there for one backward pass only, see compiler/guards.py

    def __init__(self, index: int, parameters: list[Tensor], is_last: bool, sparse: bool = False):
        self._index, self._parameters, self._is_last = index, parameters, is_last
        self.sparse = sparse  # a table, alone in its bucket: its gradient names the rows that were read
        self.places, at = {}, 0
        for p in parameters:
            self.places[p] = (at, at + p.numel())
            at += p.numel()
        self.on_host = parameters[0]._array.__class__ is np.ndarray
        if sparse:
            self._flat = _no_rows(parameters[0])
        elif self.on_host:
            self._flat = wrap(aligned(at, parameters[0]._array.dtype))
        else:
            self._flat = PUBLIC["zeros"](at, dtype=parameters[0].dtype, device=parameters[0].device)
        self.begin()

    def begin(self) -> None:
        """Empty, before a backward pass."""
        self.left = len(self._parameters)
        self.future: Any = None
        self.packed: Tensor | None = None  # the gradients in a row, where they are not on the host, or traced
        self._parts: dict = {}

    def index(self) -> int:
        return self._index

    def is_last(self) -> bool:
        return self._is_last

    def parameters(self) -> list[Tensor]:
        return list(self._parameters)

    def buffer(self) -> Tensor:
        return self._flat if self.packed is None else self.packed

    def set_buffer(self, tensor: Tensor) -> None:
        if self.packed is None:
            self._flat = tensor
        else:
            self.packed = tensor

    def gradients(self) -> list[Tensor]:
        """Views of the buffer, one for each parameter."""
        return [self.buffer()] if self.sparse else [self.view(p) for p in self._parameters]

    def view(self, p: Tensor) -> Tensor:
        start, end = self.places[p]
        return self.buffer()[start:end].view(p.shape)

    def take(self, p: Tensor, factor: float) -> None:
        """A parameter's gradient (zeros, if it has none), times ``factor``."""
        start, end = self.places[p]
        grad = p._grad
        if self.sparse:
            if grad is not None and not grad.is_sparse:
                raise RuntimeError(
                    "a table with sparse=True has a dense gradient, which the other processes expect not"
                )
            self.packed = _no_rows(p) if grad is None else grad * factor
            self.left -= 1
            return
        if grad is not None and grad.is_sparse:
            grad = grad.to_dense()
        if self.on_host and (grad is None or grad._array.__class__ is np.ndarray):
            part = self._flat._array[start:end]
            if grad is None:
                part[...] = 0
            else:
                grad._come_home()
                _scaled(grad._array.reshape(-1), factor, part)
        else:
            with no_grad():
                self._parts[p] = PUBLIC["zeros_like"](p).reshape(-1) if grad is None else grad.reshape(-1) * factor
        self.left -= 1

    def pack(self) -> None:
        if self._parts:
            with no_grad():
                self.packed = PUBLIC["cat"]([self._parts[p] for p in self._parameters])
            self._parts = {}

    def give_sum(self, values: np.ndarray, skip: set, as_views: bool) -> None:
        """``give`` of an array: it goes straight to where it belongs."""
        if as_views:
            put(self._flat, values)
            self.give(self._flat, skip, True)
            return
        for p, (start, end) in self.places.items():
            if p in skip:
                continue
            part = values[start:end].reshape(p._array.shape)
            if p._grad is None or p._grad.is_sparse:
                p._grad = wrap(part.copy())
            else:
                put(p._grad, part)

    def give(self, flat: Tensor, skip: set, as_views: bool) -> None:
        """What was exchanged into the parameters' ``.grad``."""
        if self.sparse:
            for p in set(self._parameters) - skip:
                p._grad = flat
            return
        if as_views and flat is not self._flat:
            with no_grad():
                self._flat.copy_(flat)
            flat = self._flat
        for p, (start, end) in self.places.items():
            if p in skip:
                continue
            part = flat[start:end].view(p.shape)
            with no_grad():
                if as_views:
                    p._grad = part
                elif p._grad is None or p._grad.is_sparse:
                    p._grad = part.clone()
                else:
                    p._grad.copy_(part)


def _no_rows(table: Tensor) -> Tensor:
    """The gradient of a table of which nothing was read."""
    return PUBLIC["zeros_like"](table, requires_grad=False).to_sparse(1)


def _scaled(x: np.ndarray, factor: float, out: np.ndarray) -> None:
    if factor == 1.0:
        np.copyto(out, x)
    elif x.dtype.itemsize < 4:  # as PyTorch: in float32, rounded once
        np.copyto(out, x.astype(np.float32) * np.float32(factor), casting="unsafe")
    else:
        np.multiply(x, x.dtype.type(factor), out=out)


class _Pass:
    """A forward pass whose backward is to exchange gradients, until that is over."""

    __slots__ = ("armed", "arrived", "begun", "left", "next", "seen", "times", "unused", "waits")

    def __init__(self, parameters: int, unused: set, waits: bool):
        self.armed, self.begun = True, False  # is backward still to come; has it brought a gradient
        self.waits = waits  # will the buckets be cut by this pass, at its end? Then nothing leaves before
        self.times: dict[Tensor, int] = {}  # in a static graph: how often a parameter's gradient was added to
        self.next, self.left = 0, parameters  # the bucket that leaves next, parameters that have no gradient yet
        self.seen: set[Tensor] = set()
        self.arrived: list[Tensor] = []
        self.unused = unused


class Reducer:
    """Collects gradients as backward brings them, and averages them over a group."""

    def __init__(
        self,
        parameters,
        group,
        *,
        caps: list[int],
        listed,
        find_unused,
        as_views,
        static_graph,
        alike,
        sparse=frozenset(),
    ):
        self.parameters, self.group, self.caps = parameters, group, caps
        self.sparse = sparse  # parameters that are expected to have sparse gradients
        self.find_unused, self.as_views, self.static_graph = find_unused, as_views, static_graph
        self.alike = alike  # do all processes leave the same parameters unused? Then nobody asks
        self.hook: Any = None
        self.delayed: Any = None
        self.divide_by = dist.get_world_size(group)
        self.by_initial_size = True  # in ``join``: or by as many as still have inputs
        self.joining = False
        self.under_way: _Pass | None = None
        self._ordered = False  # are buckets in the order in which gradients come
        self._times: dict[Tensor, int] = {}  # how often backward adds to each gradient, if the graph is static
        limits = caps if find_unused or listed else [sys.maxsize]
        self._build(list(reversed(_assigned(parameters, limits, sparse))))
        self._handles = [p.register_post_accumulate_grad_hook(self.ready) for p in parameters]

    def _build(self, buckets: list[list[Tensor]]) -> None:
        last = len(buckets) - 1
        self.buckets = [GradBucket(i, ps, i == last, ps[0] in self.sparse) for i, ps in enumerate(buckets)]
        self.home = {p: b for b in self.buckets for p in b.places}

    def prepare(self, outputs: list[Tensor]) -> None:
        """Before a backward pass that exchanges; ``outputs`` tell which parameters will have no gradient."""
        self.check_finished()
        if state.rings and (
            self.hook is not None or self.find_unused or self.as_views or self.delayed or not self._ordered
        ):
            raise ValuesNeeded(
                "DistributedDataParallel with a communication hook, find_unused_parameters, gradient_as_bucket_view, "
                "delayed parameters or processes that join is not compiled."
            )
        for bucket in self.buckets:
            bucket.begin()
        unused = self._found_unused(outputs) if self.find_unused else set()
        waits = (self._orders() and self.hook is None) or (self.static_graph and not self._times)
        self.under_way = _Pass(len(self.parameters), unused, waits)

    def follow(self) -> None:
        """Exchange zeros: this process has no inputs left, others have."""
        works = []
        for bucket in self.buckets:
            bucket.begin()
            if bucket.sparse:
                bucket.packed = _no_rows(bucket.parameters()[0])
            else:
                bucket.buffer().zero_()
            self._launch(bucket)
            works.append(bucket.future)
        for work in works:
            work.wait()
        if self.find_unused:
            dist.all_reduce(PUBLIC["zeros"](len(self.parameters), dtype=dtypes.int32), group=self.group)

    def ready(self, p: Tensor) -> None:
        """Called by the tape: a parameter's gradient is complete."""
        now = self.under_way
        if now is None or not now.armed:
            return
        if not now.begun:
            now.begun = True
            Variable._execution_engine.queue_callback(self._end)
            for unused in [q for q in self.parameters if q in now.unused]:
                self._mark(now, unused)
        if self.static_graph and self._comes_again(now, p):
            return
        if p in now.seen:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. Parameter at index {self._index(p)} has been marked as "
                "ready twice: it is used in several reentrant backward passes, or outside of forward. Try "
                "static_graph=True if the graph does not change."
            )
        now.arrived.append(p)
        self._mark(now, p)

    def _comes_again(self, now: _Pass, p: Tensor) -> bool:
        """Will more be added to a gradient, as in the first pass? In that, at its end all have come."""
        count = now.times[p] = now.times.get(p, 0) + 1
        if self._times:
            return count < self._times.get(p, 1)
        if count > 1:
            now.arrived.append(p)
        return count > 1

    def _mark(self, now: _Pass, p: Tensor) -> None:
        now.seen.add(p)
        now.left -= 1
        if not now.waits:
            self._take(now, p)

    def _take(self, now: _Pass, p: Tensor) -> None:
        self.home[p].take(p, 1.0 if self.hook is not None else 1.0 / self.divide_by)
        # Buckets leave in one order in all processes, whatever order their gradients came in.
        while now.next < len(self.buckets) and not self.buckets[now.next].left:
            bucket = self.buckets[now.next]
            if not (self.alike and now.unused.issuperset(bucket.places)):
                self._launch(bucket)
            now.next += 1

    def _launch(self, bucket: GradBucket) -> None:
        bucket.pack()
        if self.hook is not None:
            hook_state, hook = self.hook
            bucket.future = hook(hook_state, bucket)
        elif bucket.packed is None:
            bucket.future = start_sum(bucket.buffer(), self.group)
        else:
            bucket.future = dist.all_reduce(bucket.buffer(), group=self.group, async_op=True)

    def _end(self) -> None:
        """Backward is over: wait for what is under way, and write it."""
        now = self.under_way
        assert now is not None
        now.armed = False
        if self.static_graph and not self._times:
            self._times = now.times
        if self.static_graph and now.left:  # what had no gradient the first time has none ever
            for p in [q for q in self.parameters if q not in now.seen]:
                now.unused.add(p)
                self._mark(now, p)
        if now.left:
            return  # the next forward says which are missing
        if now.waits:
            if self._orders() and self.hook is None:
                self._order(now.arrived)
            for p in self.parameters:
                self._take(now, p)
        skip = self._unused_everywhere(now) if now.unused or self.find_unused else set()
        for bucket in self.buckets:
            if bucket.future is None:  # nothing in it was used, here or anywhere
                bucket.begin()
                continue
            found = bucket.future.wait()
            if self.hook is None and bucket.packed is None:
                bucket.give_sum(bucket.future.result()[0], skip, self.as_views)
            else:
                bucket.give(bucket.buffer() if self.hook is None else _one(found), skip, self.as_views)
            bucket.begin()
        self.under_way = None
        if self._orders():
            self._order(now.arrived)

    def _unused_everywhere(self, now: _Pass) -> set:
        if self.alike:
            return now.unused
        used = wrap(np.array([0 if p in now.unused else 1 for p in self.parameters], np.int32))
        dist.all_reduce(used, group=self.group)
        return {p for p, n in zip(self.parameters, used.tolist()) if not n}

    def _orders(self) -> bool:
        """Will this pass say what the order of buckets is?"""
        return not (self._ordered or self.joining or self.find_unused)

    def _order(self, arrived: list[Tensor]) -> None:
        """Buckets in the order in which gradients came in process 0, from now on; the last time, if they came again."""
        self._ordered, arrived = True, [*dict.fromkeys(reversed(arrived))][::-1]
        if len(arrived) != len(self.parameters):
            return
        numbers = {p: i for i, p in enumerate(self.parameters)}
        order = wrap(np.array([numbers[p] for p in arrived], np.int64))
        dist.broadcast(order, group=self.group, group_src=0)
        parameters = [self.parameters[i] for i in order.tolist()]
        self._build(_assigned(parameters, self.caps, self.sparse, sort=False))

    def check_finished(self) -> None:
        """A backward pass that began must have brought all gradients; one that never began is forgotten."""
        if self.under_way is not None and self.under_way.begun:
            raise RuntimeError(self._unfinished(self.under_way))

    def _found_unused(self, outputs: list[Tensor]) -> set:
        """Parameters that no path leads to from the outputs."""
        seen: set = set()
        stack = [t._node for t in outputs if t._node is not None]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(e for e in node.edges if e is not None)
        return {p for p in self.parameters if p._node not in seen}

    def _index(self, p: Tensor) -> int:
        return next(i for i, q in enumerate(self.parameters) if q is p)

    def _unfinished(self, now: _Pass) -> str:
        missing = " ".join(str(i) for i, p in enumerate(self.parameters) if p not in now.seen)
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. You can enable unused "
            "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs "
            "participate in calculating loss. \nIf you already have done the above, then the distributed data "
            "parallel module wasn't able to locate the output tensors in the return value of your module's `forward` "
            "function. Please include the loss function and the structure of the return value of `forward` of your "
            "module when reporting this issue (e.g. list, dict, iterable).\nParameter indices which did not receive "
            f"grad for rank {dist.get_rank()}: {missing}\n In addition, you can set the environment variable "
            "TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information about which particular "
            "parameters did not receive gradient on this rank as part of this error"
        )


def _one(found) -> Tensor:
    return found[0] if isinstance(found, (list, tuple)) else found


def _assigned(parameters: list[Tensor], limits: list[int], sparse, sort: bool = True) -> list[list[Tensor]]:
    """Buckets: of one dtype and device each, closed when they have grown to their limit."""
    number = {p: i for i, p in enumerate(parameters)}
    full: list[list[Tensor]] = []
    open_: dict = {}
    for p in parameters:
        if p in sparse:
            full.append([p])
            continue
        key = (p.dtype, str(p.device))
        bucket, size, turn = open_.get(key, ([], 0, 0))
        bucket.append(p)
        size += p.numel() * p.element_size()
        if size >= limits[min(turn, len(limits) - 1)]:
            full.append(bucket)
            open_[key] = ([], 0, turn + 1)
        else:
            open_[key] = (bucket, size, turn)
    full += [bucket for bucket, _, _ in open_.values() if bucket]
    return sorted(full, key=lambda b: min(number[p] for p in b)) if sort else full
