"""Exceptions that have a name of their own: PyTorch's, and one between the operators and ``compile``."""

from __future__ import annotations

__all__ = ["OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no memory left for what was asked."""


class ValuesNeeded(RuntimeError):
    """Code that is being compiled needs values, which a traced tensor has not; the message says what to do instead."""
