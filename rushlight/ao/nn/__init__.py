"""Layers of quantized models: with rounded weights in training (``qat``), with codes for weights (``quantized``)."""

from ...compat import missing as _missing

__all__ = ["intrinsic", "qat", "quantized"]


def __dir__():
    return __all__


def _later(name):
    import importlib

    return importlib.import_module(f"{__name__}.{name}") if name in __all__ else None


__getattr__ = _missing(__name__, _later)
