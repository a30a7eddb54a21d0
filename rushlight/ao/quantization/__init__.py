"""Quantization of models: dynamic (``quantize_dynamic``), calibrated (``prepare``), trained (``prepare_qat``).

Real int8 weights and whole-number products; the eager functions of PyTorch, for linear, convolutional and recurrent
layers. What is not here is refused by name.
"""

from __future__ import annotations

from ...compat import missing as _missing
from . import fake_quantize, fuse_modules as _fuse, observer, qconfig, quantize as _quantize, stubs
from .fake_quantize import *
from .fuse_modules import *
from .observer import *
from .qconfig import *
from .quantize import *
from .stubs import *

__all__ = [
    *fake_quantize.__all__, *_fuse.__all__, *observer.__all__, *qconfig.__all__, *_quantize.__all__, *stubs.__all__,
]  # fmt: skip


def default_eval_fn(model, calib_data) -> None:
    """Run the model on each (input, target): what ``quantize`` takes to calibrate."""
    for data, _ in calib_data:
        model(data)


__all__ += ["default_eval_fn"]


def __dir__():
    return sorted(__all__)


__getattr__ = _missing(__name__)
