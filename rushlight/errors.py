"""Exceptions with a name of their own, PyTorch's and one between operators and ``compile``; words for messages."""

from __future__ import annotations

import warnings

from . import config

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no memory left for what was asked."""


class AcceleratorError(RuntimeError):
    """Work on an accelerator failed after it was started."""


class _LinAlgError(RuntimeError):
    """A matrix does not allow what was asked: it is singular, not positive-definite, or not finite."""


LinAlgError = _LinAlgError  # PyTorch's has the underscore in its name


class ValuesNeeded(RuntimeError):
    """Code that is being compiled needs values, which a traced tensor has not; the message says what to do instead."""


def too_large(error: Exception) -> RuntimeError | None:
    """PyTorch's error for an array that NumPy had no memory for, or no numbers to count it by; None for others."""
    if isinstance(error, MemoryError):
        size = getattr(error, "_total_size", None)
        asked = "" if size is None else f": you tried to allocate {size} bytes"
        return RuntimeError(f"DefaultCPUAllocator: can't allocate memory{asked}.")
    if isinstance(error, ValueError) and str(error).startswith(_BEYOND_NUMBERS):
        return RuntimeError("Storage size calculation overflowed: no memory holds a tensor of these sizes.")
    return None


_BEYOND_NUMBERS = ("array is too big", "Maximum allowed dimension exceeded")


def type_name(value) -> str:
    """The type of a value as PyTorch's messages write it: by its bare name if Python's ``class`` made it."""
    kind = type(value)
    if kind.__flags__ & _MADE_BY_CLASS or kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


_MADE_BY_CLASS = 1 << 9  # CPython's flag of types on the heap


def warn_once(message: str, stacklevel: int = 4) -> None:
    """A UserWarning for whoever called the public function, the first time; each time after ``set_warn_always``."""
    if message not in _TOLD or config.warn_always:
        _TOLD.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


_TOLD: set = set()
