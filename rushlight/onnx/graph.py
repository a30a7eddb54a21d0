"""A graph in the making: values, nodes and constants, before they are an ONNX file."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Draft", "Node", "OnnxExporterError", "Positions", "UnsupportedOperatorError", "Value"]


class OnnxExporterError(RuntimeError):
    """The model cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator of the model has no counterpart in ONNX here."""


class Node(NamedTuple):
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict


class Draft:
    """What was emitted so far. Names are counted, so that the same model gives the same names again."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self._count = 0

    def emit(self, kind: str, inputs, shape, dtype, **attributes) -> Value:
        """A node with one output of this shape and dtype; inputs that are no Values become constants."""
        name = self.fresh(kind)
        names = tuple("" if i is None else i.name if isinstance(i, Value) else self.constant(i) for i in inputs)
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(Node(kind, names, (name,), given))
        return Value(self, name, tuple(int(n) for n in shape), np.dtype(dtype))

    def second(self, value: Value) -> Positions:
        """The second output of the node that was emitted last."""
        node, name = self.nodes.pop(), self.fresh("positions")
        self.nodes.append(node._replace(outputs=(*node.outputs, name)))
        return Positions(self, name, value.shape, np.dtype(np.int64))

    def constant(self, array, name: str | None = None) -> str:
        name = name or self.fresh("constant")
        self.constants[name] = np.array(array, order="C")
        return name

    def fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind.lower()}_{self._count}"

    def prune(self) -> None:
        """Leave out what no output needs."""
        needed, kept = {value.name for value in self.outputs}, []
        for node in reversed(self.nodes):
            if needed & set(node.outputs):
                kept.append(node._replace(outputs=tuple(n for n in node.outputs if n in needed)))
                needed.update(node.inputs)
        self.nodes = kept[::-1]
        self.constants = {name: array for name, array in self.constants.items() if name in needed}


class Value:
    """A tensor that the graph will compute. It stands for an array in the forward functions of operators."""

    __slots__ = ("draft", "dtype", "name", "shape")
    __array_ufunc__ = None  # arrays leave operators with one to it

    def __init__(self, draft: Draft, name: str, shape: tuple[int, ...], dtype: np.dtype):
        self.draft, self.name, self.shape, self.dtype = draft, name, shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self):
        return _call("transpose", self, axes=tuple(reversed(range(self.ndim))))

    def astype(self, dtype):
        return _call("astype", self, dtype=dtype)

    def reshape(self, *shape):
        return _call("reshape", self, shape=shape[0] if isinstance(shape[0], tuple) else shape)

    def __getitem__(self, index):
        return _call("getitem", self, index=index)

    def __neg__(self):
        return _call("negative", self)

    def __invert__(self):
        return _call("invert", self)

    def __abs__(self):
        return _call("abs", self)

    def __bool__(self):
        raise OnnxExporterError("the way through the model depends on values: an ONNX graph has one way")


class Positions(Value):
    """Where the maxima of windows are, counted through the whole tensor."""

    __slots__ = ()


def _call(name: str, *args: Any, **kwargs: Any):
    from . import namespace

    return getattr(namespace, name)(*args, **kwargs)


def _operator(name: str, reflected: bool = False):
    def method(self, other):
        return _call(name, other, self) if reflected else _call(name, self, other)

    return method


for _python, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "matmul": "matmul",
    "and": "logical_and", "or": "logical_or",
}.items():  # fmt: skip
    setattr(Value, f"__{_python}__", _operator(_name))
    setattr(Value, f"__r{_python}__", _operator(_name, reflected=True))
for _python, _name in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(Value, f"__{_python}__", _operator(_name))
Value.__hash__ = object.__hash__  # type: ignore[method-assign]
