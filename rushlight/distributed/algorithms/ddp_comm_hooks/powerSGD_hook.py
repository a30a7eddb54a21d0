"""PowerSGD: the gradient of a matrix goes over as two thin ones, P and Q, whose product comes close to it.

One step of power iteration: P = M Q summed over all processes and made orthonormal, Q the mean of M^T P, and P Q^T is
everybody's gradient. What was lost is added to the next step's gradient, and Q begins where it ended.
https://arxiv.org/abs/1905.13727
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import linalg, random
from ....compat import missing as _missing
from ....futures import Future
from ....ops.public import PUBLIC
from ....tensor import Tensor
from ... import collectives, world
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


class PowerSGDState:
    """How much is compressed, and what is kept from step to step."""

    def __init__(
        self,
        process_group,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, list[Tensor]] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = self.next_stats_report = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers went over, how many there were, how many went."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0, before, after)

    def maybe_increase_iter(self, bucket) -> None:
        """A step ends with its last bucket."""
        self.iter += bucket.is_last()


def powerSGD_hook(state: PowerSGDState, bucket) -> Future:
    """Exchange a bucket by PowerSGD; the first ``start_powerSGD_iter`` steps are plain means."""
    return _exchanged(_Exchange, state, bucket)


def batched_powerSGD_hook(state: PowerSGDState, bucket) -> Future:
    """The same of the whole bucket as one square matrix: fewer messages, further from the gradient."""
    return _exchanged(_Square, state, bucket)


def _exchanged(kind: type[_Exchange], state: PowerSGDState, bucket) -> Future:
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    exchange = kind(state, bucket)
    state.maybe_increase_iter(bucket)
    return exchange.begin()


class _Exchange:
    """One bucket on its way."""

    def __init__(self, state: PowerSGDState, bucket):
        self.state, self.bucket, self.flat = state, bucket, self._taken(bucket.buffer())
        self.group = world.the(state.process_group)
        if state.use_error_feedback:
            lost = state.error_dict.get(bucket.index())
            if lost is not None:
                self.flat.add_(lost)
            self.before = self.flat.clone()
        self.matrices: list[tuple[Tensor, int]] = []
        self.others: list[Tensor] = []
        self._choose()
        self.qs = self._first_qs()

    def _taken(self, buffer: Tensor) -> Tensor:
        """What is approximated."""
        return buffer

    def _choose(self) -> None:
        """Find the matrices in it."""
        for gradient in self.bucket.gradients():
            self._sort(gradient)
        of_shape: dict = {}  # matrices of one shape follow each other, as in PyTorch: it decides which Q is whose
        for pair in self.matrices:
            of_shape.setdefault(pair[0].shape, []).append(pair)
        self.matrices = [pair for pairs in of_shape.values() for pair in pairs]

    def _sort(self, gradient: Tensor) -> None:
        """Is it worth it? A vector is a matrix of one column, which only a rate below 1 asks to have compressed."""
        state, count = self.state, gradient.numel()
        state.total_numel_before_compression += count
        if gradient.ndim:
            matrix = gradient.view(gradient.shape[0], -1)
            rows, columns = matrix.shape
            rank = min(rows, columns, state.matrix_approximation_rank)
            if (rows + columns) * rank * state.min_compression_rate < rows * columns:
                state.total_numel_after_compression += (rows + columns) * rank
                self.matrices.append((matrix, rank))
                return
        state.total_numel_after_compression += count
        self.others.append(gradient)

    def _first_qs(self) -> list[Tensor]:
        state, index = self.state, self.bucket.index()
        if state.warm_start and index in state.q_memory_dict:
            qs = state.q_memory_dict[index]
        else:
            with random.fork_rng(devices=[]):  # the same numbers in all processes; the program's own go on
                random.manual_seed(state.rng.randint(1_000_000_000))
                drawn = self._drawn([(m.shape[1], rank) for m, rank in self.matrices])
            qs = [q.to(self.flat.device) for q in drawn]
        return [self._orthonormal(q) for q in qs]

    def _drawn(self, shapes: list[tuple[int, int]]) -> list[Tensor]:
        """Random matrices; those of one shape at once, if the state says so, which are other numbers."""
        if not self.state.batch_tensors_with_same_shape:
            return [PUBLIC["randn"](*shape, dtype=self.flat.dtype) for shape in shapes]
        wholes = [m.shape for m, _ in self.matrices]
        counts = [(shape, wholes.count(whole)) for whole, shape in dict(zip(wholes, shapes)).items()]
        return [q for shape, n in counts for q in PUBLIC["randn"](n, *shape, dtype=self.flat.dtype)]

    def _orthonormal(self, matrix: Tensor) -> Tensor:
        epsilon = self.state.orthogonalization_epsilon
        if not epsilon and matrix.dtype.itemsize >= 4:
            return linalg.qr(matrix)[0]
        columns: list[Tensor] = []
        for i in range(matrix.shape[1]):  # Gram and Schmidt, one column after the other
            column = matrix[:, i]
            for done in columns:
                column = column - (done * column).sum() * done
            columns.append(column / (column.norm() + epsilon))
        return PUBLIC["stack"](columns, 1)

    # -- three messages ------------------------------------------------------------------------------------------------

    def begin(self) -> Future:
        self._others = self._start(self.others)
        self._ps = self._start([m @ q for (m, _), q in zip(self.matrices, self.qs)])
        return self._ps.future.then(lambda _: self._end())

    def _end(self) -> Tensor:
        state, index, size = self.state, self.bucket.index(), self.group.size()
        for gradient, mean in zip(self.others, self._others.values()):
            gradient.copy_(mean.div_(size))
        ps = [self._orthonormal(p) for p in self._ps.values()]
        qs = [q.div_(size) for q in self._start([m.t() @ p for (m, _), p in zip(self.matrices, ps)]).values()]
        for (matrix, _), p, q in zip(self.matrices, ps, qs):
            matrix.copy_(p @ q.t())
        if state.use_error_feedback:
            state.error_dict[index] = self.before - self.flat
        if state.warm_start:
            state.p_memory_dict[index], state.q_memory_dict[index] = ps, qs
        return self.flat[: self.bucket.buffer().numel()]

    def _start(self, tensors: list[Tensor]) -> _Together:
        return _Together(tensors, self.flat, self.group)


class _Square(_Exchange):
    """A bucket as one matrix, filled up with zeros."""

    def _taken(self, buffer: Tensor) -> Tensor:
        self._side = math.isqrt(max(buffer.numel() - 1, 0)) + 1
        padding = buffer.new_zeros(self._side**2 - buffer.numel())
        return PUBLIC["cat"]([buffer, padding])

    def _choose(self) -> None:
        state, rank = self.state, self.state.matrix_approximation_rank
        state.total_numel_before_compression += self.bucket.buffer().numel()
        state.total_numel_after_compression += 2 * self._side * rank
        self.matrices = [(self.flat.view(self._side, self._side), rank)]


class _Together:
    """Several tensors in one message, summed over the group."""

    def __init__(self, tensors: list[Tensor], like: Tensor, group):
        self._shapes = [t.shape for t in tensors]
        whole = PUBLIC["cat"]([t.reshape(-1) for t in tensors]) if tensors else PUBLIC["zeros"](0, dtype=like.dtype)
        self.future: Any = collectives.all_reduce(whole, group=group, async_op=True).get_future()

    def values(self) -> list[Tensor]:
        whole, at, parts = self.future.wait()[0], 0, []
        for shape in self._shapes:
            parts.append(whole[at : at + shape.numel()].view(shape))
            at += shape.numel()
        return parts
