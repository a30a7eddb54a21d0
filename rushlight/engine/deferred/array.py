"""``Deferred``: an array on an accelerator whose values may still have to be computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Aval:
    """A shape and a dtype; one object for each pair, so that it is its own key."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple, dtype):
        self.shape, self.dtype = shape, dtype


_avals: dict = {}


def aval_of(shape: tuple, dtype) -> Aval:
    found = _avals.get((shape, dtype))
    if found is None:
        found = _avals.setdefault((shape, dtype), Aval(shape, dtype))
    return found


class Deferred:
    """An immutable array on an accelerator. Its ``value`` is a JAX array, or None until it is computed.

    Asked for but not started, it is number ``slot`` of ``recording``. Started, it is on ``flight``. Computed, it may be
    an input of ``recording``; then its slot is negative. ``owned``: nobody outside this engine holds the buffer.
    ``place`` is the JAX device; None for a number from NumPy, which can go anywhere.
    """

    __slots__ = (
        "__weakref__", "aval", "dtype", "flight", "owned", "place", "recording", "shape", "slot", "value",
    )  # fmt: skip
    __array_priority__ = 100
    flags = base = None  # what only arrays with memory of their own have

    def __init__(self, value, owned=False):
        self.shape, self.dtype, self.value, self.owned = value.shape, value.dtype, value, owned
        self.aval = aval_of(value.shape, value.dtype)
        self.place = None if isinstance(value, np.ndarray) else next(iter(value.devices()))
        self.recording: Any = None
        self.flight: Any = None
        self.slot = 0

    def force(self):
        """The value as a JAX array, to keep; what is promised is computed now."""
        self.owned = False
        return self.computed()

    def computed(self):
        """The value, to look at but not to keep: its memory may be used again when nobody holds this array."""
        if self.value is None:
            if self.flight is None:
                self.recording.run()
            flight = self.flight  # it may land while we look
            if flight is not None:
                flight.wait()
        return self.value

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

    @property
    def sharding(self):
        return self.computed().sharding

    def devices(self):
        return {self.place}

    def unsafe_buffer_pointer(self) -> int:
        return self.force().unsafe_buffer_pointer()

    def copy(self) -> Deferred:
        return self

    # -- out to Python -----------------------------------------------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        return np.array(self.computed(), dtype=dtype) if copy is not False else np.asarray(self.force(), dtype=dtype)

    def __jax_array__(self):
        return self.force()

    def __dlpack__(self, **options):
        return self.force().__dlpack__(**options)

    def __dlpack_device__(self):
        return self.force().__dlpack_device__()

    def item(self):
        return np.asarray(self.computed()).item()

    def tolist(self):
        return np.asarray(self.computed()).tolist()

    def __bool__(self) -> bool:
        return bool(np.asarray(self.computed()))

    def __int__(self) -> int:
        return int(np.asarray(self.computed()))

    def __float__(self) -> float:
        return float(np.asarray(self.computed()))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        state = "promised" if self.value is None else "computed"
        return f"<Deferred {self.dtype}{list(self.shape)}, {state}>"

    # -- NumPy's operators and methods: each is the namespace's function of that name ----------------------------------

    __hash__ = object.__hash__

    def __getitem__(self, index):
        return _functions().getitem(self, index)

    def __getattr__(self, name: str):
        if name not in _METHODS:
            raise AttributeError(f"'Deferred' object has no attribute '{name}'")
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


_METHODS = frozenset(
    ("all", "any", "argmax", "argmin", "astype", "clip", "conj", "cumsum", "max", "mean", "min", "prod", "ravel")
    + ("round", "squeeze", "std", "sum", "swapaxes", "var")
)

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}


def _functions():
    from . import namespace

    return namespace


def _attach() -> None:
    def binary(function, turned):
        if turned:
            return lambda self, other: getattr(_functions(), function)(other, self)
        return lambda self, other: getattr(_functions(), function)(self, other)

    for name, function in {**_OPERATORS, **_COMPARISONS}.items():
        setattr(Deferred, f"__{name}__", binary(function, False))
    for name, function in _OPERATORS.items():
        setattr(Deferred, f"__r{name}__", binary(function, True))
    for name, function in _UNARY.items():
        setattr(Deferred, f"__{name}__", lambda self, function=function: getattr(_functions(), function)(self))


_attach()
