"""``rushlight.jit``: PyTorch's older names for compiled models, over ``export``."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Final, NamedTuple

from . import export as _export
from .compat import missing as _missing

__all__ = [
    "Attribute",
    "Final",
    "annotate",
    "export",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
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
    example_inputs = example_inputs if builtins.isinstance(example_inputs, tuple) else (example_inputs,)
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


class Attribute(NamedTuple):
    """A value and the type that a script would give it."""

    value: object
    type: object


def annotate(the_type, the_value):
    """The value itself: a type is only for readers."""
    return the_value


def isinstance(obj, target_type) -> bool:
    """Is it of this type, or of one of these? Types of elements are looked at too.

    >>> rushlight.jit.isinstance([1, "a"], list[int])
    False
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    origin, inner = typing.get_origin(target_type) or target_type, typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, type(None) if one is None else one) for one in inner)
    if origin in (list, tuple, dict) and not inner and target_type != tuple[()]:
        _refuse_bare(getattr(target_type, "__name__", str(target_type)), origin)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(one, inner[0]) for one in obj)
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(inner) and all(isinstance(one, kind) for one, kind in zip(obj, inner))
    return True


def _refuse_bare(name: str, origin: type) -> None:
    if origin is dict:
        raise RuntimeError(
            f"Attempted to use {name} without contained types. Please add contained type, e.g. {name}[int, int]"
        )
    raise RuntimeError(
        f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
    )


def is_scripting() -> bool:
    """Is this TorchScript? No."""
    return False


def is_tracing() -> bool:
    """Is this being traced by TorchScript? No."""
    from .compiler import is_compiling

    return is_compiling()


__getattr__ = _missing(__name__)
__path__: list[str] = []  # a package to the import system, whose parts are only names
