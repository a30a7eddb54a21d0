"""The switches of autograd, one set per thread: gradient recording, inference mode, op interceptors."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


class _State(threading.local):
    grad = True  # record gradients?
    inference = False
    interceptors: tuple = ()  # innermost last; see ``intercepting``
    transforms: tuple = ()  # of ``func``, innermost last: what they begin with; see ``transforming``
    saved_hooks: tuple = ()  # (pack, unpack) pairs, innermost last
    writers: tuple = ()  # told of every tensor written in place; these two serve compile, see ``notify``
    optimizers: tuple = ()  # told of every optimizer stepped
    rings: tuple = ()  # while compile traces: the innermost records collectives, see engine/xla/exchange.py
    stand_ins: tuple = ()  # the innermost says what is called in a module's place, if anything; see compiler/cut.py
    saved_hooks_error = None  # why saved-tensor hooks are forbidden now
    casting: Any = None  # the autocast in force: it will make dtypes agree, so checks that they do must wait
    anomaly = False  # keep the traceback of every recorded op
    check_nan = True
    running = None  # (edges still to arrive, by node; useful nodes) of the backward pass this thread is in
    callbacks: tuple = ()  # to call when that pass is over
    profile: Any = None  # the recorder that takes the times of this thread, see profiler/recorder.py
    threads = True  # PyTorch's, in backward: remembered, here one thread does it all
    layout_policy = True  # remembered: a leaf's gradient lies as the leaf does
    evaluating = None  # the node that backward is running, under anomaly detection


state = _State()
SWITCHES: list[threading.local] = [state]  # all that are a thread's own; others add theirs
F = TypeVar("F", bound=Callable[..., Any])

# How many threads' states hold anything beyond the grad switch. Ops test this one number before they look further.
active = 0


class _Switch:
    """A context manager that also decorates functions and generator functions."""

    def __call__(self, function: F) -> F:
        return self._decorated(function)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def _decorated(self, function):
        if inspect.isclass(function):
            function.__init__ = self._decorated(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _generator(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            # The switch is on only while the generator's own code runs, never while its consumer does.
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        produced = resume(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value, resume = (yield produced), generator.send
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    value, resume = error, generator.throw

        return wrapped

    def clone(self):
        return type(self)()


class _GradSwitch(_Switch):
    value: bool

    def __enter__(self) -> None:
        self._outer = state.grad
        state.grad = self.value

    def __exit__(self, *_: object) -> None:
        state.grad = self._outer


def without_grad(function, *args, **kwargs):
    """``function(*args, **kwargs)``, unrecorded. Ctrl-C at any moment leaves the switch as it was.

    A ``with`` block cannot promise that: it comes back by a call, and Ctrl-C may arrive as that begins.
    """
    outer, state.grad = state.grad, False
    try:
        return function(*args, **kwargs)
    finally:
        state.grad = outer


class no_grad(_GradSwitch):
    """Inside, nothing is recorded: ``with no_grad():`` or ``@no_grad()``."""

    value = False

    @overload
    def __new__(cls) -> no_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]  # ``@no_grad`` without a call
    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)


class enable_grad(no_grad):
    """Inside, ops are recorded again."""

    value = True


class set_grad_enabled(_GradSwitch):
    """Switch recording on or off, at once or for a ``with`` block."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' must be bool, not {type(mode).__name__}")
        self.value = mode
        self._outer = state.grad
        state.grad = mode

    def __enter__(self) -> None:
        state.grad = self.value

    def __call__(self, function: F) -> F:
        state.grad = self._outer  # used as a decorator: undo the switch that __init__ made
        return super().__call__(function)

    def clone(self):
        return type(self)(self.value)


class _Remembered(_Switch):
    """A setting that changes nothing here, at once or for a ``with`` block; it is read back."""

    field: str

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"{type(self).__name__}(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode, self.prev = mode, getattr(state, self.field)
        setattr(state, self.field, mode)

    def __enter__(self) -> None:
        setattr(state, self.field, self.mode)

    def __exit__(self, *_: object) -> None:
        setattr(state, self.field, self.prev)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_Remembered):
    """May PyTorch's backward pass use several threads? Here one does it all."""

    field = "threads"


class enforce_grad_layout_policy(_Remembered):
    """Must a leaf's gradient lie in memory as the leaf does? Here it always does."""

    field = "layout_policy"


def is_multithreading_enabled() -> bool:
    """What ``set_multithreading_enabled`` said last."""
    return state.threads


class inference_mode(_Switch):
    """``no_grad`` whose tensors may never enter a graph; also ``inference_mode(False)``."""

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]  # ``@inference_mode`` without a call
    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.value = True
        return self(mode)

    def __init__(self, mode: bool = True):
        self.value = mode

    def __enter__(self) -> None:
        global active
        self._outer = state.grad, state.inference
        state.inference = self.value
        state.grad = not self.value
        active += 1

    def __exit__(self, *_: object) -> None:
        global active
        state.grad, state.inference = self._outer
        active -= 1

    def clone(self):
        return type(self)(self.value)


def is_grad_enabled() -> bool:
    """Are operators recorded now?"""
    return state.grad


def is_inference_mode_enabled() -> bool:
    """Is inference mode on?"""
    return state.inference


class pushed:
    """Append ``item`` to one of the thread's tuples (``interceptors``, ``saved_hooks``) for a ``with`` block."""

    def __init__(self, field: str, item):
        self._field, self._item = field, item

    def __enter__(self):
        global active
        setattr(state, self._field, (*getattr(state, self._field), self._item))
        active += 1
        return self._item

    def __exit__(self, *_):
        global active
        setattr(state, self._field, getattr(state, self._field)[:-1])
        active -= 1


def intercepting(handler):
    """Every op called in the block goes to ``handler(call, args, static)``, which may go on with ``call(*args, "
    "**static)``.

    This is the one seam that autocast, compile and the inspectors hang on.
    """
    return pushed("interceptors", handler)


def backward_number() -> int:
    """A number that tells the backward pass this thread is in from others; -1 outside of one."""
    return -1 if state.running is None else id(state.running)


def stop_intercepting(handler) -> None:
    """Take ``handler`` off the thread's stack, wherever in it it is."""
    global active
    state.interceptors = tuple(h for h in state.interceptors if h is not handler)
    active -= 1


def intercept(call, args, static):
    """Hand an op to the innermost interceptor; inside the handler the outer ones are in force."""
    interceptors = state.interceptors
    state.interceptors = interceptors[:-1]
    try:
        return interceptors[-1](call, args, static)
    finally:
        state.interceptors = interceptors


class Differentiating:
    """An interceptor that gives results tangents: a level of forward mode, see ``tangents``."""

    def give(self, t, tangent) -> None:
        raise NotImplementedError


class transforming:
    """A block inside a transform of ``func``: custom Functions ask for it, and so does who prints a tensor.

    It is a ``vmap``'s level, a level of forward mode, or, of a backward pass, the nodes of the tensors it leads to.
    """

    def __init__(self, transform):
        self._transform = transform

    def __enter__(self):
        self._outer = state.transforms
        state.transforms = (*self._outer, self._transform)

    def __exit__(self, *_):
        state.transforms = self._outer


class Mapping:
    """An interceptor of a ``vmap``, see ``batching``."""

    def fresh(self, t):
        raise NotImplementedError


def fresh(t):
    """``t`` outside the graph but inside every ``vmap``: where a transform begins anew for each example."""
    made = t.detach()
    for level in maps():
        made = level.fresh(made)
    return made


def maps() -> list:
    """The ``vmap``s that this thread is in, outermost first."""
    return [handler for handler in state.interceptors if isinstance(handler, Mapping)] if active else []


def levels() -> list:
    """The levels of forward mode that are on in this thread, outermost first."""
    return [handler for handler in state.interceptors if isinstance(handler, Differentiating)]


def carry(t, to):
    """Give ``to``, which has the same values, the tangents of ``t``."""
    held = t.__dict__.get("_tangents")
    if held is not None:
        for level, tangent in held.items():
            level.give(to, tangent)
    return to


def snapshot() -> list[dict]:
    """This thread's switches, for ``restore``."""
    return [dict(switches.__dict__) for switches in SWITCHES]


def restore(before: list[dict]) -> None:
    """Put this thread's switches back, after an interrupt that may have hit a ``with`` on its way out."""
    for switches, values in zip(SWITCHES, before):
        switches.__dict__.clear()
        switches.__dict__.update(values)


def in_single_precision(function):
    """A composite that autocast computes in float32 as a whole, its own ops left alone."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        casting = state.casting
        return function(*args, **kwargs) if casting is None else casting.single(function, args, kwargs)

    return called


def notify(field: str, subject) -> None:
    """Tell the thread's observers of ``field``; callers test ``mode.active`` first."""
    for observer in getattr(state, field):
        observer(subject)
