"""PyTorch values to Rushlight's and back: tensors with their strides, dtypes, devices, and functions of ``torch``."""

from __future__ import annotations

import functools
import inspect
import types

import ml_dtypes
import numpy as np
import torch

import rushlight
from rushlight.tensor import Tensor, wrap


class Converter:
    """Turns what PyTorch was given into the same thing for Rushlight; a tensor met twice becomes one tensor."""

    def __init__(self, xla: bool = False):
        self.xla = xla
        self.memo: dict[int, tuple] = {}  # id -> (the torch object, kept alive, and its counterpart)

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.memo:
                self.memo[id(value)] = (value, self.tensor(value))
            return self.memo[id(value)][1]
        if isinstance(value, torch.Size):
            return rushlight.Size(value)
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return rushlight.nn.utils.rnn.PackedSequence(*(self(v) for v in value))
        if isinstance(value, (list, tuple)):
            return type(value)(self(v) for v in value)
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        return constant(value)

    def tensor(self, t: torch.Tensor) -> Tensor:
        array = strided_copy(t)
        made = _on_xla(array, t) if self.xla else wrap(array)
        return made.requires_grad_() if t.requires_grad else made


def _on_xla(array: np.ndarray, t: torch.Tensor) -> Tensor:
    """The array on XLA: itself if it fills its memory in order, else a view of the whole memory, as ``t`` is one."""
    from rushlight.engine.xla import namespace as xla

    if array.size == 0 or (array.flags.c_contiguous and array.size == array.base.size):
        return wrap(xla.asarray(array))
    return wrap(xla.asarray(array.base)).as_strided(t.shape, t.stride(), t.storage_offset())


def constant(value):
    """The counterpart of anything that is no tensor: dtype, device, memory format, function, module; else itself."""
    if isinstance(value, torch.dtype):
        return getattr(rushlight, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return rushlight.device(str(value))
    if isinstance(value, (torch.memory_format, torch.layout)):
        return getattr(rushlight, str(value).removeprefix("torch."))
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if isinstance(value, functools.partial):
        return functools.partial(constant(value.func), *value.args, **value.keywords)
    if callable(value) and not isinstance(value, type):
        return function(value)
    return value


def function(f):
    """The Rushlight function for one of ``torch``'s, or a Python function of PyTorch's tests with ``torch`` swapped."""
    if isinstance(f, types.FunctionType) and not _is_library(f):
        return rebound(f)
    name = f.__name__
    for path in ("", "nn.functional", "linalg", "special", "fft", "Tensor"):
        if getattr(_look(torch, path), name, None) is f:
            return getattr(_look(rushlight, path), name)
    if hasattr(torch.Tensor, name) and getattr(f, "__objclass__", None) is not None:
        return getattr(Tensor, name)
    raise NotImplementedError(f"no counterpart known for {f!r}")


def rebound(f: types.FunctionType):
    """A copy of a Python function in which the global (or closed-over) name ``torch`` means ``rushlight``."""
    names = _Globals(f.__globals__)
    closure = f.__closure__ and tuple(types.CellType(_swap(c.cell_contents)) for c in f.__closure__)
    defaults = f.__defaults__ and tuple(_swap(v) for v in f.__defaults__)
    made = types.FunctionType(f.__code__, names, f.__name__, defaults, closure)
    made.__kwdefaults__ = f.__kwdefaults__ and {k: _swap(v) for k, v in f.__kwdefaults__.items()}
    return made


class _Globals(dict):
    """A function's globals, swapped for their counterparts. Filled at once: CPython's lookup skips ``__missing__``."""

    def __init__(self, names):
        super().__init__(names)
        for name, value in names.items():
            if value is torch:
                self[name] = rushlight
            elif name == "F":
                self[name] = getattr(getattr(rushlight, "nn", None), "functional", None)
            elif name in ("wrapper_set_seed", "freeze_rng_state"):
                self[name] = _with_seed if name == "wrapper_set_seed" else _frozen


def _with_seed(op, *args, **kwargs):
    with rushlight.random.fork_rng():
        rushlight.manual_seed(42)
        return op(*args, **kwargs)


def _frozen():
    return rushlight.random.fork_rng()


def _swap(value):
    try:
        return constant(value)
    except (AttributeError, NotImplementedError):
        return value


def _is_library(f) -> bool:
    return (
        f.__module__.startswith("torch") and not f.__module__.startswith("torch.testing") and f.__name__ != "<lambda>"
    )


def _look(root, path):
    for part in path.split(".") if path else ():
        root = getattr(root, part, None)
    return root


def _module(m):
    made = getattr(rushlight.nn, type(m).__name__)
    known = inspect.signature(type(m).__init__).parameters
    return made(**{name: getattr(m, name) for name in known if name != "self" and hasattr(m, name)})


def strided_copy(t: torch.Tensor) -> np.ndarray:
    """A NumPy array with the tensor's values and strides, on a copy of its whole storage."""
    t = t.detach().resolve_conj().resolve_neg()
    if t.layout is not torch.strided:
        raise NotImplementedError(f"{t.layout} tensors")
    if t.numel() == 0:
        return np.empty(tuple(t.shape), dtype=to_numpy(t.new_empty(0)).dtype)
    flat = to_numpy(torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())).copy()
    strides = [s * flat.itemsize for s in t.stride()]
    array = np.ndarray(tuple(t.shape), flat.dtype, flat, t.storage_offset() * flat.itemsize, strides)
    if any(s == 0 and n > 1 for s, n in zip(strides, t.shape)):
        array.flags.writeable = False  # expanded: several elements in one place
    return array


def to_numpy(t: torch.Tensor) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    t = torch.zeros_like(t) if t._is_zerotensor() else t
    if t.dtype is torch.bfloat16:
        return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if t.dtype is torch.complex32:
        return t.view(torch.int32).numpy().view(ml_dtypes.complex32)
    return t.numpy()


def array_of(t: Tensor) -> np.ndarray:
    """A Rushlight tensor's values, whatever engine holds them."""
    t._sync()
    return np.asarray(t._array)


def like(tree, tensor, other=lambda v: v):
    """The nested structure ``tree`` with ``tensor`` applied to tensors of either library."""
    if isinstance(tree, (torch.Tensor, Tensor)):
        return tensor(tree)
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "n_fields"):
        items = [like(v, tensor, other) for v in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, tuple):
        return tuple(like(v, tensor, other) for v in tree)
    if isinstance(tree, dict):
        return {k: like(v, tensor, other) for k, v in tree.items()}
    return other(tree)


def tensors(tree) -> list:
    """All tensors in a nested structure, each once, in order."""
    found: dict[int, object] = {}
    like(tree, lambda t: found.setdefault(id(t), t))
    return list(found.values())
