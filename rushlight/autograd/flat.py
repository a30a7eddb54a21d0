"""Gradients that are constant in the inputs, and yet count as functions of them.

The slope of relu, or of a pool, does not change with the input. PyTorch computes such gradients in one kernel that is
handed the input; so with ``create_graph`` they require grad, and their own gradients are zeros, not None. A rule here
uses the input for a comparison only, or not at all, and leaves no trace of it: the table says where to add one.
"""

from __future__ import annotations

from ..tensor import Tensor, wrap
from . import mode
from .tape import Node

_POOLS = ("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "FractionalMaxPool", "ReflectionPad", "ReplicationPad")
NODES = frozenset(
    [f"{name}{dims}DBackward0" for name in _POOLS for dims in (1, 2, 3)]
    + [f"MaxPool{dims}DWithIndicesBackward0" for dims in (2, 3)]
    + [
        f"{name}Backward0"
        for name in (
            "Convolution", "Hardshrink", "Hardsigmoid", "Hardtanh", "LeakyRelu", "MultiMarginLoss",
            "MultilabelMarginLoss", "NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm", "NllLoss", "NllLoss2D",
            "PreluKernel", "Relu", "RreluWithNoise", "Softshrink", "Threshold",
        )
    ]
)  # fmt: skip


class FlatBackward(Node):
    """Hands a gradient on as it is, and zeros to what it counts as a function of."""

    __slots__ = ("made_by",)

    def __init__(self, gradient: Tensor, node: Node):
        array = gradient._array
        super().__init__((gradient._node, *node.edges), array.shape, array.dtype, node.xp)
        self.made_by = node.name()

    def name(self) -> str:
        return self.made_by.removesuffix("0") + "Backward0"

    def apply(self, xp, g, graph, keep):
        return (g, *[None if edge is None else _zeros(edge, graph) for edge in self.edges[1:]])


def tied(node: Node, gradients: list) -> list:
    """The gradients that ``node`` found, as functions of its inputs."""
    return [_tied(g, node) if isinstance(g, Tensor) else g for g in gradients]


def _tied(gradient: Tensor, node: Node) -> Tensor:
    t = wrap(gradient._array)
    t._node = FlatBackward(gradient, node)
    return mode.carry(gradient, t) if mode.active else t


def _zeros(edge: Node, graph: bool):
    if edge.shape is None:  # a leaf that is gone
        return None
    zeros = edge.xp.zeros(edge.shape, dtype=edge.dtype)
    return wrap(zeros) if graph else zeros
