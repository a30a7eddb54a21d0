"""Image datasets, files, transforms, models and small helpers, under torchvision's names."""

from .. import version
from . import datasets, io, models, ops, transforms, utils

__version__ = f"0.28.0+rushlight{version.rushlight}"  # the torchvision whose names these are
__all__ = ["datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils"]


def __dir__():
    return __all__


def __getattr__(name: str):
    if name == "tv_tensors":  # its classes override: see there
        import importlib

        return importlib.import_module(".tv_tensors", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
