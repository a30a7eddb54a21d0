"""A model as a draft of a graph: it is run once, and each operator that it calls is emitted as it is called."""

from __future__ import annotations

import contextlib

import numpy as np

from ..autograd import mode
from ..autograd.promotion import convert, decide
from ..tensor import Tensor
from ..utils._pytree import tree_flatten
from . import namespace
from .graph import Draft, OnnxExporterError, Positions, UnsupportedOperatorError, Value

__all__ = ["record"]


def record(function, args: tuple, kwargs: dict, inputs: list[Tensor], names: list[str], known: dict) -> Draft:
    """The draft of ``function(*args, **kwargs)``; ``inputs`` are its tensors, ``known`` names the model's own."""
    with mode.no_grad():
        return _Recording(inputs, names, known).of(function, args, kwargs)


class _Recording:
    def __init__(self, inputs, names, known):
        self.draft = Draft()
        self._values: dict[int, tuple] = {}  # id of an array -> (the array, kept alive; its value)
        self._last: tuple | None = None  # the array that was made last, and its value
        self._written: list = []
        for t, name in zip(inputs, names):
            value = Value(self.draft, name, tuple(t.shape), t._array.dtype)
            self._values[id(t._array)] = (t._array, value)
            self.draft.inputs.append(value)
        for name, t in known.items():
            value = Value(self.draft, name, tuple(t.shape), t._array.dtype)
            if self._values.setdefault(id(t._array), (t._array, value))[1] is value:
                self.draft.constant(t._array, name)

    def of(self, function, args, kwargs) -> Draft:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mode.intercepting(self._operator))
            stack.enter_context(mode.pushed("writers", self._write))
            result = function(*args, **kwargs)
        self._settle()
        outputs, _ = tree_flatten(result)
        taken: set = {value.name for value in self.draft.inputs}
        for t in outputs:
            if not isinstance(t, Tensor):
                continue
            value = self._value(t._array)
            if value.name in taken or value.name in self.draft.constants:  # an output has a name of its own
                value = self.draft.emit("Identity", [value], value.shape, value.dtype)
            taken.add(value.name)
            self.draft.outputs.append(value)
        self.draft.prune()
        return self.draft

    def _operator(self, call, args, static):
        self._settle()
        o = call.op
        values = [self._value(a._array) if isinstance(a, Tensor) else a for a in args]
        arrays = [a._array if isinstance(a, Tensor) else a for a in args]
        result = call(*args, **static)
        if not any(isinstance(v, Value) for v in values):
            return result
        target, _ = decide(args, arrays, o.promote, o.keep, False)
        if target is not None:
            values = convert(namespace, o, values, target, None)
        made = _lowered(o, values, {**o.static, **static})
        results = result if isinstance(result, tuple) else (result,)
        for t, value in zip(results, made if isinstance(made, tuple) else (made,)):
            self._enter(o.name, t, value)
        return result

    def _enter(self, name: str, t: Tensor, value) -> None:
        if isinstance(value, Positions):
            self._values[id(t._array)] = (t._array, value)
            return
        if not isinstance(value, Value):
            value = Value(self.draft, self.draft.constant(value), np.shape(value), np.asarray(value).dtype)
        if value.shape != tuple(t.shape):
            raise UnsupportedOperatorError(f"torch.onnx: '{name}' has another shape in ONNX: {value.shape}")
        if value.dtype != t._array.dtype:
            value = namespace.astype(value, dtype=t._array.dtype)
        self._values[id(t._array)] = self._last = (t._array, value)

    def _value(self, array) -> Value:
        """What stands for an array; one that nobody has seen is a constant."""
        found = self._values.get(id(array))
        if found is not None:
            return found[1]
        name = self.draft.constant(np.array(array))
        value = Value(self.draft, name, array.shape, array.dtype)
        self._values[id(array)] = (array, value)
        return value

    # -- writes in place ---------------------------------------------------------------------------------------------

    def _write(self, t: Tensor) -> None:
        """``t`` is about to be written, with what was computed last as far as we can tell; ``_settle`` looks."""
        self._settle()
        self._written.append((t, self._last, np.array(t._array)))

    def _settle(self) -> None:
        for t, last, before in self._written:
            array = t._array
            if np.array_equal(array, before, equal_nan=array.dtype.kind in "fc"):
                continue
            shares = [a for a, _ in self._values.values() if a is not array and np.may_share_memory(a, array)]
            plain = last is not None and last[0].shape == array.shape and last[0].dtype == array.dtype
            if shares or not plain or not np.array_equal(last[0], array, equal_nan=array.dtype.kind in "fc"):
                raise UnsupportedOperatorError("torch.onnx: a write in place to a part of a tensor")
            self._values[id(array)] = (array, last[1])
        self._written.clear()


def _lowered(o, values, static):
    """The operator's value, or values, in the draft."""
    if o.name in namespace.TABLE:
        return namespace.TABLE[o.name](*values, **static)
    if o.aux is not None:
        known = {**static, **dict(zip(o.arrays, values))}
        static = {**static, "aux": o.aux(namespace, *[known[n] for n in o.aux_names])}
    try:
        return o.forward(namespace, *values, **static)
    except OnnxExporterError:
        raise
    except Exception as error:  # the forward does with arrays what Values cannot
        raise UnsupportedOperatorError(
            f"torch.onnx: there is no ONNX for the operator '{o.name}' ({type(error).__name__}: {error})"
        ) from error
