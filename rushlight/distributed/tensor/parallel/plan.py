"""``parallelize_module``: a plan says which modules are cut, and how."""

from __future__ import annotations

import fnmatch

from ....errors import warn_user
from ...device_mesh import DeviceMesh, current_mesh
from ..experimental._func_map import implicit_replication
from .style import ParallelStyle

__all__ = ["loss_parallel", "parallelize_module"]


def parallelize_module(
    module, device_mesh: DeviceMesh | None = None, parallelize_plan=None, *, src_data_rank: int | None = 0
):
    """Cut ``module`` over a mesh of one dimension: as a style says, or the submodules that a plan names.

    Names in a plan may have wildcards: ``{"layers.*.up": ColwiseParallel()}``.
    """
    mesh = device_mesh or current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! Slice it by name.")
    if parallelize_plan is None:
        warn_user("No parallelize_plan is provided, so nothing is done to the module.")
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        found = _matching(module, path.split("."))
        if not found:
            warn_user(f"Parallelize plan key '{path}' could not be resolved: no module matched.")
        for part in found:
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module, atoms: list[str]) -> list:
    """The modules that a dotted path with wildcards leads to."""
    if not atoms or atoms == [""]:
        return [module]
    children = [child for name, child in module.named_children() if fnmatch.fnmatch(name, atoms[0])]
    return [part for child in children for part in _matching(child, atoms[1:])]


def loss_parallel():
    """For a loss of logits that are cut along classes: targets are ordinary tensors, the same in every process.

    Nothing else is special: XLA communicates what it must.
    """
    return implicit_replication()
