"""Names of PyTorch that stand for parts which are not here: packages ask them, annotate with them, subclass them.

They answer as in a PyTorch built without that part: ``distributed.is_available()`` is False, ``isinstance(x,
jit.ScriptModule)`` too. Whoever calls what is not there gets an error that says so, and what to use instead. All of
them come from one table (``table.py``), when first asked for. A module or name that is really here is found before
its entry is looked at.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import importlib.machinery
import sys
import types
from typing import Any

from ..dtypes import dtype

__all__ = ["Absent", "Finder", "find", "hint"]

_PACKAGE = __name__.partition(".")[0]
UNKNOWN = object()


def find(module: str, name: str):
    """What stands for ``module.name``, kept in the module; UNKNOWN for a name that the table lacks."""
    path = _path(module)
    if path is None:
        return UNKNOWN
    if (path + "." + name).lstrip(".") in parts():
        return importlib.import_module(f"{module}.{name}")
    made = _make(path, name)
    if made is not UNKNOWN:
        setattr(sys.modules[module], name, made)
    return made


class Finder:
    """Finds ``rushlight.distributed`` in the table. It stands last: a file of that name comes before it."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        ours = _path(fullname)
        if not ours or ours not in parts():
            return None
        return importlib.machinery.ModuleSpec(fullname, Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        return None  # an ordinary one

    @staticmethod
    def exec_module(module):
        from .. import compat

        path = _path(module.__name__)
        module.__doc__ = f"``{torch_name(path)}`` is not here: these are its names."
        module.__dict__["__getattr__"] = compat.missing(module.__name__)
        module.__dict__["__dir__"] = lambda: sorted({*module.__dict__, *_kinds(path)})


class Absent:
    """Base of the classes that are only names: nothing is an instance, and making one raises."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(message(type(self)))

    __class_getitem__ = classmethod(types.GenericAlias)


class DtypeName(dtype):
    """A dtype that tensors cannot have: it can be compared, printed and asked for its kind."""

    def __init__(self, name: str):
        self.name, self.char = name, name.capitalize() + "Tensor"
        self.is_complex, self.is_floating_point = name.startswith("complex"), name.startswith("float")
        self.is_signed, self.itemsize, self.rank = not name.startswith(("uint", "quint", "bits")), 1, -1

    @property
    def numpy(self):
        raise NotImplementedError(f"torch.{self.name} is only a name here: tensors cannot have this dtype")

    def __reduce__(self):
        return find, (_PACKAGE, self.name)


def torch_name(path: str) -> str:
    """``nn.parallel`` -> ``torch.nn.parallel``, ``vision.ops`` -> ``torchvision.ops``"""
    return ("torch." + path).rstrip(".").replace("torch.vision", "torchvision", 1)


def message(thing) -> str:
    """What is said to who calls it."""
    kind: Any = next(k for k in thing.__mro__ if "instead" in vars(k)) if isinstance(thing, type) else thing
    return f"{kind.__module__}.{kind.__qualname__} is only a name here: {kind.instead}"


def hint(path: str) -> tuple[str, bool]:
    """What to do without ``nested.nested_tensor``, if the table knows; and does it say so of a whole part only?"""
    from fnmatch import fnmatchcase

    from .table import HINTS

    for patterns, text in HINTS.items():
        fitting = [pattern for pattern in patterns.split() if fnmatchcase(path, pattern)]
        if fitting:
            return text, fitting[0].endswith(".*")
    return "", False


def only_a_name(value) -> str:
    """What is said to who calls ``value``, if it does nothing else; else nothing."""
    is_name = issubclass(value, Absent) if isinstance(value, type) else hasattr(value, "instead")
    return message(value) if is_name and value is not Absent else ""


def is_absent(value, path: str, name: str) -> bool:
    """Did ``value`` come from the table's entry of this name?"""
    kind = _kinds(path).get(name)
    if kind == "here":
        return value is _make(path, name)
    if isinstance(value, types.ModuleType):
        return getattr(value.__spec__, "loader", None) is Finder
    if kind is None:
        return False
    return kind in ("values", "dtypes") or getattr(value, "__module__", None) == torch_name(path)


# -- what the table's words mean -------------------------------------------------------------------------------------


def _no(name, part):
    return _answering(name, False)


def _nothing(name, part):
    return _answering(name, None)


def _answering(name, value):
    def answer(*args, **kwargs):
        return value

    answer.__name__ = answer.__qualname__ = name
    return answer


def _keeps(name, part):
    """A decorator, with or without arguments, that gives back what it decorates."""

    def keep(function=None, *args, **kwargs):
        return function if callable(function) else lambda decorated: decorated

    keep.__name__ = keep.__qualname__ = name
    return keep


def _blocks(name, part):
    """A context manager, or decorator, that does nothing."""

    class Block(contextlib.ContextDecorator):
        def __init__(self, *args, **kwargs):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    Block.__name__ = Block.__qualname__ = name
    return Block


def _classes(name, part):
    return type(name, (Absent,), {"instead": part.instead, "__doc__": part.instead})


def _records(name, part):
    """A value that describes something: it has fields, is compared by them, and does nothing."""
    given = part.records[name].items()
    fields = [(n, Any) if default is ... else (n, Any, default) for n, default in given]
    return dataclasses.make_dataclass(name, fields, bases=(_follow(part.base),), frozen=True)


def _enums(name, part):
    return enum.Enum(name, part.enums[name])


def _errors(name, part):
    return type(name, (RuntimeError,), {})


def _warnings(name, part):
    return type(name, (Warning,), {})


def _dtypes(name, part):
    return DtypeName(name)


def _functions(name, part):
    def function(*args, **kwargs):
        raise NotImplementedError(message(function))

    function.__name__ = function.__qualname__ = name
    function.instead = part.instead  # type: ignore[attr-defined]
    return function


_MAKERS = {
    "no": _no, "nothing": _nothing, "keeps": _keeps, "blocks": _blocks, "classes": _classes, "errors": _errors,
    "warnings": _warnings, "functions": _functions, "dtypes": _dtypes, "enums": _enums, "records": _records,
}  # fmt: skip
_TABLES = ("enums", "records", "values", "here")  # the words that are dicts; the others are lists of names


def _make(path: str, name: str):
    part = parts().get(path)
    kind = _kinds(path).get(name)
    if part is None or kind is None:
        return UNKNOWN
    if kind == "here":
        return _follow(part.here[name])
    if kind == "values":
        return part.values[name]
    made = _MAKERS[kind](name, part)
    if not isinstance(made, DtypeName):
        made.__module__ = torch_name(path)
    return made


@functools.cache
def _kinds(path: str) -> dict[str, str]:
    """name -> the word of the table it stands under."""
    part = parts().get(path)
    if part is None:
        return {}
    listed = {name: kind for kind in _MAKERS if kind not in _TABLES for name in getattr(part, kind).split()}
    return {**listed, **{name: kind for kind in _TABLES for name in getattr(part, kind)}}


def _follow(path: str):
    found = importlib.import_module(_PACKAGE)
    for name in path.split("."):
        if not hasattr(found, name):  # a module that nobody imported yet
            importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name)
    return found


def _path(module: str) -> str | None:
    """``rushlight.nn.parallel`` -> ``nn.parallel``; the package itself is the empty path."""
    package, _, rest = module.partition(".")
    return rest if package == _PACKAGE else None


@functools.cache
def parts() -> dict:
    """path -> Part, with those above each."""
    from .table import PARTS, Part

    above = {path.rsplit(".", n)[0]: Part("") for path in PARTS for n in range(1, path.count(".") + 1)}
    return {**above, **PARTS}
