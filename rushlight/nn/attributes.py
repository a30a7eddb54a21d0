"""How an attribute of a module becomes a member: the names allowed, the tables it leaves, how it is read fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.native import library
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []


class Reader:
    """Finds a registered name in its table, for ``self.weight``.

    Without it Python first searches class and instance, builds an AttributeError, drops it and calls ``__getattr__``:
    five times the time. The table stays the only truth; what is not there goes the long way. Having no ``__set__``,
    it gives way to an instance attribute of the same name, as PyTorch's lookup does.
    """

    __slots__ = ("name", "table")

    def __init__(self, table: str, name: str):
        self.table, self.name = table, name

    def __get__(self, module, owner=None):
        if module is None:
            raise AttributeError(f"type object '{owner.__name__}' has no attribute '{self.name}'")
        try:
            return module.__dict__[self.table][self.name]
        except KeyError:
            raise AttributeError(self.name) from None  # on to __getattr__


if library is not None:
    Reader = library.Reader  # type: ignore[misc] # the same in C


class Unread(Reader):
    """Hides the reader of a base from a class whose own ``__getattr__`` wants to see every name."""

    __slots__ = ()

    def __get__(self, module, owner=None):
        raise AttributeError(self.name)


def read_fast(cls: type[Module], table: str, name: str) -> None:
    """Give ``cls`` a reader for ``name``, unless the class has something under that name, or its names are data."""
    if name in cls.__dict__ or not cls._names_are_code or not name.isidentifier():
        return
    if not any(name in base.__dict__ for base in cls.__mro__):
        setattr(cls, name, Reader(table, name))
        for derived in _all_derived(cls):
            hide_readers(derived)


def hide_readers(cls: type[Module]) -> None:
    """If ``cls`` has a ``__getattr__`` of its own, it is asked for members too, as in PyTorch."""
    from .module import Module

    if cls.__getattr__ is Module.__getattr__:  # type: ignore[attr-defined]
        return
    cls._names_are_code = False
    found: dict = {}  # what each name of the class is, the nearest base first
    for base in cls.__mro__:
        found = {**vars(base), **found}
    for name, value in found.items():
        if type(value) is Reader:
            setattr(cls, name, Unread(value.table, name))


def _all_derived(cls: type):
    for derived in cls.__subclasses__():
        yield derived
        yield from _all_derived(derived)


def class_names(cls: type):
    return (name for base in cls.__mro__ for name, value in vars(base).items() if not isinstance(value, Reader))


def remove(name: str, *tables) -> None:
    for table in tables:
        if name in table:
            if isinstance(table, dict):
                del table[name]
            else:
                table.discard(name)


def check_name(kind: str, name) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def cannot_assign(value, rest: str) -> TypeError:
    return TypeError(f"cannot assign '{typename(value)}' {rest}")


def typename(value) -> str:
    if isinstance(value, Tensor):
        return f"torch.{value.dtype.char}"
    kind = type(value)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def unexpected_arguments(cls, args, kwargs) -> TypeError:
    if kwargs:
        return TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return TypeError(f"{cls.__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
