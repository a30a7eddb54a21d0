"""Tensors that go to several devices of this process, and come back from them."""

from __future__ import annotations

import functools
import operator

from ...ops.public import PUBLIC
from ...tensor import Tensor
from .replicate import place_of
from .scatter_gather import gather as _gather

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def broadcast(tensor: Tensor, devices=None, *, out=None) -> tuple:
    """``tensor`` on each of ``devices``, or in each tensor of ``out``."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(o.copy_(tensor) for o in out)
    return tuple(tensor.to(place_of(d)) for d in devices)


def broadcast_coalesced(tensors, devices, buffer_size: int = 10485760) -> list:
    """For each device, all ``tensors``. ``buffer_size`` changes nothing."""
    return [[t.to(place_of(d)) for t in tensors] for d in devices]


def reduce_add(inputs, destination=None) -> Tensor:
    """The sum of tensors of one shape, on one device: by default the first one's."""
    first = inputs[0].shape
    for i, t in enumerate(inputs):
        if t.shape != first:
            sizes = ["x".join(map(str, shape)) for shape in (t.shape, first)]
            raise ValueError(f"input {i} has invalid size: got {sizes[0]}, but expected {sizes[1]}")
    place = inputs[0].device if destination is None else place_of(destination)
    return functools.reduce(operator.add, [t.to(place) for t in inputs])


def reduce_add_coalesced(inputs, destination=None, buffer_size: int = 10485760) -> tuple:
    """``inputs`` has a list of tensors for each device: their sums. ``buffer_size`` changes nothing."""
    return tuple(reduce_add(together, destination) for together in zip(*inputs))


def scatter(tensor: Tensor, devices=None, chunk_sizes=None, dim: int = 0, streams=None, *, out=None) -> tuple:
    """A part of ``tensor`` for each device, of equal sizes or ``chunk_sizes``; or for each tensor of ``out``."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError(
                "'devices' and 'chunk_sizes' must not be specified when 'out' is: out has sizes and devices"
            )
        parts = tensor.split([o.shape[dim] for o in out], dim)
        return tuple(o.copy_(part) for o, part in zip(out, parts))
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(place_of(d)) for part, d in zip(parts, devices))


def gather(tensors, dim: int = 0, destination=None, *, out=None) -> Tensor:
    """Tensors one after the other along ``dim``, on one device: by default the first one's."""
    if out is not None:
        return PUBLIC["cat"]([t.to(out.device) for t in tensors], dim, out=out)
    return _gather(list(tensors), tensors[0].device if destination is None else place_of(destination), dim)
