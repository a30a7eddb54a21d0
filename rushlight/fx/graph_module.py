"""A module whose forward is a graph: its code is written, and run."""

from __future__ import annotations

import contextlib
import copy
import linecache
import sys
from typing import Any

from ..nn.module import Module
from ..tensor import Tensor
from .graph import Graph
from .node import _PACKAGE

__all__ = ["GraphModule"]

_counter = iter(range(1 << 62))


class GraphModule(Module):
    """The parts of ``root`` that ``graph`` names, and a ``forward`` made of it; ``recompile`` after a change."""

    def __new__(cls, *args, **kwargs):
        # Each has a forward of its own, and forward belongs to a class.
        base = next(c for c in cls.__mro__ if c.__qualname__ != "GraphModuleImpl")
        made: Any = type("GraphModuleImpl", (base,), {"__module__": base.__module__})
        return super().__new__(made)

    def __init__(self, root, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attribute(root, self, node.target)
        elif isinstance(root, dict):
            wanted = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
            for target in wanted:
                if target not in root:
                    raise RuntimeError(f"Node referenced target {target} but that target was not provided in ``root``!")
            for target in sorted(set(wanted), key=lambda t: t.count(".")):
                _assign(self, target, root[target])
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self.meta: dict = {}

    @property
    def graph(self) -> Graph:
        """The graph; assigning one compiles it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code of ``forward``."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self):
        """Make ``forward`` anew of the graph."""
        made = self._graph.python_code(root_module="self")
        self._code = made.src
        type(self).forward = _compiled(made.src, made.globals)
        return made

    def print_readable(self, print_output=True, **_) -> str:
        """The code as a class."""
        body = self._code.strip("\n").replace("\n", "\n    ")
        text = f"class {type(self).__name__}(torch.nn.Module):\n    {body}"
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put ``m`` at a path, whose parents are made if they are missing."""
        *path, name = target.split(".")
        parent: Any = self
        for part in path:
            if not hasattr(parent, part):
                setattr(parent, part, Module())
            parent = getattr(parent, part)
            if not isinstance(parent, Module):
                return False
        parent.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        *path, name = target.split(".")
        parent: Any = self
        for part in path:
            if not isinstance(getattr(parent, part, None), Module):
                return False
            parent = getattr(parent, part)
        if not isinstance(getattr(parent, name, None), Module):
            return False
        delattr(parent, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out modules that no node names."""
        used: set = set()
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    used.update(f"{node.target}.{n}" for n, _ in self.get_submodule(node.target).named_modules() if n)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def to_folder(self, folder, module_name: str = "FxModule"):
        raise NotImplementedError("to_folder is not built here; save the module, or write its code to a file")

    # -- copies ------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        state = copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_graph"}, memo)
        holder = Module.__new__(Module)
        holder.__dict__ = state
        made = GraphModule(holder, copy.deepcopy(self._graph), type(self).__name__)
        made.__dict__.update(
            {k: v for k, v in state.items() if k not in ("_modules", "_parameters", "_buffers", "_code")}
        )
        for table in ("_modules", "_parameters", "_buffers"):
            for name, value in state[table].items():
                made.__dict__[table].setdefault(name, value)
        return made

    def __copy__(self):
        return GraphModule(self, self._graph, type(self).__name__)

    def __reduce__(self):
        """The code, and all but the graph: that is traced again from the code."""
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        made = self._graph.python_code(root_module="self")
        names = {k: _where(v) for k, v in made.globals.items() if k in made.src and k not in ("torch", "device")}
        return _rebuilt, (state, type(self).__name__, made.src, {k: v for k, v in names.items() if v})

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, reminder])

    def _replicate_for_data_parallel(self):
        return copy.copy(self)


def _compiled(text: str, names: dict):
    """The function that ``text`` defines. Code is what a GraphModule is: this is the one place that executes it."""
    file = f"<eval_with_key>.{next(_counter)}"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = dict(names)
    exec(compile(text, file, "exec"), space)  # noqa: S102
    return space["forward"]


def _copy_attribute(root: Module, to: Module, target: str) -> None:
    *path, name = target.split(".")
    source: Any = root
    for part in path:
        source = getattr(source, part)
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
    value = getattr(source, name)
    if isinstance(value, Tensor) and name in source.__dict__.get("_buffers", {}):
        to.register_buffer(name, value, name not in source._non_persistent_buffers_set)
    elif isinstance(value, Tensor) and name not in source.__dict__.get("_parameters", {}):
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


def _assign(to: Module, target: str, value) -> None:
    *path, name = target.split(".")
    for part in path:
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
    if isinstance(value, Tensor) and not isinstance(value, Module) and type(value) is Tensor:
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


def _where(value) -> tuple[str, str] | None:
    """(module, name) of a function or class that code names."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return (module, name) if module and name and "<" not in name else None


def _rebuilt(state: dict, class_name: str, text: str, names: dict) -> GraphModule:
    """A GraphModule of its code: executed with proxies, it gives the graph again."""
    import importlib
    import math

    from ._symbolic_trace import Tracer

    space: dict = {"torch": sys.modules[_PACKAGE], "inf": math.inf, "nan": math.nan, "NoneType": type(None)}
    space["device"] = space["torch"].device
    for name, (module, path) in names.items():
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        space[name] = found

    class CodeOnly(Module):
        pass

    root = CodeOnly.__new__(CodeOnly)
    root.__dict__ = {k: v for k, v in state.items() if k != "_code"}
    CodeOnly.forward = _compiled(text, space)  # type: ignore[method-assign]

    class KeepModules(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    made = GraphModule(root, KeepModules().trace(root), class_name)
    for name in ("meta", "_tracer_cls", "training"):
        with contextlib.suppress(KeyError):
            made.__dict__[name] = state[name]
    return made
