"""``rushlight.export``: a compiled model as a file that runs without the model's source."""

from __future__ import annotations

__all__ = ["export", "load", "save"]


def __dir__():
    return __all__


def export(mod, args: tuple, kwargs: dict | None = None, *, platforms=None, **torch_options):
    """Compile ``mod`` for arguments like ``args`` into an ``ExportedProgram``."""
    from .compiler.exported import export

    return export(mod, args, kwargs, platforms=platforms)


def save(ep, f, **torch_options) -> None:
    ep.save(f)


def load(f, **torch_options):
    from .compiler.exported import load

    return load(f)


def __getattr__(name):
    if name == "ExportedProgram":
        from .compiler.exported import ExportedProgram

        return ExportedProgram
    raise AttributeError(f"module 'rushlight.export' has no attribute '{name}'")
