"""``rushlight.jit``: PyTorch's older names for compiled models, over ``export``."""

from __future__ import annotations

from . import export as _export
from .compat import missing as _missing

__all__ = [
    "export",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "trace",
    "unused",
]


def __dir__():
    return __all__


def trace(func, example_inputs, **torch_options):
    """Compile ``func`` (a module or function) for inputs like these; the result can be called and saved."""
    example_inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    return _export.export(func, example_inputs)


def save(m, f, **torch_options) -> None:
    """Write a traced program to a file."""
    m.save(f)


def load(f, map_location=None, **torch_options):
    """Read a program that ``jit.save`` wrote; of a TorchScript archive, its modules and weights, to be taken over."""
    from .io import torchscript

    return torchscript.load(f, map_location) if torchscript.is_archive(f) else _export.load(f)


def script(obj, *args, **kwargs):
    """The object itself: there is no second language here to translate it to."""
    return obj


def ignore(fn=None, **kwargs):
    """The function itself: nothing is scripted."""
    return (lambda f: f) if fn is None or not callable(fn) else fn


unused = export = ignore


def freeze(mod, *args, **kwargs):
    """The module itself: there is nothing to freeze."""
    return mod


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Is this TorchScript? No."""
    return False


def is_tracing() -> bool:
    """Is this being traced by TorchScript? No."""
    from .compiler import is_compiling

    return is_compiling()


__getattr__ = _missing(__name__)
__path__: list[str] = []  # a package to the import system, whose parts are only names
