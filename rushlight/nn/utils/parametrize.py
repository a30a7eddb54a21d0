"""Parameters computed from others: ``module.weight`` becomes a property that runs a module on what is trained."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Sequence
from typing import Any

from ...autograd.mode import no_grad
from ...tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


def __dir__():
    return __all__


_cache: dict = {}
_caching = 0


@contextlib.contextmanager
def cached():
    """Within the block every parametrized tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they start from: ``original``, or ``original0``, ``original1`` …"""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            start = self._inverted(original)
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            _same("dtype", "`right_inverse(tensor)`", start, "tensor", original)
            with no_grad():
                _set(original, start)
            _register(self, "original", original)
        else:
            self._register_several(original, start)
        if not unsafe:
            self._check_result(original)

    def right_inverse(self, value: Tensor) -> None:
        """Set what the parametrizations start from so that they give ``value``."""
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                _same(
                    "dtype", "The tensor returned by `parametrization.right_inverse`", value, "original", self.original
                )
                _set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, t in enumerate(value):
                _set(getattr(self, f"original{i}"), t)

    def forward(self) -> Tensor:
        modules = iter(self)
        first = next(modules)
        value = first(self.original) if self.is_tensor else first(*self._originals())
        for module in modules:
            value = module(value)
        return value

    def _originals(self):
        return (getattr(self, f"original{i}") for i in range(self.ntensors))

    def _inverted(self, value):
        for module in reversed(self):
            if hasattr(module, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    value = module.right_inverse(value)
        if not isinstance(value, Tensor) and not isinstance(value, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def _register_several(self, original, tensors) -> None:
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(t).__name__}."
                )
            if isinstance(original, Parameter):
                t = Parameter(t, original.requires_grad)
            t.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", t)

    def _check_result(self, original) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what in ("dtype", "shape"):
            _same(what, "`parametrization(tensor)`", result, "tensor", original)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on ``module.<tensor_name>`` is ``parametrization`` of what it was; that is what is trained.

    >>> class Symmetric(rushlight.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_added(getattr(module, tensor_name), parametrization, tensor_name)
        existing = module.parametrizations[tensor_name]
        existing.append(parametrization)
        existing.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        base = type_before_parametrizations(module)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = made
        module.__class__ = _parametrized_class(base, tuple(sorted(module.parametrizations)))
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Has the module parametrizations? Has this tensor of it?"""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor a plain one again: with the computed values, or with those it was computed from."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    names = tuple(sorted(module.parametrizations))
    module.__class__ = _parametrized_class(base, names) if names else base
    if not names:
        delattr(module, "parametrizations")
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class, without what parametrizing made of it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give ``to_module`` the parametrizations of ``from_module`` (of one tensor, or of all) and their parameters."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        if hasattr(source, "original"):
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module


# -- how a module becomes parametrized -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _parametrized_class(cls: type, names: tuple[str, ...]) -> Any:
    """A subclass that computes the tensors called ``names``; shared, for a class is never freed at once."""
    body: dict[str, Any] = {"__getstate__": _getstate, **{name: _property(name) for name in names}}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = _deepcopy
    return type(f"Parametrized{cls.__name__}", (cls,), body)


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    replica = memo[id(self)] = self.__new__(type(self))
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    return replica


def _property(name: str) -> property:
    def get(self):
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(target: Tensor, source: Tensor) -> None:
    """Let ``target`` have the memory of ``source``."""
    if target is not source:
        target.data = source.detach()


def _same(what: str, made_name: str, made: Tensor, given_name: str, given: Tensor) -> None:
    if getattr(made, what) != getattr(given, what):
        raise ValueError(
            f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
            f"{given_name}.{what}: {getattr(given, what)}\n{made_name}.{what}: {getattr(made, what)}"
        )


def _check_added(current: Tensor, parametrization: Module, name: str) -> None:
    """One more parametrization, on top of others: it must give, and take, tensors like the current one."""
    result = parametrization(current)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        _same(what, f"parametrization(module.{name})", result, f"module.{name}", current)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        _same(what, f"parametrization.right_inverse(module.{name})", back, f"module.{name}", current)
