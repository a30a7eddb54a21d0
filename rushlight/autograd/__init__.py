"""Automatic differentiation: the tape, the ops' declaration, and the ways to start a backward pass."""

from ..compat import missing
from . import functional, graph
from .anomaly import detect_anomaly, is_anomaly_enabled, is_anomaly_check_nan_enabled, set_detect_anomaly
from .function import Function
from .grad import backward, grad
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .mode import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from ..tensor import Tensor
from .op import differentiable, op

Variable = Tensor

__getattr__ = missing(__name__)
