"""Who answers for a function of PyTorch's names: modes, subclasses of Tensor, any class with ``__torch_function__``.

A class may answer for functions that are called with an object of it, a mode for every function called in its block.
Public functions test one number, ``watching``, and go on. It moves when a mode is entered or a subclass that overrides
is made; from then on ``ask`` looks for somebody who answers.

Methods do not even test that. A subclass that overrides gets ``Asking`` into its bases, before Tensor, where every
method asks; and while a mode is on, those of Tensor itself do. What still reaches an
operator unasked, ``plain.add(other)`` say, is noticed there, by the class of the argument (``ask_operator``).

Classes that are no Tensors are found when a function fails on them: until then they cost nothing.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import threading
import types
from typing import Any

from ..errors import too_large, type_name
from ..tensor import Tensor
from .mode import SWITCHES

watching = 0  # modes entered in all threads, and one for all subclasses that override
PLAIN: set[type] = {Tensor}  # the classes whose tensors every operator takes without asking


class _State(threading.local):
    modes: tuple = ()  # innermost last
    subclasses = True  # are subclasses asked?
    in_hooks = False  # are they in hooks of the backward pass under way, whose rules do not ask?
    everything = True  # are modes?


state = _State()


class _Dispatch(threading.local):
    """See ``dispatching``."""

    modes: tuple = ()  # innermost last
    inside = 0  # how many calls are being handed over: who calls an operator of ``torch.ops`` then hands it on
    off = False
    writing = None  # the tensor that an in-place method is about to write
    given = None  # what a function was given that its operator does not tell, see ``ops/calls/``


dispatch = _Dispatch()
SWITCHES += [state, dispatch]
DISPATCHING: set[type] = set()  # the subclasses of Tensor with a ``__torch_dispatch__``
begun = False  # has there ever been one, or a mode?


def disabled(func, types, args=(), kwargs=None):
    """A ``__torch_function__`` for subclasses that do not want one: they behave as Tensor does."""
    return unasked(beneath, func, func, args, kwargs or {})


disabled.__name__ = disabled.__qualname__ = "_disabled_torch_function_impl"


def unasked(function, *args, **kwargs):
    """Call a function without asking subclasses."""
    outer = state.subclasses
    try:  # no ``with``: an interrupt at the first line of its ``__exit__`` would leave them unasked for good
        state.subclasses = False
        return function(*args, **kwargs)
    finally:
        state.subclasses = outer


def for_rules(function, *args, **kwargs):
    """Call a backward pass: its rules are nobody's to override, what its hooks call is."""
    outer = state.in_hooks
    try:
        state.in_hooks = True
        return unasked(function, *args, **kwargs)
    finally:
        state.in_hooks = outer


def hooked(hook, *args):
    """Call a hook of a backward pass."""
    if not state.in_hooks or state.subclasses:
        return hook(*args)
    try:
        state.subclasses = True
        return hook(*args)
    finally:
        state.subclasses = False


class DisableTorchFunctionSubclass:
    """Inside, subclasses are not asked."""

    def __enter__(self):
        self._outer = state.subclasses
        state.subclasses = False

    def __exit__(self, *_):
        state.subclasses = self._outer


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes are asked."""

    def __enter__(self):
        super().__enter__()
        self._outer_all = state.everything
        state.everything = False

    def __exit__(self, *_):
        super().__exit__()
        state.everything = self._outer_all


# -- asking ------------------------------------------------------------------------------------------------------------


def _words(text: str) -> frozenset:
    return frozenset(text.split())


def asking(plain, explain=None):
    """``plain`` as a public function: whoever overrides it answers.

    ``explain(name, plain, args, kwargs)`` is asked after a call has failed: it may know better why.
    """
    if getattr(plain, "asks", None) is plain or plain.__name__ in NEVER_ASKED:  # not what only wraps one that asks
        return plain

    @functools.wraps(plain)
    def called(*args, **kwargs):
        if watching:
            return asked(args, kwargs)
        try:
            return plain(*args, **kwargs) if kwargs else plain(*args)
        except Exception:
            try:
                return ask_strangers(called, args, kwargs)
            except Exception:
                if explain is not None:
                    explain(plain.__name__, plain, args, kwargs)
                raise

    def asked(args, kwargs):
        try:
            return ask(called, plain, args, kwargs)
        except Exception:
            if explain is not None:
                explain(plain.__name__, plain, args, kwargs)
            raise

    called.asks = called
    return called


NEVER_ASKED = _words(
    "broadcast_shapes can_cast clear_autocast_cache cond from_dlpack from_file from_numpy get_autocast_cpu_dtype "
    "get_autocast_gpu_dtype get_deterministic_debug_mode is_autocast_cache_enabled is_autocast_cpu_enabled is_storage "
    "is_tensor is_warn_always_enabled promote_types set_anomaly_enabled set_autocast_cache_enabled "
    "set_default_tensor_type set_deterministic_debug_mode set_flush_denormal set_warn_always typename"
)
FACTORIES = _words(  # only modes are asked for these
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye frombuffer full "
    "hamming_window hann_window kaiser_window linspace logspace ones rand randint randn randperm range scalar_tensor "
    "tensor tril_indices triu_indices zeros"
)


def ask(public, plain, args, kwargs):
    """``plain(*args, **kwargs)``, unless a mode or an argument answers for ``public``."""
    if state.modes and state.everything:
        return answer(public, overriding(args, kwargs), args, kwargs)
    if state.subclasses:
        if getattr(public, "__name__", None) in FACTORIES:
            return unasked(beneath, public, plain, args, kwargs) if begun else unasked(plain, *args, **kwargs)
        found = overriding(args, kwargs)
        if found:
            return answer(public, found, args, kwargs)
    try:
        return beneath(public, plain, args, kwargs) if begun else plain(*args, **kwargs)
    except AttributeError as error:
        _refuse_what_is_no_tensor(public, args, error)
        raise


def beneath(public, plain, args, kwargs):
    """A function that nobody overrides. If it is no operator, who dispatches is asked here."""
    from . import dispatching

    if dispatching.concerns(args, kwargs):
        from ..ops.calls import handed_over

        return handed_over(getattr(public, "__name__", ""), plain, args, kwargs)
    return plain(*args, **kwargs)


def ask_strangers(public, args, kwargs):
    """``public`` has just failed: objects that are no Tensors may answer for it; else its error goes on."""
    found = overriding(args, kwargs) if state.subclasses else ()
    if not any(not isinstance(a, Tensor) for a in found):
        error = sys.exc_info()[1]
        _refuse_what_is_no_tensor(public, args, error)
        if larger := too_large(error):
            raise larger from None
        raise
    return answer(public, found, args, kwargs)


def _refuse_what_is_no_tensor(public, args, error) -> None:
    """PyTorch's TypeError, if ``error`` is that one of ``args`` lacks what tensors have."""
    if not isinstance(error, AttributeError) or isinstance(error.obj, (Tensor, type)):
        return
    for i, value in enumerate(args):
        if value is error.obj:
            asked = _ASKED_FIRST.get(public.__name__)
            if asked:
                raise AttributeError(f"{type_name(value)!r} object has no attribute {asked!r}") from None
            names = inspect.unwrap(public).__code__.co_varnames or ("input",)
            name, kind = names[min(i, len(names) - 1)], type_name(value)
            raise TypeError(
                f"{public.__name__}(): argument '{name}' (position {i + 1}) must be Tensor, not {kind}"
            ) from None


# Functions that PyTorch writes in Python, and what they ask of an argument before anybody looks whether it is a Tensor.
_ASKED_FIRST = {"mse_loss": "size", "l1_loss": "size", "smooth_l1_loss": "size", "huber_loss": "size", "glu": "dim",
                "normalize": "norm"}  # fmt: skip


def ask_operator(o, call, args, static):
    """An operator met a subclass: the method of its name is asked for, where that takes the same arguments."""
    name = _PUBLIC_NAMES.get(o.name, o.name)
    public = call if static or name not in vars(Tensor) else _method(name)
    return answer(public, overriding(args, {}), args, static)


_PUBLIC_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "equal": "eq", "not_equal": "ne",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "power": "pow", "absolute": "abs",
}  # fmt: skip


def answer(public, found, args, kwargs):
    """The first answer of the innermost mode and of ``found``, in this order; PyTorch's error if nobody has one."""
    types = tuple([type(a) for a in found])
    tried: list[Any] = []
    if state.modes and state.everything:
        if len(state.modes) > 1 and not getattr(public, "asks", False):
            public = Asked(public)  # or the modes outside would not be asked for a method
        with popped() as mode:
            result = mode.__torch_function__(public, types, args, kwargs or {})
        if result is not NotImplemented:
            return result
        tried.append(f"mode object {mode}")
    for a in found:
        result = type(a).__torch_function__(public, types, args, kwargs or {})
        if result is not NotImplemented:
            return result
        tried.append(f"tensor subclass {type(a)}")
    raise Refused(_refusal(public, types, tried))


class Refused(TypeError):
    """Nobody who was asked has an answer."""


def _refusal(public, types, tried) -> str:
    from ..overrides import resolve_name

    name = resolve_name(public) or str(getattr(public, "__name__", public))
    if name.startswith("torch.nn."):
        return f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}"
    lines = "\n\n".join(f"  - {line}" for line in tried)
    return (
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n{lines}"
        "\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def overriding(args, kwargs) -> list:
    """Of the arguments, and of lists and tuples among them, one of each class that overrides; subclasses first."""
    found: list = []
    for a in (*args, *kwargs.values()) if kwargs else args:
        kind = a.__class__
        if kind in PLAIN or kind in _SILENT:
            continue
        if kind is tuple or kind is list:
            for part in a:
                if part.__class__ not in _SILENT:
                    _enter(part, found)
        else:
            _enter(a, found)
    return found


_SILENT = frozenset({int, float, bool, str, type(None), slice})  # classes that nobody can make answer


def _enter(value, found: list) -> None:
    kind = type(value)
    if overrides(kind):
        add_by_class(value, kind, found)


def add_by_class(value, kind: type, found: list) -> None:
    """Add ``value`` before those whose subclass it is, unless one of its class is there."""
    if all(type(f) is not kind for f in found):
        place = next((i for i, f in enumerate(found) if issubclass(kind, type(f))), len(found))
        found.insert(place, value)


def overrides(kind: type) -> bool:
    """Do objects of this class answer for functions?"""
    if kind in PLAIN or issubclass(kind, type):
        return False
    method = getattr(kind, "__torch_function__", None)
    if method is None or method is disabled:
        return False
    other = _pytorch()
    return other is None or not issubclass(kind, getattr(other, "Tensor", ()))


def _pytorch():
    """PyTorch itself, where a program has both libraries: each would ask the other for its tensors, for ever."""
    found = sys.modules.get("torch")
    return None if found is None or found is sys.modules[__name__.partition(".")[0]] else found


def _is_of(library, function) -> bool:
    """Is it a function of that library? One in C is: there are none here that are asked."""
    names = getattr(function, "__globals__", None)
    if names is None:
        return isinstance(function, _IN_C)
    return names["__name__"].partition(".")[0] == library.__name__


_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


# -- modes -------------------------------------------------------------------------------------------------------------


def push(mode) -> None:
    watch_methods()
    state.modes = (*state.modes, mode)


def pop():
    mode = state.modes[-1]
    remove(mode)
    return mode


def remove(mode) -> None:
    """Take ``mode`` out, wherever it is."""
    last = max(i for i, other in enumerate(state.modes) if other is mode)
    state.modes = (*state.modes[:last], *state.modes[last + 1 :])
    unwatch_methods()


def watch_methods() -> None:
    """From now on, functions and Tensor's methods ask."""
    global watching
    with _lock:
        if not watching_modes.count:
            _exchange_methods()
        watching_modes.count += 1
        watching += 1


def unwatch_methods() -> None:
    global watching
    with _lock:
        watching -= 1
        watching_modes.count -= 1
        if not watching_modes.count:
            _restore_methods()


def watch_always() -> None:
    """From now on, functions ask before they run: for objects that must not even be looked at by those that fail."""
    global watching
    with _lock:
        if not watching_modes.always:
            watching_modes.always = True
            watching += 1


_lock = threading.Lock()


class watching_modes:
    """How many modes are on, in all threads; Tensor's methods ask while there is one."""

    count = 0
    always = False  # are functions to ask without a mode too?
    restore: dict = {}  # Tensor's methods as they were


class popped:
    """Inside, the innermost mode is off: it is about to answer."""

    def __enter__(self):
        self._modes = state.modes
        state.modes = self._modes[:-1]
        return self._modes[-1]

    def __exit__(self, *_):
        state.modes = self._modes


class Asked:
    """A method that asks, for modes. It equals the one it stands for, so that tables by function find it."""

    asks = True

    def __init__(self, plain):
        self.plain = plain
        functools.update_wrapper(self, plain)

    def __call__(self, *args, **kwargs):
        return ask(self, self.plain, args, kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __eq__(self, other):
        return self.plain == (other.plain if isinstance(other, Asked) else other)

    def __hash__(self):
        return hash(self.plain)


def _exchange_methods() -> None:
    """Python's operators are exchanged, other methods and properties are caught when they are looked up."""
    for name in _SPECIAL & vars(Tensor).keys():
        watching_modes.restore[name] = vars(Tensor)[name]
    for name, value in watching_modes.restore.items():
        if isinstance(value, property):
            setattr(Tensor, name, _asking_property(value))
        else:
            setattr(Tensor, name, _asking_operator(name, _FORWARD[name]) if name in _FORWARD else Asked(value))
    Tensor.__getattribute__ = _look_up  # type: ignore[method-assign,assignment]


def _look_up(self, name: str):
    """``Tensor.__getattribute__`` while a mode is on."""
    if (state.modes or dispatch.modes) and name[0] != "_" and state.everything and name not in _UNASKED:
        plain = vars(Tensor).get(name)
        if plain is not None and _found_in_class(type(self), name) is plain:
            if isinstance(plain, property):
                return ask(plain.__get__, plain.__get__, (self,), {})
            if callable(plain):
                return functools.partial(ask_bound, plain, self)
    return object.__getattribute__(self, name)


def _found_in_class(kind: type, name: str):
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def ask_bound(plain, self, *args, **kwargs):
    return ask(plain, plain, (self, *args), kwargs)


def _restore_methods() -> None:
    for name, value in watching_modes.restore.items():
        setattr(Tensor, name, value)
    watching_modes.restore = {}
    del Tensor.__getattribute__


# -- subclasses --------------------------------------------------------------------------------------------------------


def enroll(cls: type) -> None:
    """A subclass of Tensor was made: it is plain, or it is asked from now on."""
    global begun
    kind: Any = cls
    if kind.__torch_dispatch__ is not _no_dispatch:
        DISPATCHING.add(cls)
        begun = True
        if getattr(kind.__torch_function__, "__func__", None) is torch_function:
            kind.__torch_function__ = disabled  # it answers below, and not twice
    elif getattr(cls, "__torch_function__", None) is disabled:
        PLAIN.add(cls)
        return
    if "_is_asking_base" in vars(cls):
        return
    asking = _asking_base()
    if Tensor in cls.__bases__:
        cls.__bases__ = tuple([asking if base is Tensor else base for base in cls.__bases__])
    elif asking not in cls.__mro__:
        cls.__bases__ = (*cls.__bases__, asking)


_asking: Any = None


def _asking_base() -> type:
    """The base whose methods ask; names that Tensor got since the last call are added."""
    global _asking, watching
    if _asking is None:
        _asking = type("Asking", (Tensor,), {"__slots__": (), "_is_asking_base": True, "__module__": __name__})
        watching += 1
    for name in _asked_names():
        if name not in vars(_asking):
            value = _method(name)
            if isinstance(value, property):
                setattr(_asking, name, _asking_property(value))
            elif name in _FORWARD:
                setattr(_asking, name, _asking_operator(name, _FORWARD[name]))
            else:
                setattr(_asking, name, _asking_method(value))
    return _asking


def _asking_method(plain):
    @functools.wraps(plain)
    def method(*args, **kwargs):
        return ask(plain, plain, args, kwargs)

    return method


def _asking_property(plain: property) -> property:
    """Its functions have PyTorch's names: ``Tensor.shape.__get__``."""
    get, put = plain.__get__, plain.__set__
    read = lambda self: ask(get, get, (self,), {})
    write = lambda self, value: ask(put, put, (self, value), {})
    return property(read, write if plain.fset else None, plain.fdel, plain.__doc__)


def _asking_operator(name: str, forward: str):
    """One of Python's operators: PyTorch's method for it is asked for; Python's own error if nobody answers."""
    plain, reflected = _method(name), name.startswith("__r") and name not in _NOT_REFLECTED

    def method(self, *others):
        args, public = (self, *others), vars(Tensor)[forward]
        direct = functools.partial(_apply, plain, self, others)
        if reflected:
            if isinstance(others[0], Tensor):
                args = (others[0], self)
                direct = functools.partial(_apply, _method(forward), others[0], (self,))
            elif name not in ("__radd__", "__rmul__"):
                public = plain
        try:
            return ask(public, direct, args, {})
        except Refused:
            if not others:
                raise
            return NotImplemented

    method.__name__ = method.__qualname__ = name
    return method


def functions_called(names, *spaces: str) -> dict:
    """{a function as ``__torch_function__`` is given it: its name}, of Tensor's methods, the package and ``spaces``."""
    package = sys.modules[__name__.split(".")[0]]
    found: dict = {}
    for name in names:
        if name in vars(Tensor):
            method = _method(name)
            found[method.__get__ if isinstance(method, property) else method] = name
        for space in (package, *(operator.attrgetter(space)(package) for space in spaces)):
            if callable(vars(space).get(name)):
                found[vars(space)[name]] = name
    return found


def _method(name: str):
    """Tensor's own, even while it is exchanged."""
    return watching_modes.restore.get(name) or vars(Tensor)[name]


def _apply(plain, self, others, *_, **__):
    return plain(self, *others)


_NOT_REFLECTED = ("__repr__", "__reversed__", "__reduce_ex__")
_FORWARD = {
    "__eq__": "__eq__",
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__rsub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__rtruediv__": "div",
    "__itruediv__": "div_", "__pow__": "__pow__", "__rpow__": "__pow__", "__matmul__": "matmul",
    "__rmatmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt",
    "__ge__": "ge", "__ne__": "ne", "__mod__": "remainder", "__rmod__": "remainder", "__floordiv__": "__floordiv__",
    "__rfloordiv__": "__floordiv__",
}  # fmt: skip
_SPECIAL = _words(
    "__and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __invert__ "
    "__pos__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __imod__ __ifloordiv__ __ipow__ __eq__ __getitem__ "
    "__setitem__ __len__ __bool__ __float__ __int__ __index__ __complex__ __contains__ __repr__ __format__ "
    "__deepcopy__ __array__ __array_wrap__ __reduce_ex__ __reversed__ __setstate__ __dlpack__ __dlpack_device__ "
    "_version _base _backward_hooks _is_view"
) | set(_FORWARD)
_UNASKED = frozenset({"as_subclass", "new"})


def _asked_names() -> list[str]:
    """The methods and properties of Tensor that may be overridden."""
    return [
        name
        for name, value in vars(Tensor).items()
        if (name in _SPECIAL or (name[0] != "_" and name not in _UNASKED))
        and (callable(value) or isinstance(value, property))
        and not isinstance(value, (type, staticmethod, classmethod))
    ]


# -- the default -------------------------------------------------------------------------------------------------------


def torch_function(cls, func, types, args=(), kwargs=None):
    """What a subclass answers unless it says otherwise: the function's own result, as an object of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    other = _pytorch()
    if other is not None and _is_of(other, func):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = beneath(func, func, args, kwargs or {}) if begun else func(*args, **(kwargs or {}))
        return result if func in unwrapped() else converted(result, cls)


def converted(result, cls):
    """The tensors in a result as ``cls``."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [converted(part, cls) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def unwrapped() -> set:
    """The functions whose results keep their class: ``Tensor.grad.__get__`` and the like."""
    return {_method(name).__get__ for name in ("grad", "_base")}


Tensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]


def meets(kind: type) -> bool:
    """Is this class, which is not plain, to be asked by an operator that meets it now?"""
    return (state.subclasses and overrides(kind)) or (kind in DISPATCHING and not dispatch.off)


def _no_dispatch(func, types, args=(), kwargs=None):
    """The ``__torch_dispatch__`` of Tensor: the operator itself."""
    from .dispatching import disabled

    return disabled(func, types, args, kwargs)


_no_dispatch.__name__ = _no_dispatch.__qualname__ = "_disabled_torch_dispatch_impl"
Tensor.__torch_dispatch__ = staticmethod(_no_dispatch)  # type: ignore[attr-defined]
