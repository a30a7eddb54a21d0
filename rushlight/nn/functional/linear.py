"""Products with a weight: ``linear`` and ``bilinear``."""

from __future__ import annotations

from ...ops.linalg import linear

__all__ = ["linear"]
