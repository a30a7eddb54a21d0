"""PyTorch's ``nn.Module`` and all it stands on, in readable Python: ``import rushlight as torch``."""

import warnings

# NumPy warns where PyTorch silently gives inf or nan. Only warnings raised inside rushlight are hushed.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")

from . import autograd, ops
from .dtype import *
from .device import device
from .tensor import Size, Tensor
from .autograd.mode import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled

__version__ = "0.1.0"

globals().update(ops.PUBLIC)
