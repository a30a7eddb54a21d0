"""In which order a stage works on the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...tensor import Tensor
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
    "get_schedule_class",
]  # fmt: skip


class _PipelineSchedule:
    """What all schedules have in common; they differ in ``_order``."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec=None,
        kwargs_chunk_spec: dict | None = None,
        output_merge_spec=None,
        scale_grads: bool = True,
    ):
        if output_merge_spec is not None:
            raise NotImplementedError("output_merge_spec: outputs are joined along dimension 0 here")
        self._stages, self._n_microbatches, self._loss_fn, self.scale_grads = (
            stages, n_microbatches, loss_fn, scale_grads,
        )  # fmt: skip
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._last = next((stage for stage in stages if stage.is_last), None)
        for stage in stages:
            stage.neighbours = {other.stage_index: other for other in stages}

    def step(
        self,
        *args,
        target: Tensor | None = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs,
    ) -> Any:
        """A batch through all stages and back: the first one has ``args``, the last ``target``, ``losses``, outputs."""
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs or {}, self._loss_fn is not None)

    def eval(self, *args, target: Tensor | None = None, losses: list | None = None, **kwargs) -> Any:
        """A batch through all stages, forward only."""
        return self._run(args, kwargs, target, losses, True, {}, False)

    def _run(self, args, kwargs, target, losses, return_outputs, loss_kwargs, has_backward) -> Any:
        count, last = self._n_microbatches, self._last
        for stage in self._stages:
            stage.clear_runtime_states()
            stage.has_backward = has_backward
        parts, named = split_args_kwargs_into_chunks(
            args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
        )
        targets = self._targets(target)
        found: dict[int, Tensor] = {}
        for word, stage, i in self._order():
            if word is FORWARD:
                output = stage.forward_one_chunk(i, parts[i], named[i])
                if stage is last and targets is not None:
                    found[i] = self._loss_fn(output, targets[i], **loss_kwargs)  # type: ignore[misc]
            elif has_backward and word is WEIGHT:
                stage.backward_weight_one_chunk(i)
            elif has_backward:
                carry = stage.backward_one_chunk if word is BACKWARD else stage.backward_input_one_chunk
                carry(i, found[i] if stage is last else None)
        if has_backward and self.scale_grads:
            for stage in self._stages:
                stage.scale_grads(count)
        if last is None:
            return None
        if losses is not None:
            losses[:] = [found[i] for i in sorted(found)]
        chunks, last.output_chunks = last.output_chunks, []
        return merge_chunks(chunks) if return_outputs else None

    def _targets(self, target) -> list | None:
        if self._last is None or self._loss_fn is None:
            return None
        if target is None:
            raise TypeError("step(): the process of the last stage needs target=, which loss_fn compares outputs with")
        return [args[0] for args in split_args_kwargs_into_chunks((target,), None, self._n_microbatches)[0]]

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        """What this process does: (forward, backward, or a half of that; which of its stages, which part)."""
        raise NotImplementedError


class PipelineScheduleSingle(_PipelineSchedule):
    """Schedules of one stage in each process."""

    def __init__(self, stage: PipelineStage, n_microbatches: int, *args, **kwargs):
        super().__init__([stage], n_microbatches, *args, **kwargs)
        self._stage = stage
        if n_microbatches < stage.num_stages:
            self._too_few()

    def _too_few(self) -> None:
        """Fewer parts than stages: some schedules cannot."""


FORWARD, BACKWARD = "forward", "backward"
INPUT, WEIGHT = "input", "weight"  # the halves of backward: gradients that the stage before waits for, and all others


class ScheduleGPipe(PipelineScheduleSingle):
    """All parts forward, then all parts backward."""

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        yield from ((word, self._stage, i) for word in (FORWARD, BACKWARD) for i in range(self._n_microbatches))


class Schedule1F1B(PipelineScheduleSingle):
    """As many parts forward as stages follow; then one backward after each one forward: fewer are kept at a time."""

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        ahead = min(self._n_microbatches, self._stage.num_stages - self._stage.stage_index)
        for i in range(ahead):
            yield FORWARD, self._stage, i
        for i in range(self._n_microbatches):
            yield BACKWARD, self._stage, i
            if i + ahead < self._n_microbatches:
                yield FORWARD, self._stage, i + ahead

    def _too_few(self) -> None:
        raise ValueError(
            f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages "
            f"({self._stage.num_stages})."
        )


class PipelineScheduleMulti(_PipelineSchedule):
    """Schedules of several stages in each process, which lie a round of all processes apart."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        if kwargs.pop("use_full_backward", None) is False:
            raise NotImplementedError("use_full_backward=False: gradients of inputs and weights are computed together")
        super().__init__(stages, n_microbatches, *args, **kwargs)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All parts through one stage after the other; then back, the last part first."""

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None,
        output_merge_spec=None, scale_grads: bool = True,
    ):  # fmt: skip
        super().__init__(stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec, scale_grads=scale_grads)

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        parts = range(self._n_microbatches)
        yield from ((FORWARD, stage, i) for stage in self._stages for i in parts)
        yield from ((BACKWARD, stage, i) for stage in reversed(self._stages) for i in reversed(parts))


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """Parts go round in groups, about as many as processes; one backward after each one forward, once one is due."""

    _title = "Interleaved 1F1B"

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        rounds = max(1, n_microbatches // stages[0].group_size)
        if n_microbatches % rounds:
            raise ValueError(
                f"{self._title} requires the number of microbatches to be a multiple of the number of rounds "
                f"({rounds}), but got {n_microbatches}."
            )
        self._together = n_microbatches // rounds

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        first, together = self._stages[0], self._together
        every = len(self._stages) * self._n_microbatches
        ahead = (len(self._stages) - 1) * together + 2 * (first.group_size - 1 - first.group_rank)
        ahead = min(ahead, every)
        for k in range(ahead):
            yield FORWARD, *self._turn(k, self._stages)
        for k in range(every):
            if ahead + k < every:
                yield FORWARD, *self._turn(ahead + k, self._stages)
            yield BACKWARD, *self._turn(k, self._stages[::-1])

    def _turn(self, k: int, stages: list[PipelineStage]) -> tuple[PipelineStage, int]:
        """The ``k``-th piece of work: a group of parts through each of ``stages``, then the next group."""
        group, within = divmod(k, self._together * len(stages))
        which, part = divmod(within, self._together)
        return stages[which], group * self._together + part


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """Interleaved, with fewer parts ahead: gradients of weights are computed later, where a process would wait."""

    _title = "Zero bubble"

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        _check_uncompiled(stages)
        super().__init__(stages, n_microbatches, *args, **kwargs)

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        first, back = self._stages[0], self._stages[::-1]
        every = len(self._stages) * self._n_microbatches
        ahead = (len(self._stages) - 1) * self._together + first.group_size - 1 - first.group_rank
        ahead = min(ahead, every)
        for k in range(ahead):
            yield FORWARD, *self._turn(k, self._stages)
        for k in range(every + first.group_rank):  # weights follow as many turns later as processes are before this one
            if ahead + k < every:
                yield FORWARD, *self._turn(ahead + k, self._stages)
            if k < every:
                yield INPUT, *self._turn(k, back)
            if k >= first.group_rank:
                yield WEIGHT, *self._turn(k - first.group_rank, back)


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages in each process: one on the way down, one on the way back up, so the last is where the first is."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        _check_uncompiled(stages)
        if len(stages) != 2:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {len(stages)}.")
        super().__init__(stages, n_microbatches, *args, **kwargs)
        count = stages[0].num_stages
        for stage in stages:
            stage.rank_of = lambda index: min(index, count - 1 - index)

    def _order(self) -> Iterator[tuple[str, PipelineStage, int]]:
        for word, stage, part in self._numbered():
            if part < self._n_microbatches:  # the order is one for enough parts to fill all stages
                yield word, stage, part

    def _numbered(self) -> Iterator[tuple[str, PipelineStage, int]]:
        rank, size = self._stages[0].group_rank, self._stages[0].group_size
        parts = max(self._n_microbatches, 2 * size - 1)
        down, up = (_Counted(stage) for stage in self._stages)
        for _ in range(2 * (size - rank) - 1):
            yield down.next(FORWARD)
        for _ in range(rank):
            yield from (up.next(FORWARD), down.next(FORWARD))
        for _ in range(size - rank):
            yield from (up.next(FORWARD), up.next(INPUT), up.next(WEIGHT))
        while up.done[FORWARD] < parts:
            if down.done[FORWARD] < parts:
                yield down.next(FORWARD)
            yield from (down.next(INPUT), down.next(WEIGHT))
            yield from (up.next(FORWARD), up.next(INPUT), up.next(WEIGHT))
        for _ in range(rank):
            yield from (down.next(INPUT), up.next(INPUT))
        for _ in range(size - rank):
            yield from (down.next(INPUT), down.next(WEIGHT))
        for stage in (up, down):
            while stage.done[WEIGHT] < parts:
                yield stage.next(WEIGHT)


class ScheduleDualPipeV(ScheduleZBVZeroBubble):
    """Stages as in ``ScheduleZBVZeroBubble``; a part goes down or up after each that comes back the other way."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        if n_microbatches < stages[0].num_stages:
            raise ValueError(
                "DualPipeV requires at least as many microbatches as stages, but got "
                f"{n_microbatches} microbatches and {stages[0].num_stages} stages."
            )

    def _numbered(self) -> Iterator[tuple[str, PipelineStage, int]]:
        rank, size = self._stages[0].group_rank, self._stages[0].group_size
        down, up = (_Counted(stage) for stage in self._stages)
        after = size - rank - 1  # processes
        for _ in range(2 * after):
            yield down.next(FORWARD)
        for _ in range(rank + 1):
            yield from (down.next(FORWARD), up.next(FORWARD))
        for _ in range(after):
            yield from (up.next(INPUT), up.next(WEIGHT), up.next(FORWARD))
        for _ in range(self._n_microbatches - size - after):
            yield from (down.next(FORWARD), up.next(BACKWARD), up.next(FORWARD), down.next(BACKWARD))
        for _ in range(after):
            yield from (up.next(BACKWARD), up.next(FORWARD), down.next(BACKWARD))
        yield from self._ending(down, up, rank, after)

    def _ending(self, down: _Counted, up: _Counted, rank: int, after: int) -> Iterator[tuple[str, PipelineStage, int]]:
        """All parts are forward; the later half of what comes back leaves the gradients of weights for the end."""
        weights: list[_Counted] = []
        for turn in range(2 * (rank + 1)):
            stage = down if turn % 2 else up
            yield stage.next(BACKWARD if turn <= rank else INPUT)
            if turn > rank:
                weights.append(stage)
        for _ in range(after):
            yield from (weights.pop(0).next(WEIGHT), down.next(INPUT))
            weights.append(down)
        yield from (stage.next(WEIGHT) for stage in weights)


class _Counted:
    """A stage, and how many parts it has done of each kind of work; all of backward is both of its halves."""

    def __init__(self, stage: PipelineStage):
        self._stage, self.done = stage, {FORWARD: 0, INPUT: 0, WEIGHT: 0}

    def next(self, word: str) -> tuple[str, PipelineStage, int]:
        halves = (INPUT, WEIGHT) if word is BACKWARD else (word,)
        for half in halves:
            self.done[half] += 1
        return word, self._stage, self.done[halves[0]] - 1


def _check_uncompiled(stages: list[PipelineStage]) -> None:
    """A compiled module's backward pass is one program: it has no halves."""
    if any(type(stage.submod).__name__ == "OptimizedModule" for stage in stages):
        raise RuntimeError("The Zero Bubble schedule is not supported with stage modules that have used torch.compile")


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The schedule of that name, in upper or lower case: ``GPipe``, ``1F1B``, ``Interleaved1F1B`` and the others."""
    known = {
        "1F1B": Schedule1F1B, "Interleaved1F1B": ScheduleInterleaved1F1B, "GPipe": ScheduleGPipe,
        "LoopedBFS": ScheduleLoopedBFS, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
        "PipelineScheduleSingle": PipelineScheduleSingle, "PipelineScheduleMulti": PipelineScheduleMulti,
        "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV,
    }  # fmt: skip
    found = {name.lower(): schedule for name, schedule in known.items()}.get(schedule_name.lower())
    if found is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(known)}")
    return found
