"""``rushlight.ao``: quantization, as far as ``quantization`` goes."""

from ..compat import missing as _missing

__all__ = ["nn", "quantization"]


def __dir__():
    return __all__


def _later(name):
    import importlib

    return importlib.import_module(f"{__name__}.{name}") if name in __all__ else None


__getattr__ = _missing(__name__, _later)
