"""A batch cut up for several devices, and put together again."""

from __future__ import annotations

from collections.abc import Sequence

from ...ops.public import PUBLIC
from ...tensor import Tensor

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj) -> bool:
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs, target_gpus: Sequence, dim: int = 0) -> list:
    """For each device, its part of every tensor in ``inputs``; other things go to all.

    >>> x, y = rushlight.nn.parallel.scatter({"a": rushlight.arange(4)}, ["cpu", "cpu"])
    >>> y
    {'a': tensor([2, 3])}
    """
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(target_gpus), dim)
        return [part.to(_place(target)) for part, target in zip(parts, target_gpus)]
    if is_namedtuple(inputs):
        return [type(inputs)(*parts) for parts in zip(*[scatter(i, target_gpus, dim) for i in inputs])]
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(parts) for parts in zip(*[scatter(i, target_gpus, dim) for i in inputs])]
    if isinstance(inputs, dict) and inputs:
        scattered = [scatter(value, target_gpus, dim) for value in inputs.values()]
        return [type(inputs)(zip(inputs, parts)) for parts in zip(*scattered)]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim: int = 0):
    """Positional and keyword arguments for each device; as many of one as of the other."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    positional.extend(() for _ in range(len(named) - len(positional)))
    named.extend({} for _ in range(len(positional) - len(named)))
    return tuple(positional), tuple(named)


def gather(outputs, target_device, dim: int = 0):
    """What ``scatter`` cut up, in one piece again, on one device."""
    first = outputs[0]
    if isinstance(first, Tensor):
        pieces = [o.to(_place(target_device)) for o in outputs]
        return PUBLIC["cat"]([p.reshape(1) if p.ndim == 0 else p for p in pieces], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    parts = [gather(together, target_device, dim) for together in zip(*outputs)]
    return type(first)(*parts) if is_namedtuple(first) else type(first)(parts)


def _place(target):
    """A GPU by its number, -1 for the CPU; or any device."""
    return "cpu" if target == -1 else target
