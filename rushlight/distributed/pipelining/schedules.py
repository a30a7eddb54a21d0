"""In which order a stage works on the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...tensor import Tensor
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

__all__ = ["PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe"]


class PipelineScheduleSingle:
    """What the schedules of one stage in each process have in common; they differ in ``_order``."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec=None,
        kwargs_chunk_spec: dict | None = None,
        output_merge_spec=None,
        scale_grads: bool = True,
    ):
        if output_merge_spec is not None:
            raise NotImplementedError("output_merge_spec: outputs are joined along dimension 0 here")
        self._stage, self._n_microbatches, self._loss_fn, self.scale_grads = stage, n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        if n_microbatches < stage.num_stages:
            self._too_few()

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
        stage, count = self._stage, self._n_microbatches
        stage.clear_runtime_states()
        stage.has_backward = has_backward
        parts, named = split_args_kwargs_into_chunks(
            args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
        )
        targets = self._targets(target)
        found: list[Tensor] = []
        for word, i in self._order() if has_backward else ((FORWARD, i) for i in range(count)):
            if word is FORWARD:
                output = stage.forward_one_chunk(i, parts[i], named[i])
                if targets is not None:
                    found.append(self._loss_fn(output, targets[i], **loss_kwargs))  # type: ignore[misc]
            else:
                stage.backward_one_chunk(i, found[i] if stage.is_last else None)
        if has_backward and self.scale_grads:
            stage.scale_grads(count)
        if losses is not None and stage.is_last:
            losses[:] = found
        chunks, stage.output_chunks = stage.output_chunks, []
        return merge_chunks(chunks) if stage.is_last and return_outputs else None

    def _targets(self, target) -> list | None:
        if not self._stage.is_last or self._loss_fn is None:
            return None
        if target is None:
            raise TypeError("step(): the process of the last stage needs target=, which loss_fn compares outputs with")
        return [args[0] for args in split_args_kwargs_into_chunks((target,), None, self._n_microbatches)[0]]

    def _order(self) -> Iterator[tuple[str, int]]:
        raise NotImplementedError

    def _too_few(self) -> None:
        """Fewer parts than stages: some schedules cannot."""


FORWARD, BACKWARD = "forward", "backward"


class ScheduleGPipe(PipelineScheduleSingle):
    """All parts forward, then all parts backward."""

    def _order(self) -> Iterator[tuple[str, int]]:
        yield from ((word, i) for word in (FORWARD, BACKWARD) for i in range(self._n_microbatches))


class Schedule1F1B(PipelineScheduleSingle):
    """As many parts forward as stages follow; then one backward after each one forward: fewer are kept at a time."""

    def _order(self) -> Iterator[tuple[str, int]]:
        ahead = min(self._n_microbatches, self._stage.num_stages - self._stage.stage_index)
        for i in range(ahead):
            yield FORWARD, i
        for i in range(self._n_microbatches):
            yield BACKWARD, i
            if i + ahead < self._n_microbatches:
                yield FORWARD, i + ahead

    def _too_few(self) -> None:
        raise ValueError(
            f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages "
            f"({self._stage.num_stages})."
        )
