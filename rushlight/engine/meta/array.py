"""``Meta``: a shape and a dtype."""

from __future__ import annotations

import numpy as np

from ..operators import Operators

NO_DATA = "Cannot copy out of meta tensor; no data!"


class Meta(Operators):
    """An array without values."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def copy(self) -> Meta:
        return Meta(self.shape, self.dtype)

    def astype(self, dtype, copy=True) -> Meta:
        return Meta(self.shape, dtype)

    def unsafe_buffer_pointer(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<Meta {self.dtype}{list(self.shape)}>"

    # -- values are asked for ------------------------------------------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        raise NotImplementedError(NO_DATA)

    def item(self):
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    __bool__ = __int__ = __float__ = __index__ = item

    def tolist(self):
        raise NotImplementedError(NO_DATA)
