"""Layers that belong together, with rounded weights: for training."""

from __future__ import annotations

from ....compat import missing as _missing
from ....nn import functional as _functional
from .. import qat as _qat

__all__ = ["ConvReLU2d", "LinearReLU"]


class LinearReLU(_qat.Linear):
    """A linear layer with a rounded weight, and its ReLU."""

    def forward(self, input):
        return _functional.relu(super().forward(input))


class ConvReLU2d(_qat.Conv2d):
    """A convolution with a rounded weight, and its ReLU."""

    def forward(self, input):
        return _functional.relu(super().forward(input))


__getattr__ = _missing(__name__)
