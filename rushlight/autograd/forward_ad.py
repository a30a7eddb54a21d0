"""Forward-mode differentiation: dual tensors, a value and its tangent, inside a ``dual_level``.

>>> from rushlight.autograd import forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 0.0]))
...     fwAD.unpack_dual(x * x)
UnpackedDualTensor(primal=tensor([1., 4.]), tangent=tensor([2., 0.]))
"""

from __future__ import annotations

from typing import NamedTuple

from ..compat import missing as _missing
from ..tensor import Tensor
from . import mode
from .mode import state
from .registry import differentiable
from .tangents import Level, outside

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


def __dir__():
    return __all__


class DualLevel(Level):
    """A level that was entered by name; there is one at a time."""


def enter_dual_level() -> int:
    """Begin forward differentiation; the level's number. Better: ``with dual_level():``."""
    if _current() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    mode.intercepting(DualLevel()).__enter__()
    return 0


def exit_dual_level(*, level=None) -> None:
    """End it; tensors lose their tangents."""
    current = _current()
    if current is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    mode.stop_intercepting(current)
    current.close()


class dual_level(mode._Switch):
    """Inside, tensors may have tangents; when it ends they are gone."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None) -> Tensor:
    """``tensor`` with a tangent: a view of it, so that it is part of its graph and not changed itself."""
    current = _current()
    if current is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    _check_dual(tensor, tangent)
    with outside(current):
        made = differentiable.alias(tensor)
        current.give(made, tangent)
    return made


def _check_dual(tensor, tangent) -> None:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
            f"not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


class UnpackedDualTensor(NamedTuple):
    """What ``unpack_dual`` returns."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor, *, level=None) -> UnpackedDualTensor:
    """The value and the tangent of ``tensor``; None for the tangent of one that has none."""
    current = _current()
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if current is None:
        return UnpackedDualTensor(tensor, None)
    with outside(current):
        return UnpackedDualTensor(differentiable.alias(tensor), current.of(tensor))


def _current() -> DualLevel | None:
    return next((handler for handler in reversed(state.interceptors) if isinstance(handler, DualLevel)), None)


def _find(name: str):
    """PyTorch counts levels from 0, and says -1 outside of one."""
    return None if name != "_current_level" else -1 if _current() is None else 0


__getattr__ = _missing(__name__, _find)
