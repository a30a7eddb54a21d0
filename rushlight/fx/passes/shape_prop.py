"""Shapes and dtypes of all values of a graph, from a run."""

from __future__ import annotations

from typing import NamedTuple

from ...dtypes import dtype
from ...layout import contiguous_format, memory_format
from ...tensor import Size, Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor, without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict


class ShapeProp(Interpreter):
    """Runs a graph and writes ``node.meta["tensor_meta"]``.

    >>> traced = rushlight.fx.symbolic_trace(nn.Linear(3, 2))
    >>> _ = rushlight.fx.passes.shape_prop.ShapeProp(traced).propagate(rushlight.ones(4, 3))
    >>> traced.graph.output_node().meta["tensor_meta"].shape
    torch.Size([4, 2])
    """

    def run_node(self, n: Node):
        result = super().run_node(n)
        found = False

        def described(value):
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            form = contiguous_format if value.is_contiguous() else None
            return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), form, False, {})

        meta = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run with these inputs."""
        return super().run(*args)
