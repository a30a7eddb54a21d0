"""Automatic differentiation: the tape, the ops' declaration, and the ways to start a backward pass."""

from .mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .grad import backward, grad
from .op import differentiable, op
