"""Exceptions with a name of their own, PyTorch's and one between operators and ``compile``; words for messages."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
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


class DistError(RuntimeError):
    """Something between processes failed."""


class DistBackendError(DistError):
    """A collective failed."""


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
    if kind.__name__ == "Tensor" and kind.__module__ == "torch" and not hasattr(kind, "_array"):
        return "PyTorch's own Tensor (convert it with from_numpy(x.numpy()))"
    if kind.__flags__ & _MADE_BY_CLASS or kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


_MADE_BY_CLASS = 1 << 9  # CPython's flag of types on the heap


def warn_user(message, category: type[Warning] = UserWarning) -> None:
    """A warning that names the line outside of rushlight that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_NOT_THE_USERS = (os.path.dirname(__file__) + os.sep, contextlib.__file__, functools.__file__)


def warn_once(message: str) -> None:
    """``warn_user``, the first time; each time after ``set_warn_always``."""
    if message not in _TOLD or config.warn_always:
        _TOLD.add(message)
        warn_user(message)


_TOLD: set = set()


def hush_numpy() -> None:
    """Let nobody hear NumPy's warnings of what is computed in rushlight: PyTorch gives inf or nan without a word.

    The filter stays before those that are set later; ``warnings`` tells when filters have changed, by a function that
    is looked up in it. That costs operators nothing, while ``numpy.errstate`` would cost each half a microsecond.
    """
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):  # the second from Python 3.14 on
        told = getattr(warnings, name, None)
        if told is not None and not hasattr(told, "hushes"):
            setattr(warnings, name, _keep_first(warnings.filters[0], told))


def _keep_first(entry, told):
    def filters_changed():
        filters = warnings.filters
        if not filters or filters[0] != entry:
            if entry in filters:
                filters.remove(entry)
            filters.insert(0, entry)
        told()

    filters_changed.hushes = entry
    return filters_changed
