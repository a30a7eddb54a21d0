"""Layers with their ReLU, from codes to codes."""

from __future__ import annotations

from ....compat import missing as _missing
from .. import quantized as _quantized

__all__ = ["ConvReLU2d", "LinearReLU"]


class LinearReLU(_quantized.Linear):
    """A linear layer and its ReLU."""

    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class ConvReLU2d(_quantized.Conv2d):
    """A convolution and its ReLU."""

    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedConvReLU2d"


__getattr__ = _missing(__name__)
