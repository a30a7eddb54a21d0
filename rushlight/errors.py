"""Exceptions that have a name of their own in PyTorch."""

from __future__ import annotations

__all__ = ["OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no memory left for what was asked."""
