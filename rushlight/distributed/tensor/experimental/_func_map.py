"""Functions of local tensors, and plain tensors among DTensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from ....tensor import Tensor
from ..dtensor import DTensor

__all__ = ["implicit_replication", "local_map"]


@contextlib.contextmanager
def implicit_replication():
    """Inside, plain tensors may meet DTensors: every process is taken to have the same."""
    from ....engine.spread import namespace

    namespace.replicating.append(True)
    try:
        yield
    finally:
        namespace.replicating.pop()


def local_map(
    func: Callable | None = None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None,
    *, redistribute_inputs: bool = False,
):  # fmt: skip
    """``func``, written for a process's own tensors, as a function of DTensors; also a decorator.

    ``in_placements`` says of each argument how it must lie (it is laid so with ``redistribute_inputs``),
    ``out_placements`` how each result lies, None where it is no tensor. Without a DTensor among the arguments it is
    ``func`` itself.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        from ....utils import _pytree as trees

        given, form = trees.tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(given):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input args {len(given)}!"
            )
        spread = [t for t in given if isinstance(t, DTensor)]
        local = [
            _taken(t, _nth(in_placements, i), _nth(in_grad_placements, i), device_mesh, redistribute_inputs,
                   in_placements is not None)
            for i, t in enumerate(given)
        ]  # fmt: skip
        out = func(*trees.tree_unflatten(local, form), **kwargs)
        if not spread:
            return out
        return _given(out, out_placements, device_mesh or spread[0].device_mesh)

    return mapped


def _nth(placements, i: int):
    return None if placements is None else placements[i]


def _taken(value, wanted, of_gradient, mesh, redistribute: bool, checked: bool):
    """What ``func`` gets for an argument."""
    if not isinstance(value, DTensor):
        if wanted is not None and not isinstance(value, Tensor):
            raise AssertionError(f"Non-Tensor input {value} expects None placements but received {wanted}!")
        return value
    if checked and wanted is None:
        raise AssertionError(f"DTensor input {value} expects placements but received None!")
    if wanted is not None and value.placements != tuple(wanted):
        if not redistribute:
            raise ValueError(
                f"an argument of local_map lies as {value.placements}, but in_placements says {tuple(wanted)}; with "
                "redistribute_inputs=True it is laid so"
            )
        value = value.redistribute(mesh or value.device_mesh, wanted)
    return value.to_local(grad_placements=of_gradient)


def _given(out, placements, mesh):
    """What comes of ``func``'s results."""
    from ....utils import _pytree as trees

    found, form = trees.tree_flatten(out)
    single = placements is None or not any(p is None or isinstance(p, (list, tuple)) for p in placements)
    wanted = [placements] if single else list(placements)
    if len(wanted) != len(found):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, received "
            f"{len(wanted)} out_placements but {len(found)} is expected!"
        )
    made = []
    for value, how in zip(found, wanted):
        if isinstance(value, Tensor):
            if isinstance(value, DTensor):
                raise AssertionError(f"torch.Tensor output expected but received {type(value)}: {value}")
            made.append(value if how is None else DTensor.from_local(value, mesh, how))
        else:
            if how is not None:
                raise AssertionError(f"Non-tensor output {value} expects None placements but received {how}!")
            made.append(value)
    return trees.tree_unflatten(made, form)
