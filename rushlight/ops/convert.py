"""The same values as another dtype, on another device, in another memory order; and values written into a tensor."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..autograd import mode, views
from ..autograd.mode import state
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..autograd.tape import Node
from ..device import device as Device
from ..engine import namespace_of
from ..errors import warn_once
from ..layout import contiguous_format, dense_strides, looks_channels_last, memory_order, preserve_format
from ..layout import memory_format as MemoryFormat
from ..storage import TypedStorage, UntypedStorage, affordable, check_layout, extent, memory_of, placed, pointer
from ..tensor import Mirror, Tensor, wrap
from .creation import engine_of, resolve, sizes, tensortype
from .data import fill_value
from .dims import as_int
from .public import PUBLIC, public

_ndarray = np.ndarray

# -- dtype and device ------------------------------------------------------------------------------------------------


@public(function=False)
def to(self, *args, **kwargs):
    """This tensor with another dtype and/or device: ``to(dtype)``, ``to(device, dtype)``, ``to(other)``.

    The tensor itself if nothing changes, unless ``copy=True``.
    """
    if len(args) == 1 and not kwargs and args[0].__class__ is dtypes.dtype:  # the commonest
        return _converted(self, None, args[0])
    device, dtype, copy, form = _to_arguments(args, kwargs)
    return _converted(self, device, dtype, copy, form)


def _to_arguments(args, kwargs):
    names = ["non_blocking", "copy"]
    if args and _is_number_for_a_tensor(args):
        args = (wrap(np.asarray(args[0])), *args[1:])
    first = args[0] if args else kwargs.get("tensor", kwargs.get("other"))
    if isinstance(first, Tensor) and "other" not in kwargs:
        given, names = {"device": first.device, "dtype": first.dtype}, ["tensor", *names]
    elif args and isinstance(first, (dtypes.dtype, type)):
        given, names = {}, ["dtype", *names]
    else:
        given, names = {}, ["device", "dtype", *names]
    unexpected = set(kwargs) - {*names, "memory_format"} or set(kwargs) & set(names[: len(args)])
    place = kwargs.get("device", args[0] if args and names[0] == "device" else None)
    bad_place = isinstance(place, (float, bool, list, tuple))
    if len(args) > len(names) or unexpected or bad_place:
        what = [_type_word(a) for a in args] + [f"{k}={_type_word(v)}" for k, v in kwargs.items()]
        rest = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({', '.join(what)}), but expected one of:\n"
            f" * (torch.device device = None, torch.dtype dtype = None, {rest})\n"
            f" * (torch.dtype dtype, {rest})\n * (Tensor tensor, {rest})\n"
        )
    given = {**dict(zip(names, args)), **kwargs, **given}
    for place, name in enumerate(names):
        if name in ("non_blocking", "copy") and given.get(name, False).__class__ is not bool:
            where = f" (position {place + 1})" if place < len(args) else ""
            raise TypeError(f"to(): argument '{name}'{where} must be bool, not {_type_word(given[name])}")
    device = None if given.get("device") is None else resolve(given["device"], "to")
    dtype = dtypes.argument(given.get("dtype"), "to")
    return device, dtype, given.get("copy", False), given.get("memory_format")


def _is_number_for_a_tensor(args) -> bool:
    """A number has a dtype to follow, as a tensor has; an int is the number of a device, unless flags come next."""
    first = args[0].__class__
    return first in (float, complex, bool) or (first is int and len(args) > 1 and args[1].__class__ is bool)


def _type_word(value) -> str:
    return {"dtype": "torch.dtype", "device": "torch.device"}.get(type(value).__name__, type(value).__name__)


def _converted(t, device, dtype, copy=False, form=None):
    form = preserve_format if form is None else form
    if form is not preserve_format:
        _check_format(form)
    recast = dtype is not None and dtype.numpy != t._array.dtype
    moved = device is not None and not _same_place(t.device, device)
    relaid = form is not preserve_format and not _has_format(t, form)
    if moved:
        t = _move(t, device)
    if recast:
        if t._array.dtype.kind in "cW" and dtype.numpy.kind not in "cWb":
            warn_once(_DISCARDED)
        if t._view is not None and t._view.seen != t._storage.version and dtype.numpy.kind in "biu":
            t = t.detach()  # a view that is stale may be read where nothing is recorded
        t = xp_.astype(t, dtype=dtype.numpy)
    if relaid:
        return _lay_out(t, memory_order(form, t.ndim), "CloneBackward0" if recast or moved else "ToCopyBackward0")
    return _CLONE_AS_TO(t) if copy and not (recast or moved) else t


def _has_format(t, form) -> bool:
    """Is ``t`` taken to be in a memory format: by its strides, which may leave gaps."""
    if t._array.__class__ is not _ndarray:
        return t.is_contiguous(memory_format=form)
    last = looks_channels_last(t.shape, t.stride())
    memory_order(form, t.ndim)  # refuses a format for another number of dimensions
    return last if form is not contiguous_format else not last


_DISCARDED = "Casting complex values to real discards the imaginary part"


def _same_place(have: Device, want: Device) -> bool:
    return have.type == want.type and (want.index is None or have.index is None or have.index == want.index)


class ToCopyBackward0(Node):
    """A move between devices: the gradient moves back."""

    __slots__ = ("source",)

    def __init__(self, t: Tensor, source: Device):
        super().__init__((t._node,), t._array.shape, t._array.dtype, namespace_of(t._array))
        self.source = source

    def apply(self, xp, g, graph, keep):
        return (_move(g, self.source) if graph else _moved_array(g, self.source),)


def _move(t: Tensor, device: Device) -> Tensor:
    t._sync()
    made = wrap(_moved_array(t._array, device))
    if t._node is not None and state.grad:
        made._node = ToCopyBackward0(t, t.device)
    if mode.active and mode.levels():
        from ..autograd import tangents

        tangents.moved(t, made, lambda tangent: _move(tangent, device))
    return made


def _moved_array(array, device: Device):
    if device.type != "cpu":
        return engine_of(device).to_device(array, device)
    return array if array.__class__ is _ndarray else namespace_of(array).to_numpy(array)


@public(function=False)
def type_(self, dtype=None, non_blocking=False):
    """The tensor-type word (``torch.FloatTensor``), or the tensor converted to a dtype or to such a type."""
    if dtype is None:
        module = "torch." if self.device.type == "cpu" else f"torch.{self.device.type}."
        return module + self.dtype.char
    device = None
    if isinstance(dtype, str):
        word = dtype.removeprefix("torch.")
        place, _, name = word.rpartition(".")
        found = next((d for d in dtypes.ALL if d.char == name), None)
        if found is None or word == dtype:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype, device = found, Device(place or "cpu")
    elif isinstance(dtype, tensortype):
        dtype, device = dtype.dtype, Device("cpu")
    return _converted(self, device, dtypes.argument(dtype, "type"))


@public(function=False)
def type_as(self, other):
    """This tensor with ``other``'s dtype and device."""
    return _converted(self, other.device, other.dtype)


def _cast_method(name, dtype):
    def cast(self, memory_format=preserve_format):
        return _converted(self, None, dtype, form=memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"This tensor as {dtype!r}."
    setattr(Tensor, name, cast)


for _name, _dtype in {
    **dtypes.ALIASES,
    "bfloat16": dtypes.bfloat16,
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
}.items():
    _cast_method(_name, _dtype)


@public(function=False)
def cpu(self, memory_format=preserve_format):
    """This tensor in the CPU's memory."""
    return _converted(self, Device("cpu"), None, form=memory_format)


@public(function=False)
def cuda(self, device=None, non_blocking=False, memory_format=preserve_format):
    """This tensor on a GPU."""
    place = Device("cuda") if device is None else Device("cuda", device) if isinstance(device, int) else Device(device)
    return _converted(self, place, None, form=memory_format)


@public(function=False)
def pin_memory(self, device=None):
    """This tensor: XLA stages its own transfers, so there is no memory to pin."""
    return self


@public(function=False)
def is_pinned(self, device=None):
    """Does it lie in pinned memory? Never here."""
    return False


# -- copies ----------------------------------------------------------------------------------------------------------

_CLONE_AS_TO = variant(xp_.clone, "ToCopyBackward0")


@public(out=False)
def clone(input, *, memory_format=preserve_format):
    """A copy that gradients flow through."""
    if memory_format is None or memory_format is preserve_format:
        return xp_.clone(input)
    _check_format(memory_format)
    return _lay_out(input, memory_order(memory_format, input.ndim))


@public(function=False)
def contiguous(self, memory_format=contiguous_format):
    """This tensor if it lies in memory that way, else a copy that does."""
    _check_format(memory_format)
    order = memory_order(memory_format, self.ndim)
    if memory_format is preserve_format or self.is_contiguous(memory_format):
        return self
    return _lay_out(self, order)


@op(node="CloneBackward0", exact=True, x=lambda xp, g: g)
def lay_out(xp, x, *, order):
    return xp.lay_out(x, order=order)


_LAY_OUT = {"CloneBackward0": lay_out, "ToCopyBackward0": variant(lay_out, "ToCopyBackward0")}


def _lay_out(t, order, node="CloneBackward0"):
    return _LAY_OUT[node](t, order=tuple(order))


def _check_format(value) -> None:
    if not isinstance(value, MemoryFormat):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(value).__name__}")


# -- writing ---------------------------------------------------------------------------------------------------------


def in_place(method):
    """Attach a method that writes; unlike ``public`` it keeps the underscore."""
    setattr(Tensor, method.__name__, method)
    return method


@op(node="CopyBackwards", exact=True, x=lambda xp, g: xp.zeros_like(g), source=lambda xp, g: g)
def copied(xp, x, source):
    if source.dtype.kind in "cW" and x.dtype.kind not in "cWb":
        warn_once(_DISCARDED)
        source = xp.real(source)
    return xp.broadcast_to(xp.astype(source, dtype=x.dtype), shape=x.shape)


@in_place
def copy_(self, src, non_blocking=False):
    """Write ``src``, broadcast and cast, into this tensor."""
    if not isinstance(src, Tensor):
        if not isinstance(src, (int, float, complex, np.generic)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        src = wrap(np.asarray(src))
    views.check_writable(self, values=src is not self)
    if self._storage is not None:
        views.check_apart(self, (src,))
    src._sync()
    _check_expands(self._array.shape, src._array.shape)
    if src._array.__class__ is not self._array.__class__ and not _same_place(src.device, self.device):
        src = _move(src, self.device)
    if self._array.dtype.kind not in "biu" and _is_recorded(self, src):
        views.assign(self, copied(self, src))
    else:
        xp, values = namespace_of(self._array if src._array.__class__ is _ndarray else src._array), src._array
        if values.dtype.kind in "cW" and self._array.dtype.kind not in "cWb":
            warn_once(_DISCARDED)
            values = xp.real(values)
        shape = self._array.shape
        views.put(self, values if values.shape == shape else xp.broadcast_to(values, shape))
    return self


def _check_expands(shape, given) -> None:
    if len(given) > len(shape):
        try:
            joint = list(np.broadcast_shapes(shape, given))
        except ValueError:
            raise RuntimeError(
                f"The size of tensor a ({list(shape)}) must match the size of tensor b ({list(given)})"
            ) from None
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {joint}")
    for d, (want, have) in enumerate(zip(shape[len(shape) - len(given) :], given), len(shape) - len(given)):
        if have not in (1, want):
            raise RuntimeError(
                f"The size of tensor a ({want}) must match the size of tensor b ({have}) at non-singleton dimension {d}"
            )


@op(node="FillBackward0", exact=True, x=lambda xp, g: xp.zeros_like(g), value=lambda xp, g: xp.sum(g))
def filled(xp, x, value):
    return xp.full(x.shape, value, dtype=x.dtype)


_FILL = {False: filled, True: variant(filled, "FillBackward1")}
_FILL_ = {False: variant(filled, "FillBackward2"), True: variant(filled, "FillBackward3")}
_ZERO_ = variant(filled, "ZeroBackward0")
views.ONE_VALUE.update((_FILL_[False], _ZERO_))


@public(method=False)
def fill(input, value):
    """A tensor like ``input`` with ``value`` everywhere."""
    given = _fill_argument("fill", input, value)
    return _FILL[isinstance(given, Tensor)](input, given)


@in_place
def fill_(self, value):
    """Write one value everywhere."""
    views.check_writable(self, values=isinstance(value, Tensor))
    given = _fill_argument("fill_", self, value)
    return _overwrite(self, _FILL_[isinstance(given, Tensor)], given)


@in_place
def zero_(self):
    """Write zeros everywhere."""
    views.check_writable(self, values=False)
    return _overwrite(self, _ZERO_, np.zeros((), self._array.dtype)[()])


def _fill_argument(name, t, value):
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return value
    if not isinstance(value, (int, float, complex, np.generic)):
        got = type(value).__name__
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            f" * (Tensor value)\n      didn't match because some of the arguments have invalid types: (!{got}!)\n"
            f" * (Number value)\n      didn't match because some of the arguments have invalid types: (!{got}!)\n"
        )
    return fill_value(value.item() if isinstance(value, np.generic) else value, t.dtype)


def _is_recorded(t, value) -> bool:
    """Does it matter to gradients, or to tangents, that ``value`` is put into ``t``?"""
    if state.grad and (t._node is not None or (isinstance(value, Tensor) and value._node is not None)):
        return True
    return bool(mode.active and mode.levels())


def _overwrite(t, operator, value):
    if _is_recorded(t, value):
        return views.inplace(t, operator, value)
    array = value._array if isinstance(value, Tensor) else value
    if t._array.__class__ is _ndarray and (array.__class__ is _ndarray or isinstance(array, np.generic)):
        views.put(t, np.asarray(array))
    else:
        xp = namespace_of(t._array if isinstance(array, (np.ndarray, np.generic)) else array)
        views.put(t, xp.full(t._array.shape, array, dtype=t._array.dtype))
    return t


# -- another shape or memory in place --------------------------------------------------------------------------------


@in_place
def resize_(self, *size, memory_format=contiguous_format):
    """Another shape over the same memory, or over a larger copy of it; new elements are arbitrary.

    Differs from PyTorch: when the memory must grow, other views keep the old one.
    """
    shape = sizes("resize_", size)
    if min(shape, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    check_layout(shape, dense_strides(shape, range(len(shape))), 0)
    if self._node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    order = memory_order(memory_format, len(shape))
    self._sync()
    if shape == self._array.shape:
        return self
    if self._array.__class__ is not _ndarray:
        xp = namespace_of(self._array)
        self._array = xp.resize(self._array, shape) if self._array.size else xp.zeros(shape, dtype=self._array.dtype)
    else:
        self._array = _resized(self, shape, order)
    self._view = None
    return self


def _resized(t, shape, order) -> np.ndarray:
    array = t._array
    if t._view.__class__ is Mirror:
        array = t._array = array.copy()
        t._view = None
    memory, begin = memory_of(t._owner()), t.storage_offset() * array.itemsize
    needed = math.prod(shape) * array.itemsize
    if begin + needed > memory.size:
        memory = _grown(memory, begin + needed)
    flat = memory[begin : begin + needed].view(array.dtype)
    inverse = np.argsort(order)
    return flat.reshape([shape[d] for d in order]).transpose(inverse)


def _grown(memory: np.ndarray, size: int) -> np.ndarray:
    affordable(size)
    larger = np.empty(size, np.uint8)
    larger[: memory.size] = memory
    return larger


@in_place
def resize_as_(self, the_template, *, memory_format=contiguous_format):
    """``resize_`` to another tensor's shape."""
    return resize_(self, the_template.shape, memory_format=memory_format)


@in_place
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor another view of ``source``'s memory; empty without one.

    Differs from PyTorch: when the memory must grow, other views keep the old one.
    """
    if source is not None and not isinstance(source, (Tensor, TypedStorage, UntypedStorage)):
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), but expected "
            "nothing, a Tensor or a Storage"
        )
    if source is None:
        self._array, self._storage, self._view = np.empty(0, self._array.dtype), None, None
        return self
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.word} to a tensor of type {self.dtype.word}"
            )
        source._sync()
        array = source._strided_array()
        memory = memory_of(source._owner()) if size is not None else None
    else:
        untyped = source.untyped() if isinstance(source, TypedStorage) else source
        memory, array = untyped._memory, None
        size = (memory.size // self._array.itemsize,) if size is None else size
    if size is not None:
        shape = sizes("set_", (size,))
        array = _laid(memory, self._array.dtype, shape, stride, as_int(storage_offset, "storage_offset"))
    self._array, self._view = array, None
    if isinstance(source, Tensor):
        self._storage = source._counted()
    return self


def _laid(memory: np.ndarray, dtype, shape, stride, offset: int) -> np.ndarray:
    """``memory`` (bytes) by sizes, strides and an offset; more of it where they reach beyond its end."""
    steps = dense_strides(shape, range(len(shape))) if stride is None else sizes("set_", (stride,))
    check_layout(shape, steps, offset)
    needed = (offset + extent(shape, steps)) * dtype.itemsize
    return placed(memory if needed <= memory.size else _grown(memory, needed), dtype, shape, steps, offset)


@public(function=False, out=False)
def is_set_to(self, tensor):
    """Do both tensors show the same memory in the same way?"""
    return (
        self._array.__class__ is _ndarray is tensor._array.__class__
        and self._view.__class__ is not Mirror is not tensor._view.__class__
        and pointer(self._array) == pointer(tensor._array)
        and (self._array.shape, self._array.strides) == (tensor._array.shape, tensor._array.strides)
    )


@in_place
def share_memory_(self):
    """Move the tensor's memory to where other processes started from here see writes to it."""
    from ..multiprocessing import shared_copy

    if not self.is_shared() and self._array.__class__ is _ndarray:
        self._array, self._view = shared_copy(self._array), None
    return self


@public(function=False, out=False)
def is_shared(self):
    """Does it lie in memory that processes share?"""
    import mmap

    if self._array.__class__ is not _ndarray:
        return False
    base = self._owner().base
    return isinstance(base, mmap.mmap) or isinstance(getattr(base, "obj", None), mmap.mmap)


@in_place
def apply_(self, callable):
    """Replace each element by ``callable(element)``: slow, for the CPU only."""
    views.check_writable(self)
    values = [callable(v) for v in self._array.reshape(-1).tolist()]
    views.put(self, np.array(values).astype(self._array.dtype).reshape(self._array.shape))
    return self


@in_place
def map_(self, tensor, callable):
    """Replace each element by ``callable(element, element of tensor)``: slow, for the CPU only."""
    views.check_writable(self)
    other = np.broadcast_to(tensor._array, self._array.shape).reshape(-1).tolist()
    values = [callable(a, b) for a, b in zip(self._array.reshape(-1).tolist(), other)]
    views.put(self, np.array(values).astype(self._array.dtype).reshape(self._array.shape))
    return self


PUBLIC.update(fill_=fill_, zero_=zero_, resize_as_=resize_as_)

# -- questions about dtypes ------------------------------------------------------------------------------------------


@public(method=False, out=False)
def is_tensor(obj):
    """Is ``obj`` a tensor?"""
    return isinstance(obj, Tensor)


@public(method=False, out=False)
def is_storage(obj):
    """Is ``obj`` a storage?"""
    return isinstance(obj, (TypedStorage, UntypedStorage))


@public(method=False, out=False)
def typename(obj):
    """The tensor-type word of a tensor, else the name of the object's class."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _asks(name):
    def ask(input):
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = getattr(Tensor, name).__doc__
    PUBLIC[name] = ask


for _name in ("is_floating_point", "is_complex", "is_signed", "is_inference", "numel"):
    _asks(_name)


@public(out=False)
def is_nonzero(input):
    """Is the one element not zero?"""
    if input.numel() != 1:
        return bool(input)
    return bool(input.item())


@public(out=False)
def is_same_size(input, other):
    """Have both the same shape?"""
    return input.shape == other.shape


@public(method=False, out=False)
def promote_types(type1, type2):
    """The smallest dtype that both promote to."""
    for place, value in (("1", type1), ("2", type2)):
        if not isinstance(value, dtypes.dtype):
            raise TypeError(
                f"promote_types(): argument 'type{place}' (position {place}) must be torch.dtype, "
                f"not {type(value).__name__}"
            )
    return dtypes.promote_types(type1, type2)


@public(method=False, out=False)
def result_type(tensor1, tensor2):
    """The dtype that arithmetic on the two (tensors or numbers) gives."""
    levels = ([], [], [])
    for value in (tensor1, tensor2):
        if isinstance(value, Tensor):
            levels[0 if value.ndim else 1].append(value.dtype)
        else:
            levels[2].append(dtypes.of_scalar(value))
    return dtypes.result_dtype(*levels)


@public(method=False, out=False)
def can_cast(from_, to):
    """May in-place arithmetic cast from one dtype to the other?"""
    kinds = [
        3 if d.is_complex else 2 if d.is_floating_point else 1 if d is not dtypes.bool_ else 0 for d in (from_, to)
    ]
    return kinds[0] <= kinds[1]
