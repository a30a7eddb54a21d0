"""``torch.profiler``: where the time goes, by operator, gradient rule, module and range.

It hangs on the seams that operators have for others too (``recorder.py``), and costs nothing while it is off. Rows
have PyTorch's names for what really runs here: a linear layer is ``aten::linear`` and in it ``aten::addmm``, where
PyTorch also has rows for the transposed weight. A compiled function is one row. On accelerators, times of operators
are those of recording them; what the device does comes from JAX's profiler.
"""

from ..autograd.profiler import record_function
from ..compat import missing as _missing
from .events import DeviceType
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def kineto_available() -> bool:
    """Is the profiler there? It is, in Python."""
    return True


def __dir__():
    return __all__


__getattr__ = _missing(__name__)
