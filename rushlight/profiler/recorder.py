"""Who takes the times. All seams are there for others too; while no profile is on, none of them is occupied.

functions    a mode (``autograd/overriding.py``): what a program calls, ``aten::conv2d``
operators    an interceptor (``autograd/mode.py``): what runs for it, ``aten::convolution``
gradients    ``mode.state.profile``, which the backward loop asks (``autograd/tape.py``)
programs     the same, asked by compiled functions; in them nothing else is seen
modules      ``Module.__call__``, exchanged meanwhile
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
import weakref
from itertools import count
from types import FrameType

import numpy as np

from ..autograd import mode, overriding
from ..autograd.tape import Output
from ..nn.module import Module
from ..tensor import Tensor
from .events import FunctionEvent
from .flops import in_backward, in_forward
from .names import aten_name, function_name, is_watched, is_written_in_python

__all__ = ["Recorder"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_lock = threading.Lock()


class Recorder:
    """Times what this thread does between ``start`` and ``stop``."""

    def __init__(
        self,
        shapes: bool = False,
        memory: bool = False,
        stack: bool = False,
        modules: bool = False,
        flops: bool = False,
    ):
        self.shapes, self.memory, self.stack, self.modules, self.flops = shapes, memory, stack, modules, flops
        self.events: list[FunctionEvent] = []
        self.calls: list[FunctionEvent] = []  # of modules
        self.thread = threading.get_native_id()
        self._open: list[FunctionEvent] = []
        self._ids = count(1)
        self._alive: dict[int, weakref.ref] = {}  # arrays that were counted
        self._instances: dict[str, dict[int, int]] = {}
        self._path: list[str] = []  # the modules we are in
        self._products: dict[int, tuple[str, int]] = {}  # of a node's operator, by its sequence number
        self._functions, self._operators = _Functions(self), self._operator  # what is hung on the seams

    # -- begin and end -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.hang()

    def stop(self) -> None:
        """Let go of all seams; ranges that are still open end now."""
        if self.is_on:
            self.unhang()
        while self._open:
            self.close(self._open[-1])
        self._alive.clear()
        self.events.sort(key=lambda event: event.id)

    @property
    def is_on(self) -> bool:
        return mode.state.profile is self

    def hang(self) -> None:
        """Take the seams."""
        if mode.state.profile is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        mode.state.profile = self
        mode.intercepting(self._operators).__enter__()
        overriding.push(self._functions)
        if self.modules:
            _watch_modules(1)

    def unhang(self) -> None:
        """Let go of them."""
        mode.state.profile = None
        mode.stop_intercepting(self._operators)
        overriding.remove(self._functions)
        if self.modules:
            _watch_modules(-1)

    # -- events ------------------------------------------------------------------------------------------------------

    def open(self, name: str, args=(), **options) -> FunctionEvent:
        """An event that begins now; ``args`` are what it was called with."""
        event = FunctionEvent(next(self._ids), name, self.thread, 0.0, 0.0, **options)
        if self.shapes:
            event.input_shapes = [list(a.shape) if hasattr(a, "shape") else [] for a in args]
        if self.stack:
            event.stack = self._lines()
        event.kwinputs["Module Hierarchy"] = ".".join(self._path)
        if self._open:
            event.set_cpu_parent(self._open[-1])
        self._open.append(event)
        event.time_range.start = time.perf_counter_ns() / 1e3
        return event

    def close(self, event: FunctionEvent, keep: bool = True) -> None:
        """``event`` ends now; what it contains moves up if it is not kept."""
        event.time_range.end = time.perf_counter_ns() / 1e3
        if event not in self._open:  # stop() has closed it
            return
        while self._open.pop() is not event:
            pass
        parent = event.cpu_parent
        if keep:
            self.events.append(event)
            if parent is not None:
                parent.append_cpu_child(event)
            return
        for child in event.cpu_children:
            child.cpu_parent = parent
            if parent is not None:
                parent.append_cpu_child(child)

    def _lines(self) -> list[str]:
        """The lines of the program that led here, innermost first."""
        frame: FrameType | None = sys._getframe(2)
        found = []
        while frame is not None:
            if not frame.f_code.co_filename.startswith(_PACKAGE):
                found.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
            frame = frame.f_back
        return found

    # -- the seams ---------------------------------------------------------------------------------------------------

    def function(self, func, args, kwargs):
        """A public function or method that the program calls."""
        if not is_watched(func):
            return func(*args, **kwargs)
        if is_written_in_python(func):
            self._functions.on()
            return inspect.unwrap(func)(*args, **kwargs)
        target = args[0] if args and isinstance(args[0], Tensor) else None
        before = target._storage.version if target is not None and target._storage is not None else 0
        event, result = self.open(function_name(func), args), None
        try:
            result = func(*args, **kwargs)
            return result
        finally:
            written = target is not None and target._storage is not None and target._storage.version != before
            made = isinstance(result, Tensor) and result is not target
            if made or written:
                self._count(result)
            self.close(event, keep=bool(event.cpu_children) or made or written or hasattr(event, "ran"))

    def _operator(self, call, args, static):
        """An operator that runs."""
        name, outer = aten_name(call, args), self._open[-1] if self._open else None
        if outer is not None and outer.name == name and not hasattr(outer, "ran"):
            outer.ran = True  # type: ignore[attr-defined]  # the function is this operator
            return self._counted(outer, call(*args, **static), call.op.name, args)
        event = self.open(name, args)
        try:
            return self._counted(event, call(*args, **static), call.op.name, args)
        finally:
            self.close(event)

    def _counted(self, event, result, operator: str, args):
        node = getattr(result[0] if result.__class__ is tuple and result else result, "_node", None)
        if node is not None:
            event.sequence_nr = node.sequence
        if self.flops:
            self._count_flops(event, result, operator, args)
        self._count(result)
        return result

    def _count_flops(self, event, result, operator: str, args) -> None:
        outer = event.cpu_parent
        if outer is not None and outer.name == "aten::conv2d":  # PyTorch counts there
            event = outer
        elif outer is not None and outer.name == event.name + "_":  # and not what is done in place
            return
        count = in_forward(event.name, operator, args, result)
        if count:
            event.flops = count
            if event.sequence_nr >= 0:
                self._products[event.sequence_nr] = operator, count

    def gradient(self, node, run, g):
        """``run()``, which is the gradient rule of ``node``."""
        if isinstance(node, Output):
            return run()
        name = node.name()
        outer = self.open("autograd::engine::evaluate_function: " + name)
        inner = self.open(name, g if isinstance(g, list) else [g], sequence_nr=getattr(node, "sequence", -1))
        try:
            grads = run()
            if inner.sequence_nr in self._products:
                inner.flops = in_backward(*self._products[inner.sequence_nr], grads) or None
            self._count(grads)
            return grads
        finally:
            self.close(inner)
            self.close(outer)

    def program(self, name: str, run, args, kwargs):
        """``run(*args, **kwargs)``, a compiled function: one event, and nothing is seen in it."""
        event = self.open(name, args)
        self.unhang()
        try:
            return run(*args, **kwargs)
        finally:
            self.hang()
            self.close(event)

    def range(self, name: str, run, args=(), kwargs=None):
        """``run(*args, **kwargs)`` as one event of this name."""
        event = self.open(name, is_user_annotation=True)
        try:
            return run(*args, **(kwargs or {}))
        finally:
            self.close(event)

    def is_in(self, name: str) -> bool:
        """Is the innermost open event of this name?"""
        return bool(self._open) and self._open[-1].name == name

    def module(self, called, run):
        """``run()``, which is the call of a module."""
        name = type(called).__name__
        known = self._instances.setdefault(name, {})
        number = known.setdefault(id(called), len(known))
        call = FunctionEvent(next(self._ids), f"nn.Module: {name}_{number}", self.thread, 0.0, 0.0)
        self._path.append(f"{name}_{number}")
        call.time_range.start = time.perf_counter_ns() / 1e3
        try:
            return run()
        finally:
            call.time_range.end = time.perf_counter_ns() / 1e3
            self._path.pop()
            self.calls.append(call)

    # -- memory ------------------------------------------------------------------------------------------------------

    def _count(self, made) -> None:
        """Count the arrays that were made, now; and again, as given back, when they die."""
        if not self.memory:
            return
        for value in made if isinstance(made, (tuple, list)) else (made,):
            array = getattr(value, "_array", value)
            if array.__class__ is np.ndarray and array.base is None and id(array) not in self._alive:
                self._alive[id(array)] = weakref.ref(array, functools.partial(self._freed, id(array), array.nbytes))
                self._add(array.nbytes)

    def _freed(self, key: int, bytes: int, _) -> None:
        if self._alive.pop(key, None) is not None and mode.state.profile is self:
            self._add(-bytes)

    def _add(self, bytes: int) -> None:
        for event in self._open:
            event.cpu_memory_usage += bytes
        if not self._open:  # in no event: an event of its own, as in PyTorch
            self.close(self.open("[memory]", cpu_memory_usage=bytes))


class _Functions:
    """The mode that shows functions to a recorder."""

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self._recorder.function(func, args, kwargs or {})

    def on(self) -> None:
        """While a mode answers it is off. On again: what is called next is shown too."""
        overriding.state.modes = (*overriding.state.modes, self)


# -- calls of modules --------------------------------------------------------------------------------------------------


class _Modules:
    count = 0  # recorders that watch calls of modules
    plain = Module.__call__


def _watch_modules(more: int) -> None:
    with _lock:
        _Modules.count += more
        Module.__call__ = _call if _Modules.count else _Modules.plain  # type: ignore[method-assign]


def _call(self, *args, **kwargs):
    """``Module.__call__`` while somebody watches."""
    profile = mode.state.profile
    if profile is None or not profile.modules:
        return _Modules.plain(self, *args, **kwargs)
    return profile.module(self, functools.partial(_Modules.plain, self, *args, **kwargs))
