"""Gradients kept within bounds, in place."""

from __future__ import annotations

import numpy as np

from ... import linalg
from ...autograd import mode
from ...autograd.mode import no_grad
from ...autograd.views import put_all
from ...engine import namespace_of
from ...engine.numpy import namespace as numpy_engine
from ...engine.numpy.kernels import chains
from ...errors import warn_user
from ...ops import clamp, stack, tensor
from ...tensor import Tensor, wrap

_FEW = 1 << 14  # elements for which following a formula takes longer than NumPy's calls

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


@no_grad()
def get_total_norm(
    tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all the tensors' elements together."""
    tensors, norm_type = [tensors] if isinstance(tensors, Tensor) else list(tensors), float(norm_type)
    if not tensors:
        return tensor(0.0)
    xp = _recorder(tensors)
    if xp is None:
        place = tensors[0].device
        norms = [linalg.vector_norm(t, norm_type).to(place) for t in tensors]
        total = linalg.vector_norm(stack(norms), norm_type)
    else:
        found = xp.once("total_norm", _total_norm, (), [t._array for t in tensors], norm_type)
        total = wrap(np.asarray(found) if xp is numpy_engine else found)
    if error_if_nonfinite and bool(total.isnan().logical_or(total.isinf())):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients so that a total norm of ``total_norm`` becomes at most ``max_norm``."""
    factor = clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    grads = _grads(parameters)
    xp = _recorder([*grads, factor])
    if xp is numpy_engine and _scale_together(grads, factor):
        return
    if xp is None or xp is numpy_engine:
        for grad in grads:
            grad.mul_(factor.to(grad.device))
    else:
        put_all(list(zip(grads, xp.once("scaled", _scaled, (), [g._array for g in grads], factor._array))))


@no_grad()
def clip_grad_norm_(
    parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Scale all gradients by one factor so that their norm is at most ``max_norm``; returns the norm they had.

    >>> weight = rushlight.nn.Parameter(rushlight.tensor([3.0, 4.0]))
    >>> weight.grad = rushlight.tensor([3.0, 4.0])
    >>> rushlight.nn.utils.clip_grad_norm_([weight], 1.0), weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    parameters = _listed(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """Deprecated: the former name of ``clip_grad_norm_``."""
    warn_user(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of the gradients into [-clip_value, clip_value]."""
    for grad in _grads(_listed(parameters)):
        grad.clamp_(min=-float(clip_value), max=float(clip_value))


def _listed(parameters) -> list:
    if isinstance(parameters, Tensor):
        return [parameters]
    generated = not isinstance(parameters, (list, tuple))
    parameters = list(parameters)
    if generated and not parameters:
        warn_user("`parameters` is an empty generator, no gradient clipping will occur.")
    return parameters


def _grads(parameters) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


# -- all tensors in one call -------------------------------------------------------------------------------------------


def _recorder(tensors: list[Tensor]):
    """The engine, if it is NumPy's or records calls, and the tensors, of one dtype and device, are plain ones of it."""
    array = tensors[0]._array
    xp, place = namespace_of(array), getattr(array, "place", None)  # what lies on many devices has none
    if not (xp is numpy_engine or (xp.DEFERS and place is not None)) or mode.active:
        return None
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        return None
    if xp is numpy_engine and not all(t._array.size for t in tensors):  # of nothing, some norms are refused
        return None
    for t in tensors:
        if type(t) is not Tensor or t._view is not None or t._array.__class__ is not array.__class__:
            return None
        if t._array.dtype != array.dtype or getattr(t._array, "place", None) is not place:
            return None
    return xp


def _scale_together(grads: list[Tensor], factor: Tensor) -> bool:
    """Multiply all gradients in one pass of the library over their memory; False where it does not serve."""
    number, arrays = factor.item(), [g._array for g in grads]
    if not grads or len({id(a) for a in arrays}) < len(arrays) or any(g._counted().inference for g in grads):
        return False
    if sum(a.size for a in arrays) < _FEW and all(a.flags.writeable for a in arrays):
        for a in arrays:
            np.multiply(a, number, a)
    else:
        found = chains.together(lambda xp, a: {"g": a["g"] * number}, numpy_engine, factor._array.dtype, ["g"])
        if found is None:
            return False
        try:
            found[0](arrays)
        except TypeError:  # before anything was computed: something does not lie in memory in order
            return False
    for g in grads:
        g._counted().version += 1
    return True


def _total_norm(xp, arrays, order):
    return xp.vector_norm(xp.stack([xp.vector_norm(a, ord=order) for a in arrays]), ord=order)


def _scaled(xp, arrays, factor):
    return [a * factor for a in arrays]
