"""``Shell``: the array of a tensor that only wraps others (``_make_wrapper_subclass``): a shape, a dtype, a place.

Its class answers for operators. One that comes here was not handed over, and says so.
"""

from __future__ import annotations

import contextlib

import numpy as np

from .. import KINDS
from ..numpy import namespace as numpy_engine
from .array import Meta

__all__ = ["Shell"]


class Shell(Meta):
    """What a wrapper says it is."""

    __slots__ = ("place",)

    def __init__(self, shape, dtype, place, steps=None):
        super().__init__(shape, dtype, steps)
        self.place = place

    def copy(self) -> Shell:
        return Shell(self.shape, self.dtype, self.place, self.steps)

    def laid_out(self) -> np.ndarray:
        """An array of these strides, whose values nobody may look at."""
        if self.steps is None:
            return np.empty(self.shape, np.int8)
        return np.lib.stride_tricks.as_strided(np.empty(1, np.int8), self.shape, self.steps)

    def item(self):
        raise NotImplementedError(_MESSAGE)

    __bool__ = __int__ = __float__ = __index__ = tolist = item

    def __array__(self, dtype=None, copy=None):
        raise NotImplementedError(_MESSAGE)


_MESSAGE = (
    "a wrapper tensor has no values of its own: its class must answer for the operator in __torch_dispatch__, and call "
    "it with the tensors that it wraps"
)


class _Shells:
    """The namespace of shells: new arrays are NumPy's, and nothing is computed."""

    DEFERS = False
    BODIES: dict = {}
    BACKWARD: dict = {}

    def __getattr__(self, name: str):
        return getattr(numpy_engine, name)

    @staticmethod
    def device_of(array):
        return array.place

    @staticmethod
    def check_same_device(arrays) -> None:
        pass

    @staticmethod
    def explained():
        return contextlib.nullcontext()

    @staticmethod
    def once(*_):
        raise NotImplementedError(_MESSAGE)

    to_numpy = to_device = once


KINDS[Shell] = _Shells()
