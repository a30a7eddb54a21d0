"""``torch.distributed.pipelining``: a model in stages, one after the other in several processes."""

from __future__ import annotations

from .microbatch import TensorChunkSpec
from .pipe import Pipe, SplitPoint, build_stage, pipe_split, pipeline
from .schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from .stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint",
    "build_stage", "pipe_split", "pipeline",
]  # fmt: skip


def __dir__():
    return __all__
