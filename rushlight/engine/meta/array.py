"""``Meta``: a shape and a dtype. What NumPy's arrays do by operators, it does by the namespace's functions."""

from __future__ import annotations

import math

import numpy as np

NO_DATA = "Cannot copy out of meta tensor; no data!"


class Meta:
    """An array without values."""

    __slots__ = ("dtype", "shape")
    __array_priority__ = 100
    __hash__ = object.__hash__

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def copy(self) -> Meta:
        return Meta(self.shape, self.dtype)

    def astype(self, dtype, copy=True) -> Meta:
        return Meta(self.shape, dtype)

    def unsafe_buffer_pointer(self) -> int:
        return 0

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

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

    # -- NumPy's operators and methods ---------------------------------------------------------------------------------

    def __getitem__(self, index):
        return _functions().getitem(self, index)

    def __getattr__(self, name: str):
        if name not in _METHODS:
            raise AttributeError(f"'Meta' object has no attribute '{name}'")
        function = getattr(_functions(), name)
        return lambda *args, **options: function(self, *args, **options)

    def reshape(self, *shape):
        return _functions().reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def transpose(self, *axes):
        return _functions().transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    @property
    def T(self):
        return _functions().transpose(self)

    @property
    def mT(self):
        return _functions().matrix_transpose(self)

    @property
    def real(self):
        return _functions().real(self)

    @property
    def imag(self):
        return _functions().imag(self)


def _functions():
    from . import namespace

    return namespace


_METHODS = frozenset(
    "all any argmax argmin clip conj cumsum max mean min prod ravel round squeeze std sum swapaxes var".split()  # noqa: SIM905
)
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}


def _operator(function: str, turned: bool = False):
    def method(self, *others):
        args = (*others, self) if turned else (self, *others)
        return getattr(_functions(), function)(*args)

    return method


for _name, _function in {**_BINARY, **_COMPARISONS, **_UNARY}.items():
    setattr(Meta, f"__{_name}__", _operator(_function))
for _name, _function in _BINARY.items():
    setattr(Meta, f"__r{_name}__", _operator(_function, turned=True))
