"""Replacing a pattern of nodes, wherever it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..nn.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attribute
from .node import Node, map_arg

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """Where a pattern was found: its last node, and for each node of the pattern the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(gm: GraphModule, pattern, replacement) -> list[Match]:
    """Put ``replacement`` where ``pattern`` is; both are functions or modules with the same inputs.

    Matches do not overlap. A node inside one that somebody else uses makes it no match.
    """
    wanted, by = _graph_of(pattern), _graph_of(replacement)
    if len(wanted.find_nodes(op="placeholder")) != len(by.find_nodes(op="placeholder")):
        raise ValueError("pattern and replacement must have the same number of inputs")
    found: list[Match] = []
    used: set = set()
    for node in list(gm.graph.nodes):
        nodes = _match(wanted, node, used)
        if nodes is not None:
            found.append(Match(node, nodes))
            used.update(n for p, n in nodes.items() if p.op != "placeholder")
    for match in found:
        _replace(gm, wanted, by, match, replacement)
    gm.recompile()
    return found


def _graph_of(thing) -> Graph:
    if isinstance(thing, Graph):
        return thing
    return thing.graph if isinstance(thing, GraphModule) else symbolic_trace(thing).graph


def _returned(graph: Graph) -> list[Node]:
    found: list[Node] = []
    map_arg(graph.output_node().args, found.append)
    return found


def _match(pattern: Graph, anchor: Node, used: set) -> dict[Node, Node] | None:
    """The nodes of a match that ends in ``anchor``."""
    last = _returned(pattern)
    nodes: dict[Node, Node] = {}
    if len(last) != 1 or anchor.op == "output" or not _equal(last[0], anchor, nodes):
        return None
    inner = {n for p, n in nodes.items() if p.op != "placeholder"}
    if inner & used:
        return None
    for p, n in nodes.items():
        if p.op in ("placeholder", "get_attr") or n is anchor:
            continue
        if any(user not in inner for user in n.users):
            return None
    return nodes


def _equal(p, n, nodes: dict) -> bool:
    """Is ``n`` what ``p`` asks for? Inputs of the pattern match anything, the same each time."""
    if not isinstance(p, Node):
        if isinstance(p, (tuple, list)):
            return isinstance(n, (tuple, list)) and len(p) == len(n) and all(_equal(a, b, nodes) for a, b in zip(p, n))
        if isinstance(p, dict):
            return isinstance(n, dict) and p.keys() == n.keys() and all(_equal(p[k], n[k], nodes) for k in p)
        return type(p) is type(n) and p == n
    if p in nodes:
        return nodes[p] is n
    if p.op == "placeholder":
        nodes[p] = n
        return True
    if not isinstance(n, Node) or p.op != n.op or p.target != n.target:
        return False
    if len(p.args) != len(n.args) or p.kwargs.keys() != n.kwargs.keys():
        return False
    before = dict(nodes)
    nodes[p] = n
    if _equal(p.args, n.args, nodes) and _equal(p.kwargs, n.kwargs, nodes):
        return True
    nodes.clear()
    nodes.update(before)
    return False


def _replace(gm: GraphModule, pattern: Graph, by: Graph, match: Match, replacement) -> None:
    values: dict[Node, Any] = {}
    for p, r in zip(pattern.find_nodes(op="placeholder"), by.find_nodes(op="placeholder")):
        values[r] = match.nodes_map.get(p, p)
    if isinstance(replacement, Module):
        for node in by.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attribute(replacement, gm, node.target)
    with gm.graph.inserting_before(match.anchor):
        result = gm.graph.graph_copy(by, values)
    if not isinstance(result, Node):
        raise ValueError("the replacement must return one value, as the pattern does")
    match.anchor.replace_all_uses_with(result)
    for p in reversed(list(pattern.nodes)):
        n = match.nodes_map.get(p)
        if n is not None and p.op != "placeholder" and not n.users:
            gm.graph.erase_node(n)
