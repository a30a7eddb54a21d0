"""Sizes that stay open in an exported program: ``Dim``, and what ``dynamic_shapes`` says of each tensor."""

from __future__ import annotations

import inspect
from typing import Any

from ..nn.module import Module
from ..tensor import Tensor


class _Hint:
    """A size that gets a name by itself (AUTO, DYNAMIC), or stays as it is (STATIC)."""

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"


class Dim:
    """A size by name, with limits; the same name is the same size wherever it stands."""

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        if not name.isidentifier():
            raise ValueError(f"Dim(): the name of a size is an identifier, not {name!r}")
        self.__name__, self.min, self.max = name, 1 if min is None else min, max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several open sizes at once: ``batch, time = dims('batch', 'time')``."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def open_sizes(mod, args: tuple, kwargs: dict, dynamic_shapes: Any) -> tuple[list[list], dict[str, tuple]]:
    """(for each tensor the name of each of its sizes, or None; the limits of each name).

    Tensors come in the order in which ``tree.flatten`` finds them in ``(args, kwargs)``.
    """
    found: list[list] = []
    limits: dict[str, tuple] = {}
    if isinstance(dynamic_shapes, dict):
        function = mod.forward if isinstance(mod, Module) else mod
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
        unknown = set(dynamic_shapes) - set(bound)
        if unknown:
            name = sorted(unknown)[0]
            raise ValueError(f"export(): dynamic_shapes names {name!r}, which is no argument: {list(bound)}")
        positions = [dynamic_shapes.get(name) for name in list(bound)[: len(args)]]
        _visit((args, kwargs), (positions, dynamic_shapes), found, limits)
    else:
        _visit((args, kwargs), (dynamic_shapes, None), found, limits)
    return found, limits


def _visit(value, spec, found: list, limits: dict) -> None:
    if isinstance(value, Tensor):
        sizes = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
        names: list = [None] * value.ndim
        for d, size in sizes:
            names[d] = _named(size, len(found), d, limits)
        found.append(names)
    elif isinstance(value, dict):
        for key, part in value.items():
            _visit(part, spec.get(key) if isinstance(spec, dict) else None, found, limits)
    elif isinstance(value, (tuple, list)):
        for i, part in enumerate(value):
            _visit(part, spec[i] if isinstance(spec, (tuple, list)) and i < len(spec) else None, found, limits)


def _named(size, tensor: int, d: int, limits: dict) -> str | None:
    """The name of one size; its limits are noted."""
    if size is None or isinstance(size, int) or size is Dim.STATIC:
        return None
    if isinstance(size, _Hint):
        size = Dim(f"s{tensor}_{d}")
    if not isinstance(size, Dim):
        raise TypeError(f"export(): a size in dynamic_shapes is a Dim, an int or None, not {type(size).__name__}")
    limits[size.__name__] = size.min, size.max
    return size.__name__
