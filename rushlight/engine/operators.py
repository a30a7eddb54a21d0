"""What NumPy's arrays do by operators, methods and attributes, for the array classes of other namespaces."""

from __future__ import annotations

import math
from types import ModuleType

_METHODS = frozenset((
    "all", "any", "argmax", "argmin", "astype", "clip", "conj", "cumsum", "max", "mean", "min", "prod", "ravel",
    "round", "squeeze", "std", "sum", "swapaxes", "var",
))  # fmt: skip
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}


class Operators:
    """The base of an array class with ``shape`` and ``dtype``: an operator is its namespace's function."""

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = object.__hash__
    shape: tuple
    namespace: ModuleType  # set by the namespace itself, which knows its array class

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
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        return self.namespace.getitem(self, index)

    def __getattr__(self, name: str):
        if name not in _METHODS:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        function = getattr(self.namespace, name)
        return lambda *args, **options: function(self, *args, **options)

    def reshape(self, *shape):
        return self.namespace.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def transpose(self, *axes):
        return self.namespace.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    @property
    def T(self):
        return self.namespace.transpose(self)

    @property
    def mT(self):
        return self.namespace.matrix_transpose(self)

    @property
    def real(self):
        return self.namespace.real(self)

    @property
    def imag(self):
        return self.namespace.imag(self)


def _unary(function: str):
    return lambda self: getattr(self.namespace, function)(self)


def _binary(function: str):
    return lambda self, other: getattr(self.namespace, function)(self, other)


def _turned(function: str):
    return lambda self, other: getattr(self.namespace, function)(other, self)


for _name, _function in {**_BINARY, **_COMPARISONS}.items():
    setattr(Operators, f"__{_name}__", _binary(_function))
for _name, _function in _BINARY.items():
    setattr(Operators, f"__r{_name}__", _turned(_function))
for _name, _function in _UNARY.items():
    setattr(Operators, f"__{_name}__", _unary(_function))
