"""The pickles of CIFAR: a dict of text, lists and arrays of bytes, and nothing else.

They are read by the interpreter that reads checkpoints, with a table of names of its own. An array is what its bytes
are: the file says a shape, which has to fit them, and no dtype but uint8.
"""

from __future__ import annotations

import math

import numpy as np

from ...io.unpickler import Unpickler, UnpicklingError

__all__ = ["read_cifar_pickle"]


def read_cifar_pickle(path: str) -> dict:
    """The dict in one of CIFAR's files."""
    with open(path, "rb") as file:
        data = file.read()
    content = Unpickler(data, _Builder(path, len(data)), encoding="latin1").load()
    if type(content) is not dict:
        raise RuntimeError(f"{path}: a {type(content).__name__} where CIFAR's files have a dict")
    return {key: value.values() if isinstance(value, _Array) else value for key, value in content.items()}


class _Array:
    """An array on its way: pickles make an empty one first and tell it later what it holds."""

    def __init__(self):
        self.data: bytes | None = None
        self.shape: tuple = ()

    def values(self) -> np.ndarray:
        return np.frombuffer(self.data or b"", np.uint8).reshape(self.shape if self.data is not None else (0,))


class _Bytes:
    """The dtype of bytes, the only one here."""


class _Builder:
    """What CIFAR's files may name and call."""

    def __init__(self, path: str, length: int):
        self.path, self.allowance = path, 4 * length  # bytes that may be made of text, all calls together
        self.functions = {
            ("numpy._core.multiarray", "_reconstruct"): self._empty,
            ("numpy._core.numeric", "_frombuffer"): self._from_buffer,
            ("numpy", "ndarray"): _Array,
            ("numpy", "dtype"): self._dtype,
            ("_codecs", "encode"): self._encoded,
        }

    def find_global(self, module: str, name: str):
        found = self.functions.get((module.replace("numpy.core", "numpy._core"), name))  # its name before NumPy 2
        if found is None:
            raise UnpicklingError(
                f"{self.path} asks for {f'{module}.{name}'[:100]}, which CIFAR's files have no use for; it was not read"
            )
        return found

    def call(self, function, args: tuple):
        if function is _Array or function not in self.functions.values():
            raise self._bad("a call of something that is no function")
        return function(*args)

    def new(self, cls, args: tuple, kwargs: dict):
        raise self._bad("an instance of a class")

    def persistent(self, identity):
        raise self._bad("a reference to something outside the file")

    def build(self, instance, state) -> None:
        if isinstance(instance, _Bytes):  # byte order and alignment, of which bytes have none
            return
        if not isinstance(instance, _Array) or type(state) is not tuple or len(state) != 5:
            raise self._bad("the state of something that is no array")
        _, shape, dtype, fortran, data = state
        self._fill(instance, self._as_bytes(data), dtype, shape, "F" if fortran else "C")

    def _empty(self, kind, shape, code) -> _Array:
        return _Array()

    def _from_buffer(self, data, dtype, shape, order) -> _Array:
        made = _Array()
        self._fill(made, data, dtype, shape, order)
        return made

    def _dtype(self, name, align=False, copy=False) -> _Bytes:
        if name != "u1":
            raise self._bad(f"an array of dtype {str(name)[:20] if isinstance(name, str) else '?'}, not of bytes")
        return _Bytes()

    def _encoded(self, text, encoding) -> bytes:
        if encoding != "latin1":
            raise self._bad("text of an unusual encoding")
        return self._as_bytes(text)

    def _fill(self, array: _Array, data, dtype, shape, order) -> None:
        sizes = type(shape) is tuple and len(shape) <= 4 and all(type(n) is int and n >= 0 for n in shape)
        if not isinstance(dtype, _Bytes) or not isinstance(data, (bytes, bytearray)) or order != "C" or not sizes:
            raise self._bad("an array that is not of bytes, in rows")
        if math.prod(shape) != len(data):
            raise self._bad(f"an array of shape {shape!r:.80} that has {len(data)} bytes")
        array.data, array.shape = bytes(data), shape

    def _as_bytes(self, text) -> bytes:
        if type(text) is bytes:
            return text
        if type(text) is not str:
            raise self._bad("an array's bytes that are none")
        self.allowance -= len(text)
        if self.allowance < 0:
            raise self._bad("more bytes made of it than it has")
        return text.encode("latin1")

    def _bad(self, what: str) -> UnpicklingError:
        return UnpicklingError(f"{self.path}: {what}: no file of CIFAR's, or damaged")
