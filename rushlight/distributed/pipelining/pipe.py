"""``pipeline``: a model cut into stages where it says so, or where it is told to.

A first run tells which modules have cuts inside; these are looked into when the model is traced, all others stay calls
of modules, with whatever Python they have. The graph is then cut: what later stages need goes from each stage to the
next. Stages have the model's own parameters, by their names.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...autograd.mode import no_grad
from ...fx import Graph, GraphModule, Interpreter, Node, Tracer
from ...nn.module import Module
from ...random import fork_rng
from ...tensor import Tensor
from ...utils._pytree import tree_leaves
from .stage import PipelineStage

__all__ = ["Pipe", "PipeInfo", "SplitPoint", "build_stage", "pipe_split", "pipeline"]

_watching: list[Callable[[], None]] = []  # told of every pipe_split() while a model is looked at


class SplitPoint(enum.Enum):
    """Where a stage begins: before a module, or after it."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """In a model's ``forward``: the next stage begins here. Does nothing by itself."""
    for told in _watching:
        told()


def pipeline(
    module: Module,
    mb_args: tuple,
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """Cut ``module`` at ``pipe_split()`` and around modules, as ``split_spec`` says; ``mb_args``: a part of a batch."""
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    cuts = {_found(module, path): point for path, point in (split_spec or {}).items()}
    given = inspect.signature(module.forward).bind(*mb_args, **(mb_kwargs or {}))
    with _unchanged(module), no_grad():
        opened = _opened(module, cuts, given) if split_policy is None else None
        graph = _Cutter(cuts, opened).trace(module, _left_out(module, given))
        for node in graph.find_nodes(op="placeholder"):
            if not node.users and node.name not in given.arguments:
                graph.erase_node(node)
        whole = GraphModule(module, graph)
        if split_policy is not None:
            whole = split_policy(whole)
        values = _Values(whole)
        values.run(*given.args, *given.kwargs.values())
    return Pipe(*_split(module, whole.graph, values.found))


@dataclass
class PipeInfo:
    """What a stage is told of the whole."""

    graph: Graph
    num_stages: int
    has_loss_and_backward: bool


class Pipe(Module):
    """A model in stages; called, it runs them all, one after the other."""

    def __init__(self, split_gm: GraphModule, num_stages: int):
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages

    def forward(self, *args, **kwargs):
        return self.split_gm(*args, **kwargs)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of one stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_pp_{stage_idx}")

    def build_stage(self, stage_index: int, device, group=None) -> PipelineStage:
        """The stage that this process has in ``group``."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def info(self) -> PipeInfo:
        return PipeInfo(self.split_gm.graph, self.num_stages, False)

    def print_readable(self) -> None:
        self.split_gm.print_readable()

    def __str__(self) -> str:
        return str(self.split_gm)

    __repr__ = __str__


def build_stage(stage_module: Module, stage_index: int, pipe_info: PipeInfo, device, group=None) -> PipelineStage:
    """The stage of a module that ``Pipe.get_stage_module`` gave, perhaps moved or wrapped since."""
    return _PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)


class _PipelineStage(PipelineStage):
    """A stage that ``pipeline`` made: what it needs of the model's arguments comes from the stage before."""

    def forward_one_chunk(self, index: int, args: tuple, kwargs: dict | None = None) -> Any:
        return super().forward_one_chunk(index, args, kwargs if self.is_first else None)


# -- looking at the model ----------------------------------------------------------------------------------------------


def _found(module: Module, path: str) -> Module:
    return functools.reduce(getattr, path.split("."), module)  # type: ignore[return-value]


def _left_out(module: Module, given: inspect.BoundArguments) -> dict:
    """The arguments that are not given, with their defaults: the graph is one for these."""
    parameters = inspect.signature(module.forward).parameters
    return {n: p.default for n, p in parameters.items() if n not in given.arguments and p.default is not p.empty}


@contextlib.contextmanager
def _unchanged(module: Module):
    """Run it as often as needed: buffers and random numbers are afterwards what they were."""
    kept = [(b, b.detach().clone()) for b in module.buffers()]
    try:
        with fork_rng():
            yield
    finally:
        with no_grad():
            for buffer, values in kept:
                buffer.copy_(values)


def _opened(module: Module, cuts: dict, given: inspect.BoundArguments) -> set[Module]:
    """The modules that were under way where something is cut."""
    under_way: list[Module] = []
    opened = {module}

    def enter(m, args):
        if m in cuts:
            opened.update(under_way)
        under_way.append(m)

    def leave(m, args, output):
        under_way.pop()

    told = lambda: opened.update(under_way)
    handles = [
        h for m in module.modules() for h in (m.register_forward_pre_hook(enter), m.register_forward_hook(leave))
    ]
    _watching.append(told)
    try:
        module(*given.args, **given.kwargs)
    finally:
        _watching.remove(told)
        for handle in handles:
            handle.remove()
    return opened


class _Cutter(Tracer):
    """Traces what has cuts inside, and puts a call of ``pipe_split`` at each of them."""

    def __init__(self, cuts: dict[Module, SplitPoint], opened: set[Module] | None):
        super().__init__()
        self._cuts, self._opened = cuts, opened

    def trace(self, root, concrete_args=None) -> Graph:
        _watching.append(self._cut)
        try:
            return super().trace(root, concrete_args)
        finally:
            _watching.remove(self._cut)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        if self._opened is None:
            return super().is_leaf_module(m, module_qualified_name)
        return m not in self._opened

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        if self._cuts.get(m) is SplitPoint.BEGINNING:
            self._cut()
        made = super().call_module(m, forward, args, kwargs)
        if self._cuts.get(m) is SplitPoint.END:
            self._cut()
        return made

    def _cut(self) -> None:
        self.create_node("call_function", pipe_split, (), {})


class _Values(Interpreter):
    """What each node of a graph gives."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.found: dict[Node, Any] = {}

    def run_node(self, n: Node):
        self.found[n] = value = super().run_node(n)
        return value


# -- cutting the graph -------------------------------------------------------------------------------------------------


def _split(module: Module, graph: Graph, values: dict[Node, Any]) -> tuple[GraphModule, int]:
    """(the stages in a row, how many)."""
    groups = _groups(graph, values)
    crossing = _crossing(groups, values)
    whole, root = Graph(), Module()
    passed: list[Any] = []
    for n in groups[0]:
        if n.op == "placeholder":
            passed.append(whole.node_copy(n))
    for k, group in enumerate(groups):
        name, last = f"submod_pp_{k}", k == len(groups) - 1
        root.add_module(name, GraphModule(module, _stage_graph(group, crossing, k, values)))
        made = whole.call_module(name, tuple(passed))
        count = len(tree_leaves(group[-1].args[0])) if last else len(crossing[k])
        passed = [made] if count == 1 else [whole.call_function(operator.getitem, (made, i)) for i in range(count)]
    whole.output(tuple(passed))
    root.training = module.training
    return GraphModule(root, whole), len(groups)


def _groups(graph: Graph, values: dict[Node, Any]) -> list[list[Node]]:
    """The nodes between cuts, where something is computed between them; the output is in the last group."""
    groups: list[list[Node]] = [[]]
    home: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is pipe_split:
            groups.append([])
            continue
        # What is taken out of a module's several outputs after a cut is taken out before it: tensors cross, not tuples.
        out_of_several = node.target is operator.getitem and not isinstance(values[node.args[0]], Tensor)
        home[node] = home[node.args[0]] if out_of_several else groups[-1]
        home[node].append(node)
    return _without_empty(groups)


def _without_empty(groups: list[list[Node]]) -> list[list[Node]]:
    """Nobody computes in a group of arguments and outputs alone: it joins the one after it, or the last but one."""
    found: list[list[Node]] = []
    waiting: list[Node] = []
    for group in groups:
        waiting += group
        if any(node.op.startswith("call_") for node in group):
            found.append(waiting)
            waiting = []
    if not found:
        return [waiting]
    found[-1] += waiting
    return found


def _crossing(groups: list[list[Node]], values: dict[Node, Any]) -> list[list[Node]]:
    """For each cut the tensors made before it and used after it, in the order of their use."""
    home = {node: k for k, group in enumerate(groups) for node in group}
    found: list[list[Node]] = [[] for _ in groups[1:]]
    for k, group in enumerate(groups):
        used = dict.fromkeys(n for node in group for n in node.all_input_nodes)
        for n in used:
            if n.op != "get_attr" and isinstance(values[n], Tensor):
                for cut in range(home[n], k):
                    if n not in found[cut]:
                        found[cut].append(n)
    return found


def _stage_graph(group: list[Node], crossing: list[list[Node]], k: int, values: dict[Node, Any]) -> Graph:
    """The graph of stage ``k``: what came, its own nodes, what goes on."""
    graph, here = Graph(), {}
    for n in crossing[k - 1] if k else ():
        here[n] = graph.placeholder(n.name)

    def mapped(n: Node):
        if n not in here:
            here[n] = graph.get_attr(n.target) if n.op == "get_attr" else _number(n, values[n])
        return here[n]

    for node in group:
        if node.op == "output":
            leaves = [mapped(n) if isinstance(n, Node) else n for n in tree_leaves(node.args[0])]
            graph.output(leaves[0] if len(leaves) == 1 else tuple(leaves))
        elif node.op != "get_attr":
            here[node] = graph.node_copy(node, mapped)
    if k < len(crossing):
        made = [mapped(n) for n in crossing[k]]
        graph.output(made[0] if len(made) == 1 else tuple(made))
    return graph


def _number(node: Node, value):
    """A size, say, that an earlier stage computed: as it was for the part of a batch that was given."""
    if isinstance(value, Tensor) or any(isinstance(leaf, Tensor) for leaf in tree_leaves(value)):
        raise RuntimeError(
            f"pipeline: '{node.name}' is several tensors in a {type(value).__name__} that crosses a cut; take them "
            "out of it before the cut"
        )
    return copy.copy(value)
