"""``ones``, ``zeros``, ``rand`` and their kin, laid out over a mesh."""

from __future__ import annotations

from ...tensor import Tensor
from ..device_mesh import current_mesh
from .dtensor import distribute_tensor

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def ones(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None) -> Tensor:
    """Ones over a mesh, laid out by ``placements``."""
    return _made("ones", size, (), dtype, requires_grad, device_mesh, placements)


def zeros(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None) -> Tensor:
    """Zeros over a mesh, laid out by ``placements``."""
    return _made("zeros", size, (), dtype, requires_grad, device_mesh, placements)


def empty(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None) -> Tensor:
    """A tensor over a mesh for values to come; they are zeros until then."""
    return _made("zeros", size, (), dtype, requires_grad, device_mesh, placements)


def full(
    size, fill_value, *, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None
) -> Tensor:
    """One value over a mesh, laid out by ``placements``."""
    return _made("full", (tuple(size),), (fill_value,), dtype, requires_grad, device_mesh, placements)


def rand(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> Tensor:
    """Uniform numbers: those that ``torch.rand`` would give, whatever the mesh."""
    return _made("rand", size, (), dtype, requires_grad, device_mesh, placements)


def randn(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> Tensor:
    """Normal numbers: those that ``torch.randn`` would give, whatever the mesh."""
    return _made("randn", size, (), dtype, requires_grad, device_mesh, placements)


def _made(name: str, size, more, dtype, requires_grad, mesh, placements) -> Tensor:
    from ... import ops

    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    whole = getattr(ops, name)(tuple(size), *more, dtype=dtype)
    laid = distribute_tensor(whole, mesh or current_mesh(), placements, src_data_rank=None)
    return laid.requires_grad_(requires_grad)
