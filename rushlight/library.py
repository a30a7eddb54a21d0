"""``rushlight.library``: operators of a program's own, and ``torch.ops``, where operators are found by name.

An operator here is Python that runs: kernels by device, a gradient formula that ``autograd.Function`` records, and a
fake kernel that is kept for who asks. Operators of rushlight itself are under ``torch.ops.aten``.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from . import dtypes
from .autograd import dispatching
from .autograd.function import Function
from .autograd.graph import increment_version
from .autograd.mode import is_grad_enabled, no_grad
from .autograd.overriding import dispatch
from .compat import missing as _missing
from .device import device
from .engine import SPREAD
from .schemas import FunctionSchema, parse_schema
from .tensor import Tensor

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
]


def __dir__():
    return __all__


_OPERATORS: dict[str, CustomOpDef] = {}  # "namespace::name" -> operator
_EVERY_DEVICE = "*"
_fake_context: contextvars.ContextVar[Any] = contextvars.ContextVar("fake kernel", default=None)


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a function an operator: opaque to autograd until ``register_autograd`` gives it a gradient.

    >>> @rushlight.library.custom_op("readme::twice", mutates_args=())
    ... def twice(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return x * 2
    >>> twice.register_autograd(lambda ctx, g: g * 2)
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight.ops.readme.twice(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def decorate(function):
        operator = CustomOpDef(name, schema or infer_schema(function, mutates_args=mutates_args), function)
        operator.register_kernel(device_types, function)
        _OPERATORS[_qualified(name)] = operator
        return operator

    return decorate if fn is None else decorate(fn)


triton_op = custom_op


class CustomOpDef:
    """An operator by name: what runs on which device, and its gradient."""

    def __init__(self, name: str, schema: str, function: Callable | None = None):
        self._namespace, self._name = _qualified(name).split("::")
        self._qualname, self._schema = _qualified(name), schema
        self._signature = inspect.signature(function) if function is not None else None
        self._init_fn = function
        self._kernels: dict[str, Callable] = {}
        self._fake: Callable | None = None
        self._backward: Callable | None = None
        self._setup_context: Callable | None = None
        self._by_parts: Callable | None = None  # for tensors over a mesh, by ``register_sharding``
        self._packet = CustomPacket(self._namespace, self._name, self)
        self.__name__, self.__doc__ = self._name, getattr(function, "__doc__", None)

    def register_kernel(self, device_types, func=None, /):
        """What runs for tensors on these devices (``None``: on all)."""

        def register(function):
            if self._signature is None:
                self._signature = inspect.signature(function)
            kinds = [device_types] if isinstance(device_types, str) or device_types is None else device_types
            for kind in kinds:
                self._kernels[(kind or _EVERY_DEVICE).lower()] = function
            return function

        return register if func is None else register(func)

    def register_fake(self, fn, /):
        """What gives the shape and dtype of a result without computing it."""
        self._fake = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """``backward(ctx, *grads)``, with what ``setup_context(ctx, inputs, output)`` kept."""
        self._backward, self._setup_context = backward, setup_context

    def register_vmap(self, func=None, /):
        """Accepted and not needed: operators are mapped by their own rules."""
        return (lambda f: f) if func is None else func  # vmap here calls the operator for each slice

    register_autocast = register_torch_dispatch = register_vmap

    def __call__(self, *args, **kwargs):
        args = self._bound(args, kwargs)
        if self._by_parts is not None and any(t._array.__class__ is SPREAD.array for t in _tensors(args)):
            return self._by_parts(self, args)
        tensors = [t for t in _tensors(args) if t.requires_grad]
        if tensors and is_grad_enabled():
            return self._recorded().apply(*args)
        return self._run(*args)

    @property
    def _opoverload(self) -> Overload:
        return self._packet.default

    @functools.cached_property
    def _parsed(self) -> FunctionSchema:
        return parse_schema(self._qualname + self._schema)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _bound(self, args, kwargs) -> tuple:
        if not kwargs and self._signature is None:
            return args
        if self._signature is None:
            raise RuntimeError(f"{self._qualname}: no kernel was registered yet")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RuntimeError(self._misfit(args, kwargs) or f"{self._qualname}() {error}") from None
        bound.apply_defaults()
        for place, (name, value) in enumerate(bound.arguments.items()):
            if self._signature.parameters[name].annotation in (Tensor, "torch.Tensor", "Tensor"):
                self._check_tensor(place, name, value)
        return (*bound.args, *bound.kwargs.values())

    def _misfit(self, args, kwargs) -> str | None:
        """What is wrong with the number or the names of arguments."""
        known = self._parsed.arguments
        given, most = len(args) + len(kwargs), len(known)
        if given > most:
            return (
                f"{self._qualname}() expected at most {most} argument(s) but received {given} argument(s). "
                f"Declaration: {self._declaration()}"
            )
        for name in kwargs:
            if all(a.name != name for a in known):
                return (
                    f"Unknown keyword argument '{name}' for operator '{self._qualname}'. Schema: {self._declaration()}"
                )
        for i, a in enumerate(known):
            if not a.has_default_value() and a.name not in kwargs and (a.kwarg_only or i >= len(args)):
                return (
                    f"{self._qualname}() is missing value for argument '{a.name}'. Declaration: {self._declaration()}"
                )
        return None

    def _check_tensor(self, place: int, name: str, value) -> None:
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{self._qualname}() Expected a value of type 'Tensor' for argument '{name}' but instead found type "
                f"'{type(value).__name__}'.\nPosition: {place}\nValue: {value}\nDeclaration: {self._declaration()}\n"
                f"Cast error details: Unable to cast {value} to Tensor"
            )

    def _declaration(self) -> str:
        return str(self._parsed)

    def _run(self, *args):
        kind = next((t.device.type for t in _tensors(args)), "cpu")
        if kind == "meta" and self._fake is not None:
            token = _fake_context.set(FakeContext(self._qualname))
            try:
                return self._called(self._fake, args)
            finally:
                _fake_context.reset(token)
        kernel = self._kernels.get(kind) or self._kernels.get(_EVERY_DEVICE)
        if kind == "meta" and "meta" not in self._kernels:
            raise RuntimeError(
                f"There was no fake impl registered for {self!r}. This is necessary for torch.compile/export/fx "
                f"tracing to work. Please use `{self._name}.register_fake` to add an fake impl."
            )
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments on '{kind}': kernels were registered for "
                f"{', '.join(sorted(self._kernels)) or 'no device'}"
            )
        return self._called(kernel, args)

    def _called(self, kernel, args):
        names = list(self._signature.parameters.values()) if self._signature else []
        by_name = {p.name: a for p, a in zip(names, args) if p.kind is p.KEYWORD_ONLY}
        with no_grad():
            output = kernel(*args[: len(args) - len(by_name)], **by_name)
        if self._parsed.is_mutable:
            written = [a for a, known in zip(args, self._parsed.arguments) if known.is_write]
            increment_version(list(_tensors(written)))  # whatever the kernel did: PyTorch counts the call itself
        for t in _tensors(output if isinstance(output, (tuple, list)) else (output,)):
            if any(t is a or (t._storage is not None and t._storage is a._storage) for a in _tensors(args)):
                raise RuntimeError(
                    f"{self._name}: The output of this custom operator (1) must not also be an input to this custom "
                    "operator and (2) may not alias any inputs to this custom operator or other returns. The most "
                    "common way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. "
                    "Please instead return a clone of the offending output tensor(s) (e.g. return x.clone())."
                )
        return output

    def _recorded(self):
        operator = self

        class Recorded(Function):
            _serves_transforms = True

            @staticmethod
            def forward(ctx, *args):
                output = operator._run(*args)
                if operator._setup_context is not None:
                    operator._setup(ctx, args, output)
                return tuple(output) if isinstance(output, list) else output

            @staticmethod
            def backward(ctx, *grads):
                if operator._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {operator._namespace}.{operator._name}.default but no autograd "
                        "formula was registered. Please use register_autograd to add one."
                    )
                return operator._backward(ctx, *grads)

        Recorded._backward_cls.__name__ = f"GeneratedBackwardFor_{self._namespace}_{self._name}_defaultBackward"
        return Recorded

    def _setup(self, ctx, args, output) -> None:
        names = list(self._signature.parameters.values()) if self._signature else []
        only = {p.name: a for p, a in zip(names, args) if p.kind is p.KEYWORD_ONLY}
        given = {"keyword_only_inputs": only} if only else {}
        self._setup_context(ctx=ctx, inputs=args[: len(args) - len(only)], output=output, **given)  # type: ignore[misc]


def opcheck(op, args, kwargs=None, *, test_utils=None, raise_exception=True, atol=None, rtol=None) -> dict:
    """Try whether an operator was registered rightly: {check: "SUCCESS" or the error}."""
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if not isinstance(op, Overload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got "
            f"{type(op)}"
        )
    from . import operator_checks

    return operator_checks.opcheck(op, args, kwargs, test_utils or operator_checks.CHECKS, raise_exception)


def get_ctx():
    """What a fake kernel may ask while it runs; None elsewhere."""
    return _fake_context.get()


class FakeContext:
    """Handed to fake kernels. Sizes that depend on data are for PyTorch's fake tensors; those of meta are numbers."""

    def __init__(self, name: str):
        self._name = name

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        raise RuntimeError(
            f"{self._name}: You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but this "
            "operator may return an output Tensor with data-dependent shape. Meta Tensors don't support operators with "
            "outputs that have data-dependent shapes but FakeTensors do."
        )

    create_unbacked_symint = new_dynamic_size


class Library:
    """Operators of one namespace, defined by schema and given kernels one by one."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Name an operator; returns its name."""
        name = schema.partition("(")[0].strip()
        _OPERATORS[f"{self.ns}::{name}"] = CustomOpDef(f"{self.ns}::{name}", schema[len(name) :])
        return name

    def impl(self, op_name, fn, dispatch_key: str = "", *, with_keyset=False, allow_override=False) -> None:
        """What runs for a dispatch key such as ``CPU``; ``CompositeImplicitAutograd`` is for all devices."""
        name = op_name if isinstance(op_name, str) else op_name._name
        key = (dispatch_key or self.dispatch_key or "CompositeImplicitAutograd").lower()
        operator = _operator(f"{self.ns}::{name.rpartition('::')[2]}")
        if key == "meta":
            operator.register_fake(fn)
        elif key.startswith("autograd"):
            return
        else:
            operator.register_kernel(None if key.startswith("composite") else key, fn)

    def _destroy(self) -> None:
        for name in [n for n in _OPERATORS if n.startswith(f"{self.ns}::")]:
            del _OPERATORS[name]


def define(qualname: str, schema: str, *, lib=None, tags=()) -> None:
    """Name an operator, ``"namespace::name"``; ``impl`` says what it does."""
    _OPERATORS[_qualified(qualname)] = CustomOpDef(qualname, schema)


def impl(qualname, types, func=None, *, lib=None):
    """What runs for tensors on these devices; ``"default"`` is for all."""
    if isinstance(qualname, Library):  # the older form: impl(library, name, dispatch_key)
        library, name, key = qualname, types, func or ""
        return lambda f: (library.impl(name, f, key), f)[1]
    kinds = None if types in ("default", "CompositeExplicitAutograd") else types
    return _operator(qualname).register_kernel(kinds, func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Give an operator its body for a kind of device."""
    return _operator(op).register_kernel(device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Say what an operator's results look like without computing them."""
    return _operator(op).register_fake if func is None else _operator(op).register_fake(func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Give an operator its backward."""
    _operator(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op, func=None, /, *, lib=None):
    """Accepted and not needed: operators are mapped by their own rules."""
    return _operator(op).register_vmap(func)


register_torch_dispatch = register_autocast = register_vmap


def fallthrough_kernel() -> None:
    """A kernel that leaves the work to the next one."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


# -- schemas ---------------------------------------------------------------------------------------------------------

_TYPES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtypes.dtype: "ScalarType",
    device: "Device", int | float | bool: "Scalar",
}  # fmt: skip


def infer_schema(prototype_function, /, *, mutates_args, op_name: str | None = None) -> str:
    """The schema that a function's annotations say.

    >>> def scaled(x: rushlight.Tensor, by: float = 2.0) -> rushlight.Tensor: ...
    >>> rushlight.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    hints, signature = typing.get_type_hints(prototype_function), inspect.signature(prototype_function)

    def refuse(why: str):
        raise ValueError(f"infer_schema(func): {why} Got func with signature {signature})")

    parts, only = [], False
    for i, p in enumerate(signature.parameters.values()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if p.name not in hints:
            refuse(f"Parameter {p.name} must have a type annotation.")
        if p.kind is p.KEYWORD_ONLY and not only:
            only = True
            parts.append("*")
        word = _word(hints[p.name], p.name)
        if mutates_args == "unknown" or p.name in mutates_args:
            if not word.startswith("Tensor") and mutates_args != "unknown":
                refuse(
                    f"Parameter {p.name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            word = word.replace("Tensor", f"Tensor(a{i}!)", 1)
        parts.append(f"{word} {p.name}" + ("" if p.default is p.empty else f"={_default(p.default)}"))
    strange = set() if mutates_args == "unknown" else set(mutates_args) - set(signature.parameters)
    if strange:
        refuse(
            f"{strange} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            "names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(hints['return'])}"


def _word(hint, name: str) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in arguments:
        rest = [a for a in arguments if a is not type(None)]
        return _word(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)], name) + "?"  # noqa: UP007
    if origin in (list, Sequence, tuple) and arguments:
        return _word(arguments[0], name) + "[]"
    raise ValueError(f"infer_schema(func): Parameter {name} has unsupported type {hint}.")


def _returned(hint) -> str:
    if hint in (None, type(None)):
        return "()"
    if typing.get_origin(hint) is tuple:
        return "(" + ", ".join(_word(a, "return") for a in typing.get_args(hint)) + ")"
    return _word(hint, "return")


def _default(value) -> str:
    if isinstance(value, dtypes.dtype):
        return value.name
    return f'"{value}"' if isinstance(value, (str, device)) else str(value)


# -- torch.ops -------------------------------------------------------------------------------------------------------


class Namespace:
    """``torch.ops.name``: operators by their names; those of rushlight itself under ``aten``."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        found = _OPERATORS.get(f"{self.name}::{name}")
        if found is not None:
            return found._packet
        function = _own(name) if self.name in ("aten", "prims") else None
        if self.name in ("c10d", "c10d_functional", "_c10d_functional"):
            function = _collective(self.name, name)
        if function is None and self.name == "aten":  # tables of operators name many that nobody calls
            function = _not_here(f"torch.ops.aten.{name}")
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        made = self.__dict__[name] = Packet(self.name, name, function)
        return made

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}'>"


def _collective(namespace: str, name: str):
    """A collective as ``torch.ops`` calls it; those of ``c10d`` are only keys in tables."""
    from .distributed._functional_collectives import OPERATORS

    if namespace == "c10d":
        return _not_here(f"torch.ops.c10d.{name}")
    return OPERATORS.get(name)


class Packet:
    """An operator of rushlight as ``torch.ops`` shows it: callable, with overloads that are one function here."""

    def __init__(self, namespace: str, name: str, function):
        self._namespace, self._opname, self._function = namespace, name, function
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args, **kwargs):
        return self.default(*args, **kwargs)

    def __getattr__(self, overload: str):
        if overload.startswith("_"):
            raise AttributeError(overload)
        made = self.__dict__[overload] = Overload(self, overload)
        return made

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self._opname}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}"


class CustomPacket(Packet):
    """An operator of a program's own as ``torch.ops`` shows it."""

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str):
        if overload != "default":
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self._opname}' has no overload name '{overload}'"
            )
        made = self.__dict__[overload] = CustomOverload(self, overload)
        return made

    def overloads(self) -> list[str]:
        return ["default"]


class Overload:
    """One signature of an operator: a key in tables, callable, and what ``__torch_dispatch__`` is given."""

    def __init__(self, packet: Packet, overload: str):
        self.overloadpacket, self._overloadname = packet, overload
        self.namespace, self._opname, self.function = packet._namespace, packet._opname, packet._function
        self.__name__ = self.__qualname__ = f"{packet._opname}.{overload}"
        self.__module__ = f"torch._ops.{packet._namespace}"
        self.tags: list = []

    def __call__(self, *args, **kwargs):
        if dispatch.inside and not dispatch.off:  # below autograd already: whoever else dispatches comes next
            return dispatching.send(self, args, kwargs)
        return self.function(*args, **kwargs)

    def name(self) -> str:
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{suffix}"

    @property
    def op(self):
        return self.overloadpacket

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"


class CustomOverload(Overload):
    """The one signature of an operator of a program's own."""

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def _schema(self) -> FunctionSchema:
        return self.function._parsed


def own_overload(call) -> Overload:
    """An operator that ``aten`` has no call for, as an overload: it takes what the operator itself takes."""
    packets = namespace("rushlight").__dict__
    name = call.op.name
    if name not in packets:
        packets[name] = Packet("rushlight", name, call.op.call)
    return packets[name].default


_NAMESPACES: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The operators of one namespace, as attributes."""
    return _NAMESPACES.setdefault(name, Namespace(name))


def load_library(path) -> None:
    """A library of kernels compiled for PyTorch."""
    raise OSError(f"{path}: libraries compiled for PyTorch cannot be loaded; rushlight.library.custom_op takes Python")


def _own(name: str):
    from .ops.calls import BODIES
    from .ops.public import PUBLIC

    if name in BODIES:
        return BODIES[name]
    if name in PUBLIC:
        return PUBLIC[name]
    from .nn import functional

    return getattr(functional, name, None) or getattr(Tensor, name, None)


def _not_here(name: str):
    def function(*args, **kwargs):
        raise NotImplementedError(f"{name} is only a name here: call the function of torch that does the same")

    return function


def _qualified(name: str) -> str:
    if name.count("::") != 1:
        raise ValueError(
            f"Expected `name` to be of the form `namespace::name`, got {name!r}: give the operator a namespace"
        )
    return name.partition(".")[0]


def _operator(op) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (CustomOverload, CustomPacket)):
        return op.function if isinstance(op, CustomOverload) else op._function
    found = _OPERATORS.get(_qualified(op))
    if found is None:
        raise RuntimeError(f"{op}: no such operator; define it first, by library.define or library.custom_op")
    return found


def _tensors(args):
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from (t for t in a if isinstance(t, Tensor))


__getattr__ = _missing(__name__)
