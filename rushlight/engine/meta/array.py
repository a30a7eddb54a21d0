"""``Meta``: a shape, a dtype and how its elements would lie in memory."""

from __future__ import annotations

import numpy as np

from ...layout import dense_strides
from ..numpy import layouts
from ..operators import Operators

_LARGE = 1 << 28  # elements
NO_DATA = "Cannot copy out of meta tensor; no data!"


class Meta(Operators):
    """An array without values."""

    __slots__ = ("dtype", "shape", "steps")

    def __init__(self, shape, dtype, steps=None):
        """``steps``: strides in elements; None in plain order."""
        self.shape, self.dtype, self.steps = tuple(shape), np.dtype(dtype), steps

    @classmethod
    def like(cls, array: np.ndarray) -> Meta:
        """Of an array's shape and dtype, in the order of its dimensions in memory."""
        plain = array.flags.c_contiguous or 0 in array.strides
        return cls(array.shape, array.dtype, None if plain else layouts.strides_of(array))

    def copy(self) -> Meta:
        return Meta(self.shape, self.dtype, self.steps)

    # -- what the rules of layouts ask ---------------------------------------------------------------------------------

    def laid(self, steps) -> Meta:
        """The same with other strides, given in elements."""
        layouts.watch()
        return Meta(self.shape, self.dtype, None if steps == self._plain() else tuple(steps))

    def laid_out(self) -> np.ndarray:
        """An array of this layout, to be asked for its strides and those of its views, not for values."""
        steps = self.steps or self._plain()
        extent = 0 if 0 in self.shape else 1 + sum([(n - 1) * s for n, s in zip(self.shape, steps)])
        kind = self.dtype if self.dtype.itemsize > 1 else np.dtype(np.int8)  # as_strided does not know float8
        memory = np.empty(extent if extent < _LARGE else 1, kind)  # of the first nobody touches a page
        return np.lib.stride_tricks.as_strided(memory, self.shape, self.strides)

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple([s * self.itemsize for s in self.steps or self._plain()])

    def _plain(self) -> tuple[int, ...]:
        return dense_strides(self.shape, range(len(self.shape)))

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
