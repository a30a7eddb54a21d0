"""Layers that belong together, so that their codes are rounded once."""

from __future__ import annotations

from ....compat import missing as _missing
from ....nn.containers import Sequential

__all__ = ["ConvReLU1d", "ConvReLU2d", "LinearReLU"]


def __dir__():
    return __all__


class ConvReLU1d(Sequential):
    """A convolution and its ReLU."""


class ConvReLU2d(Sequential):
    """A convolution and its ReLU."""


class LinearReLU(Sequential):
    """A linear layer and its ReLU."""


def _later(name):
    import importlib

    return importlib.import_module(f"{__name__}.{name}") if name in ("qat", "quantized") else None


__getattr__ = _missing(__name__, _later)
