"""``@public``: give a function its PyTorch places — ``rushlight.name``, ``Tensor.name``, ``Tensor.name_``, ``out=``."""

from __future__ import annotations

import functools
import inspect
import re
from types import FunctionType

from ..autograd import overriding, views
from ..errors import type_name, warn_user
from ..tensor import Tensor
from . import kinds, old_orders, refusals


class _Published(dict):
    """Functions put in here ask whoever overrides them."""

    def __setitem__(self, name, value):
        super().__setitem__(name, overriding.asking(value) if isinstance(value, FunctionType) else value)

    def update(self, names=(), **more):
        for name, value in dict(names, **more).items():
            self[name] = value


PUBLIC: dict = _Published()  # name -> function; what ``rushlight`` exports

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def public(_function=None, *, function=True, method=True, inplace=False, out=True, aliases=(), old=(), around=None):
    """Publish a function written with PyTorch's signature.

    function: as ``rushlight.name``.      method: as ``Tensor.name`` (the first parameter is the tensor).
    inplace: also as ``Tensor.name_``.    out: the function form takes ``out=``.
             "apart": and there no argument may share memory with what is written ("apart first": said before all else).
             "one value": it may be written twice into one place.
             "reads first": arguments may share memory with what is written.
             "unrecorded": autograd does not look at it; "one step": see ``views.ONE_STEP``.
             "real": complex tensors are refused there.
    aliases: further names for all of these.
    old: names of numbers that are also taken by place.
    around: makes ``Tensor.name_`` of what it would be.
    """

    def publish(f):
        parameters = f.__code__.co_varnames[: f.__code__.co_argcount + f.__code__.co_kwonlyargcount]
        f.__name__ = f.__name__ if f.__name__ in _KEEP else f.__name__.rstrip("_")  # pickle goes by __qualname__
        explained = kinds.checked(f, explain=refusals.explain)
        f = kinds.checked(f)
        named = _numpy_named(f) if "dim" in parameters else f
        as_method = explained if named is f else _numpy_named(f, refusals.explain)
        if as_method is f and len(parameters) == 1 and not f.__code__.co_flags & inspect.CO_VARARGS:
            as_method = _of_self_alone(f)
        as_method = getattr(f, "method", as_method) if as_method is f else as_method
        as_function, in_place = f, f
        if old:
            as_function = old_orders.taking(f, old, old_orders.FUNCTION)
            in_place = old_orders.taking(f, old, old_orders.IN_PLACE)
            as_method = old_orders.taking(f, old, old_orders.METHOD, refusals.explain)
        called = _with_out(as_function, named is not f) if out and "out" not in parameters else named
        named_so = of_one_tuple(called) if method else called
        asked = overriding.asking(named_so, refusals.explain_function) if function else called
        for name in (f.__name__, *aliases):
            if function:
                PUBLIC[name] = asked
            if method:
                setattr(Tensor, name, as_method)
            if inplace:
                setattr(Tensor, name + "_", _in_place(in_place, name, inplace, around))
        return called

    return publish if _function is None else publish(_function)


_KEEP: set = set()


def of_one_tuple(f):
    """A function that takes ``f(x, (2, 3))`` only, of one whose method takes ``x.f(2, 3)`` too; others as they are."""
    code = inspect.unwrap(f).__code__
    if not code.co_flags & inspect.CO_VARARGS:
        return f
    parameter = code.co_varnames[code.co_argcount]

    @functools.wraps(f)
    def called(input, *args, **kwargs):
        if args and not isinstance(args[0], (list, tuple)):
            if len(args) > 1:
                raise TypeError(f"{f.__name__}() takes 2 positional arguments but {len(args) + 1} were given")
            raise TypeError(
                f"{f.__name__}(): argument '{parameter}' (position 2) must be tuple of ints, not {type_name(args[0])}"
            )
        return f(input, *args, **kwargs)

    return called


def _of_self_alone(f):
    """A method that takes nothing but its tensor, and says so as PyTorch does."""
    call = getattr(f, "call", f)  # of an operator, without another function between

    @functools.wraps(f)
    def method(self, *wrong):
        if wrong:
            refusals.refuse_any(f.__name__, wrong)
        return call(self)

    return method


def _with_out(f, numpy_names):
    """``f`` as a function of its own: it takes ``out=``, and whoever overrides it is asked."""

    @functools.wraps(f)
    def called(*args, **kwargs):
        watched = overriding.watching
        try:
            if watched:
                return overriding.ask(called, plain, args, kwargs)
            return plain(*args, **kwargs) if kwargs else f(*args)
        except Exception:
            try:
                if watched:
                    raise
                return overriding.ask_strangers(called, args, kwargs)
            except Exception:
                refusals.explain_function(f.__name__, f, args, kwargs)
                raise

    def plain(*args, **kwargs):
        out = kwargs.pop("out", None)
        if numpy_names and ("axis" in kwargs or "keepdims" in kwargs):
            kwargs = {_NUMPY_NAMES.get(k, k): v for k, v in kwargs.items()}
        result = f(*args, **kwargs)
        return result if out is None else write_out(out, result, f.__name__.rstrip("_"))

    called.asks, called.takes_out = called, True
    return called


def _numpy_named(f, explain=None):
    """Also take NumPy's ``axis`` and ``keepdims`` for ``dim`` and ``keepdim``, as PyTorch does.

    ``explain`` as in ``kinds.checked``.
    """

    @functools.wraps(f)
    def called(*args, **kwargs):
        try:
            if not kwargs:
                return f(*args)
            if "axis" in kwargs or "keepdims" in kwargs:
                kwargs = {_NUMPY_NAMES.get(k, k): v for k, v in kwargs.items()}
            return f(*args, **kwargs)
        except Exception:
            if explain is not None:
                explain(f.__name__, f, args[1:], kwargs)
            raise

    return called


_OUTSIDE = re.compile("out of (bounds|range)")  # found only where elements are written
_WORSE = ("Dimension out of range", "too many indices")  # than memory that is shared


def _in_place(f, name, how, around):
    if how == "one value":
        views.ONE_VALUE.add(f)
    elif how == "reads first":
        views.READS_FIRST.add(f)
    elif how == "unrecorded":
        views.UNRECORDED.add(f)
    elif how == "one step":
        views.ONE_STEP.add(f)

    def method(self, *args, **kwargs):
        try:
            if written is plain and check is None:
                return views.inplace(self, f, *args, **kwargs)
            return written(self, *args, **kwargs)
        except Exception:
            refusals.explain(name + "_", f, args, kwargs)
            raise

    def plain(self, *args, **kwargs):
        if check is not None:
            check(self, args, kwargs)
        return views.inplace(self, f, *args, **kwargs)

    def check_apart(self, args, kwargs):
        if [a for a in args if a is None]:
            f(self, *args, **kwargs)  # says what was wanted
        for a in args:
            if isinstance(a, Tensor) and a._view is not None and a._view.seen != a._storage.version:
                a._refresh()  # or it says why it cannot
        try:
            views.check_apart(self, (*args, *kwargs.values()), "at all")
            if how == "apart":
                views.check_places(self)
        except RuntimeError:
            views.check_writable(self, values=how != "apart")
            try:
                f(self, *args, **kwargs)  # may have worse to say of its arguments
            except (IndexError, RuntimeError) as error:
                if str(error).startswith(_WORSE) or (how == "apart" and not _OUTSIDE.search(str(error))):
                    raise
            raise

    def check_real(self, args, kwargs):
        if self._array.dtype.kind == "c":
            raise RuntimeError(f"In-place {name} is not supported for complex tensors.")

    check = {"apart": check_apart, "apart first": check_apart, "real": check_real}.get(how)
    written = around(plain) if around is not None else plain
    for function in (method, written):  # of both Python may speak
        function.__name__ = function.__qualname__ = name + "_"
    method.__doc__ = f"In-place version of :meth:`{name}`."
    method.of = f  # which knows the names of its arguments
    return method


def write_out(out, result, name):
    """Copy a result into ``out=``, resizing it as PyTorch does."""
    if isinstance(result, tuple):
        pairs = list(zip(out, result))
        for target, value in pairs:
            write_out(target, value, name)
        return type(result)(out) if not hasattr(result, "_fields") else type(result)(*out)
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if result._node is not None or (out._node is not None and views.state.grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if name in kinds.EXACT_OUT and out.dtype is not result.dtype:
        wanted, given = kinds.c_name(result.dtype), kinds.c_name(out.dtype)
        raise RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {given} instead")
    if out.shape != result.shape:
        if out._array.size != 0:
            warn_user(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(result.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse "
                "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        if out._array.dtype != result._array.dtype:
            views._check_cast(result.dtype, out.dtype)
        out._array = result._array.astype(out._array.dtype)
        return out
    views.assign(out, result)
    return out
