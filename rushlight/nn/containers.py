"""Modules that hold others: ``Sequential``, lists and dicts of modules, lists and dicts of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import Any

from ..errors import warn_user
from ..tensor import Tensor
from .module import Module, _addindent
from .parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Deprecated: a Module with the given children."""

    def __init__(self, **kwargs) -> None:
        super().__init__()
        warn_user(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Children under the names "0", "1", …, handled like a list."""

    def _key(self, index) -> str:
        """The name of the child at ``index``, counted from the end if negative."""
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._key(index)]

    def __setitem__(self, index, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list) -> None:
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module):
        """Add ``module`` at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Append each of ``modules``; returns the container."""
        for module in _iterable(modules, f"{type(self).__name__}.extend should be called with an iterable"):
            self.append(module)
        return self

    def pop(self, key):
        """Remove the child at ``key`` and return it."""
        module = self[key]
        del self[key]
        return module

    def _insert(self, position: int, module: Module) -> None:
        modules = list(self._modules.values())
        modules.insert(position, module)
        self.append(module)  # checks it, and counts the change
        self._renumber(modules)


class Sequential(_Numbered):
    """Modules called one after the other, each on what the one before returned.

    >>> nn.Sequential(nn.Linear(2, 3), nn.Identity())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Identity()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def insert(self, index: int, module: Module) -> Sequential:
        """Put ``module`` before the one at ``index``; returns the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_same_kind(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(list(_same_kind(other)))

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*self).__imul__(times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        """Repeat the modules, the very same ones, ``times`` times."""
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return self.extend(list(self) * (times - 1))


class ModuleList(_Numbered):
    """A list whose modules are registered. It has no ``forward``: call its items."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])  # type: ignore[arg-type]
        return super().__getitem__(index)

    def insert(self, index: int, module: Module) -> None:
        """Put ``module`` before the one at ``index``, as a list does."""
        self._insert(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Equal neighbours are printed once: ``(0-2): 3 x Linear(…)``."""
        if not len(self):
            return self._get_name() + "()"
        lines, start = [], 0
        for text, group in groupby(repr(module) for module in self):
            count = len(list(group))
            one, many = f"({start}): {text}", f"({start}-{start + count - 1}): {count} x {text}"
            lines.append(_addindent(one if count == 1 else many, 2))
            start += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict whose modules are registered; it keeps the order of insertion."""

    def __init__(self, modules: Mapping[str, Module] | Iterable | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        if key not in self._modules:
            raise KeyError(key)
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all items."""
        for key in list(self._modules):
            del self[key]

    def pop(self, key: str) -> Module:
        """Remove ``key`` and return its module."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules) -> None:
        """Set all items of a mapping or of an iterable of pairs."""
        for key, module in _pairs(modules, "ModuleDict", "ModuleDict", (Mapping, ModuleDict)):
            self[key] = module


class ParameterList(Module):
    """A list whose tensors are registered as parameters. Anything that is no tensor is kept as it is."""

    def __init__(self, values: Iterable | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, value) -> None:
        setattr(self, str(_position(index, len(self))), _parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable) -> ParameterList:
        return self.extend(values)

    def append(self, value) -> ParameterList:
        """Add ``value`` at the end; returns the list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable) -> ParameterList:
        """Append each of ``values``; returns the list."""
        # A tensor can be iterated, but is surely not what was meant.
        given = None if isinstance(values, Tensor) else values
        for value in _iterable(given, "ParameterList.extend should be called with an iterable", values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(v, lambda p: repr(p.dtype))}" for i, v in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors are registered as parameters. Anything that is no tensor is kept as it is."""

    _names_are_code = False

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str):
        return getattr(self, _checked_key(key))

    def __setitem__(self, key: str, value) -> None:
        setattr(self, _checked_key(key), _parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, _checked_key(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def get(self, key: str, default=None):
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default=None):
        """The value of ``key``, set to ``default`` first if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all items."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str):
        """Remove ``key`` and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the last item and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default=None) -> ParameterDict:
        """A new dict with ``default`` under each of ``keys``."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters) -> None:
        """Set all items of a mapping or of an iterable of pairs; a plain dict's in the order of its sorted keys."""
        pairs = _pairs(parameters, "ParametersDict", "ParameterDict", (Mapping, ParameterDict))
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict):
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(v, lambda p: f'torch.{p.dtype.char}')}" for key, v in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")


def _position(index, count: int) -> int:
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of range")
    return index % count


def _parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _iterable(values, complaint: str, shown=None) -> list:
    if not isinstance(values, Iterable):
        raise TypeError(f"{complaint}, but got {type(values if shown is None else shown).__name__}")
    return list(values)


def _pairs(values, caller: str, kind: str, mappings) -> list:
    """The items of a mapping, or of an iterable of pairs that is checked to be one."""
    complaint = f"{caller}.update should be called with an iterable of key/value pairs"
    if isinstance(values, mappings):
        return list(values.items())
    pairs = _iterable(values, complaint)
    for i, pair in enumerate(pairs):
        if not hasattr(pair, "__iter__"):
            raise TypeError(f"{kind} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{i} has length {len(pair)}; 2 is required")
    return pairs


def _same_kind(other) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


def _checked_key(key) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string "
            f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key


def _describe(value, kind) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    where = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"{name} containing: [{kind(value)} of size {size}{where}]"
