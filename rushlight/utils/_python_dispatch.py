"""``torch.utils._python_dispatch``: modes that answer for operators below autograd; see ``autograd/dispatching.py``.

>>> class Log(rushlight.utils._python_dispatch.TorchDispatchMode):
...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
...         print(func)
...         return func(*args, **(kwargs or {}))
>>> x = rushlight.ones(2, requires_grad=True)
>>> with Log():
...     (x * 3).sum().backward()
aten.mul.Tensor
aten.sum.default
aten.ones_like.default
aten.expand.default
aten.mul.Tensor
aten.detach.default
"""

from __future__ import annotations

import contextlib

from ..autograd import dispatching as _core
from ..tensor import Tensor

__all__ = [
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


def __dir__():
    return __all__


class TorchDispatchMode:
    """Inside ``with mode:``, every operator goes to ``mode.__torch_dispatch__(func, types, args, kwargs)``.

    While it answers it is off, and the modes outside it are on.
    """

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: there are no dispatch keys here; leave _dispatch_key out")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _core.push(self)
        return self

    def __exit__(self, *_):
        _core.pop()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Is such a mode on in this thread?"""
    return bool(_core.state.modes)


def is_traceable_wrapper_subclass(t) -> bool:
    """Can it be taken apart into the tensors it wraps, and put together again?"""
    known = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    kind = t if isinstance(t, type) else type(t)
    return known and issubclass(kind, Tensor) and kind is not Tensor


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a handler returns: the tensor itself for a call in place, else ``out``."""
    if func._opname.endswith("_") and not func._opname.endswith("__"):
        return args[0]
    return out


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """The same wrapper around ``callback(name, tensor)`` of each tensor in it."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(inner, context, size, t.stride() if outer_stride is None else outer_stride)


# -- names that libraries touch ----------------------------------------------------------------------------------------


def _get_current_dispatch_mode():
    return _core.state.modes[-1] if _core.state.modes else None


def _get_current_dispatch_mode_stack() -> list:
    return list(_core.state.modes)


def _push_mode(mode) -> None:
    _core.push(mode)


def _pop_mode(k=None):
    return _core.pop()


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = _core.pop()
    try:
        yield mode
    finally:
        _core.push(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """Inside, no mode answers."""
    modes, _core.state.modes = _core.state.modes, ()
    try:
        yield list(modes)
    finally:
        _core.state.modes = modes
