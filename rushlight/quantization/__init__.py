"""``rushlight.quantization``: the older name of ``rushlight.ao.quantization``."""

from __future__ import annotations

from ..ao import quantization as _quantization
from ..ao.quantization import *
from ..compat import missing as _missing

# What came after the name had changed is under the newer one only.
_LATER = {
    "FixedQParamsObserver", "UniformQuantizationObserverBase", "default_dynamic_fake_quant",
    "default_dynamic_qat_qconfig", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "fuse_modules_qat",
}  # fmt: skip
__all__ = [name for name in _quantization.__all__ if name not in _LATER]


def __dir__():
    return sorted(__all__)


__getattr__ = _missing(__name__)
