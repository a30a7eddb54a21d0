"""Passes over graphs."""

from __future__ import annotations

from ...compat import missing as _missing

__all__: list[str] = []
__getattr__ = _missing(__name__)
