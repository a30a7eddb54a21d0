"""Picking and placing elements by index: ``x[...]``, gather and scatter, masks.

Integers, slices, None and Ellipsis are static and give views. Tensors used as indices are array arguments of an op, so
that compiled code can compute them; they give copies.
"""

from __future__ import annotations

import operator
import re

import numpy as np

from ..autograd import mode, views
from ..autograd.op import differentiable as xp_
from ..autograd.op import op
from ..autograd.overriding import PLAIN
from ..engine import expect, namespace_of
from ..errors import ValuesNeeded, type_name, warn_once
from ..layout import contiguous_format
from ..tensor import Tensor, wrap
from .common import check_tensor, type_word
from .data import fill_value
from .dims import is_int, wrap_dim
from .public import PUBLIC, public
from .shape import check_expands, expand_dims, select_part, slice_of

_ndarray = np.ndarray

# -- the ops -----------------------------------------------------------------------------------------------------------
# ``dims`` are the dimensions that ``indices`` stand at; NumPy's and JAX's rules for the place of the result's
# dimensions are PyTorch's once integers and slices have been applied.


def _placed(indices, dims) -> tuple:
    if dims is None:
        return tuple(indices)
    index = [slice(None)] * (dims[-1] + 1)
    for dim, i in zip(dims, indices):
        index[dim] = i
    return tuple(index)


@op(
    node="IndexBackward0",
    exact=True,
    x=lambda xp, g, x_shape, indices, dims: xp.add_at_zeros(g, *indices, shape=x_shape, dims=dims),
)
def index_at(xp, x, *indices, dims=None):
    return xp.getitem(x, index=_placed(indices, dims))


@op(x=lambda xp, g, indices, dims: xp.index_at(g, *indices, dims=dims))
def add_at_zeros(xp, x, *indices, shape, dims=None):
    """Zeros of ``shape`` with ``x`` added at the indices: what indexing's gradient is."""
    return xp.index_add(xp.zeros(shape, dtype=x.dtype), x, index=_placed(indices, dims))


@op(
    node="IndexPutBackward0",
    exact=True,
    x=lambda xp, g, indices, dims: xp.put_at(g, 0, *indices, dims=dims),
    value=lambda xp, g, indices, dims: xp.index_at(g, *indices, dims=dims),
)
def put_at(xp, x, value, *indices, dims=None):
    """``x`` with ``value`` at the indices."""
    return xp.index_put(x, value, index=_placed(indices, dims))


@op(
    node="IndexPutBackward0",
    x=lambda xp, g: g,
    value=lambda xp, g, indices, dims: xp.index_at(g, *indices, dims=dims),
)
def add_at(xp, x, value, *indices, dims=None):
    """``x`` with ``value`` added at the indices, repeated ones adding up."""
    return xp.index_add(x, value, index=_placed(indices, dims))


@op(
    node="IndexPutBackward0",
    exact=True,
    x=lambda xp, g, mask: xp.put_masked(g, 0, mask),
    value=lambda xp, g, mask: xp.put_masked(g, 0, xp.logical_not(mask)),
)
def put_masked(xp, x, value, mask):
    """``x`` with one ``value`` wherever ``mask`` is true; no data-dependent shapes, so it compiles."""
    return xp.where(mask, xp.asarray(value, dtype=x.dtype), x)


# -- x[index] ----------------------------------------------------------------------------------------------------------


def getitem(self, index):
    if index.__class__ is int:
        return _select(self, 0, index)
    if index.__class__ is slice:
        return _slice(self, 0, index, whole=True)
    x, dims, indices = _basic(self, index)
    if indices:
        _expect_something(x, dims, indices)
        return _index(x, dims, indices)
    return xp_.alias(x) if x is self else x


def setitem(self, index, value):
    value = _assigned(self, value)
    if index is False:  # nothing is chosen, and PyTorch does not look at the value
        return
    if index is True:
        index = None
    if index.__class__ is int:
        target, indices = _select(self, 0, index), None
    else:
        target, dims, indices = _basic(self, index, keep_mask=value._array.size == 1)
    if indices and _is_mask(indices[0]):
        views.inplace(target, _put_masked, value, dim=dims[0], mask=indices[0])
    elif indices:
        _index_put_(target, dims, indices, value)
    elif value._array.ndim or not target._array.ndim:
        given, value = value._array.shape, _without_leading_ones(value, target._array.ndim)
        check_expands(value, target._array.shape)
        same = given == target._array.shape
        if not same and target._array.ndim and value._array.size == target._array.size == 1:  # strides never agree then
            views.check_apart(target, (value,), "at all")
        target.copy_(value if same else value.expand(target._array.shape))  # expanded, it may be a part of the target
    else:
        target.fill_(value)


def _without_leading_ones(value, ndim):
    have = value._array.shape
    while len(have) > ndim and have[0] == 1:
        have = have[1:]
    return value if have == value._array.shape else value.reshape(have)


def _assigned(self, value) -> Tensor:
    """The value of ``self[…] = value`` as a Tensor on self's engine; numbers take self's dtype."""
    if isinstance(value, Tensor):
        return value
    is_number = isinstance(value, (int, float, complex, np.number, np.bool_))
    if not is_number:
        raise TypeError(f"can't assign a {type_name(value)} to a torch.{self.dtype.char}")
    return wrap(namespace_of(self._array).asarray(np.asarray(fill_value(value, self.dtype))))


Tensor.__getitem__, Tensor.__setitem__ = getitem, setitem


def _basic(self, index, keep_mask=False):
    """Apply the static parts of an index as views; returns the view, and the dimensions and tensors of the rest.

    Masks become the positions where they are true; with ``keep_mask`` a mask that is the only tensor stays.
    """
    if index.__class__ is Tensor and index._array.ndim:  # the commonest: nothing in it is static
        part = _part(index)
        if _consumes(part) <= self._array.ndim:
            return self, *_advanced(self, [(0, part)], keep_mask)
    parts = _parts(index)
    used = sum([1 if p.__class__ is slice else _consumes(p) for p in parts])
    if used > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim}")
    x, dim, tensors = self, 0, []
    for place, p in enumerate(parts):
        if p.__class__ is int:
            x = _select(x, dim, p, place)
        elif p.__class__ is slice:
            x = x if p.start is p.stop is p.step is None else _slice(x, dim, p, whole=False)
            dim += 1
        elif p is Ellipsis:
            dim += self._array.ndim - used
        elif p is None:
            x = expand_dims(x, axis=dim)
            dim += 1
        else:
            if not p._array.ndim and p._array.dtype.kind == "b":  # a True or False makes a dimension of its own
                x, p = expand_dims(x, axis=dim), _one_or_none(p)
            tensors.append((dim, p))
            dim += p._array.ndim if _is_mask(p) else 1
    return x, *(_advanced(x, tensors, keep_mask and len(tensors) == 1) if tensors else ([], []))


def _one_or_none(p: Tensor) -> Tensor:
    """The index into a dimension of size 1 that takes it for True, and nothing for False."""
    return wrap(p._array[None]) if _traced(p._array) else wrap(np.zeros(int(bool(p)), np.int64))


def _advanced(x, tensors, keep_mask):
    """The dimensions that index tensors stand at, and the tensors, masks as integers."""
    dims, indices = [], []
    for dim, p in tensors:
        _check_mask(p, x, dim)
        for i in [p] if keep_mask else _as_integers(p):
            dims.append(dim)
            indices.append(i)
            dim += 1
    return dims, indices


def _parts(index) -> list:
    if isinstance(index, list) and _means_tuple(index):
        index = tuple(index)
    index = index if isinstance(index, tuple) else (index,)
    return [p if p.__class__ is slice else _part(p) for p in index]


def _means_tuple(index: list) -> bool:
    """PyTorch's old rule: a short list that holds a sequence, tensor, slice, None or Ellipsis is meant as a tuple."""
    return len(index) < 32 and any(
        p is None or p is Ellipsis or isinstance(p, (slice, Tensor, list, tuple, _ndarray)) for p in index
    )


def _warn_bytes() -> None:
    warn_once("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")


def _part(p):
    if p is None or p is Ellipsis or p.__class__ is int or p.__class__ is slice:
        return p
    if isinstance(p, (bool, np.bool_)):
        return wrap(np.asarray(p))
    if isinstance(p, Tensor):
        p._sync()
        kind = p._array.dtype.kind
        if not p._array.ndim and kind in "iu" and namespace_of(p._array).is_known(p._array):
            return int(p._array) if p._array.dtype != np.uint8 else wrap(p._array != 0)  # a byte is a mask
        if p._array.dtype == np.uint8:
            _warn_bytes()
        if kind in "fcV" or p._array.dtype in _NOT_INDICES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return p
    if isinstance(p, _ndarray):
        return _part(wrap(p))
    if isinstance(p, (list, tuple, range)):
        array = np.asarray(p)
        return wrap(array.astype(np.int64) if array.dtype.kind != "b" else array)
    if hasattr(p, "__index__"):
        return operator.index(p)
    if isinstance(p, str):
        raise TypeError("new(): invalid data type 'str'")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(p).__name__})"
    )


_NOT_INDICES = {np.dtype(np.int16), np.dtype(np.int8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)}


def _traced(array) -> bool:
    return array.__class__ is not _ndarray and namespace_of(array).is_traced(array)


def _consumes(p) -> int:
    """How many dimensions of the tensor a part of the index uses up."""
    if p.__class__ is int or p.__class__ is slice:
        return 1
    if p is None or p is Ellipsis:
        return 0
    return p._array.ndim if isinstance(p, Tensor) and _is_mask(p) else 1


def _is_mask(p) -> bool:
    return p._array.dtype.kind == "b" or p._array.dtype == np.uint8


def _select(x, dim, index, place=0):
    shape = x._array.shape
    if not shape and index == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = shape[dim] if shape else 0
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return select_part(x, axis=dim, index=index if index >= 0 else index + size)


def _slice(x, dim, s: slice, whole: bool):
    """``x[s]`` along ``dim``; a slice of everything is skipped unless it is the ``whole`` index."""
    shape = x._array.shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if s.step is not None and operator.index(s.step) < 0:
        raise ValueError("step must be greater than zero")
    if not whole and s.start in (None, 0) and (s.stop is None or s.stop >= shape[dim]) and s.step in (None, 1):
        return x
    return slice_of(x, dim, s)


def _check_mask(p: Tensor, x: Tensor, dim: int) -> None:
    if not _is_mask(p):
        return
    have, want = p._array.shape, x._array.shape[dim:]
    for i, n in enumerate(have):
        if i >= len(want) or n != want[i]:
            raise IndexError(
                f"The shape of the mask {list(have)} at index {i} does not match the shape of the indexed tensor "
                f"{list(x._array.shape)} at index {dim + i}"
            )


def _as_integers(p: Tensor) -> list:
    """An index tensor as integer tensors: a mask becomes the positions where it is true."""
    if not _is_mask(p):
        return [p]
    if _traced(p._array) and not p.is_meta:
        if mode.active and mode.maps():
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                "indexing with a boolean mask."
            )
        raise ValuesNeeded(
            "indexing with a boolean mask has a result whose shape depends on the mask's values, which compiled code "
            "cannot have. Use rushlight.where(mask, x, other) or x.masked_fill(mask, value), which keep the shape."
        )
    return [wrap(i) for i in namespace_of(p._array).nonzero(p._array)]


def _index(x, dims, indices):
    indices = _beside(x, indices)
    _expect_inside(x, dims, indices)
    try:
        return index_at(x, *indices, dims=_dims(dims))
    except (IndexError, ValueError) as error:
        if 0 in _result_shape(x, dims, indices) and all(x._array.shape[d] for d in dims):
            return index_at(x, *[xp_.zeros_like(i) for i in indices], dims=_dims(dims))  # no index is looked at
        raise _index_error(error, x, dims, indices) from None


def _expect_inside(x, dims, indices) -> None:
    for d, i in zip(dims, indices):
        size = x._array.shape[d]
        expect(i._array, lambda i, size=size: (i >= -size) & (i < size))


def _beside(x, indices) -> list:
    """CPU indices moved to the tensor's device, as PyTorch allows them."""
    if x._array.__class__ is _ndarray:
        return indices
    move = namespace_of(x._array).to_device
    return [wrap(move(i._array, x.device)) if i._array.__class__ is _ndarray else i for i in indices]


def _dims(dims):
    return None if list(dims) == list(range(len(dims))) else tuple(dims)


def _index_error(error, x, dims, indices):
    """PyTorch's words for what NumPy found wrong."""
    if "broadcast" in str(error):
        shapes = ", ".join(str(list(i._array.shape)) for i in indices)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    found = re.match(r"index (-?\d+) is out of bounds for axis (\d+)", str(error))
    if not found:
        return error
    dim = int(found[2])  # PyTorch counts only the indexed dimensions here
    return IndexError(
        f"index {found[1]} is out of bounds for dimension {list(dims).index(dim)} with size {x._array.shape[dim]}"
    )


def _index_put_(target, dims, indices, value):
    """``target[indices] = value`` in place."""
    views.check_apart(target, (value,), "at all")
    try:
        _expect_something(target, dims, indices)
    except IndexError:
        views.check_writable(target)  # may have worse to say
        raise
    _check_same_dtype(target, value)
    if not _put_at_once(target, dims, indices, value):
        views.inplace(target, _put, value, dims=dims, indices=indices)


def _put_at_once(target, dims, indices, value) -> bool:
    """Write what is nothing to record, or to refuse, where it belongs; False if it is anything else."""
    own, storage = target._array, target._storage
    if mode.active or target._view is not None or value._view is not None:
        return False
    if storage is not None and storage.inference:
        return False
    for t in (target, value, *indices):
        if t.__class__ not in PLAIN or t._node is not None or t._array.__class__ is not _ndarray:
            return False
    for i in indices:
        if i._array.dtype == own.dtype or i._storage is storage is not None:
            return False  # it may be the memory that is written
    try:
        own[_placed([i._array for i in indices], _dims(dims))] = value._array
    except (IndexError, ValueError):  # found before anything was written
        return False
    views.put(target, own)
    return True


def _check_same_dtype(target, value):
    if value._array.dtype != target._array.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{_word(target)} for the destination and {_word(value)} for the source."
        )


def _put(target, value, *, dims, indices, accumulate=False):
    indices, shape = _beside(target, indices), _result_shape(target, dims, indices)
    _expect_inside(target, dims, indices)
    _expect_something(target, dims, indices)
    value = _without_leading_ones(value, len(shape))
    try:
        if value._array.shape != shape and not _is_bare_number(value):
            value = value.expand(shape)
    except RuntimeError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value._array.shape)} cannot be broadcast to indexing result "
            f"of shape {list(shape)}"
        ) from None
    try:
        return (add_at if accumulate else put_at)(target, value, *indices, dims=_dims(dims))
    except (IndexError, ValueError) as error:
        raise _index_error(error, target, dims, indices) from None


def _is_bare_number(value) -> bool:
    """Is it nothing but a number, which NumPy writes everywhere?"""
    array, is_plain = value._array, value.__class__ is Tensor and value._node is None and value._view is None
    return is_plain and array.__class__ is _ndarray and not array.ndim and not mode.active


def _expect_something(target, dims, indices) -> None:
    shape = target._array.shape
    if 0 in shape and any(not shape[d] for d in dims) and all(i._array.size for i in indices):
        raise IndexError("index is out of bounds for dimension with size 0")


def _put_masked(target, value, *, dim, mask):
    if _is_mask(mask) and mask._array.dtype.kind != "b":
        mask = mask != 0
    trailing = target._array.ndim - dim - mask._array.ndim
    (mask,) = _beside(target, [mask])
    return put_masked(target, value.reshape(()), mask.reshape((*mask._array.shape, *[1] * trailing)))


views.ONE_VALUE.update((_put, _put_masked))


def _result_shape(x, dims, indices) -> tuple:
    """The shape of ``x[indices]``."""
    try:
        part = indices[0]._array.shape
        if len(indices) > 1:
            part = np.broadcast_shapes(*[i._array.shape for i in indices])
    except ValueError as error:
        raise _index_error(error, x, dims, indices) from None
    shape = x._array.shape
    rest = [n for d, n in enumerate(shape) if d not in dims]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    return (*rest[:first], *part, *rest[first:])


def _word(t) -> str:
    return views._word(t.dtype)


# -- functions of index tuples and masks -------------------------------------------------------------------------------


def _into_shared_places(plain):
    """``index_put_`` without ``accumulate`` may write into places that elements share."""

    def method(self, indices, values, accumulate=False):
        if accumulate or not isinstance(values, Tensor) or not views.has_shared_places(self):
            return plain(self, indices, values, accumulate)
        self[tuple(slice(None) if i is None else i for i in indices)] = values
        return self

    return method


@public(inplace="apart first", around=_into_shared_places)
def index_put(input, indices, values, accumulate=False):
    """``input[indices] = values``, or ``+=`` counting repeated indices, as a copy.

    >>> rushlight.zeros(3).index_put((rushlight.tensor([0, 0]),), rushlight.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0., 0.])
    """
    check_tensor("index_put", values, "values", 2)
    if len(indices) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(indices)})")
    x, dims, indices = _basic(input, tuple(slice(None) if i is None else i for i in indices))
    _expect_something(x, dims, indices)
    _check_same_dtype(input, values)
    if dims and values._array.ndim > len(shape := _result_shape(x, dims, indices)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        )
    put = _put(x, values, dims=dims, indices=indices, accumulate=bool(accumulate))
    return put if x._array.ndim == input._array.ndim else put.reshape(input._array.shape)  # True has a dimension


@op(exact=True, x=lambda xp, g, mask: xp.spread_masked(0, mask, g))
def masked_select_(xp, x, mask):
    return xp.getitem(x, index=(mask,))


def _order(xp, mask):
    """For each element, how many true ones come before it: its place in a packed list."""
    flat = xp.reshape(mask, shape=(int(np.prod(mask.shape)),))
    return xp.reshape(xp.cumsum(xp.astype(flat, dtype=np.int64), axis=0) - 1, shape=mask.shape)


@op(
    node="MaskedScatterBackward0",
    exact=True,
    x=lambda xp, g, mask: xp.put_masked(g, 0, mask),
    src=lambda xp, g, mask, src_shape: xp.pack_masked(g, mask, shape=src_shape),
)
def spread_masked(xp, x, mask, src):
    """``x`` with the elements of ``src``, in order, wherever ``mask`` is true."""
    flat = xp.reshape(src, shape=(int(np.prod(src.shape)),))
    if not flat.shape[0]:
        return xp.asarray(xp.broadcast_to(xp.asarray(x, dtype=src.dtype), mask.shape), copy=True)
    order = xp.clip(_order(xp, mask), 0, flat.shape[0] - 1)
    return xp.where(mask, xp.getitem(flat, index=(order,)), xp.asarray(x, dtype=src.dtype))


@op(x=lambda xp, g, mask: xp.spread_masked(0, mask, g))
def pack_masked(xp, x, mask, *, shape):
    """The masked elements of ``x`` in order, in an array of ``shape`` filled up with zeros."""
    size = int(np.prod(shape))
    order = xp.clip(_order(xp, mask), 0, max(size - 1, 0))
    kept = xp.where(mask, x, xp.zeros_like(x))
    packed = (
        xp.index_add(xp.zeros((size,), dtype=x.dtype), kept, index=(order,)) if size else xp.zeros((0,), dtype=x.dtype)
    )
    return xp.reshape(packed, shape=shape)


@public
def masked_select(input, mask):
    """The elements where ``mask`` is true, as a vector."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    input, mask = _broadcast(input, mask)
    _refuse_traced(mask, "masked_select")
    return masked_select_(input, mask)


def _from_what_it_writes(plain):
    """``masked_scatter_`` may be given the memory that it writes."""

    def method(self, mask, source):
        if isinstance(source, Tensor) and isinstance(mask, Tensor) and (source is self or source._storage is not None):
            source = _as_read(self, mask, source)
        return plain(self, mask, source)

    return method


@public(inplace="reads first", around=_from_what_it_writes)
def masked_scatter(input, mask, source):
    """``input`` with the elements of ``source``, in order, wherever ``mask`` is true."""
    check_tensor("masked_scatter", source, "source", 2)
    if mask._array.dtype.kind != "b":
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {_word(mask)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{_word(input)} and {_word(source)}"
        )
    input, mask = _broadcast(input, mask)
    expect(mask._array, lambda m: m.sum() <= source._array.size)
    if namespace_of(mask._array).is_known(mask._array) and int(np.asarray(mask._array).sum()) > source._array.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return spread_masked(input, mask, source)


def _as_read(t, mask, source):
    """``source`` as PyTorch's loop reads it: if it is ``t``, elements have been written by then."""
    a, b, marks = t._array, source._array, mask._array
    if not (a.__class__ is b.__class__ is marks.__class__ is np.ndarray) or (mode.state.grad and source.requires_grad):
        return source
    apart = a.ctypes.data != b.ctypes.data or a.size != b.size or not (a.flags.c_contiguous and b.flags.c_contiguous)
    if apart or marks.dtype.kind != "b":
        return source
    try:
        marks = np.broadcast_to(marks, a.shape).reshape(-1)
    except ValueError:  # which is refused later
        return source
    origin = np.where(marks, np.cumsum(marks) - 1, np.arange(a.size))  # what each place was read from
    while not np.array_equal(origin, origin[origin]):
        origin = origin[origin]
    return wrap(b.reshape(-1)[origin].reshape(b.shape))


def _broadcast(input, mask):
    from .shape import broadcast_tensors

    if input._array.shape == mask._array.shape:
        return input, mask
    mask, input = broadcast_tensors(mask, input)
    return input, mask


def _refuse_traced(t, name):
    if t.is_meta or (mode.active and mode.maps() and _traced(t._array)):
        namespace_of(t._array).on_host(None, name)
    if _traced(t._array):
        raise ValuesNeeded(
            f"the shape of {name}'s result depends on the values of its argument, which compiled code cannot have. "
            "Keep the shape, with rushlight.where(mask, x, other) or x.masked_fill(mask, value), or call it outside "
            "compiled code."
        )


@public
def nonzero(input, *, as_tuple=False):
    """Where elements are not zero: one row of indices each, or a tuple of index vectors.

    >>> rushlight.tensor([0, 3, 4]).nonzero()
    tensor([[1],
            [2]])
    """
    _refuse_traced(input, "nonzero")
    input._sync()
    array = np.asarray(input._array)
    place = namespace_of(input._array).asarray
    if as_tuple:
        return tuple(wrap(place(i.astype(np.int64))) for i in np.nonzero(np.atleast_1d(array)))
    return wrap(place(np.argwhere(array).astype(np.int64)))


@public(out=False)
def argwhere(input):
    """Where elements are not zero, one row of indices each."""
    return nonzero(input)


@public
def nonzero_static(input, *, size, fill_value=-1):
    """``nonzero`` with ``size`` rows: cut off, or filled up."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    chosen = (input != 0).reshape(-1)
    first = chosen.logical_not().byte().argsort(stable=True)  # those that are not zero, in their order
    shape = [max(n, 1) for n in input._array.shape] or [1]
    rows = PUBLIC["stack"](unravel_index(first, shape), -1)[:size, : input._array.ndim]
    many = PUBLIC["arange"](len(rows), device=input.device) < chosen.sum()
    rows = PUBLIC["where"](many.unsqueeze(-1), rows, fill_value)
    return PUBLIC["cat"]([rows, rows.new_full((size - len(rows), rows._array.shape[1]), fill_value)])


@public(out=False)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice along ``dim``) repeated, one number of times for all or one for each.

    >>> rushlight.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _repeated_positions(input, output_size)
    if dim is None:
        input, dim = input.reshape(-1), 0
    axis = wrap_dim(dim, input._array.ndim)
    if not input._array.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if isinstance(repeats, (list, tuple)):
        repeats = wrap(np.asarray(repeats, np.int64))
    if isinstance(repeats, Tensor) and repeats._array.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    size = input._array.shape[axis]
    if isinstance(repeats, Tensor) and repeats._array.size == 1 and size != 1:
        repeats = int(repeats.item()) if not _traced(repeats._array) else repeats.reshape(1).expand(size)
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        if output_size is not None and output_size != size * repeats:
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {size * repeats} but got {output_size}"
            )
        shape = input._array.shape
        wide = input.unsqueeze(axis + 1).expand(*shape[: axis + 1], repeats, *shape[axis + 1 :])
        return wide.clone(memory_format=contiguous_format).flatten(axis, axis + 1)
    if repeats._array.size != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats._array.size} and input.size({axis}) = {size}"
        )
    return input.index_select(axis, _repeated_positions(repeats.reshape(-1), output_size if size else None))


def _has_values_below(array) -> bool:
    """Is it mapped over by ``vmap``, and can it be looked at example by example?"""
    while hasattr(array, "inner"):
        array = array.inner
    return array.__class__ is _ndarray


def _repeated_positions(repeats, output_size):
    if repeats._array.dtype.kind not in "iu":
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats._array.dtype not in (np.int32, np.int64):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{type_word(repeats.dtype)}'")
    if output_size is None and not _has_values_below(repeats._array):
        _refuse_traced(repeats, "repeat_interleave (without output_size)")
    array = repeats._array
    expect(array, lambda r: r >= 0)
    if array.__class__ is _ndarray and (array < 0).any():
        raise RuntimeError("repeats can not be negative")
    if array.__class__ is _ndarray and output_size is not None and output_size != array.sum():
        raise RuntimeError("allocated size does not match required size")
    return wrap(namespace_of(array).repeat_each(array, total=output_size))


@public(method=False, out=False)
def unravel_index(indices, shape):
    """Positions in a flattened tensor as a tuple of indices into ``shape``."""
    shape = (shape,) if is_int(shape) else tuple(int(n) for n in shape)
    if indices._array.dtype.kind not in "iu":
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    found, indices = [], indices.long()
    for n in reversed(shape):
        found.append(indices % n)
        indices = indices.div(n, rounding_mode="floor")
    return PUBLIC["stack"](found[::-1], -1).unbind(-1) if found else ()  # in one piece of memory, as PyTorch's


def _unsafe_masked_index(input, mask, indices, fill):
    """``where(mask, input[indices], fill)``, for indices that are out of range where the mask is false."""
    indices = _clamped(input, indices)
    if not input._array.size:  # nothing can be looked up
        shape = PUBLIC["broadcast_shapes"](*(i.shape for i in indices))
        return input.new_full(shape, fill).masked_fill(mask.logical_not(), fill)
    return input[tuple(indices)].masked_fill(mask.logical_not(), fill)


def _unsafe_masked_index_put_accumulate(input, mask, indices, values):
    """``input`` with ``values`` added at indices where the mask is true."""
    values = values.masked_fill(mask.logical_not(), 0)
    if not input._array.size:
        return input.clone()
    return index_put(input, _clamped(input, indices), values, accumulate=True)


def _clamped(input, indices):
    limits = input._array.shape
    for place, i in enumerate(indices):
        if not isinstance(i, Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument 2, but got {type(i).__name__}")
        if i._array.dtype.kind not in "iu":
            raise RuntimeError(f"_unsafe_masked_index found unexpected index type {type_word(i.dtype)}")
    return [i.clamp(-limits[d], limits[d] - 1) for d, i in enumerate(indices)]


PUBLIC["_unsafe_masked_index"] = _unsafe_masked_index
PUBLIC["_unsafe_masked_index_put_accumulate"] = _unsafe_masked_index_put_accumulate
