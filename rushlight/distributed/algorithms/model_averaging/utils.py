"""The mean of all processes' parameters."""

from __future__ import annotations

from ....ops.public import PUBLIC
from ....tensor import Tensor
from ... import collectives, world

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params, process_group) -> None:
    """Each parameter becomes the mean of all processes' ones; they travel in one row."""
    if process_group == world.GroupMember.NON_GROUP_MEMBER:
        return
    group, params = world.the(process_group), list(params)
    row, at = PUBLIC["cat"]([p.data.reshape(-1) for p in params]) / group.size(), 0
    collectives.all_reduce(row, group=group)
    for p in params:
        p.data = row[at : at + p.numel()].view_as(p).to(p.dtype)
        at += p.numel()


def get_params_to_average(params) -> list[Tensor]:
    """The parameters, or those of an optimizer's groups, that have a gradient."""
    found: list[Tensor] = []
    for given in params:
        if not isinstance(given, (Tensor, dict)):
            raise NotImplementedError(f"Parameter input of type {type(given)} is not supported")
        found += [p for p in (given["params"] if isinstance(given, dict) else [given]) if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params, process_group) -> None:
    """``average_parameters`` of a model's parameters or of an optimizer's groups."""
    average_parameters(get_params_to_average(params), process_group)
