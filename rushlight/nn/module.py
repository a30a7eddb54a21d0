"""``Module``: what every layer and model is.

Three plain dicts, ``_parameters``, ``_buffers`` and ``_modules``, are all the state a module has for us; everything
else (``parameters()``, ``state_dict()``, ``to()``, printing) is read from them. Reading is one traversal seen from
several sides. What people override (``train``, ``apply``, ``_apply``, ``state_dict``) goes from a module to a child
through the child's own method.

Every method is here, with what it promises; the longer stories are told in files of their own: ``hooks.py`` (a call
between hooks), ``saving.py`` (state dicts), ``conversion.py`` (dtypes and devices), ``attributes.py`` (names).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..device import device as Device
from ..errors import warn_user
from ..tensor import Tensor
from ..utils.hooks import RemovableHandle, epoch
from . import blame, conversion, saving
from . import hooks as hooking
from .attributes import (
    cannot_assign,
    check_name,
    class_names,
    hide_readers,
    read_fast,
    remove,
    typename,
    unexpected_arguments,
)
from .hooks import (
    Hooks,
    everyone,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from .parameter import Parameter
from .saving import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys

__all__ = [
    "Module",
    "epoch",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T_destination = TypeVar("T_destination", bound=dict[str, Any])


class Module:
    """A part of a model: parameters, buffers, child modules, and ``forward``.

    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(rushlight.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(rushlight.tensor([1.0, 2.0]))
    tensor([2., 4.], grad_fn=<MulBackward0>)
    """

    T_destination = T_destination
    dump_patches: bool = False
    call_super_init: bool = False
    _version: int = 1
    _hooks: Hooks | None = None  # None until the first hook
    _names_are_code: bool = True  # the names of members are written in programs, not keys of data

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise unexpected_arguments(type(self), args, kwargs)
        # Straight into the dict: __setattr__ would ask of each whether it is a parameter.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        # The short cut in __call__ would pass an overridden _call_impl by.
        if "_call_impl" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = _call_through_impl  # type: ignore[method-assign]
        hide_readers(cls)

    # -- calling -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:  # costs nothing until it raises
            if self._hooks is None and not everyone.present:
                return self.forward(*args, **kwargs)
            compiled = self._compiled_call_impl
            return hooking.run(self, args, kwargs) if compiled is None else compiled(*args, **kwargs)
        except Exception as error:
            blame.note_path(error)
            raise

    _wrapped_call_impl = __call__

    def _call_impl(self, *args, **kwargs):
        return hooking.run(self, args, kwargs)

    def _slow_forward(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def _forward_unimplemented(self, *args, **kwargs):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented
    del _forward_unimplemented

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """From now on call ``rushlight.compile(self)`` in this module's place, hooks included."""
        from ..compiler import compile

        self._compiled_call_impl = compile(self._call_impl, *args, **kwargs)

    @property
    def _compiled_call_impl(self):
        return None if self._hooks is None else self._hooks.compiled

    @_compiled_call_impl.setter
    def _compiled_call_impl(self, value) -> None:
        self._own_hooks().compiled = value
        epoch.value += 1

    # -- attributes --------------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # so that ``self.weight`` is to a type checker what its annotation says

        def __getattr__(self, name: str):
            state = self.__dict__
            if "_parameters" in state:
                table = state["_parameters"]
                if name in table:
                    return table[name]
            if "_buffers" in state:
                table = state["_buffers"]
                if name in table:
                    return table[name]
            if "_modules" in state:
                table = state["_modules"]
                if name in table:
                    return table[name]
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._set_parameter(name, value)
        elif "_parameters" not in state:
            self._set_early(name, value)
        elif name in state["_parameters"]:
            if value is not None:
                raise cannot_assign(value, f"as parameter '{name}' (torch.nn.Parameter or None expected)")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            remove(name, state, state["_parameters"], state["_buffers"], state["_non_persistent_buffers_set"])
            state["_modules"][name] = registered("module_registration", self, name, value)
            read_fast(type(self), "_modules", name)
        elif name in state["_modules"]:
            if value is not None:
                raise cannot_assign(value, f"as child module '{name}' (torch.nn.Module or None expected)")
            state["_modules"][name] = registered("module_registration", self, name, value)
        elif name in state["_buffers"] or (isinstance(value, Tensor) and getattr(value, "_is_buffer", False)):
            self._set_buffer(name, value)
        else:
            if name == "training" and state.get(name) is not value:
                epoch.value += 1
            super().__setattr__(name, value)

    def _set_parameter(self, name: str, value: Parameter) -> None:
        state = self.__dict__
        if "_parameters" not in state:
            raise AttributeError("cannot assign parameters before Module.__init__() call")
        remove(name, state, state["_buffers"], state["_modules"], state["_non_persistent_buffers_set"])
        self.register_parameter(name, value)

    def _set_buffer(self, name: str, value) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise cannot_assign(value, f"as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)")
        buffers = self._buffers
        if name in buffers:
            buffers[name] = registered("buffer_registration", self, name, value)
            if value is not None and getattr(value, "_is_buffer", False):
                self._mark_persistent(name, value.persistent)
        else:
            self.register_buffer(name, value, getattr(value, "persistent", True))

    def _set_early(self, name: str, value) -> None:
        """Before ``Module.__init__``: only what needs no table."""
        if isinstance(value, Module):
            raise AttributeError("cannot assign module before Module.__init__() call")
        if isinstance(value, Tensor) and getattr(value, "_is_buffer", False):
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        epoch.value += 1
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = {*class_names(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[:1].isdigit())  # "0" of a Sequential is no attribute

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        hooks = state.pop("_hooks", None)
        if hooks is not None:
            state.update(hooks.to_state())
        return state

    def __setstate__(self, state: dict) -> None:
        own = {name: value for name, value in state.items() if name not in hooking.STATE_NAMES}
        tables = {name: value for name, value in state.items() if name in hooking.STATE_NAMES}
        self.__dict__.update(own)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.pop("_compiled_call_impl", None)
        if any(tables.values()):
            self.__dict__["_hooks"] = Hooks.from_state(tables)

    # -- registering -------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under ``name``; None reserves the name and is left out of ``state_dict``."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        check_name("parameter", name)
        if name not in self._parameters and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise cannot_assign(param, f"object to parameter '{name}' (torch.nn.Parameter or None required)")
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        if param is not None:
            param = registered("parameter_registration", self, name, param)
        self._parameters[name] = param
        epoch.value += 1
        read_fast(type(self), "_parameters", name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the state but is not trained; ``persistent``: also part of ``state_dict``."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        check_name("buffer", name)
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise cannot_assign(tensor, f"object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = registered("buffer_registration", self, name, tensor)
        self._mark_persistent(name, persistent)
        read_fast(type(self), "_buffers", name)

    def _mark_persistent(self, name: str, persistent: bool) -> None:
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child; the same as ``setattr`` for names that only exist at run time."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if name not in self._modules and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = registered("module_registration", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as ``add_module``."""
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path: ``model.get_submodule("encoder.layers.0")``."""
        module = self
        for name in target.split(".") if target else ():
            module = _member(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at a dotted path; with ``strict`` only in the place of another."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)  # raises unless a module is there
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        parameter = _member(self.get_submodule(path), name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        buffer = _member(owner, name)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # -- going through the tree --------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(path, module) for this module and all below it, parents first. Every traversal is a view of this one."""
        memo = set() if memo is None else memo
        levels = [iter([(prefix, self)])]
        while levels:
            for path, module in levels[-1]:
                if module is None or module in memo:
                    continue
                if remove_duplicate:
                    memo.add(module)
                yield path, module
                levels.append(_below(module, path))
                break
            else:
                levels.pop()

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) for the direct children, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter), of this module only if not ``recurse``; a shared one once, under its first name."""
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once: what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer), as ``named_parameters``."""
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(self, get_members_fn, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    # -- changing all of it ------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every module below, then on this one: ``model.apply(init_weights)``."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set ``training`` here and below: what dropout and batch norm go by."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or make them zero."""
        if getattr(self, "_is_replica", False):
            warn_user(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are "
                "copied (in a differentiable manner) from the original module. This means they are not leaf nodes in "
                "autograd and so don't accumulate gradients. If you need gradients in your forward method, consider "
                "using autograd.grad instead."
            )
        for parameter in self.parameters():
            grad = parameter._grad
            if grad is None:
                continue
            if set_to_none:
                parameter._grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                grad.requires_grad_(False).zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every tensor of the module by ``fn`` of it. Parameters stay the objects they are."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                conversion.convert_parameter(self, name, parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        epoch.value += 1
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """``to(device)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=…)``: move or convert, in place.

        Only floating-point parameters and buffers change dtype.
        """
        return self._apply(conversion.converter(*args, **kwargs))

    def cpu(self) -> Self:
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: int | Device | None = None) -> Self:
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: int | Device | None = None) -> Self:
        return self._apply(lambda t: conversion.no_device("ipu"))

    def xpu(self, device: int | Device | None = None) -> Self:
        return self._apply(lambda t: conversion.no_device("xpu"))

    def mtia(self, device: int | Device | None = None) -> Self:
        return self._apply(lambda t: conversion.no_device("mtia"))

    def type(self, dst_type) -> Self:
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to ``device`` without copying any values."""
        from ..ops import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Put all tensors into memory that processes started from here see and change too."""
        return self._apply(lambda t: t.share_memory_())

    # -- hooks -------------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """``hook(module, args) -> None | args`` before forward; see ``nn/hooks.py`` for the order of all hooks."""
        return self._own_hooks().add_forward_pre(hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """``hook(module, args, output) -> None | output`` after forward; ``always_call``: also when forward raised."""
        return self._own_hooks().add_forward(hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """``hook(module, grad_output) -> None | grad_output`` before the gradients of the inputs are computed."""
        return self._own_hooks().add("backward_pre_hooks", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """``hook(module, grad_input, grad_output) -> None | grad_input`` when the inputs' gradients are computed."""
        return self._own_hooks().add_backward(hook, True, "on a single Module", prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated: sees only the last node of forward; use ``register_full_backward_hook``."""
        return self._own_hooks().add_backward(hook, False, "on a single Module")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """``hook(module, prefix, keep_vars)`` before ``state_dict`` collects."""
        return self._own_hooks().add("state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """``hook(module, state_dict, prefix, local_metadata) -> None`` after ``state_dict`` collected."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._own_hooks().add("state_dict_hooks", hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As the public one, but what the hook returns becomes the state dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return self._own_hooks().add("state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = hooking.WithModule(hook, self if with_module else None)
        return self._own_hooks().add("load_state_dict_pre_hooks", wrapped)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """``hook(module, incompatible_keys) -> None`` after loading; it may edit the lists of keys."""
        return self._own_hooks().add("load_state_dict_post_hooks", hook)

    def _own_hooks(self) -> Hooks:
        hooks = self._hooks
        if hooks is None:
            hooks = self.__dict__["_hooks"] = Hooks()
        return hooks

    def _get_backward_hooks(self):
        owners = (everyone, self._own_hooks())
        return [h for o in owners for h in o.backward(True)], [h for o in owners for h in o.backward(False)]

    def _get_backward_pre_hooks(self):
        return [*everyone.backward_pre_hooks.values(), *self._own_hooks().backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn) -> None:
        hooking.warn_about_legacy(inputs, result, grad_fn)

    # -- state dict --------------------------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by path: detached, but sharing memory; ``keep_vars``: as they are."""
        if args:
            destination, prefix, keep_vars = saving.positional(args, destination, prefix, keep_vars)
        return saving.save(self, destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        """Write this module's own tensors, not its children's, into ``destination``."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy (``assign``: take over) the tensors of ``state_dict`` into parameters and buffers of the same path.

        ``strict``: keys that are missing here or there are an error, raised after all others were loaded.
        """
        return saving.load(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load this module's own tensors; override it to upgrade old states (``local_metadata["version"]``)."""
        lists = (missing_keys, unexpected_keys, error_msgs)
        takes_extra = type(self).set_extra_state is not Module.set_extra_state
        saving.load_own(self, state_dict, prefix, local_metadata, strict, lists, takes_extra)

    def get_extra_state(self) -> Any:
        """Override (with ``set_extra_state``) to save something that is no tensor in ``state_dict``."""
        raise RuntimeError(saving.NEVER_CALLED.format("get"))

    def set_extra_state(self, state: Any) -> None:
        """Override (with ``get_extra_state``) to load what that returned."""
        raise RuntimeError(saving.NEVER_CALLED.format("set"))

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a layer prints between its parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def _repr_html_(self) -> str:
        from ..inspect.graph import module_html

        return module_html(self)

    def _replicate_for_data_parallel(self) -> Module:
        replica = object.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        # A replica's parameters are not leaves: they become plain attributes, set by who replicates.
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        replica._is_replica = True
        return replica


for _name in hooking.STATE_NAMES:
    setattr(Module, _name, hooking.table_property(_name[1:]))


def __getattr__(name: str):
    """PyTorch's names for the tables of global hooks: ``_global_forward_hooks`` …"""
    table = name.removeprefix("_global_")
    if table is not name and table.removesuffix("_hooks") in _REGISTRATION:
        return getattr(everyone, table.removesuffix("_hooks"))
    if "_" + table in hooking.STATE_NAMES:
        everyone.present = True  # who reads it may write to it
        epoch.value += 1
        return getattr(everyone, table)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


_REGISTRATION = ("parameter_registration", "buffer_registration", "module_registration")


def _below(module: Module, path: str):
    start = path + "." if path else ""
    for name, child in module._modules.items():
        yield start + name, child


def _parameters_of(module: Module):
    return module._parameters.items()


def _buffers_of(module: Module):
    return module._buffers.items()


def _member(module: Module, name: str):
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def _call_through_impl(self, *args, **kwargs):
    compiled = self._compiled_call_impl
    try:
        return self._call_impl(*args, **kwargs) if compiled is None else compiled(*args, **kwargs)
    except Exception as error:
        blame.note_path(error)
        raise


def _addindent(text: str, spaces: int) -> str:
    """Indent every line but the first."""
    return text.replace("\n", "\n" + " " * spaces)
