"""What is no operator here but a call there: functions that make tensors, and writes in place."""

from __future__ import annotations

from ...autograd import dispatching, overriding, views
from ...autograd import mode as switches
from ...autograd.overriding import _words
from ...device import device
from ...tensor import Tensor
from .space import aten

__all__ = ["FUNCTIONS", "handed_over"]

FUNCTIONS: dict = {}


def handed_over(name: str, plain, args, kwargs):
    """A function that concerns somebody who dispatches: its call if it has one, else its own way through operators."""
    function = FUNCTIONS.get(name)
    if function is not None:
        made = function(name, plain, *args, **kwargs)
        if made is not NotImplemented:
            return made
    elif name.endswith("_") and not name.startswith("_") and args and isinstance(args[0], Tensor):
        return _written(name, plain, args, kwargs)
    return plain(*args, **kwargs)


def _written(name: str, plain, args, kwargs):
    """``x.add_(y)``: the operator of ``x.add(y)``, told to write to x."""
    function, t = getattr(Tensor, name[:-1], None), args[0]
    function = overriding.watching_modes.restore.get(name[:-1], function)
    if function is None or name in _ELSEWHERE:
        return plain(*args, **kwargs)
    views.check_writable(t)
    if switches.state.grad and t._node is not None and t._view is not None and t._view.path:
        raise NotImplementedError(
            f"{name}: a write to a view that autograd records cannot be dispatched; clone it first"
        )
    outer, dispatching.state.writing = dispatching.state.writing, t
    try:
        function(*args, **kwargs)
    finally:
        dispatching.state.writing = outer
    if t._array.__class__ is views._ndarray:
        return t
    t._counted().version += 1  # of a wrapper: its handler wrote elsewhere
    return t


_ELSEWHERE = _words(
    """
    requires_grad_ detach_ retain_grad_ share_memory_ resize_ set_ rename_ apply_ map_
    """
)


def _function(*names: str):
    def register(function):
        for name in names:
            FUNCTIONS[name] = function
        return function

    return register


def _send(overload, *args, **kwargs):
    return dispatching.below(dispatching.send, overload, args, kwargs)


@_function("clone", "softmax", "log_softmax", "getitem")
def _told(name, plain, input, *args, **kwargs):
    """An operator whose call tells more than the operator knows."""
    outer = dispatching.state.given
    dispatching.state.given = (name, *args) if args else (name, *[kwargs[k] for k in ("dim",) if k in kwargs])
    try:
        return plain(input, *args, **kwargs)
    finally:
        dispatching.state.given = outer


@_function("detach")
def _detach(name, plain, t):
    return _send(aten.detach.default, t)


_CPU = device("cpu")


@_function("zeros", "ones", "empty", "rand", "randn")
def _filled(name, plain, *size, requires_grad=False, **options):
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        size = size[0]
    size = options.pop("size", size)
    if not dispatching.state.modes or set(options) - {"dtype", "device"}:
        return NotImplemented
    packet = getattr(aten, name)
    overload = packet.memory_format if name == "empty" else packet.default
    return _needing(_send(overload, list(size), **_options(options)), requires_grad)


def _options(options: dict) -> dict:
    kind = {} if options.get("dtype") is None else {"dtype": options["dtype"]}
    return {**kind, "device": device(options.get("device") or _CPU), "pin_memory": False}


def _needing(t, requires_grad):
    return t.requires_grad_() if requires_grad else t


@_function("full")
def _full(name, plain, size, fill_value, *, requires_grad=False, **options):
    if not dispatching.state.modes or set(options) - {"dtype", "device"}:
        return NotImplemented
    return _needing(_send(aten.full.default, list(size), fill_value, **_options(options)), requires_grad)


@_function("arange", "eye", "linspace")
def _counted(name, plain, *given, requires_grad=False, **options):
    if not dispatching.state.modes or set(options) - {"dtype", "device"}:
        return NotImplemented
    packet = getattr(aten, name)
    overload = "default"
    if name == "arange" and len(given) > 1:
        overload = "start" if len(given) == 2 else "start_step"
    if name == "eye" and len(given) == 2:
        overload = "m"
    return _needing(_send(getattr(packet, overload), *given, **_options(options)), requires_grad)


@_function("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
def _like(name, plain, input, *, requires_grad=False, **options):
    if set(options) - {"dtype", "device", "memory_format"}:
        return NotImplemented
    packet = getattr(aten, name)
    given = {name: value for name, value in options.items() if value is not None}
    order = {name: given[name] for name in ("dtype", "device") if name in given}
    rest = {"memory_format": given["memory_format"]} if "memory_format" in given else {}
    return _needing(_send(packet.default, input, **order, pin_memory=False, **rest), requires_grad)


@_function("full_like")
def _full_like(name, plain, input, fill_value, **options):
    return NotImplemented if options else _send(aten.full_like.default, input, fill_value, pin_memory=False)


@_function("new_zeros", "new_ones", "new_empty")
def _new_like(name, plain, input, *size, **options):
    if set(options) - {"dtype", "device"}:
        return NotImplemented
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        size = size[0]
    packet = getattr(aten, name)
    return _send(packet.default, input, list(size), **options, pin_memory=False)


@_function("zero_", "normal_", "uniform_", "copy_", "fill_")
def _overwritten(name, plain, t, *given, **options):
    """In place, whatever was there: these record nothing but that."""
    if switches.state.grad and (t._node is not None or any(isinstance(v, Tensor) and v._node for v in given)):
        views.check_writable(t)
        raise NotImplementedError(
            f"{name}: a write that autograd records cannot be dispatched; use torch.no_grad() or clone()"
        )
    packet = getattr(aten, name)
    overload = packet.default
    if name == "fill_":
        overload = packet.Tensor if isinstance(given[0], Tensor) else packet.Scalar
    return _send(overload, t, *given, **options)


@_function("item")
def _item(name, plain, t):
    return _send(aten._local_scalar_dense.default, t)


@_function("equal", "allclose")
def _compared(name, plain, input, other, *rest, **options):
    return _send(getattr(aten, name).default, input, other, *rest, **options)
