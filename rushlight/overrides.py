"""``torch.overrides``: classes and modes that answer for functions; see ``autograd/overriding.py`` for how.

>>> class Named(rushlight.Tensor):
...     pass
>>> rushlight.ones(2).as_subclass(Named) + 1
Named([2., 2.])

>>> class Log(rushlight.overrides.TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(rushlight.overrides.resolve_name(func))
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     y = rushlight.ones(2) * 3
torch.ones
torch.Tensor.mul
"""

from __future__ import annotations

import contextlib
import functools
import sys

from .autograd import overriding as _core
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

_PACKAGE = __name__.rpartition(".")[0]


def __dir__():
    return __all__


class TorchFunctionMode:
    """Inside ``with mode:``, every function and method goes to ``mode.__torch_function__(func, types, args, kwargs)``.

    While it answers it is off, and the modes outside it are on.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _core.push(self)
        return self

    def __exit__(self, *_):
        _core.pop()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


# -- asking by hand ----------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args) -> bool:
    """Does a mode, or one of these, answer for functions?"""
    if _core.state.modes and _core.state.everything:
        return True
    return _core.state.subclasses and any(_core.overrides(type(a)) for a in relevant_args)


def has_torch_function_unary(arg) -> bool:
    """Does this argument override functions?"""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args) -> bool:
    """Does one of these arguments override functions?"""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """The answer of a mode, or of one of ``relevant_args``, for ``public_api(*args, **kwargs)``."""
    found = _core.overriding(tuple(relevant_args), {}) if _core.state.subclasses else []
    types = [type(a) for a in found]
    for ask in _askers(found):
        result = ask(public_api, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {types}")


def _askers(found):
    if _core.state.modes and _core.state.everything:
        yield _ask_mode
    for a in found:
        yield type(a).__torch_function__


def _ask_mode(func, types, args, kwargs):
    with _core.popped() as mode:
        return mode.__torch_function__(func, types, args, kwargs)


def wrap_torch_function(dispatcher):
    """Make a function of one's own overridable: ``dispatcher(*args, **kwargs)`` names the arguments that may answer."""

    def decorate(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(called, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return called

    return decorate


def is_tensor_like(value) -> bool:
    """Is it a Tensor, or of a class with ``__torch_function__``?"""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


# -- what may be overridden --------------------------------------------------------------------------------------------


def get_overridable_functions() -> dict:
    """The functions that ask, by the namespace they are in."""
    found = {}
    for space, functions in _namespaces().items():
        found[space] = [f for name, f in functions.items() if getattr(f, "asks", False) and name not in _core.FACTORIES]
    found[Tensor] = [_core._method(name) for name in _core._asked_names() if callable(_core._method(name))]
    for name, getter in _properties().items():
        found[_core._method(name)] = [getter]
    return found


def get_ignored_functions() -> set:
    """Functions that never ask a subclass: they make new tensors, or have nothing to do with them."""
    torch = sys.modules[_PACKAGE]
    names = (*_core.NEVER_ASKED, *_core.FACTORIES)
    found = {getattr(torch, name) for name in names if hasattr(torch, name)}
    return found | {getattr(Tensor, name) for name in _core._UNASKED if hasattr(Tensor, name)}


def get_testing_overrides() -> dict:
    """For each function that asks, one with its arguments that returns -1."""
    return {f: lambda *args, **kwargs: -1 for functions in get_overridable_functions().values() for f in functions}


def get_default_nowrap_functions() -> set:
    """Functions whose results the default ``__torch_function__`` leaves as they are."""
    return _core.unwrapped()


def is_tensor_method_or_property(func) -> bool:
    """Is it a method or property of Tensor?"""
    return func in _names_of_tensor()


def resolve_name(f) -> str | None:
    """``torch.nn.functional.relu`` for that function; None for one that nobody can override."""
    if isinstance(f, str):
        return f
    try:
        return _names_of_tensor().get(f) or _names().get(f)
    except TypeError:  # unhashable
        return None


def _names_of_tensor() -> dict:
    names = {_core._method(name): f"torch.Tensor.{name}" for name in reversed(_core._asked_names())}
    for public, own in (
        (v, k) for k, v in _core._FORWARD.items()
    ):  # the method, where an operator is the same function
        if own in vars(Tensor) and public in vars(Tensor):
            names[_core._method(public)] = f"torch.Tensor.{public}"
    for name, getter in _properties().items():
        names[getter] = f"torch.Tensor.{name}.__get__"
        names[_core._method(name).__set__] = f"torch.Tensor.{name}.__set__"
    return names


def _names() -> dict:
    found: dict = {}
    for space, functions in _namespaces().items():
        path = "torch" + space.__name__.removeprefix(_PACKAGE).removeprefix("torch")  # it may go by either name
        for name, f in functions.items():
            if getattr(f, "asks", False):
                known = found.get(f, "").rpartition(".")[0]
                if not known or (known == path and f.__name__ == name):
                    found[f] = f"{path}.{name}"
    return found


def _properties() -> dict:
    methods = {name: _core._method(name) for name in _core._asked_names()}
    return {name: value.__get__ for name, value in methods.items() if isinstance(value, property)}


def _namespaces() -> dict:
    torch = sys.modules[_PACKAGE]
    spaces = (torch, torch.nn.functional, torch.linalg, torch.fft, torch.special)
    return {space: {name: vars(space)[name] for name in sorted(vars(space))} for space in spaces}


# -- names that libraries touch ----------------------------------------------------------------------------------------


def _get_current_function_mode():
    return _core.state.modes[-1] if _core.state.modes else None


def _get_current_function_mode_stack() -> list:
    return list(_core.state.modes)


def _is_torch_function_mode_enabled() -> bool:
    return bool(_core.state.modes and _core.state.everything)


def _len_torch_function_stack() -> int:
    return len(_core.state.modes)


def _push_mode(mode) -> None:
    _core.push(mode)


def _pop_mode():
    return _core.pop()


_pop_mode_temporarily = _core.popped


def _get_overloaded_args(relevant_args, get_type_fn=None) -> list:
    return _core.overriding(tuple(relevant_args), {})


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside, subclasses are asked again, though one of them is answering."""
    outer, _core.state.subclasses = _core.state.subclasses, True
    try:
        yield
    finally:
        _core.state.subclasses = outer


def redispatch_function(func, types, args, kwargs):
    """The function itself, asked again."""
    with enable_reentrant_dispatch():
        return func(*args, **(kwargs or {}))
