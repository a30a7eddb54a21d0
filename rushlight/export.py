"""``rushlight.export``: a compiled model as a file that runs without the model's source."""

from __future__ import annotations

from .compiler.open_sizes import Dim, dims

__all__ = ["Dim", "dims", "export", "load", "save"]


def __dir__():
    return __all__


def export(mod, args: tuple, kwargs: dict | None = None, *, platforms=None, dynamic_shapes=None, **torch_options):
    """Compile ``mod`` for arguments like ``args`` into an ``ExportedProgram``.

    Sizes in ``dynamic_shapes`` stay open: ``export(model, (x,), dynamic_shapes={"x": {0: Dim("batch")}})``.
    """
    from .compiler.exported import export

    return export(mod, args, kwargs, platforms=platforms, dynamic_shapes=dynamic_shapes)


def save(ep, f, **torch_options) -> None:
    """Write an exported program to a file."""
    ep.save(f)


def load(f, **torch_options):
    """Read a program that ``save`` wrote."""
    from .compiler.exported import load

    return load(f)


def __getattr__(name):
    if name == "ExportedProgram":
        from .compiler.exported import ExportedProgram

        return ExportedProgram
    raise AttributeError(f"module 'rushlight.export' has no attribute '{name}'")
