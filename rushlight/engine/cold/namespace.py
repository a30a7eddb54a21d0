"""A namespace over any library that has NumPy's functions: CuPy on a GPU, and NumPy itself to test it.

Not every name is here. A rule that asks for another, or does what the library refuses, is left to the compiler.
"""

from __future__ import annotations

import numpy as np

from ..fallback import lookup


class Namespace:
    """The functions of ``library``, the names it lacks or spells differently, and the operators made of them.

    ``special`` has the error function and its kin.
    """

    DEFERS = False
    BODIES: dict = {}  # plain rules only
    BACKWARD: dict = {}

    def __init__(self, library, special):
        self.library, self.special, self.__name__ = library, special, library.__name__

    def __getattr__(self, name: str):
        if name in _WITH_VALUES:
            raise AttributeError(f"{name} has a shape that depends on values")
        found = getattr(self.special, name, None) if name in _SPECIAL else lookup(self.library, name, self)
        setattr(self, name, found)  # found once
        return found

    def once(self, name, function, constants, *args):
        return function(self, *constants, *args)

    # -- views and copies --------------------------------------------------------------------------------------------

    def astype(self, x, dtype):
        return self.library.asarray(x).astype(dtype, copy=False)

    def reshape(self, x, shape):
        return self.library.asarray(x).reshape(shape)

    def transpose(self, x, axes=None):
        return x.transpose(axes)

    def conj(self, x):
        if hasattr(x, "dtype"):
            return x.conj() if x.dtype.kind == "c" else x
        return x.conjugate()

    def alias(self, x):
        return x

    def lay_out(self, x, order):
        return x

    def getitem(self, x, index):
        return x[self._index(index)]

    def expanded(self, x, shape):
        return self.library.broadcast_to(x, shape)

    def matrix_transpose(self, x):
        return x.swapaxes(-1, -2)

    def index_put(self, x, value, index):
        out = self.library.array(x)
        out[self._index(index)] = value
        return out

    def index_add(self, x, value, index):
        out = self.library.array(x)
        self.library.add.at(out, self._index(index), value)
        return out

    def add_rows(self, value, index, size):
        """Zeros with ``size`` rows, with each row of ``value`` added to the one that ``index`` names."""
        out = self.library.zeros((size, *value.shape[index.ndim :]), value.dtype)
        self.library.add.at(out, index.reshape(-1), value.reshape(-1, *value.shape[index.ndim :]))
        return out

    def add_along_axis(self, value, index, axis, size, unique=False):
        """Zeros of ``size`` along ``axis``, with ``value`` added where ``index`` says."""
        xp = self.library
        out = xp.zeros([size if i == axis else n for i, n in enumerate(value.shape)], value.dtype)
        places = [
            xp.arange(n).reshape([-1 if i == d else 1 for i in range(index.ndim)]) for d, n in enumerate(index.shape)
        ]
        places[axis] = index
        xp.add.at(out, tuple(places), value)
        return out

    def _index(self, index):
        """With the library's arrays in the place of NumPy's."""
        if isinstance(index, tuple):
            return tuple([self._index(i) for i in index])
        return self.library.asarray(index) if isinstance(index, np.ndarray) else index

    def is_traced(self, x) -> bool:
        return False

    def is_known(self, x) -> bool:
        """As in recorded programs, values are not looked at to check them."""
        return False

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def sigmoid(self, x):
        return 1 / (1 + self.library.exp(-x))

    def sign(self, x):
        """-1, 0 or 1, 0 for nan; for complex numbers x / |x|, and 0 for 0."""
        if x.dtype.kind == "f":
            return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)
        if x.dtype.kind == "c":
            size = self.library.abs(x)
            return self.library.where(size == 0, x.dtype.type(0), x / size)
        return self.library.sign(x)

    def make_complex(self, x, w):
        return x + self.library.asarray(1j, self.library.result_type(x.dtype, np.complex64)) * w

    def rsqrt(self, x):
        return 1 / self.library.sqrt(x)

    def mean(self, x, axis=None, keepdims=False):
        return x.mean(axis=axis, keepdims=keepdims)

    def root_mean_square(self, x, count, axis=None, keepdims=False):
        wide = x.astype(np.float64) if x.dtype == np.float32 else x
        return self.library.sqrt((wide * wide).sum(axis=axis, keepdims=keepdims) / count).astype(x.dtype)

    def argsort(self, x, axis=-1):
        return self.library.argsort(x, axis=axis, kind="stable")


_SPECIAL = {"erf", "erfc", "erfinv"}
_WITH_VALUES = {"nonzero", "unique", "on_host", "draw"}
