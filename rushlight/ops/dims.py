"""What many public functions do to their arguments first: dimensions and sizes, checked as PyTorch checks them."""

from __future__ import annotations

import inspect
import operator

from ..engine.open_size import is_open
from ..tensor import Tensor


def wrap_dim(dim, ndim: int) -> int:
    """``dim`` counted from the front; a 0-dim tensor has the dims 0 and -1."""
    n = ndim or 1
    if dim.__class__ is not int:
        dim = as_int(dim, "dim")
    if -n <= dim < n:
        return dim if dim >= 0 else dim + n
    raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def wrap_dims(dims, ndim: int) -> tuple:
    """``dims`` (an int or several) counted from the front, each at most once."""
    dims = (dims,) if is_int(dims) else tuple(dims)
    wrapped = tuple(wrap_dim(int(d) if i and d.__class__ is bool else d, ndim) for i, d in enumerate(dims))
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped


def is_int(value) -> bool:
    if isinstance(value, (int, Tensor)):
        return True
    return not isinstance(value, (list, tuple, float)) and (hasattr(value, "__index__") or is_open(value))


def as_int(value, name: str) -> int:
    try:
        if value.__class__ is not bool:
            return operator.index(value)
    except TypeError:
        pass
    if is_open(value):
        return value
    raise TypeError(f"argument '{name}' must be int, not {type(value).__name__}")


def as_ints(values, name: str) -> tuple:
    """Several ints. PyTorch looks at the first: a truth value further on counts as a number."""
    return tuple(
        [
            v if v.__class__ is int else int(v) if i and v.__class__ is bool else as_int(v, name)
            for i, v in enumerate(values)
        ]
    )


def sizes(args, name: str = "size") -> tuple:
    """The sizes given as ``f(2, 3)`` or as ``f((2, 3))``."""
    if len(args) == 1 and not is_int(args[0]):
        args = args[0]
        if args is None or isinstance(args, (float, str)):
            raise TypeError(f"argument '{name}' must be tuple of ints, not {type(args).__name__}")
    for a in args:
        if a.__class__ is not int:
            return as_ints(args, name)
    return tuple(args)


def numel(shape) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def for_dims(function, pattern: str, dims=(1, 2, 3), doc: str = ""):
    """``function(dims, …)`` as one function for each number of dimensions; ``pattern`` says how they are called."""
    return tuple(_bound(function, pattern.format(d), d, doc.format(d)) for d in dims)


def _bound(function, name, dims, doc):
    def called(*args, **kwargs):
        return function(dims, *args, **kwargs)

    parameters = list(inspect.signature(function).parameters.values())[1:]
    called.of_dims = function  # whose parameters, after ``dims``, are this one's
    called.__signature__ = inspect.Signature(parameters)
    called.__name__ = called.__qualname__ = name
    called.__module__, called.__doc__ = function.__module__, doc
    return called
