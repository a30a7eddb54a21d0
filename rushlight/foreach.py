"""``torch._foreach_add(tensors, 2.0)`` and its kin: one operator on every tensor of a list."""

from __future__ import annotations

import functools

from .tensor import Tensor

__all__ = ["find"]

_PREFIX = "_foreach_"
# Operators that take a second list, or one number or 0-dimensional tensor for all.
_BINARY = ("add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "maximum", "minimum", "copy", "lerp", "mm")
_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero norm max clone powsum
"""
_TERNARY = ("addcmul", "addcdiv")
# What PyTorch calls the arguments that may be lists, and the order of a norm; by name they come in this order.
_NAMES = ("tensors1", "tensor1", "tensor2", "other", "scalar", "exponent", "src", "ord", "weight", "weights", "scalars")
_LISTS_ONLY = ("copy", "mm")
_ONLY_OUT_OF_PLACE = ("clone", "max", "mm", "norm", "powsum")


def find(name: str):
    """The function ``_foreach_name`` or ``_foreach_name_``, or None."""
    base = name.removeprefix(_PREFIX).rstrip("_")
    if name.endswith("_") and base in _ONLY_OUT_OF_PLACE:
        return None
    if name.startswith(_PREFIX) and base in (*_BINARY, *_UNARY.split(), *_TERNARY):
        return _made(name, base, name.endswith("_"))
    return None


@functools.cache
def _made(name: str, base: str, in_place: bool):
    listed = 2 if base in _TERNARY else 1 if base in _BINARY else 0  # how many further arguments may be lists

    def function(self, *args, **kwargs):
        args += tuple(kwargs.pop(name) for name in _NAMES if name in kwargs)
        if base == "pow" and not isinstance(self, (list, tuple)):  # one number to the power of each
            return tuple(self**t for t in _tensors(args[0], name))
        self = _tensors(self, name)
        _check(name, base, args)
        for position, argument in enumerate(args[:listed]):
            if isinstance(argument, (list, tuple)) and len(argument) != len(self):
                raise RuntimeError(
                    f"{name}(): Tensor lists must have the same number of tensors, got {len(self)} and "
                    f"{len(argument)} (argument {position + 2})"
                )
        results = [_call(base, in_place, t, [_item(a, i) for a in args], dict(kwargs)) for i, t in enumerate(self)]
        return self if in_place else tuple(results)

    function.__name__ = function.__qualname__ = name
    return function


def _check(name: str, base: str, args) -> None:
    """PyTorch's error for arguments that the function does not take."""
    if base in _LISTS_ONLY and args and not all(isinstance(t, Tensor) for t in _listed(args[0])):
        raise TypeError(f"{name}(): argument 'src' (position 2) must be tuple of Tensors, not {type(args[0]).__name__}")
    if (base == "max" and args) or (base in ("norm", "powsum") and args and isinstance(args[0], (list, tuple))):
        raise TypeError(f"{name}() received an invalid combination of arguments")
    if base in _LISTS_ONLY and (len(args) > 2 or (len(args) == 2 and not isinstance(args[1], bool))):
        raise TypeError(f"{name}() received an invalid combination of arguments")


def _listed(value):
    return value if isinstance(value, (list, tuple)) and value else (None,)


def _call(base: str, in_place: bool, tensor: Tensor, args: list, kwargs: dict):
    base = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(base, base)  # these take numbers too
    if base in _TERNARY and len(args) == 3:
        *args, kwargs["value"] = args
    if in_place:
        return getattr(tensor, base + "_")(*args, **kwargs)
    if base == "powsum":
        return tensor.abs().pow(*args or (2,)).sum(**kwargs)
    if base in ("copy", "zero"):
        return getattr(tensor.clone(), base + "_")(*args, **kwargs)
    return getattr(tensor, base)(*args, **kwargs)


def _item(argument, i: int):
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def _tensors(given, name: str) -> list:
    if not isinstance(given, (list, tuple)) or not all(isinstance(t, Tensor) for t in given):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(given).__name__}")
    if not given:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(given)
