"""Helpers around the library: hooks' handles, checkpointing, data loading."""

from ..compat import missing as _missing
from . import checkpoint, hooks

__all__ = ["checkpoint", "data", "dlpack", "flop_counter", "hooks", "model_zoo", "swap_tensors", "tensorboard"]


def __dir__():
    return __all__


_LATER = ("_pytree", "data", "dlpack", "flop_counter", "model_zoo", "tensorboard")  # imported when first named


def _later(name):
    if name == "swap_tensors":
        from .swapping import swap_tensors

        return swap_tensors
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return None


__getattr__ = _missing(__name__, _later)
