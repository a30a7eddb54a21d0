"""Tensors from and to other libraries, without a copy."""

from ..aliases import to_dlpack
from ..ops.creation import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
