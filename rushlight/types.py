"""``rushlight.types``: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence

from .device import device
from .dtypes import dtype
from .storage import UntypedStorage as Storage
from .tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage", "_bool", "_dtype", "_int", "_size"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike
_TensorOrTensors = Tensor | Sequence[Tensor]
_dtype, _device, _size = dtype, device, Sequence[int]
_int, _float, _bool = builtins.int, builtins.float, builtins.bool


def __dir__():
    return __all__
