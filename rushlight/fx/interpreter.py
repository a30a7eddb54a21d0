"""Running a graph node by node, and making a new one of it."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule; override ``run_node``, ``call_function`` and the like to change what nodes do."""

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph  # type: ignore[attr-defined]
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        self.user_to_last_uses = _last_uses(self.graph) if garbage_collect_values else {}

    def run(self, *args, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True):
        """The graph's result for these inputs."""
        self.env = initial_env if initial_env is not None else {}
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            for n in self.user_to_last_uses.get(node, ()):
                self.env.pop(n, None)
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node):
        """One node: the method of its kind, with its arguments."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def boxed_run(self, args_list):
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target: str):
        """An attribute of the module, by its path."""
        found: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(target.split('.')[: i + 1])}: the module has no "
                    f"'{part}' there"
                )
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n: Node):
        """``args`` with the values of the nodes in it."""

        def value(node: Node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Runs a graph with proxies: its methods say what each node becomes, ``transform`` gives the new module."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph()

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph):
                super().__init__()
                self.graph = graph
                self.tensor_attrs = {}

            def is_leaf_module(self, m, module_qualified_name):
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
        return GraphModule(self.module, self.new_graph)


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """Which values nobody needs after each node."""
    found: dict[Node, list[Node]] = {}
    seen: set = set()
    for user in reversed(list(graph.nodes)):
        for n in user.all_input_nodes:
            if n not in seen:
                seen.add(n)
                found.setdefault(user, []).append(n)
    return found
