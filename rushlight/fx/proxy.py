"""What stands for values while a function is traced: every use of it becomes a node."""

from __future__ import annotations

import dis
import inspect
import operator
import sys

from .. import dtypes
from ..autograd import overriding
from ..device import device
from ..layout import layout, memory_format
from .graph import _INFIX, Graph
from .node import BASE_TYPES, Node, in_functional, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """The function does something that depends on values, which a trace does not have."""


class TracerBase:
    """Makes nodes and proxies for a graph."""

    graph: Graph
    record_stack_traces = False
    trace_asserts = False
    check_mutable_operations = False

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None) -> Node:
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None) -> Proxy:
        """A new node, for what is called with these arguments, and what stands for its value."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a):
        """An argument as nodes have it: proxies become nodes."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*[self.create_arg(x) for x in a])
        if isinstance(a, (tuple, list)):
            parts = [self.create_arg(x) for x in a]
            return tuple(parts) if isinstance(a, tuple) else parts
        if isinstance(a, dict):
            if any(isinstance(k, Proxy) for k in a):
                raise RuntimeError("Keys for dictionaries used as an argument cannot contain a Node")
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (*BASE_TYPES, dtypes.dtype, device, layout, memory_format, type)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called when a branch depends on a proxy."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy):
        """Called when a proxy is iterated over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy):
        """Called for ``**obj``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that is there."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        overriding.watch_always()  # what a function reads of a proxy before it gives up would become a node


class Proxy:
    """Stands for the value of a node: what is done with it is written into the graph."""

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        return Attribute(self, k)

    def __deepcopy__(self, memo):
        raise TraceError("a Proxy cannot be copied: it stands for a value that is not there yet")

    def __setstate__(self, state):
        self.__dict__ = state

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        count = _unpacked(sys._getframe(1))
        if count is not None:
            return (self[i] for i in range(count))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __index__(self):
        raise TypeError("'Proxy' object cannot be interpreted as an integer")

    def __int__(self):
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'Proxy'")

    def __float__(self):
        raise TypeError("float() argument must be a string or a real number, not 'Proxy'")

    def __contains__(self, item):
        return any(v is item for v in iter(self))

    def keys(self):
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        return record_call(orig_method, args or (), kwargs or {})


def record_call(function, args, kwargs):
    """A node for a function or method that was called with proxies."""
    from .. import overrides

    tracer = find_tracer((args, kwargs))
    function = getattr(function, "plain", function)  # as a mode hands out methods
    if overrides.is_tensor_method_or_property(function):
        owner = getattr(function, "__self__", None)
        if isinstance(owner, property):
            return Attribute(args[0], owner.fget.__name__)
        name = overrides.resolve_name(function).rpartition(".")[2]
        return tracer.create_proxy("call_method", name, args, kwargs)
    if in_functional(function):
        args, kwargs = _filled(function, args, kwargs)
    return tracer.create_proxy(
        "call_function", function, args, kwargs, name=tracer.graph._target_to_str(function.__name__)
    )


def _filled(function, args, kwargs):
    """Arguments as nn.functional hands them on: those with defaults by name, all of them."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    plain, named = [], {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            plain += bound.arguments[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(bound.arguments[name])
        elif parameter.default is parameter.empty:
            plain.append(bound.arguments[name])
        else:
            named[name] = bound.arguments[name]
    return tuple(plain), named


def find_tracer(values) -> TracerBase | None:
    """The tracer of a proxy in ``values``, or None."""
    found = {}

    def look(value):
        if isinstance(value, Proxy):
            found[value.tracer] = None

    map_aggregate(values, look)
    if len(found) > 1:
        raise RuntimeError(f"Found multiple different tracers {list(found)} while trying to trace operations")
    return next(iter(found), None)


class Attribute(Proxy):
    """``proxy.name``: a node only if it is used as a value, not if it is called."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name, param):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self, *dim):
        return self.param.size(*dim)

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()


def _unpacked(frame) -> int | None:
    """How many names ``a, b = proxy`` has on its left, or None if the caller does something else."""
    code, last = frame.f_code, frame.f_lasti
    for instruction in dis.get_instructions(code):
        if instruction.offset == last:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _operator(name: str):
    function = getattr(operator, name)

    def method(*args, **kwargs):
        tracer = args[0].tracer
        return tracer.create_proxy("call_function", function, args, kwargs)

    return method


def _reflected(name: str):
    function = getattr(operator, name)

    def method(self, other):
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


_REFLECTED = "add sub mul floordiv truediv mod lshift rshift and_ or_ xor matmul pow"
for _name in (*_INFIX, "pos", "neg", "invert", "getitem"):
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in _REFLECTED.split():
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
