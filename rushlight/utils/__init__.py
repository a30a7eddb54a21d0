"""Helpers around the library: hooks' handles, checkpointing, data loading."""

from ..compat import missing
from . import checkpoint, hooks

_LATER = ("_pytree", "data", "dlpack", "model_zoo", "tensorboard")  # imported when first named


def _later(name):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return None


__getattr__ = missing(__name__, _later)
