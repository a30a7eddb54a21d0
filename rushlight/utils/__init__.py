"""Helpers around the library: hooks' handles, checkpointing, data loading."""

from . import checkpoint, hooks

_LATER = ("data", "tensorboard")  # imported when first named


def __getattr__(name):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
