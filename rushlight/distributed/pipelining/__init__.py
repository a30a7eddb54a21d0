"""``torch.distributed.pipelining``: a model in stages, one after the other in several processes."""

from __future__ import annotations

from ...compat import missing as _missing
from .microbatch import TensorChunkSpec
from .schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from .stage import PipelineStage

__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
]  # fmt: skip
__getattr__ = _missing(__name__)


def __dir__():
    return __all__
