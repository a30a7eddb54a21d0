"""``register_sharding``: how an operator of a program's own is computed by parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....ops.public import PUBLIC
from ....tensor import Size, Tensor
from ...collectives import all_reduce
from ..dtensor import DTensor
from ..placement_types import Partial, Placement

__all__ = ["register_sharding"]


def register_sharding(op) -> Callable[[Callable], Callable]:
    """Decorates ``function(*args)``, which says of a call of ``op`` which placements go: a list of (of its results, of
    its arguments), for one dimension of a mesh. The operator is then given each process's parts.

    Differs from PyTorch: for operators of the library itself it changes nothing. How these lie is XLA's to say.
    """
    operators = op if isinstance(op, (list, tuple)) else [op]

    def decorate(function: Callable) -> Callable:
        for one in operators:
            own: Any = getattr(one, "function", None)  # an operator of a program's own, behind its overload
            if hasattr(own, "_by_parts"):
                own._by_parts = functools.partial(_by_parts, function)
        return function

    return decorate


def _by_parts(function: Callable, operator: Callable, args: tuple):
    """``operator(*args)`` of DTensors, in each process of its parts."""
    mesh = next(a.device_mesh for a in args if isinstance(a, DTensor))
    goes = list(function(*args))
    chosen = [min(goes, key=lambda pair: _cost(pair[1], args, dim)) for dim in range(mesh.ndim)]
    local = []
    for i, a in enumerate(args):
        if not isinstance(a, DTensor):
            local.append(a)
            continue
        wanted = [ins[i] for _, ins in chosen]
        # What every process has whole, and uses for its own part of the result, has a part of the gradient in each.
        of_gradient = [
            Partial() if w.is_replicate() and not all(o.is_replicate() for o in outs if o is not None) else w
            for w, (outs, _) in zip(wanted, chosen)
        ]
        local.append(a.redistribute(mesh, wanted).to_local(grad_placements=of_gradient))
    found = operator(*local)
    made = found if isinstance(found, (tuple, list)) else (found,)
    cut = [
        (a.shape[w.dim], mesh.size(d)) for d, (_, ins) in enumerate(chosen) for a, w in zip(args, ins) if _is_cut(a, w)
    ]
    uneven = any(length % parts for length, parts in cut)
    laid = [_joined(t, mesh, [outs[i] for outs, _ in chosen], uneven) for i, t in enumerate(made)]
    return type(found)(laid) if isinstance(found, (tuple, list)) else laid[0]


def _is_cut(a, wanted) -> bool:
    return isinstance(a, DTensor) and wanted.is_shard()


def _joined(part: Tensor, mesh, placements: list, uneven: bool) -> Tensor:
    """The DTensor of which each process has a part; if these may be of different sizes, they are added up first."""
    if not uneven:
        return DTensor.from_local(part, mesh, placements)
    size = list(part.shape)
    for dim, placement in enumerate(placements):
        if placement.is_shard():
            count = PUBLIC["tensor"](size[placement.dim])
            all_reduce(count, group=mesh.get_group(dim))
            size[placement.dim] = int(count.item())
    stride = part.new_empty(size, device="meta").stride()
    return DTensor.from_local(part, mesh, placements, shape=Size(size), stride=stride)


def _cost(wanted: list[Placement | None], args: tuple, dim: int) -> float:
    """The numbers that must move so that arguments lie as wanted, or infinity if they cannot be cut so."""
    cost = 0.0
    for a, w in zip(args, wanted):
        if not isinstance(a, DTensor) or w is None:
            continue
        if w.is_shard() and a.shape[w.dim] < a.device_mesh.size(dim):  # type: ignore[attr-defined]
            return float("inf")
        lies = a.placements[dim]
        if lies != w and not lies.is_replicate():
            cost += a.numel() * (2 if lies.is_partial() else 1)
    return cost
