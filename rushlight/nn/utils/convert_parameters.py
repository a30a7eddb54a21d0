"""All parameters as one vector, and back."""

from __future__ import annotations

from ...ops import cat
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters) -> Tensor:
    """The elements of all parameters, one after the other."""
    parameters = list(parameters)
    _check_devices(parameters)
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Let each parameter's values be its part of ``vec``."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _check_devices(parameters)
    place = 0
    for p in parameters:
        p.data = vec[place : place + p.numel()].view_as(p).data
        place += p.numel()


def parts_of_vector(vec: Tensor, tensors) -> tuple[Tensor, ...]:
    """Views of ``vec``, each its part with the shape of one of ``tensors``."""
    tensors = list(tensors)
    parts = vec.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors))


def _check_devices(parameters) -> None:
    if len({p.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
