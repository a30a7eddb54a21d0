"""``Compiled``: what ``compile`` makes of a function."""

from __future__ import annotations

import functools
import warnings
import weakref

from .. import config
from ..autograd.mode import state as mode_state
from ..device import cpu
from ..engine.xla.devices import place_of
from ..tensor import Tensor
from ..utils.hooks import epoch
from .commit import LOCK
from .discover import Watch
from .program import Outdated, Program, Slot
from .trace import CompileError, trace_until_known
from .tree import flatten, signature

__all__ = ["CompileError", "Compiled"]


_all: weakref.WeakSet = weakref.WeakSet()


def forget_all() -> None:
    for compiled in _all:
        compiled._entries.clear()


class Compiled:
    """A compiled function: a cache of programs by argument shapes, module flags and grad mode."""

    def __init__(self, fn, fallback=False, options=None):
        self._fn, self._fallback, self._options = fn, fallback, options
        self._entries: dict = {}
        self._eager = False  # a trace failed and fallback is on
        self.compilations = 0
        functools.update_wrapper(self, fn, updated=())
        _all.add(self)

    def __call__(self, *args, **kwargs):
        if self._eager or mode_state.writers:  # watched by another compiled function, this is a plain call
            return self._fn(*args, **kwargs)
        with LOCK:
            key = (signature(args), signature(kwargs) if kwargs else None, mode_state.grad)
            if mode_state.interceptors:
                key = (*key, tuple(map(_interceptor_key, mode_state.interceptors)))
            for entry in self._entries.setdefault(key, []):
                if entry.fits():
                    return self._run(entry, args, kwargs)
            return self._first(key, args, kwargs)

    def __get__(self, instance, owner=None):
        """A compiled function in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def _first(self, key, args, kwargs):
        """Run eagerly and watch, so that the next call can be traced."""
        watch = Watch()
        with watch.watching():
            result = self._fn(*args, **kwargs)
        given, returned = [], []
        flatten((args, kwargs), given)
        flatten(result, returned)
        entry = Entry(watch, watch.survivors(but=given + returned))
        self._entries[key].append(entry)
        return result

    def _run(self, entry, args, kwargs):
        given: list[Tensor] = []
        flatten((args, kwargs), given)
        if entry.program is None:
            try:
                entry.program = self._compile(entry, args, kwargs, given)
            except CompileError as error:
                if not self._fallback:
                    raise
                warnings.warn(f"{error}\nRunning it eagerly from now on.", stacklevel=3)
                self._eager = True
                return self._fn(*args, **kwargs)
        try:
            return entry.program(given)
        except Outdated:
            entry.program = None
            return self._run(entry, args, kwargs)

    def _compile(self, entry, args, kwargs, given) -> Program:
        state, views = entry.state, entry.views
        device = next((t.device for t in [*given, *state] if t.device != cpu), cpu)
        lockstep = [o._in_lockstep() for o in entry.optimizers]
        learned, state = trace_until_known(
            self._fn, args, kwargs, given, state, views, entry.optimizers, device, lockstep
        )
        self.compilations += 1
        entry.state = state
        together = [o for o, yes in zip(entry.optimizers, lockstep) if yes]
        return Program(
            learned, len(given), entry.slots(given), entry.optimizers, together, place_of(device), self._options
        )


class Entry:
    """One set of argument shapes and flags: first only what was seen in the eager run, later also the program."""

    def __init__(self, watch: Watch, state):
        self.state, self.views = state, watch.views
        self.optimizers, self.modules = watch.optimizers, watch.modules
        self.program: Program | None = None
        self._leaves = [t for t in state if t.requires_grad]
        self._had_grad = [t._grad is not None for t in self._leaves]
        self._options = [
            (group, name, value)
            for o in self.optimizers
            for group in o.param_groups
            for name, value in group.items()
            if name != "params" and name not in o.dynamic
        ]
        self._switches = [o._switched_on() for o in self.optimizers if o.switches]
        self._world, self._epoch = self._look(), epoch.value

    def fits(self) -> bool:
        """Is the world still as it was when this entry was made?"""
        for t, had in zip(self._leaves, self._had_grad):
            if (t._grad is not None) is not had:
                return False
        for group, name, value in self._options:
            if group.get(name) is not value and group.get(name) != value:
                return False
        if self._switches and self._switches != [o._switched_on() for o in self.optimizers if o.switches]:
            return False
        if self._epoch != epoch.value:
            if self._world != self._look():
                return False
            self._epoch = epoch.value
        return True

    def _look(self):
        """What compiled code depends on besides shapes: flags, hooks and the identity of everything registered."""
        modules = [
            (m.training, _hook_ids(m), tuple(map(id, m._parameters.values())), tuple(map(id, m._buffers.values())))
            for m in self.modules
        ]
        flags = [t.requires_grad for t in self.state]
        state = [
            id(value)
            for o in self.optimizers
            for p in o.state.values()
            for value in p.values()
            if isinstance(value, Tensor)
        ]
        return modules, flags, state, config.get_float32_matmul_precision()

    def slots(self, given) -> list[Slot]:
        inputs = [*given, *self.state]
        gradients = {id(t._grad): (i, t) for i, t in enumerate(inputs) if t._grad is not None}
        made = []
        for t in self.state:
            leaf = gradients.get(id(t))
            made.append(Slot(t) if leaf is None else Slot(t, leaf[1], leaf[0]))
        return made


def _interceptor_key(handler):
    """What a program depends on of an interceptor in force: an autocast's settings, else which one it is."""
    return getattr(getattr(handler, "__self__", None), "signature", None) or id(handler)


def _hook_ids(module):
    hooks = module._hooks
    if hooks is None:
        return None
    tables = (hooks.forward_pre_hooks, hooks.forward_hooks, hooks.backward_pre_hooks, hooks.backward_hooks)
    return tuple(tuple(t) for t in tables)
