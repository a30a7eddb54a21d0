"""Conditions and sizes as functions, under the names that packages call: ``torch._check``, ``torch.sym_max``.

PyTorch has them so that its tracer sees them. Sizes are plain numbers here.
"""

from __future__ import annotations

import functools
import math

from . import config
from .device import device
from .ops.public import PUBLIC
from .tensor import Tensor

__all__: list[str] = []


def _check_with(error_type: type, cond, message=None) -> None:
    """Raise ``error_type`` unless ``cond``; ``message`` is a function that makes the text."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
            "that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    _raise_unless(cond, error_type, message)


def _check_tensor_all_with(error_type: type, cond, message=None) -> None:
    """Raise ``error_type`` unless all elements of ``cond`` are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _raise_unless(bool(cond.all()), error_type, message)


def _raise_unless(holds: bool, error_type: type, message) -> None:
    if holds:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _shape_as_tensor(input):
    """The shape, as int64 numbers in a tensor."""
    return PUBLIC["tensor"](list(input.shape), dtype=PUBLIC["tensor"](0).dtype)


def _default_device() -> str:
    return str(config.get_default_device())


def _accelerator(check_available=None):
    """The kind of accelerator, or the CPU where there is none."""
    from .accelerator import current_accelerator

    return current_accelerator() or device("cpu")


def _available_device_type() -> str | None:
    """The kind of accelerator that is there, or None."""
    kind = _accelerator().type
    return None if kind == "cpu" else kind


def _cudnn_enabled() -> bool:
    from .backends import cudnn

    return cudnn.enabled


def _is_alias_of(a, b) -> bool:
    """Do two tensors share a storage?"""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def sym_int(a) -> int:
    """A number without its fraction."""
    return math.trunc(a)


def sym_float(a) -> float:
    """A number as a float."""
    return float(a)


def sym_max(a, b):
    """The larger; a float if one of the two is."""
    return _joint(max, a, b)


def sym_min(a, b):
    """The smaller; a float if one of the two is."""
    return _joint(min, a, b)


def _joint(choose, a, b):
    return float(choose(a, b)) if isinstance(a, float) or isinstance(b, float) else choose(a, b)


def sym_sum(args):
    """The sum of numbers."""
    return sum(args)


def sym_not(a) -> bool:
    """Not ``a``."""
    return not a


def sym_ite(b, t, f):
    """``t`` if ``b``, else ``f``; both are of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite: the condition has to be a bool, and the two values of one type")
    return t if b else f


def _named(name: str, check, error_type: type):
    function = functools.partial(check, error_type)
    function.__name__ = function.__qualname__ = name  # type: ignore[attr-defined]
    return function


_ERRORS = {
    "_check": RuntimeError, "_check_value": ValueError, "_check_index": IndexError, "_check_type": TypeError,
    "_check_not_implemented": NotImplementedError,
}  # fmt: skip

PUBLIC.update({name: _named(name, _check_with, error) for name, error in _ERRORS.items()})
PUBLIC["_check_tensor_all"] = _named("_check_tensor_all", _check_tensor_all_with, RuntimeError)
PUBLIC.update({f.__name__: f for f in (_check_with, _check_tensor_all_with, _shape_as_tensor)})
PUBLIC.update({f.__name__: f for f in (sym_int, sym_float, sym_max, sym_min, sym_sum, sym_not, sym_ite)})
