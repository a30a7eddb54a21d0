"""Tracing: call a function with proxies, and keep what it did."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from ..nn.attributes import Reader
from ..nn.containers import Sequential
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .node import _PACKAGE
from .proxy import ParameterProxy, TracerBase, find_tracer, record_call

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]


class _Placeholder:
    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()  # in ``concrete_args``: stays an input
_active = 0
_wrapped_names: dict = {}  # (id of a module's names, name) -> those names


def is_fx_tracing() -> bool:
    """Is a function being traced now?"""
    return _active > 0


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Metaclass of classes that a traced function may make objects of: with proxies, that is a node."""

    def __call__(cls, *args, **kwargs):
        tracer = find_tracer((args, kwargs))
        if tracer is None:
            return super().__call__(*args, **kwargs)
        return tracer.create_proxy("call_function", cls, args, kwargs)


def symbolic_trace(root, concrete_args=None) -> GraphModule:
    """The graph of a module or function, as a module.

    >>> print(rushlight.fx.symbolic_trace(lambda x: rushlight.relu(x) + 1).graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        %add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def wrap(fn_or_name):
    """Calls of this function, by its name in the calling module, are recorded and not traced into."""
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    if not isinstance(name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        names = getattr(fn_or_name, "__globals__", None) or sys._getframe(1).f_globals
    else:
        names = sys._getframe(1).f_globals
        if sys._getframe(1).f_code.co_name not in ("<module>", "forward"):
            raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_names[(id(names), name)] = names
    return fn_or_name


def wrapped_functions() -> set:
    """The functions that ``wrap`` named."""
    found = {names.get(name, getattr(builtins, name, None)) for (_, name), names in _wrapped_names.items()}
    return {getattr(f, "__wrapped__", f) for f in found if callable(f)}


class _Recording(TorchFunctionMode):
    """While a trace is on: functions and methods that meet a proxy are recorded."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if find_tracer((tuple(args), kwargs)) is not None:
            return record_call(func, args, kwargs)
        return func(*args, **kwargs)


class Tracer(TracerBase):
    """Makes a graph of a module. Override ``is_leaf_module`` to say what is not looked into."""

    def __init__(self, autowrap_modules=(), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self.param_shapes_constant = param_shapes_constant
        self._autowrap = {*autowrap_functions, *(f for m in autowrap_modules for f in _functions_of(m))}
        self.root: Module = Module()
        self.tensor_attrs: dict = {}
        self.submodule_paths: dict | None = None

    # -- what may be overridden --------------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Is a call of ``m`` one node? Layers of this package are, Sequential apart."""
        home = type(m).__module__
        return home.startswith((f"{_PACKAGE}.nn.", "torch.nn.")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """``layers.0`` for that module of the root."""
        if self.submodule_paths:
            found = self.submodule_paths.get(mod)
        else:
            found = next((n for n, m in self.root.named_modules() if m is mod), None)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """What calling a module does."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val, parameter_proxy_cache: dict):
        """What reading an attribute of a module gives: a proxy, if it is a parameter."""
        if not isinstance(attr_val, Parameter):
            return attr_val
        for name, parameter in self.root.named_parameters():
            if parameter is attr_val:
                if name not in parameter_proxy_cache:
                    make = functools.partial(_parameter_proxy, self, name, attr_val)
                    parameter_proxy_cache[name] = self.create_proxy(
                        "get_attr", name, (), {}, proxy_factory_fn=make if self.param_shapes_constant else None
                    )
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a):
        """Parameters, buffers and modules become attributes of the root; other tensors are put there."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), args, {})
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._constant(a), (), {})
        return super().create_arg(a)

    def _constant(self, a: Tensor) -> str:
        name = self.tensor_attrs.get(a)
        if name is None:
            i = 0
            while hasattr(self.root, f"_tensor_constant{i}"):
                i += 1
            name = self.tensor_attrs[a] = f"_tensor_constant{i}"
            setattr(self.root, name, a)
        return name

    # -- tracing -----------------------------------------------------------------------------------------------------

    def trace(self, root, concrete_args=None) -> Graph:
        """The graph of a module's forward, or of a function."""
        if isinstance(root, Module):
            self.root, fn = root, type(root).forward
            self.submodule_paths = {m: n for n, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {v: n for n, v in _plain_tensors(self.root)}
        fn = getattr(fn, "__func__", fn)
        if not isinstance(fn, FunctionType):
            raise AssertionError("a module or a Python function is traced")
        cache: dict = {}
        with _patched(self, cache, fn.__globals__), _Recording():
            fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            result = fn(*args)
            self.create_node(
                "output", "output", (self.create_arg(result),), {}, type_expr=fn.__annotations__.get("return")
            )
        self.submodule_paths = None
        return self.graph

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function, and a proxy for each of its arguments."""
        fn, code = inspect.unwrap(root_fn), inspect.unwrap(root_fn).__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        args: list = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            names.pop(0)
        signature = inspect.signature(fn)
        count = 0

        def placeholder(name: str):
            nonlocal count
            if concrete_args is not None and name in concrete_args and concrete_args[name] is not PH:
                count += 1
                return self._specialized(name, concrete_args[name], count)
            given = signature.parameters.get(name.lstrip("*"))
            default = () if given is None or given.default is given.empty or name[0] == "*" else (given.default,)
            return self.create_proxy(
                "placeholder", name, default, {}, type_expr=fn.__annotations__.get(name.lstrip("*"))
            )

        given = [placeholder(name) for name in names]
        named = code.co_kwonlyargcount
        plain, by_name = (
            given[: len(given) - named],
            dict(zip(names[len(given) - named :], given[len(given) - named :])),
        )
        place = code.co_argcount + code.co_kwonlyargcount
        rest = []
        if code.co_flags & inspect.CO_VARARGS:
            rest.append(placeholder("*" + code.co_varnames[place]))
            place += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            rest.append(placeholder("**" + code.co_varnames[place]))
        args += plain
        if rest:
            return _without_stars(fn), [*args, *by_name.values(), *rest]
        if not by_name:
            return root_fn, args
        called = functools.partial(fn, **by_name)
        called.__annotations__ = {}  # type: ignore[attr-defined]
        return called, args

    def _specialized(self, name: str, value, count: int):
        """An argument whose value is known: it stays an input, and the code checks it."""
        made = self.create_proxy("placeholder", f"{name}_{count}", (), {})
        if isinstance(value, (int, float, bool, str)):
            check = made == value
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", sys.modules[_PACKAGE]._assert, (check, message), {})
        return value


def _parameter_proxy(tracer, name, parameter, node):
    return ParameterProxy(tracer, node, name, parameter)


def _without_stars(fn: FunctionType) -> FunctionType:
    """The same function with ``*args`` and ``**kwargs`` as two ordinary arguments: they may be proxies."""
    code = fn.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    plain: CodeType = code.replace(co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0, co_flags=flags)
    return FunctionType(plain, fn.__globals__, fn.__name__, None, fn.__closure__)


def _plain_tensors(module: Module, prefix: str = ""):
    """Tensors that are plain attributes: neither parameters nor buffers."""
    for path, part in module.named_modules():
        for name, value in part.__dict__.items():
            if isinstance(value, Tensor):
                yield f"{path}.{name}".lstrip("."), value


def _functions_of(module):
    return [f for name, f in vars(module).items() if callable(f) and not name.startswith("_")]


@contextlib.contextmanager
def _patched(tracer: Tracer, cache: dict, names: dict):
    """Modules ask the tracer when they are called or read, and wrapped functions are recorded, in the block."""
    global _active
    call, long_way, read = Module.__call__, Module.__getattr__, Reader.__get__  # type: ignore[attr-defined]

    def module_call(self, *args, **kwargs):
        forward = lambda *args, **kwargs: call(self, *args, **kwargs)
        return tracer.call_module(self, forward, args, kwargs)

    def module_getattr(self, name):
        return tracer.getattr(name, long_way(self, name), cache)

    def reader_get(self, module, owner=None):
        value = read(self, module, owner)
        return value if module is None else tracer.getattr(self.name, value, cache)

    restore = [(names, key, value) for names, key, value in _wrapped_places(tracer, names)]
    for space, key, value in restore:
        space[key] = _recorded(value)
    Module.__call__, Module.__getattr__, Reader.__get__ = module_call, module_getattr, reader_get  # type: ignore
    _active += 1
    try:
        yield
    finally:
        _active -= 1
        Module.__call__, Module.__getattr__, Reader.__get__ = call, long_way, read  # type: ignore
        for space, key, value in restore:
            if getattr(builtins, key, None) is value:
                del space[key]
            else:
                space[key] = value


def _wrapped_places(tracer: Tracer, names: dict):
    for (_, name), space in list(_wrapped_names.items()):
        value = space.get(name, getattr(builtins, name, None))
        if value is not None:
            yield space, name, value
    for name, value in list(names.items()):
        try:
            if value in tracer._autowrap:
                yield names, name, value
        except TypeError:  # unhashable
            continue
    for name, value in list(names.items()):
        if getattr(math, name, None) is value and callable(value):
            yield names, name, value


def _recorded(function):
    """``function``, or a node if it is called with a proxy."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        tracer = find_tracer((args, kwargs))
        if tracer is None:
            return function(*args, **kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)

    return called
