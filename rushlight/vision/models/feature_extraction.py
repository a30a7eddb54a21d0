"""Inner values of a model as its outputs: ``create_feature_extractor``."""

from __future__ import annotations

import re
from collections import OrderedDict
from copy import deepcopy

from ...errors import warn_user
from ...fx import Graph, GraphModule, Tracer
from ...fx.node import Node
from ...nn.module import Module

__all__ = ["NodePathTracer", "create_feature_extractor", "get_graph_node_names"]


class NodePathTracer(Tracer):
    """Knows for each node the module it is in: ``layer1.0.relu``, the second one ``layer1.0.relu_1``."""

    def __init__(self, *args, leaf_modules=(), **kwargs):
        super().__init__(*args, **kwargs)
        self._leaves = tuple(leaf_modules)
        self.current_module_qualname = ""
        self.node_to_qualname: OrderedDict[Node, str] = OrderedDict()
        self._counts: dict[str, int] = {}

    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, self._leaves) or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m, forward, args, kwargs):
        outer, self.current_module_qualname = self.current_module_qualname, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = outer

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *rest, **more):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr, *rest, **more)
        self.node_to_qualname[proxy.node] = self._name(proxy.node)
        return proxy

    def _name(self, node: Node) -> str:
        name = self.current_module_qualname
        if node.op != "call_module":  # its name counts over the whole graph; here over the module
            own = re.sub(r"_[0-9]+$", "", str(node))
            name = f"{name}.{own}" if name else own
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{name}_{count}" if count else name


def get_graph_node_names(model: Module, tracer_kwargs=None, suppress_diff_warning: bool = False, concrete_args=None):
    """(names of nodes in training, names in evaluation), in the order they run."""
    was, found = model.training, []
    for training in (True, False):
        model.train(training)
        tracer = NodePathTracer(**(tracer_kwargs or {}))
        tracer.trace(model, concrete_args)
        found.append(list(tracer.node_to_qualname.values()))
    model.train(was)
    if found[0] != found[1] and not suppress_diff_warning:
        warn_user(
            "NOTE: The nodes obtained by tracing the model in eval mode are not the same as those in train mode. "
            "Name them apart, with train_return_nodes and eval_return_nodes"
        )
    return found[0], found[1]


def create_feature_extractor(
    model: Module,
    return_nodes=None,
    train_return_nodes=None,
    eval_return_nodes=None,
    tracer_kwargs=None,
    suppress_diff_warning: bool = False,
    concrete_args=None,
) -> GraphModule:
    """A module that returns a dict of the values of some nodes; what none of them needs is left out.

    >>> model = rushlight.vision.models.resnet18()
    >>> extractor = rushlight.vision.models.feature_extraction.create_feature_extractor(model, {"layer1": "a"})
    >>> extractor(rushlight.zeros(1, 3, 32, 32))["a"].shape
    torch.Size([1, 64, 8, 8])
    """
    if (train_return_nodes is None) != (eval_return_nodes is None):
        raise ValueError("train_return_nodes and eval_return_nodes must be given together")
    if (return_nodes is None) == (train_return_nodes is None):
        raise ValueError("give either return_nodes, or train_return_nodes and eval_return_nodes")
    wanted = {True: _by_name(return_nodes if train_return_nodes is None else train_return_nodes)}
    wanted[False] = _by_name(return_nodes if eval_return_nodes is None else eval_return_nodes)
    was, graphs = model.training, {}
    for training in (True, False):
        model.train(training)
        graphs[training] = _graph(model, wanted[training], tracer_kwargs, concrete_args)
    model.train(was)
    made = DualGraphModule(model, graphs[True], graphs[False], type(model).__name__)
    return made.train(was)


class DualGraphModule(GraphModule):
    """One graph for training, another for evaluation."""

    def __init__(self, root: Module, train_graph: Graph, eval_graph: Graph, class_name: str = "GraphModule"):
        both = [n for g in (train_graph, eval_graph) for n in g.nodes if n.op in ("get_attr", "call_module")]
        parts = Graph()
        for node in both:
            parts.create_node(node.op, node.target)
        super().__init__(root, parts, class_name)
        self.train_graph, self.eval_graph = train_graph, eval_graph
        self.graph = train_graph if self.training else eval_graph

    def train(self, mode: bool = True):
        if hasattr(self, "train_graph"):
            self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)

    def __deepcopy__(self, memo):
        holder = Module.__new__(Module)
        holder.__dict__ = deepcopy(
            {k: v for k, v in self.__dict__.items() if k not in ("_graph", "train_graph", "eval_graph")}, memo
        )
        made = DualGraphModule(holder, deepcopy(self.train_graph), deepcopy(self.eval_graph), type(self).__name__)
        return made.train(self.training)


def _by_name(nodes) -> dict[str, str]:
    return {str(k): str(v) for k, v in nodes.items()} if isinstance(nodes, dict) else {str(n): str(n) for n in nodes}


def _graph(model: Module, wanted: dict[str, str], tracer_kwargs, concrete_args) -> Graph:
    """The model's graph, ending in a dict of the wanted nodes; a module's name means what it returns last."""
    tracer = NodePathTracer(**(tracer_kwargs or {}))
    graph = tracer.trace(model, concrete_args)
    names = {n: name for n, name in tracer.node_to_qualname.items() if n.op != "placeholder"}
    found: dict[str, Node] = {}
    for name, out in wanted.items():
        matching = [n for n, path in names.items() if path == name or path.startswith(name + ".")]
        if not matching:
            known = list(names.values())
            raise ValueError(
                f"node: '{name}' is not present in model. Hint: use `get_graph_node_names` to make sure the "
                f"`return_nodes` you specified are present. The model has {known[:8]} and {len(known)} in all"
            )
        found[out] = matching[-1]
    graph.erase_node(graph.output_node())
    graph.output({out: found[out] for out in wanted.values()})
    graph.eliminate_dead_code()
    return graph
