"""A graph: nodes in the order they run, and the Python code that does the same."""

from __future__ import annotations

import builtins
import contextlib
import copy
import enum
import keyword
import math
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from .. import dtypes
from ..device import device
from ..layout import layout, memory_format
from ..tensor import Size, Tensor
from .node import _PACKAGE, Node, map_arg, qualified_name, type_text

__all__ = ["CodeGen", "Graph", "PythonCode"]

_INFIX = {
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
    "floordiv": "//", "truediv": "/", "mod": "%", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    "matmul": "@", "pow": "**",
}  # fmt: skip
_PREFIX = {"pos": "+", "neg": "-", "invert": "~"}
_IN_PLACE = {
    "iadd": "+=", "iand": "&=", "ifloordiv": "//=", "ilshift": "<<=", "imod": "%=", "imul": "*=", "imatmul": "@=",
    "ior": "|=", "ipow": "**=", "irshift": ">>=", "isub": "-=", "itruediv": "/=", "ixor": "^=",
}  # fmt: skip


@dataclass
class PythonCode:
    """Code, and what the names in it stand for."""

    src: str
    globals: dict[str, Any] = field(default_factory=dict)


class _Names:
    """Names that are free: ``relu``, ``relu_1``, …"""

    def __init__(self):
        self.used: dict[str, Any] = {}
        self.counts: dict[str, int] = defaultdict(int)

    def create(self, candidate: str, obj=None) -> str:
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = "_" + candidate if candidate[0].isdigit() else candidate
        numbered = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
        number = number or self.counts[base]
        while candidate in self.used or self._forbidden(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self.used[candidate], self.counts[base] = obj, number
        return candidate

    @staticmethod
    def _forbidden(name: str, obj) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return obj is not vars(builtins)[name]
        return name in _KNOWN and (obj is None or obj is not _KNOWN[name])


_KNOWN: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": None, "device": device}
_KNOWN |= {"fx_pytree": None, "pytree": None}


class _NodeList:
    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self):
        root, node = self.graph._root, getattr(self.graph._root, self.direction)
        while node is not root:
            following = getattr(node, self.direction)
            if not node._erased:
                yield node
            node = getattr(node, self.direction) if not node._erased else following

    def __reversed__(self):
        return _NodeList(self.graph, "_next" if self.direction == "_prev" else "_prev")


class Graph:
    """The nodes of a function. ``create_node`` and its short forms add them where ``inserting_before`` says."""

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._names = _Names()
        self._insert = self._root.prepend
        self.owning_module, self._tracer_cls, self._codegen = owning_module, tracer_cls, CodeGen()

    @property
    def nodes(self) -> _NodeList:
        return _NodeList(self)

    def output_node(self) -> Node:
        return next(iter(reversed(self.nodes)))

    def find_nodes(self, *, op: str, target=None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and with a target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # -- making nodes ------------------------------------------------------------------------------------------------

    def create_node(self, op: str, target, args=None, kwargs=None, name: str | None = None, type_expr=None) -> Node:
        """A new node where the graph is being added to."""
        kinds = ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")
        if op not in kinds:
            raise AssertionError(f"op must be one of {kinds}, got {op!r}")
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("args must be a tuple, and kwargs a dict")
        name = self._names.create(name if name is not None else self._target_to_str(target))
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr=None, default_value=...) -> Node:
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr=None) -> Node:
        """A parameter or another attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args=None, kwargs=None, type_expr=None) -> Node:
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args=None, kwargs=None, type_expr=None) -> Node:
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None) -> Node:
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target) -> str:
        name = target if isinstance(target, str) else target.__name__
        if len(name) > 4 and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()

    # -- changing it -------------------------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._set((), {})
        to_erase._erased = True
        self._len -= 1

    def inserting_before(self, n: Node | None = None):
        """In the block, nodes are added before ``n``; at the graph's beginning without it."""
        return self._inserting((self._root._next if n is None else n).prepend, n)

    def inserting_after(self, n: Node | None = None):
        """In the block, nodes are added after ``n``, one after the other."""
        return self._inserting((self._root if n is None else n)._next.prepend, n)

    @contextlib.contextmanager
    def _inserting(self, insert, n):
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert beside is not in graph.")
        outer, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = outer

    def node_copy(self, node: Node, arg_transform=lambda x: x) -> Node:
        """A copy of another graph's node, with ``arg_transform`` of the nodes it is called with."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict, return_output_node=False):
        """Copies of all nodes of ``g``; ``val_map`` is filled with who is whose. Returns what ``g`` returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        copied: dict = {}
        result = made.graph_copy(self, copied, return_output_node=True)
        if result is not None:
            value, old = result
            made.output(value, type_expr=old.type)
        return made

    def eliminate_dead_code(self, is_impure_node=None) -> bool:
        """Take out what nobody uses; says whether there was any."""
        self.lint()
        changed = False
        for node in reversed(list(self.nodes)):
            impure = is_impure_node(node) if is_impure_node is not None else node.is_impure()
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def process_inputs(self, *args):
        return args

    def process_outputs(self, out):
        return out

    # -- looking at it -----------------------------------------------------------------------------------------------

    def lint(self) -> None:
        """Raise unless the graph is in order: names differ, values come before their users, targets exist."""
        seen: set = set()
        names: set = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for n in node.all_input_nodes:
                if n.graph is not self:
                    raise RuntimeError(f"Argument '{n}' of Node '{node}' does not belong to this Graph")
                if n not in seen:
                    raise RuntimeError(f"Argument '{n}' of Node '{node}' was used before it has been defined! Please "
                                       "check that Nodes in the graph are topologically ordered")  # fmt: skip
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            self._check_target(node)

    def _check_target(self, node: Node) -> None:
        if node.op == "call_function":
            if not callable(node.target):
                raise ValueError(f"Node {node} target {node.target} has type {type(node.target)} but a Callable is "
                                 "expected")  # fmt: skip
        elif not isinstance(node.target, str):
            raise ValueError(f"Node {node} target {node.target} has type {type(node.target)} but a str is expected")
        if self.owning_module is not None and node.op in ("get_attr", "call_module"):
            found = self.owning_module
            for part in node.target.split("."):
                if not hasattr(found, part):
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute {part} of "
                        f"{type(found).__name__}"
                    )
                found = getattr(found, part)

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join("\n    " + line for line in lines if line)

    def print_tabular(self) -> None:
        """The nodes as a table; needs the package tabulate, as in PyTorch."""
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def python_code(self, root_module: str, **_) -> PythonCode:
        """The function ``forward`` that does what the graph says; ``root_module`` is the module's name in it."""
        return self._codegen._gen_python_code(self.nodes, root_module)

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen


class CodeGen:
    """Writes a graph as a function."""

    def gen_fn_def(self, free_vars, maybe_return_annotation) -> str:
        return f"def forward({', '.join(['self', *free_vars])}){maybe_return_annotation}:"

    def additional_globals(self):
        return []

    def process_inputs(self, *args):
        return args

    def process_outputs(self, outputs):
        return outputs

    def generate_output(self, output_args) -> str:
        return f"return {output_args}"

    def _gen_python_code(self, nodes, root_module: str) -> PythonCode:
        return _Writer(self, nodes, root_module).code()


class _Writer:
    """One function being written."""

    def __init__(self, codegen: CodeGen, nodes, root_module: str):
        self.codegen, self.nodes, self.root = codegen, list(nodes), root_module
        self.globals: dict[str, Any] = {}
        self.names, self.wrapped = _Names(), {}
        self.free, self.body, self.returns = [], [], ""
        self.last_uses = self._last_uses()
        for name, obj in (("inf", math.inf), ("nan", math.nan), ("NoneType", type(None)),
                          ("torch", sys.modules[_PACKAGE]), ("device", device)):  # fmt: skip
            self.globals[name] = obj
            self.names.used[name] = obj

    def code(self) -> PythonCode:
        for node in self.nodes:
            self._statement(node)
            self._forget(node)
        if not self.body:
            self.body.append("pass\n")
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        head = self.codegen.gen_fn_def(self.free, self.returns)
        lines = "".join(self.body).split("\n")
        text = f"\n{wraps}\n\n{head}\n" + "\n".join("    " + line for line in lines)
        return PythonCode(text, self.globals)

    def _last_uses(self) -> dict[Node, list[Node]]:
        """What is used for the last time by each node."""
        found: dict[Node, list[Node]] = defaultdict(list)
        seen: set = set()

        def register(n: Node, user: Node):
            if n not in seen:
                seen.add(n)
                found[user].append(n)
            return n

        for node in reversed(self.nodes):
            map_arg(node.args, lambda n, user=node: register(n, user))
            map_arg(node.kwargs, lambda n, user=node: register(n, user))
        return found

    def _forget(self, user: Node) -> None:
        if user.op == "placeholder":
            return
        if user.op == "output":
            self.body.append("\n")
            return
        gone = list(self.last_uses.get(user, ()))
        if not user.users:
            gone.append(user)
        self.body.append(";  " + " = ".join([*map(repr, gone), "None"]) + "\n" if gone else "\n")

    def _statement(self, node: Node) -> None:
        kind = "" if node.type is None else f" : {self._type(node.type)}"
        if node.op == "placeholder":
            default = f" = {self._repr(node.args[0])}" if node.args else ""
            self.free.append(f"{node.target}{kind}{default}")
            raw = node.target.replace("*", "")
            if raw != repr(node):
                self.body.append(f"{node!r} = {raw}\n")
        elif node.op == "call_method":
            rest = self._arguments(node.args[1:], node.kwargs)
            self.body.append(f"{node!r}{kind} = {self._operand(node.args[0])}.{node.target}({rest})")
        elif node.op == "call_function":
            self._function(node, kind)
        elif node.op == "call_module":
            where = self._path(node.target)
            self.body.append(f"{node!r}{kind} = {where}({self._arguments(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            self.body.append(f"{node!r}{kind} = {self._path(node.target)}")
        else:
            if node.type is not None:
                self.returns = f" -> {self._type(node.type)}"
            self.body.append(self.codegen.generate_output(self._repr(node.args[0])))

    def _function(self, node: Node, kind: str) -> None:
        target, args = node.target, node.args
        name = target.__name__ if getattr(target, "__module__", "") == "_operator" else ""
        if name in _INFIX and len(args) == 2:
            text = f"{self._operand(args[0])} {_INFIX[name]} {self._operand(args[1])}"
        elif name in _PREFIX and len(args) == 1:
            text = f"{_PREFIX[name]}{self._operand(args[0])}"
        elif name == "getitem" and len(args) == 2:
            text = f"{self._operand(args[0])}[{self._repr(args[1])}]"
        elif name in _IN_PLACE:
            first = self._repr(args[0])
            self.body.append(f"{first} {_IN_PLACE[name]} {self._repr(args[1])};  {node!r}{kind} = {first}")
            return
        elif target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            text = f"{self._operand(args[0])}.{args[1]}"
        else:
            called = self._global(qualified_name(target), target)
            if getattr(target, "_is_fx_wrapped", False) or target in _wrapped_functions():
                self.wrapped.setdefault(called)
            text = f"{called}({self._arguments(args, node.kwargs)})"
        self.body.append(f"{node!r}{kind} = {text}")

    def _operand(self, value) -> str:
        text = self._repr(value)
        return text if isinstance(value, Node) or not re.match(r"-|.*[^\w.]", text) else f"{text}"

    def _path(self, target: str) -> str:
        text = self.root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def _arguments(self, args, kwargs) -> str:
        return ", ".join([*map(self._repr, args), *(f"{k} = {self._repr(v)}" for k, v in kwargs.items())])

    def _global(self, hint: str, obj) -> str:
        """The name that the code has for a function or class."""
        if hint.startswith("torch.") and obj is not device:
            return hint
        if hint.startswith("builtins."):
            return hint.removeprefix("builtins.")
        name = hint.replace(".", "_")
        if self.globals.get(name) is obj:
            return name
        name = self.names.create(name, obj)
        self.globals[name] = obj
        return name

    def _type(self, kind) -> str:
        if kind == ():
            return "()"
        origin = getattr(kind, "__origin__", None)
        if origin is None and isinstance(kind, type):
            text = type_text(kind)
            return text if kind.__module__ == "builtins" else self._global(text, kind)
        if origin is not None and getattr(kind, "__args__", None):
            base = getattr(kind, "_name", None)
            head = self._global(f"typing_{base}" if base else type_text(origin), _bare(kind, origin))
            return f"{head}[{', '.join(self._type(a) for a in kind.__args__)}]"
        return self._global(type_text(kind), kind)

    def _repr(self, value) -> str:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                fields = ", ".join(f"{n} = {self._repr(v)}" for n, v in zip(value._fields, value))
                return f"{self._global(type_text(type(value)), type(value))}({fields})"
            inside = ", ".join(map(self._repr, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, list):
            return "[" + ", ".join(map(self._repr, value)) + "]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self._repr(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self._repr, (value.start, value.stop, value.step)))})"
        if isinstance(value, enum.Enum):
            return f"{self._global(type_text(type(value)), type(value))}.{value.name}"
        if isinstance(value, (type, Size)) or (callable(value) and not isinstance(value, (Node, dtypes.dtype))):
            return self._global(qualified_name(value), value) if not isinstance(value, Size) else repr(value)
        if isinstance(value, (layout, memory_format, dtypes.dtype, device, Node, Tensor)):
            return repr(value)
        return repr(value)


def _bare(kind, origin):
    import typing

    return getattr(typing, getattr(kind, "_name", None) or "", origin)


def _wrapped_functions() -> set:
    from ._symbolic_trace import wrapped_functions

    return wrapped_functions()


reflectable_magic_methods = _INFIX
inplace_methods = _IN_PLACE
