"""Helpers around the library: hooks' handles, checkpointing, data loading."""

from ..compat import missing as _missing
from . import checkpoint, hooks

__all__ = [
    "benchmark", "checkpoint", "collect_env", "data", "dlpack", "flop_counter", "hooks", "model_zoo",
    "swap_tensors", "tensorboard",
]  # fmt: skip


def __dir__():
    return __all__


_LATER = {"_foreach_utils", "_pytree", "_python_dispatch", *__all__}  # imported when first named


def _later(name):
    if name == "swap_tensors":
        from .swapping import swap_tensors

        return swap_tensors
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return None


__getattr__ = _missing(__name__, _later)
