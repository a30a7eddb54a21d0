"""What a compiled function took for granted, and whether it is still so.

While a function is recorded, ``Executed`` notes which code runs. A name that this code does not mention cannot have
been read, so a ``World`` is found by following the names: from the function and its arguments through closures,
globals, attributes, small containers, modules and optimizers. Every place on the way is compared at each call, by
identity, in one pass that runs in C. Only where that finds another object is the world described again, by value.

What changes unseen between two calls (an iterator, a container too large to compare) is refused: ``Unguardable``.
How a program was obtained makes no difference here.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import functools
import io
import linecache
import os
import random
import sys
import time
import types
import weakref
from itertools import chain, repeat
from operator import attrgetter, call, getitem, is_, itemgetter

import numpy as np

from ..config import epoch
from ..engine import SPREAD
from ..engine.native import library
from ..nn.hooks import TABLES, everyone
from ..nn.module import Module
from ..optim import optimizer as optimizers
from ..tensor import Tensor
from .tree import others

_LIMIT = 4096  # entries; a container with more is not compared at every call
_ARRAY_LIMIT = 64 * 1024  # bytes of a NumPy array
_PLAIN = (type(None), bool, int, str, bytes, type(...), type(NotImplemented), range, slice)
_ITERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, io.IOBase)
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_DYNAMIC = {"getattr", "vars", "__dict__", "setattr", "globals", "eval", "exec"}
_contents, _node, _grad = attrgetter("cell_contents"), attrgetter("_node"), attrgetter("_grad")
# What gives something else, or is to be done again, at every call.
_OUTSIDE = {
    "random", "secrets", "logging", print, input, open, os.urandom, os.getenv, datetime.datetime.now,
    datetime.datetime.utcnow, datetime.date.today, time.time, time.time_ns, time.monotonic, time.monotonic_ns,
    time.perf_counter, time.perf_counter_ns, time.process_time, time.process_time_ns, time.sleep,
}  # fmt: skip
# What processes do together, whoever of a user's libraries asks for it.
_BETWEEN = {f"{__package__.partition('.')[0]}.distributed.point_to_point"}
_SOURCES = (random.Random, io.IOBase.__mro__[1], np.random.Generator, np.random.RandomState)
_END = object()
_NONE = repeat(None)


class CompileError(RuntimeError):
    """Something in a compiled function cannot be traced; the message names the line and the way out."""

    __module__ = "rushlight.compiler"


class Unguardable(Exception):
    """A function depends on something whose changes cannot be noticed; the message says on what."""


class Executed:
    """The code that ran inside ``with``: the names that it mentions, and the globals of the user's part of it.

    ``outside`` says where the user's code did what has to be done at every call: print, draw from Python's random
    numbers, look at the clock, exchange something with other processes.
    """

    def __init__(self):
        self.codes: dict[types.CodeType, dict] = {}
        self.outside: list[str] = []

    def __enter__(self):
        codes, self._outer = self.codes, sys.getprofile()

        def note(frame, event, function):
            if event == "call":
                codes[frame.f_code] = frame.f_globals
                module = frame.f_globals.get("__name__")
                if module in _OUTSIDE:
                    self._note(frame.f_back, f"{module}.{frame.f_code.co_name}")
                elif module in _BETWEEN:
                    self._note(_users(frame), f"{module}.{frame.f_code.co_name}")
            elif event == "c_call" and (
                function in _OUTSIDE or isinstance(getattr(function, "__self__", None), _SOURCES)
            ):
                self._note(frame, function.__qualname__)

        sys.setprofile(note)
        return self

    def __exit__(self, *_):
        if self._outer is None or callable(self._outer):
            sys.setprofile(self._outer)
        else:  # cProfile's own object, which sets itself
            sys.setprofile(None)
            self._outer.enable()

    def _note(self, frame, name: str) -> None:
        if frame is not None and not _made_by_library(frame.f_code, frame.f_globals):
            file, line = frame.f_code.co_filename, frame.f_lineno
            self.outside.append(f'at "{file}", line {line}: {linecache.getline(file, line).strip()}\nIt calls {name}')

    def users(self):
        """The (code, globals) pairs that are neither ours nor a library's."""
        return [(code, space) for code, space in self.codes.items() if not _made_by_library(code, space)]

    def names(self) -> set[str]:
        """What the executed code may have read as an attribute."""
        ours = (code for code in self.codes if code.co_filename.startswith(_OURS))
        return {name for code in (*ours, *(code for code, _ in self.users())) for name in code.co_names}


def _users(frame):
    """The innermost frame of the user's that led to this one."""
    while frame is not None and _made_by_library(frame.f_code, frame.f_globals):
        frame = frame.f_back
    return frame


def is_library(filename: str) -> bool:
    """Is it not the user's: ours, an installed library's, or Python's own?"""
    return filename.startswith((_OURS, _STANDARD, "<frozen")) or "site-packages" in filename


def _made_by_library(code, space: dict) -> bool:
    if not code.co_filename.startswith("<"):
        return is_library(code.co_filename)
    # Made from text: a user's, or what namedtuple and dataclass write for a library.
    return is_library(space.get("__file__") or "") or space.get("__name__", "").startswith("namedtuple_")


class Place:
    """Where something is found: ``container[key]``, or what a cell holds."""

    __slots__ = ("container", "key")

    def __init__(self, container, key):
        self.container, self.key = container, key

    def get(self):
        return self.container.cell_contents if self.key is _END else self.container[self.key]

    def put(self, value) -> None:
        if self.key is _END:
            self.container.cell_contents = value
        else:
            self.container[self.key] = value

    def is_at(self, container, key) -> bool:
        return self.container is container and (self.key is key or (isinstance(key, (str, int)) and self.key == key))


class World:
    """All places that a function's executed code can have looked at, as they are now; not ``but``, which it writes.

    It begins at ``roots`` and at the ``arguments`` of a call; ``reached`` are the ids of the tensors that it can see
    without being given them.
    """

    def __init__(self, roots, arguments, executed: list[Executed], but=(), tensors=(), watched=None):
        self._roots, self._arguments, self._executed, self._but = roots, arguments, executed, but
        self._tensors = list(tensors)  # whose history and gradients count too
        self._look(watched)

    def unchanged(self, again: bool = True) -> bool:
        """Is everything as it was? ``again``: where something else is found, look whether it has the same values."""
        if self._epoch == epoch.value:
            try:
                if self._is_as_expected():
                    return True
            except (KeyError, IndexError, ValueError, AttributeError, RuntimeError):
                pass
        if not again or self._without_grad != self._now_without_grad():
            return False
        now = World(self._roots, self._arguments, self._executed, self._but, self._tensors, self._watched)
        if now._described != self._described:
            return False
        self.__dict__ = now.__dict__
        return True

    def _now_without_grad(self) -> list[bool]:
        return list(map(is_, map(_grad, self._watched), _NONE))

    def changes(self):
        """(place, value before) wherever something has changed; Unguardable for a container that grew or shrank."""
        found = []
        for container, keys, values in self._contents:
            if isinstance(container, types.CellType):
                now = [container.cell_contents]
            else:
                if isinstance(keys, list) and len(container) != len(keys):
                    raise Unguardable(f"it changes the length of a {type(container).__name__}")
                now = [container[key] for key in keys]
            found += [(Place(container, k), old) for k, old, new in zip(keys, values, now) if new is not old]
        return [(place, old) for place, old in found if not any(place.is_at(p.container, p.key) for p in self._but)]

    def restore(self) -> None:
        """Put everything back that was there when this world was looked at."""
        for container, keys, values in self._contents:
            if isinstance(container, types.CellType):
                container.cell_contents = values[0]
            elif isinstance(container, types.MappingProxyType):
                continue  # a class: nobody's business to change
            elif isinstance(keys, tuple):
                for key, value in zip(keys, values):
                    container[key] = value
            elif isinstance(container, dict):
                if len(container) != len(keys) or not all(map(is_, container, keys)):
                    container.clear()
                container.update(zip(keys, values))
            else:
                container.clear()
                container.extend(values)

    def _look(self, watched) -> None:
        self._epoch = epoch.value
        self._cells, self._whole, self._getters, self._spaces, self._contents = [], [], [], [], []
        self._holders, self._keys = [], []  # of the places that are the only one of their container
        self._growing: list[dict] = []
        self._described, self._seen, self._kept = [], {}, []
        self._names = set().union(*(e.names() for e in self._executed))
        self._users = {code: space for e in self._executed for code, space in e.users()}
        self._everything = any(not _DYNAMIC.isdisjoint(code.co_names) for code in self._users)
        self.reached: set[int] = set()
        for root in (*self._roots, *others(self._arguments)):
            self._visit(root)
        for code, space in self._users.items():
            self._globals(code, space)
        self._settings()
        reached = self.reached.copy()
        self._visit(self._arguments)
        self.reached = reached
        self._kept.extend(self._tensors)
        for t in self._tensors:
            self._note(id(t._node), t._array.shape, str(t._array.dtype), _lies(t), _hook_ids(t._node))
        # Those of the first look: what was a gradient then may have given its place to another tensor since.
        self._watched = self._with_gradients() if watched is None else watched
        self._without_grad = self._now_without_grad()
        self._note(self._without_grad)
        self._expected = list(self._passes())

    def _is_as_expected(self) -> bool:
        if library is None:
            return all(map(is_, chain(self._passes(), (_END,)), chain(self._expected, (_END,))))
        return library.unchanged(
            self._expected, self._cells, self._whole, self._holders, self._keys, self._getters, self._spaces,
            self._tensors, self._watched, self._growing,
        )  # fmt: skip

    def _with_gradients(self) -> list[Tensor]:
        """Those whose ``.grad`` somebody may look at: optimizers do not look at that of a moment or a gradient."""
        if any("grad" in name and name != "zero_grad" for code in self._users for name in code.co_names):
            return list(self._tensors)
        found = [o for o in self._roots if isinstance(o, optimizers.Optimizer)]
        unseen = {id(value) for o in found for state in o.state.values() for value in state.values()}
        unseen.update(id(t._grad) for t in self._tensors)
        return [t for t in self._tensors if id(t) not in unseen or t._grad is not None]

    def _passes(self):
        """Everything that is looked at; in C the same (``engine/native/src/guards.c``)."""
        return chain(
            map(_contents, self._cells),
            chain.from_iterable(self._whole),
            map(getitem, self._holders, self._keys),
            chain.from_iterable(map(call, self._getters, self._spaces)),
            map(_node, self._tensors),
            map(is_, map(_grad, self._watched), _NONE),
            map(len, self._growing),  # a new attribute may hide one of the class
        )

    # -- finding -----------------------------------------------------------------------------------------------------

    def _note(self, *token) -> None:
        self._described.append(token)

    def _visit(self, value) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._note(kind, value)
        elif kind in (float, complex):
            self._note(kind, repr(value))
        elif id(value) in self._seen:
            self._note("again", self._seen[id(value)])
        else:
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)  # its id must not become another's
            self._visit_new(kind, value)

    def _visit_new(self, kind, value) -> None:
        if isinstance(value, Tensor):
            self.reached.add(id(value))
            self._note("tensor", id(value), value._array.shape, str(value._array.dtype), _lies(value))
            if value.__dict__:
                self._attributes(value.__dict__)
        elif isinstance(value, Module):
            self._module(value)
        elif isinstance(value, optimizers.Optimizer):
            self._optimizer(value)
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial, type)):
            self._callable(value)
        elif isinstance(value, types.ModuleType):
            self._note(id(value))
        elif isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, (dict, list, tuple, set, frozenset, collections.deque)):
            self._container(kind, value)
        elif isinstance(value, _SOURCES):
            raise Unguardable(f"it uses a {kind.__name__}, which gives something else each time")
        elif isinstance(value, _ITERATORS) or (hasattr(kind, "__next__") and not isinstance(value, Tensor)):
            raise Unguardable(f"it reads from an iterator ({kind.__name__}), which gives something else each time")
        else:
            self._instance(kind, value)

    def _container(self, kind, value) -> None:
        if len(value) > _LIMIT:
            raise Unguardable(
                f"it reads a {kind.__name__} of {len(value):,} entries, too many to compare at every call"
            )
        self._note(kind, len(value))
        if isinstance(value, dict):
            self._entries(value, list(value), whole=True)
        elif isinstance(value, (list, collections.deque)):
            self._entries(value, list(range(len(value))), whole=True)
        elif isinstance(value, tuple):
            for v in value:
                self._visit(v)
        else:
            self._note(sorted((type(v).__name__, repr(v) if type(v) in _PLAIN else id(v)) for v in value))

    def _entries(self, container, keys, whole: bool) -> None:
        """Watch ``container[key]`` for these keys; ``whole``: they are all it has, in this order."""
        mine = [key for key in keys if not any(place.is_at(container, key) for place in self._but)]
        if whole and len(mine) == len(keys):
            self._whole.append(container.values() if isinstance(container, dict) else container)
        elif len(mine) == 1:
            self._holders.append(container)
            self._keys += mine
        elif mine:
            self._getters.append(itemgetter(*mine))
            self._spaces.append(container)
        self._contents.append((container, keys if whole else tuple(keys), [container[key] for key in keys]))
        for key in keys:
            self._note(key if type(key) in _PLAIN else id(key))
            if not any(place.is_at(container, key) for place in self._but):
                self._visit(container[key])

    def _attributes(self, space: dict) -> None:
        names = [n for n in space if self._everything or n in self._names]
        self._growing.append(space)
        self._entries(space, names, whole=False)

    def _module(self, module: Module) -> None:
        self._note("module", id(module), id(type(module)))
        state = module.__dict__
        names = [n for n in state if (self._everything or n in self._names) and n not in _TABLES]
        self._growing.append(state)
        self._entries(state, names, whole=False)
        for name in _TABLES:
            if state.get(name):
                self._entries(state[name], list(state[name]), whole=True)
        if module._hooks is not None:
            for name in TABLES:
                self._hooks(getattr(module._hooks, name))
            self._note(id(module._hooks.compiled))
        self._class(type(module))

    def _hooks(self, table) -> None:
        """A table of hooks: who changes one counts the epoch on."""
        for key, hook in table.items():
            self._note(key)
            self._visit(hook)
        self._note(len(table))

    def _optimizer(self, optimizer) -> None:
        self._note("optimizer", id(optimizer), id(type(optimizer)))
        for group in optimizer.param_groups:
            # Before the list of groups is visited: the options that enter as inputs are not compared.
            self._seen[id(group)] = len(self._seen)
            self._kept.append(group)
            fixed = [name for name in group if name not in optimizer.dynamic and name != "param_names"]
            self._entries(group, fixed, whole=False)
        self._entries(optimizer.__dict__, ["param_groups", "state"], whole=False)
        for table in (
            optimizer._optimizer_step_pre_hooks,
            optimizer._optimizer_step_post_hooks,
            optimizers._global_pre_hooks,
            optimizers._global_post_hooks,
        ):
            self._hooks(table)
        self._note(optimizer._switched_on(), [len(group) for group in optimizer.param_groups])
        self._class(type(optimizer))

    def _callable(self, value) -> None:
        self._note(id(value))
        if isinstance(value, types.MethodType):
            self._visit(value.__func__)
            self._visit(value.__self__)
        elif isinstance(value, functools.partial):
            self._visit(value.func)
            self._visit(value.args)
            self._visit(value.keywords)
        elif isinstance(value, type):
            self._class(value)
        elif not is_library(value.__code__.co_filename):
            self._note(id(value.__code__))
            self._kept.append(value.__code__)
            for cell in value.__closure__ or ():
                self._cell(cell)
            self._visit(value.__defaults__)
            self._visit(value.__kwdefaults__)

    def _cell(self, cell) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # nothing in it yet
            return
        if id(cell) in self._seen:
            return
        self._seen[id(cell)] = len(self._seen)
        if not any(place.container is cell for place in self._but):
            self._cells.append(cell)
            self._visit(value)
        self._contents.append((cell, (_END,), [value]))

    def _globals(self, code, space: dict) -> None:
        names = [n for n in code.co_names if n in space]
        self._entries(space, names, whole=False)
        for name in names:
            if isinstance(space[name], types.ModuleType):
                self._python_module(code, space[name])

    def _python_module(self, code, module) -> None:
        """Names that are looked up in an imported module; of a library only what the user's code names."""
        space = module.__dict__
        names = [n for n in code.co_names if n in space]
        if module is np.random and names:
            raise Unguardable(f"it uses numpy.random.{names[0]}, which gives something else each time")
        self._entries(space, names, whole=False)
        if np.random is not module and any(space[name] is np.random for name in names):
            self._python_module(code, np.random)

    def _class(self, cls) -> None:
        for base in cls.__mro__:
            if id(base) in self._seen or base is object or getattr(builtins, base.__name__, None) is base:
                continue
            self._seen[id(base)] = len(self._seen)
            self._kept.append(base)
            ours = is_library(getattr(sys.modules.get(base.__module__), "__file__", None) or "")
            names = [n for n in base.__dict__ if n in self._names and (not ours or n == "forward")]
            self._entries(base.__dict__, [n for n in names if n not in _DESCRIPTORS], whole=False)

    def _array(self, array) -> None:
        if array.nbytes > _ARRAY_LIMIT:
            raise Unguardable("it reads a large NumPy array, whose changes nobody counts: make it a tensor")
        self._note(array.shape, str(array.dtype), array.tobytes())
        self._whole.append(_Bytes(array))

    def _instance(self, kind, value) -> None:
        from .function import Compiled

        if isinstance(value, Compiled):
            self._visit(value._fn)
            return
        self._note(id(value), id(kind))
        if getattr(kind, "unguarded", False):
            return
        space = getattr(value, "__dict__", None)
        if isinstance(space, dict):
            self._attributes(space)
        if not is_library(getattr(sys.modules.get(kind.__module__), "__file__", None) or ""):
            self._class(kind)

    def _settings(self) -> None:
        """What applies to all functions: hooks of all modules, default dtype and device, precision, determinism."""
        from .. import config, dtypes
        from ..distributed.world import _world

        for name in TABLES:
            self._hooks(getattr(everyone, name))
        self._entries(dtypes.__dict__, ["_default"], whole=False)
        self._entries(_world.__dict__, ["default"], whole=False)
        self._entries(config.__dict__, ["default_device", "deterministic", "_matmul_precision"], whole=False)


class _Bytes:
    """A NumPy array as something to iterate over: one value, the same object as long as no byte has changed."""

    def __init__(self, array):
        self._array, self._bytes = weakref.ref(array), array.tobytes()

    def __iter__(self):
        array = self._array()
        now = None if array is None else array.tobytes()
        return iter((self._bytes if now == self._bytes else now,))


_TABLES = ("_parameters", "_buffers", "_modules")
_DESCRIPTORS = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__"}


def _lies(t: Tensor):
    """How a tensor over a mesh lies."""
    return (t._array.how, t._array.mesh) if t._array.__class__ is SPREAD.array else None


def _hook_ids(node):
    """Which hooks a leaf's node has."""
    hooks = None if node is None else node.hooks
    return (
        None
        if hooks is None
        else tuple(tuple(getattr(hooks, k)) for k in ("tensor", "pre", "post", "after_accumulate"))
    )
