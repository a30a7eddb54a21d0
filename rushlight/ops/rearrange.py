"""Parts and rearrangements beyond plain shapes: diagonals, triangles, windows, strides, flips, repeats, padding.

Also the functional twins of views: ``x_copy`` (the view's values in memory of their own) and ``x_scatter`` (the tensor
with the viewed part replaced).
"""

from __future__ import annotations

import functools

import numpy as np

from ..autograd import views
from ..autograd.mode import intercepting
from ..autograd.op import differentiable as xp_
from ..autograd.op import op
from ..engine.numpy import namespace as numpy_engine
from ..storage import check_layout, extent, memory_of
from ..tensor import Mirror, Tensor
from . import join
from . import shape as shapes
from .common import as_number, refuse_complex_gradient
from .data import fill_value
from .dims import as_int, as_ints, is_int, numel, sizes, wrap_dim, wrap_dims
from .public import PUBLIC, of_one_tuple, public

# -- diagonals and triangles -----------------------------------------------------------------------------------------


def _put_on_diagonal(xp, x, value, offset, axis1, axis2):
    moved = xp.moveaxis(x, (axis1, axis2), (-2, -1))
    steps = np.arange(_diagonal_length(moved.shape, offset))
    index = (Ellipsis, steps + max(-offset, 0), steps + max(offset, 0))
    return xp.moveaxis(xp.index_put(moved, value, index=index), (-2, -1), (axis1, axis2))


def _diagonal_length(shape, offset) -> int:
    return max(0, min(shape[-2] - max(-offset, 0), shape[-1] - max(offset, 0)))


@op(
    view=True,
    write=lambda xp, x, value, offset, axis1, axis2: xp.put_diagonal(x, value, offset=offset, axis1=axis1, axis2=axis2),
    x=lambda xp, g, offset, axis1, axis2, x_shape: xp.embed_diagonal(
        g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2
    ),
)
def diagonal_(xp, x, *, offset=0, axis1=0, axis2=1):
    return xp.diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


@op(
    node="DiagonalScatterBackward0",
    exact=True,
    x=lambda xp, g, offset, axis1, axis2: xp.put_diagonal(g, 0, offset=offset, axis1=axis1, axis2=axis2),
    value=lambda xp, g, offset, axis1, axis2: xp.diagonal(g, offset=offset, axis1=axis1, axis2=axis2),
)
def put_diagonal(xp, x, value, *, offset, axis1, axis2):
    """``x`` with ``value`` on a diagonal."""
    return _put_on_diagonal(xp, x, value, offset, axis1, axis2)


@op(
    node="DiagEmbedBackward0",
    exact=True,
    x=lambda xp, g, offset, axis1, axis2: xp.diagonal(g, offset=offset, axis1=axis1, axis2=axis2),
)
def embed_diagonal(xp, x, *, shape, offset, axis1, axis2):
    """Zeros of ``shape`` with ``x`` on a diagonal."""
    return _put_on_diagonal(xp, xp.zeros(shape, dtype=x.dtype), x, offset, axis1, axis2)


@public(out=False)
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The elements of a diagonal of two dimensions, as a last dimension; a view.

    >>> rushlight.eye(3).diagonal(1)
    tensor([0., 0.])
    """
    shape = input._array.shape
    where = _diagonal_of(len(shape), offset, dim1, dim2)
    # All diagonals beyond the corners are empty; NumPy reads outside the array for some of them.
    where["offset"] = max(-shape[where["axis1"]], min(where["offset"], shape[where["axis2"]]))
    return diagonal_(input, **where)


def _diagonal_of(ndim, offset, dim1, dim2) -> dict:
    axis1, axis2 = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if axis1 == axis2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return {"offset": as_int(offset, "offset"), "axis1": axis1, "axis2": axis2}


@public
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension of ``input`` on a diagonal."""
    ndim = input._array.ndim + 1
    where = _diagonal_of(ndim, offset, dim1, dim2)
    size = input._array.shape[-1] + abs(offset)
    rest = iter(input._array.shape[:-1])
    shape = tuple(size if d in (where["axis1"], where["axis2"]) else next(rest) for d in range(ndim))
    if where["axis1"] > where["axis2"]:  # the two have one size, so only the diagonal's side changes
        where = {"offset": -offset, "axis1": where["axis2"], "axis2": where["axis1"]}
    return embed_diagonal(input, shape=shape, **where)


@public
def diag(input, diagonal=0):
    """A vector as a matrix's diagonal, or a matrix's diagonal as a vector."""
    if input._array.ndim == 1:
        return diag_embed(input, diagonal)
    if input._array.ndim == 2:
        return PUBLIC["diagonal_copy"](input, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")


@public
def diagflat(input, offset=0):
    """The flattened input as a matrix's diagonal."""
    return diag_embed(input.reshape(-1), offset)


@op(exact=True, x=lambda xp, g, k: xp.triu(g, k=k))
def triu_(xp, x, *, k=0):
    return xp.triu(x, k=k)


@op(exact=True, x=lambda xp, g, k: xp.tril(g, k=k))
def tril_(xp, x, *, k=0):
    return xp.tril(x, k=k)


@public(inplace="one value")
def triu(input, diagonal=0):
    """The upper triangle, zeros elsewhere."""
    _check_matrix(input, "triu")
    return triu_(input, k=as_int(diagonal, "diagonal"))


@public(inplace="one value")
def tril(input, diagonal=0):
    """The lower triangle, zeros elsewhere."""
    _check_matrix(input, "tril")
    return tril_(input, k=as_int(diagonal, "diagonal"))


def _check_matrix(input, name):
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


# -- flips, rolls, repeats -------------------------------------------------------------------------------------------


@op(exact=True, x=lambda xp, g, axis: xp.flip(g, axis=axis))
def flip_(xp, x, *, axis):
    return xp.asarray(xp.flip(x, axis=axis), copy=True)


@public(out=False)
def flip(input, *dims_, dims=None):
    """The given dimensions back to front; a copy.

    >>> rushlight.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    if not dims_ and dims is None:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    given = sizes(dims_ if dims is None else (dims,), "dims")
    axes = wrap_dims(given, input._array.ndim or 1)
    return flip_(input, axis=axes if input._array.ndim else ())


@public(out=False)
def fliplr(input):
    """Columns back to front."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public(out=False)
def flipud(input):
    """Rows back to front."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def _back(shift):
    return tuple(-n for n in shift)


@op(exact=True, x=lambda xp, g, shift, axis: xp.roll(g, shift=_back(shift), axis=axis))
def roll_(xp, x, *, shift, axis):
    return xp.roll(x, shift, axis=axis)


@public(out=False)
def roll(input, shifts, dims=()):
    """Elements moved along, those that fall off coming in again on the other side."""
    dims = () if dims is None else dims
    shifts, dims = ((v,) if is_int(v) else tuple(v) for v in (shifts, dims))
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) == len(dims) == 1 and not input._array.size:
        return xp_.clone(input)
    if not dims and len(shifts) == 1:
        flat = roll_(input.reshape(-1), shift=shifts, axis=(0,))
        return flat.reshape(input._array.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input._array.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return roll_(input, shift=shifts, axis=tuple(wrap_dim(d, input._array.ndim) for d in dims))


@op(exact=True, x=lambda xp, g, k, axes: xp.rot90(g, k=-k, axes=axes))
def rot90_(xp, x, *, k=1, axes=(0, 1)):
    return xp.asarray(xp.rot90(x, k=k, axes=axes), copy=True)


@public(out=False)
def rot90(input, k=1, dims=(0, 1)):
    """Turned by 90 degrees ``k`` times, from the first of two dimensions to the second."""
    ndim = input._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    for d in dims:
        if not -ndim <= d < ndim:
            raise RuntimeError(f"Rotation dim0 out of range, dim0 = {d}")
    return rot90_(input, k=k % 4, axes=tuple(d % ndim for d in dims))


def _sum_repeats(xp, g, x_shape, repeats):
    lead = len(repeats) - len(x_shape)
    full = (1,) * lead + tuple(x_shape)
    apart = xp.reshape(g, shape=tuple(n for pair in zip(repeats, full) for n in pair))
    return xp.sum(apart, axis=tuple(range(0, 2 * len(repeats), 2)), keepdims=False)


@op(node="RepeatBackward0", exact=True, x=_sum_repeats)
def repeat_(xp, x, *, repeats):
    return xp.tile(x, repeats)


@public(function=False)
def repeat(self, *counts, repeats=None):
    """The tensor side by side with itself, so many times along each dimension; a copy.

    >>> rushlight.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    repeats, shape = sizes(counts if repeats is None else (repeats,), "repeats"), self._array.shape
    if len(repeats) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(n < 0 for n in repeats):
        full = (1,) * (len(repeats) - len(shape)) + shape
        made = [n * r for n, r in zip(full, repeats)]
        negative = next((n for n in made if n < 0), None)
        if negative is None:  # so many times nothing
            return self.new_empty(made)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {made}")
    return repeat_(self, repeats=repeats)


@public(out=False)
def tile(input, *dims_, dims=None):
    """``repeat``, with missing leading counts taken as 1."""
    dims = sizes(dims_ if dims is None else (dims,), "dims")
    return repeat(input, (1,) * (input._array.ndim - len(dims)) + dims)


# -- windows and strides ---------------------------------------------------------------------------------------------


def _window_index(length, size, step):
    return np.arange(0, length - size + 1, step)[:, None] + np.arange(size)


@op(
    node="UnfoldBackward0",
    view=True,
    x=lambda xp, g, axis, size, step, x_shape: xp.add_windows(g, axis=axis, size=size, step=step, length=x_shape[axis]),
)
def windows(xp, x, *, axis, size, step):
    return xp.windows(x, axis=axis, size=size, step=step)


@op(x=lambda xp, g, axis, size, step: xp.windows(g, axis=axis, size=size, step=step))
def add_windows(xp, x, *, axis, size, step, length):
    """The sum of windows, each at its place: what ``windows``' gradient is."""
    parts = xp.moveaxis(x, -1, axis + 1)
    zeros = xp.zeros((*parts.shape[:axis], length, *parts.shape[axis + 2 :]), dtype=x.dtype)
    return xp.index_add(zeros, parts, index=(slice(None),) * axis + (_window_index(length, size, step),))


@public(function=False)
def unfold(self, dimension, size, step):
    """All windows of ``size`` along a dimension, each ``step`` further on, as a last dimension; a view.

    >>> rushlight.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return _unfold(self, dimension, size, step, windows)


def _unfold(self, dimension, size, step, call):
    if self._array.ndim == 0:
        wrap_dim(dimension, 0)
        if step <= 0:
            raise RuntimeError(f"step is {step} but must be > 0")
        if size < 0:
            raise RuntimeError(f"size is {size} but must be >= 0")
        if size > 1:
            raise RuntimeError(f"maximum size for tensor at dimension 0 is 1 but size is {size}")
        return shapes.slice_part(self.reshape(1), axis=0, start=0, size=size)
    axis = wrap_dim(dimension, self._array.ndim)
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > self._array.shape[axis]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {axis} is {self._array.shape[axis]} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return call(self, axis=axis, size=as_int(size, "size"), step=as_int(step, "step"))


def _positions(shape, strides, offset):
    """Which element of the storage each element of a strided view is."""
    at = np.asarray(offset)
    for n, stride in zip(shape, strides):
        at = at[..., None] + np.arange(n) * stride
    return at


@op(
    node="AsStridedBackward0",
    view=True,
    write=lambda xp, x, value, shape, strides, offset: xp.put_strided(
        x, value, shape=shape, strides=strides, offset=offset
    ),
    x=lambda xp, g, x_shape, shape, strides, offset: xp.add_strided(
        g, into=x_shape, shape=shape, strides=strides, offset=offset
    ),
)
def strided(xp, x, *, shape, strides, offset):
    return xp.strided(x, shape=shape, strides=strides, offset=offset)


@op(x=lambda xp, g, shape, strides, offset: xp.take_strided(g, shape=shape, strides=strides, offset=offset))
def add_strided(xp, x, *, into, shape, strides, offset):
    """Zeros of shape ``into`` with ``x`` added where ``strided`` would read: what its gradient is."""
    size, at = numel(into), _positions(shape, strides, offset)
    inside = (at >= 0) & (at < size)  # a part of a larger storage can be read beyond its own ends
    zeros = xp.zeros((size,), dtype=x.dtype)
    return xp.reshape(xp.index_add(zeros, xp.getitem(x, index=inside), index=(at[inside],)), shape=into)


@op(
    x=lambda xp, g, x_shape, shape, strides, offset: xp.add_strided(
        g, into=x_shape, shape=shape, strides=strides, offset=offset
    )
)
def take_strided(xp, x, *, shape, strides, offset):
    """What ``strided`` reads of ``x``, as if it lay in memory in order and zeros around it: gradients lie anyhow."""
    size, at = numel(x.shape), _positions(shape, strides, offset)
    inside = (at >= 0) & (at < size)
    if not inside.any():
        return xp.zeros(at.shape, dtype=x.dtype)
    found = xp.getitem(xp.reshape(x, shape=(size,)), index=(np.where(inside, at, 0),))
    return found if inside.all() else xp.where(inside, found, xp.zeros_like(found))


@op(
    node="AsStridedScatterBackward0",
    exact=True,
    x=lambda xp, g, shape, strides, offset: xp.put_strided(
        g,
        xp.zeros_like(xp.take_strided(g, shape=shape, strides=strides, offset=offset)),
        shape=shape,
        strides=strides,
        offset=offset,
    ),
    value=lambda xp, g, shape, strides, offset: xp.take_strided(g, shape=shape, strides=strides, offset=offset),
)
def put_strided(xp, x, value, *, shape, strides, offset):
    flat = xp.reshape(x, shape=(numel(x.shape),))
    positions = _positions(shape, strides, offset).reshape(-1)
    return xp.reshape(xp.index_put(flat, xp.reshape(value, shape=positions.shape), index=(positions,)), shape=x.shape)


@public(out=False)
def as_strided(input, size, stride, storage_offset=None):
    """A view of the tensor's storage with sizes and strides given outright."""
    base, static = _strided(input, size, stride, storage_offset)
    return strided(base, **static)


def _first_tangent(base, input) -> bool:
    return "_tangents" in input.__dict__ and "_tangents" not in base.__dict__


def _strided(input, size, stride, storage_offset):
    """The tensor whose storage ``input`` lives in, in the order of its memory, and the strided part's arguments."""
    size, stride = sizes((size,)), sizes((stride,), "stride")
    if len(size) == len(stride) and any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: " + str(list(stride))
        )
    view = input._view
    base = input if view is None or view.base is None or view.recorded is None else view.base  # not what it is cut from
    if input._view.__class__ is Mirror:
        base = input.resolve_conj().resolve_neg()
    node = input._node
    if (node is not None and (base._node is None or node.lost)) or _first_tangent(base, input):
        base = input  # the graph, or a tangent, begins at a view; or gradients are to get lost there
    offset = input.storage_offset() if storage_offset is None else as_int(storage_offset, "storage_offset")
    check_layout(size, stride, offset)
    itemsize, reach = base._array.dtype.itemsize, extent(size, stride)
    # A dimension of one element may have any stride, also one whose bytes NumPy cannot count.
    stride = tuple([1 if n == 1 and s * itemsize >= 1 << 63 else s for n, s in zip(size, stride)])
    have = memory_of(base._owner()).size if base._array.__class__ is np.ndarray else base._array.nbytes
    if reach and (offset + reach) * itemsize > have:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {(offset + reach) * itemsize} are out of bounds for storage of size {have}"
        )
    layout = views.layout(base)
    if not layout.flags.c_contiguous:
        base = shapes.transpose_(base, axes=tuple(sorted(range(layout.ndim), key=lambda d: -layout.strides[d])))
    begin = base.storage_offset() if base._array.size else 0  # of what is empty NumPy knows the storage only
    return base, {"shape": size, "strides": stride, "offset": offset - begin}


# -- padding ---------------------------------------------------------------------------------------------------------


def _unpadded(xp, g, x_shape, pad):
    for axis, (before, _) in enumerate(pad):
        if pad[axis] != (0, 0):
            g = xp.slice_part(g, axis=axis, start=before, size=x_shape[axis])
    return g


@op(node="ConstantPadNdBackward0", exact=True, x=_unpadded)
def pad_constant(xp, x, *, pad, value=0):
    """``value`` around ``x``: ``pad`` has (before, after) for each axis."""
    return xp.pad(x, pad, constant_values=xp.asarray(value).astype(x.dtype))


@public(method=False, out=False)
def constant_pad_nd(input, pad, value=0):
    """A constant around the tensor; ``pad`` counts from the last dimension, and negative numbers cut off."""
    pad, shape = as_ints(pad, "pad"), input._array.shape
    value = as_number("constant_pad_nd", "value", 3, value)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {len(shape)}dimensions."
        )
    if input._array.dtype.kind in "iu":
        fill_value(value, input.dtype)
    pairs = [(0, 0)] * (len(shape) - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2]))
    if not [n for n in pad if n < 0]:
        return pad_constant(input, pad=tuple(pairs), value=value)
    x = input
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            start, stop = max(-before, 0), shape[axis] - max(-after, 0)
            if stop + max(before, 0) + max(after, 0) < start:
                raise RuntimeError("narrow(): length must be non-negative.")
            x = shapes.slice_part(x, axis=axis, start=start, size=max(stop - start, 0))
    return pad_constant(x, pad=tuple((max(b, 0), max(a, 0)) for b, a in pairs), value=value)


# -- functional twins of views ---------------------------------------------------------------------------------------


def _copying(call, node):
    """An op like view op ``call`` whose results have memory of their own."""
    declared = call.op

    @functools.wraps(declared.forward)
    def forward(xp, *args, **static):
        out = declared.forward(xp, *args, **static)
        return tuple(xp.asarray(o, copy=True) for o in out) if isinstance(out, tuple) else xp.asarray(out, copy=True)

    def in_order(xp, *args, **static):
        out = declared.forward(xp, *args, **static)
        return tuple(np.array(o, order="C") for o in out) if isinstance(out, tuple) else np.array(out, order="C")

    forward.__name__ = declared.name + "_copy"
    numpy_engine.BODIES[forward.__name__] = in_order  # only NumPy would keep the order of the view's dimensions
    return op(node=node, exact=True, x=declared.rules["x"].function)(forward)


def _exchanged(function, original, replacement):
    """``function``, calling ``replacement(args, static)`` wherever it would call the view op ``original``."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        def handler(call, op_args, static):
            return replacement(op_args, static) if call.op is original.op else call(*op_args, **static)

        with intercepting(handler):
            return function(*args, **kwargs)

    return called


def _publish_copy(name, function, original, node=None):
    """Publish ``name``: ``function`` with its view op exchanged for one whose results have memory of their own."""
    copying = _copying(original, node or original.op.node + "_copy")
    exchanged = _exchanged(of_one_tuple(function), original, lambda args, static: copying(args[0], **static))

    @functools.wraps(function)
    def called(input, *args, **kwargs):
        result = exchanged(input, *args, **kwargs)
        return xp_.clone(result) if isinstance(result, Tensor) and result._view is not None else result

    called.__name__, called.__doc__ = name, f"``{name.removesuffix('_copy')}`` as a copy."
    public(method=False, out=False)(called)


def _names():
    f, s, j = PUBLIC, shapes, join
    return [
        ("alias_copy", xp_.alias, xp_.alias, "AliasBackward0_copy"),
        ("diagonal_copy", f["diagonal"], diagonal_, None),
        ("expand_copy", Tensor.expand, s.broadcast_to_, None),
        ("permute_copy", f["permute"], s.transpose_, None),
        ("select_copy", f["select"], s.select_part, None),
        ("slice_copy", _slice, s.slice_part, None),
        ("split_copy", f["split"], j.split_sizes, None),
        ("split_with_sizes_copy", f["split_with_sizes"], j.split_sizes, "SplitWithSizesBackward0_copy"),
        ("squeeze_copy", f["squeeze"], s.squeeze_, "SqueezeBackward0_copy"),
        ("transpose_copy", f["transpose"], s.swapaxes_, None),
        ("t_copy", f["t"], s.matrix_transpose, None),
        ("unbind_copy", f["unbind"], j.unbind_, None),
        ("unfold_copy", Tensor.unfold, windows, None),
        ("unsqueeze_copy", f["unsqueeze"], s.expand_dims, None),
        ("view_copy", f["reshape"], s.view_as_shape, None),
        ("narrow_copy", f["narrow"], s.slice_part, "NarrowCopyBackward0"),
        ("as_strided_copy", f["as_strided"], strided, None),
    ]


def _slice(input, dim=0, start=None, end=None, step=1):
    axis = wrap_dim(dim, input._array.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return shapes.slice_of(input, axis, slice(start, end, step))


for _entry in _names():
    _publish_copy(*_entry)
Tensor.narrow_copy = PUBLIC["narrow_copy"]


def _scatter(function, original, put):
    """``function(input, src, …)``: input with src in place of the part that the view would be."""

    def called(input, src, *args, **kwargs):
        def replacement(op_args, static):
            have, want = src._array.shape, original(*op_args, **static)._array.shape
            if have != want:
                raise RuntimeError(
                    f"expected src to have a size equal to the slice of self. src size = {list(have)}, slice size = "
                    f"{list(want)}"
                )
            return put(op_args[0], src, **static)

        return _exchanged(function, original, replacement)(input, *args, **kwargs)

    return called


@op(
    node="SelectScatterBackward0",
    exact=True,
    x=lambda xp, g, axis, index: xp.put_selected(g, 0, axis=axis, index=index),
    value=lambda xp, g, axis, index: xp.select_part(g, axis=axis, index=index),
)
def put_selected(xp, x, value, *, axis, index):
    """``x`` with ``value`` at ``index`` of ``axis``."""
    return xp.index_put(x, value, index=(slice(None),) * axis + (index,))


_slice_scatter = _scatter(_slice, shapes.slice_part, shapes.put_slice)
_select_scatter = _scatter(PUBLIC["select"], shapes.select_part, put_selected)
_diagonal_scatter = _scatter(diagonal, diagonal_, put_diagonal)
_as_strided_scatter = _scatter(as_strided, strided, put_strided)


@public(out=False)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """``input`` with ``src`` in place of ``input[start:end:step]`` along ``dim``; a copy."""
    result = _slice_scatter(input, src, dim, start, end, step)
    refuse_complex_gradient("slice_scatter", input, src)
    return result


@public(out=False)
def select_scatter(input, src, dim, index):
    """``input`` with ``src`` in place of ``input.select(dim, index)``; a copy."""
    result = _select_scatter(input, src, dim, index)
    refuse_complex_gradient("select_scatter", input, src)
    return result


@public(out=False)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """``input`` with ``src`` in place of a diagonal; a copy."""
    return _diagonal_scatter(input, src, offset, dim1, dim2)


@public(out=False)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """``input`` with ``src`` in place of a strided part; a copy."""
    if input._array.__class__ is not np.ndarray or input.is_contiguous():
        return _as_strided_scatter(input, src, size, stride, storage_offset)
    # Strides and offset are those of a clone, which lies in memory as the input does.
    offset = input.storage_offset() if storage_offset is None else storage_offset
    copied = input.clone()
    order = sorted(range(input.ndim), key=lambda d: -copied.stride(d))
    flat = copied.permute(order).contiguous().clone()
    return _as_strided_scatter(flat, src, size, stride, offset).permute([order.index(d) for d in range(input.ndim)])


# -- views taken in place --------------------------------------------------------------------------------------------


def _in_place_view(function, name, node):
    """``Tensor.name``: the tensor itself becomes the view that ``function`` gives."""

    def method(self, *args, **kwargs):
        return views.become(self, function, node, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place version of :meth:`{name[:-1]}`."
    setattr(Tensor, name, method)


for _name, _node in {
    "transpose": "TransposeBackward1", "swapaxes": "TransposeBackward1", "swapdims": "TransposeBackward1",
    "unsqueeze": "UnsqueezeBackward1", "as_strided": "AsStridedBackward1", "squeeze": "SqueezeBackward3",
}.items():  # fmt: skip
    _in_place_view(PUBLIC[_name], _name + "_", _node)
_in_place_view(lambda input: shapes.matrix_or_vector_t(input, "t_"), "t_", "TBackward1")
