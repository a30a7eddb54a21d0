"""A backward pass in two parts: first the gradients of some inputs, later those of all other leaves.

Pipelines send the former on and compute the latter when they have nothing better to do. A node on a way to the inputs
computes in the first part only what goes there, and the gradient that came to it is kept; in the second it computes the
rest of that. So nothing is computed twice. A node that gives all its gradients at once does so in the first part.
"""

from __future__ import annotations

from collections.abc import Callable

from ..tensor import Tensor
from .grad import _roots, backward
from .node import OpNode
from .tape import Node, _to_tensor, nodes_below, run_backward

__all__ = ["inputs_first"]


def inputs_first(outputs: list[Tensor], gradients: list, inputs: list[Tensor]) -> tuple[list, Callable[[], None]]:
    """(the gradients of ``inputs``, which are leaves; what carries the rest to the other leaves).

    >>> w, x = rushlight.tensor(2.0, requires_grad=True), rushlight.tensor(3.0, requires_grad=True)
    >>> (gradient,), rest = rushlight.autograd.in_two.inputs_first([w * x], [None], [x])
    >>> rest()
    >>> gradient, w.grad, x.grad
    (tensor(2.), tensor(3.), None)
    """
    roots, given = _roots(tuple(outputs), tuple(gradients), False)
    targets = {t._node for t in inputs}
    towards = _leading_to(roots, targets)
    beside = {node: [e for e in node.edges if e is not None and e not in towards] for node in towards}
    divided = {node: node.edges for node, others in beside.items() if others and _can_be_divided(node)}
    whole = {e for node, others in beside.items() if node not in divided for e in others}  # kept where it arrives
    if any(node.hooks is not None and (node.hooks.tensor or node.hooks.retain) for node in whole):
        return _at_once(outputs, gradients, inputs)
    kept = _with_edges(
        {node: tuple(e if e in towards else None for e in edges) for node, edges in divided.items()},
        lambda: run_backward(roots, given, retain=True, wanted=targets | whole | set(divided)),
    )
    left = {node: g for node, g in kept.items() if node not in targets}
    left.update((node, g) for node, g in zip(roots, given) if node not in towards)

    def rest() -> None:
        others = {node: tuple(None if e in towards else e for e in edges) for node, edges in divided.items()}
        _with_edges(others, lambda: run_backward(list(left), list(left.values())))

    return [_to_tensor(kept[t._node], False) if t._node in kept else None for t in inputs], rest


def _at_once(outputs, gradients, inputs) -> tuple[list, Callable[[], None]]:
    """All of it: a hook is not to see one gradient twice."""
    backward(outputs, gradients)
    found = [t.grad for t in inputs]
    for t in inputs:
        t.grad = None
    return found, lambda: None


def _leading_to(roots: list[Node], targets: set[Node]) -> set[Node]:
    """The nodes from which a way leads to a target, and the targets."""
    above: dict[Node, list[Node]] = {}
    for node in nodes_below(roots):
        for edge in node.edges:
            if edge is not None:
                above.setdefault(edge, []).append(node)
    found, stack = set(targets), list(targets)
    while stack:
        for node in above.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


def _can_be_divided(node: Node) -> bool:
    """Not what has hooks, which would see it twice, nor what has several outputs, or is not an operator."""
    return isinstance(node, OpNode) and node.hooks is None and (node.details is None or node.details.outputs is None)


def _with_edges(edges: dict, run: Callable):
    """``run()`` while nodes have these edges only."""
    before = {node: node.edges for node in edges}
    try:
        for node, only in edges.items():
            node.edges = only
        return run()
    finally:
        for node, whole in before.items():
            node.edges = whole
