"""Automatic differentiation: the tape, the ops' declaration, and the ways to start a backward pass."""

from ..compat import missing as _missing
from . import forward_ad, functional, graph
from .anomaly import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad import backward, grad
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .op import differentiable, op
from .variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "differentiable",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "op",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __dir__():
    return __all__


def _later(name):
    if name == "profiler":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return None


__getattr__ = _missing(__name__, _later)
