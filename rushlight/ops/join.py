"""Several tensors to one, and one to several."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import dtypes
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..errors import warn_user
from ..storage import affordable
from ..tensor import Tensor, wrap
from .common import type_word
from .dims import as_int, as_ints, is_int, wrap_dim
from .public import PUBLIC, public
from .shape import slice_of

# -- joining ---------------------------------------------------------------------------------------------------------


def _cat_rule(xp, g, xs_shape, axis):
    parts, start = [], 0
    for shape in xs_shape:
        parts.append(xp.slice_part(g, axis=axis, start=start, size=shape[axis]))
        start += shape[axis]
    return parts


@op(node="CatBackward0", promote="common", exact=True, xs=_cat_rule)
def cat_(xp, *xs, axis):
    return xp.concatenate(xs, axis=axis)


@op(
    node="StackBackward0",
    promote="common",
    exact=True,
    xs=lambda xp, g, xs_shape, axis: [xp.select_part(g, axis=axis, index=i) for i in range(len(xs_shape))],
)
def stack_(xp, *xs, axis):
    return xp.stack(xs, axis=axis)


def _concatenate(arrays, axis=0):
    return cat_(*arrays, axis=axis)


def _stack(arrays, axis=0):
    return stack_(*arrays, axis=axis)


# In rules and composites these two take a sequence, as NumPy's do.
xp_.concatenate, xp_.stack = _concatenate, _stack


def _sequence(tensors, name):
    if tensors.__class__ is not list and (isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__")):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    tensors = tuple(tensors)
    for i, t in enumerate(tensors):
        if t.__class__ is not Tensor and not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return tensors


@public(method=False, aliases=("concat", "concatenate"))
def cat(tensors, dim=0):
    """Tensors one after the other along ``dim``.

    >>> rushlight.cat([rushlight.zeros(2, 1), rushlight.ones(2, 2)], dim=1)
    tensor([[0., 1., 1.],
            [0., 1., 1.]])
    """
    tensors = _sequence(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [t._array.shape for t in tensors]
    first = shapes[0]
    if first and first != (0,) and shapes.count(first) == len(shapes):  # there is nothing to refuse, or to leave out
        return cat_(*tensors, axis=wrap_dim(dim, len(first)))
    if () in shapes:
        raise RuntimeError(f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated")
    # PyTorch lets an empty 1-d tensor stand among tensors of any shape; it only counts for the dtype.
    real = [shape for shape in shapes if shape != (0,)] or shapes[:1]
    first = real[0]
    dim = 0 if first == (0,) else wrap_dim(dim, len(first))
    before, after = first[:dim], first[dim + 1 :]
    for i, shape in enumerate(shapes):
        if shape[:dim] != before or shape[dim + 1 :] != after or len(shape) != len(first):
            _check_cat(first, shape, dim, i)
    if len(real) < len(shapes):
        tensors = tuple(_empty_like(t, first, dim) if t._array.shape == (0,) and len(first) > 1 else t for t in tensors)
    return cat_(*tensors, axis=dim)


def _empty_like(t, shape, dim):
    return t.reshape(tuple(0 if i == dim else n for i, n in enumerate(shape)))


def _check_cat(first, shape, dim, i):
    """Say how a shape does not fit to the first."""
    if shape == (0,):
        return
    if len(first) != len(shape):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    for d, (a, b) in enumerate(zip(first, shape)):
        if a != b and d != dim:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for tensor "
                f"number {i} in the list."
            )


@public(method=False)
def stack(tensors, dim=0):
    """Tensors of one shape side by side along a new dimension.

    >>> rushlight.stack([rushlight.zeros(2), rushlight.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    tensors = _sequence(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    for i, t in enumerate(tensors):
        if t._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(t._array.shape)} at entry {i}"
            )
    return stack_(*tensors, axis=wrap_dim(dim, len(first) + 1))


# -- splitting -------------------------------------------------------------------------------------------------------


def _write_part(xp, x, value, sizes, axis, output):
    start = sum(sizes[:output])
    return xp.put_slice(x, value, axis=axis, start=start, size=sizes[output])


@op(
    node="SplitBackward0",
    view=True,
    write=_write_part,
    x=lambda xp, g, axis: xp.concatenate(g, axis=axis),
)
def split_sizes(xp, x, *, sizes, axis):
    parts, start, before = [], 0, (slice(None),) * axis
    for size in sizes:
        parts.append(x[(*before, slice(start, start + size))])
        start += size
    return tuple(parts)


@op(
    node="UnbindBackward0",
    view=True,
    write=lambda xp, x, value, axis, output: xp.put_slice(
        x, xp.expand_dims(value, axis=axis), axis=axis, start=output, size=1
    ),
    x=lambda xp, g, axis: xp.stack(g, axis=axis),
)
def unbind_(xp, x, *, axis):
    before = (slice(None),) * axis
    return tuple([x[(*before, i, Ellipsis)] for i in range(x.shape[axis])])


_split_with_sizes = variant(split_sizes, "SplitWithSizesBackward0")


@public(out=False)
def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    """Parts of the given size (the last may be smaller), or of the given sizes; views.

    >>> [part.tolist() for part in rushlight.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    size = split_size if split_size_or_sections is None else split_size_or_sections
    if not is_int(size):
        return split_with_sizes(tensor, size, dim)
    return split_sizes(tensor, **_even(tensor, as_int(size, "split_size"), dim, "split"))


def _even(tensor, size, dim, name):
    if tensor._array.ndim == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"{name} expects split_size be non-negative, but got split_size={size}")
    dim = wrap_dim(dim, tensor._array.ndim)
    length = tensor._array.shape[dim]
    if size == 0 and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    count = max(-(-length // size), 1) if size else 1
    return {"sizes": (size,) * (count - 1) + (length - (count - 1) * size,), "axis": dim}


@public(out=False)
def split_with_sizes(input, split_sizes, dim=0):
    """Parts of the given sizes; views."""
    return _split_with_sizes(input, **_given(input, split_sizes, dim))


def _given(input, sizes, dim):
    if input._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, input._array.ndim)
    sizes, length = tuple(as_int(n, "split_sizes") for n in sizes), input._array.shape[dim]
    if any(n < 0 for n in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )
    return {"sizes": sizes, "axis": dim}


_VIEW = 500  # bytes that a view takes


@public(out=False)
def chunk(input, chunks, dim=0):
    """At most ``chunks`` parts of equal size (the last may be smaller); views."""
    return split_sizes(input, **_chunks(input, chunks, dim))


def _chunks(input, chunks, dim):
    if input._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, input._array.ndim)
    length = input._array.shape[dim]
    if length == 0:
        affordable(chunks * _VIEW)
        return {"sizes": (0,) * chunks, "axis": dim}
    return _even(input, -(-length // chunks), dim, "chunk")


@public(out=False)
def unbind(input, dim=0):
    """The parts along ``dim``, without that dimension; views."""
    if input._array.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_(input, axis=wrap_dim(dim, input._array.ndim))


@public(out=False)
def tensor_split(input, indices_or_sections=None, dim=0, *, sections=None, indices=None):
    """Parts as even as can be, or cut at the given places; views."""
    if input._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = wrap_dim(dim, input._array.ndim)
    length = input._array.shape[axis]
    where = next((w for w in (indices_or_sections, sections, indices) if w is not None), None)
    if where is None or where.__class__ is bool:
        raise TypeError(
            "tensor_split(): argument 'indices_or_sections' must be int, tuple of ints or Tensor, not "
            f"{type(where).__name__}"
        )
    if isinstance(where, Tensor):
        if where.dtype is not dtypes.int64:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{type_word(where.dtype)}"
            )
        where = where.tolist()
    if is_int(where):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        affordable(where * _VIEW)
        small, larger = divmod(length, where)
        where = [i * small + min(i, larger) for i in range(1, where)]
    edges = [0, *as_ints(where, "indices"), length]
    return tuple(slice_of(input, axis, slice(a, b)) for a, b in itertools.pairwise(edges))


def _along(name, dims_needed, dim):
    def split_along(input, indices_or_sections=None, *, sections=None, indices=None):
        ndim = input._array.ndim
        where = next((w for w in (indices_or_sections, sections, indices) if w is not None), None)
        if where is None:
            raise TypeError(f"{name}() missing 1 required positional argument: 'sections'")
        if ndim < dims_needed:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {dims_needed} dimension, but got a tensor with {ndim} "
                "dimensions!"
            )
        axis = 0 if name == "hsplit" and ndim == 1 else dim
        size = input._array.shape[axis]
        if is_int(where) and (where == 0 or size % where):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {axis}, but the size of the dimension {size} is not "
                f"divisible by the split_size {where}!"
            )
        return tensor_split(input, where, axis)

    split_along.__name__ = split_along.__qualname__ = name
    split_along.__doc__ = f"``tensor_split`` along dimension {dim}."
    return public(out=False)(split_along)


hsplit, vsplit, dsplit = _along("hsplit", 1, 1), _along("vsplit", 2, 0), _along("dsplit", 3, 2)


@op(node="UnsafeSplitBackward0", exact=True, x=lambda xp, g, axis: xp.concatenate(g, axis=axis))
def split_apart(xp, x, *, sizes, axis):
    """Parts as copies, which may be written in place."""
    return tuple(xp.asarray(p, copy=True) for p in split_sizes.op.forward(xp, x, sizes=sizes, axis=axis))


_split_apart_with_sizes = variant(split_apart, "UnsafeSplitWithSizesBackward0")


@public(out=False)
def unsafe_split(tensor, split_size, dim=0):
    """``split`` whose parts are not tied to the tensor as views."""
    return split_apart(tensor, **_even(tensor, as_int(split_size, "split_size"), dim, "split"))


@public(out=False)
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """``split_with_sizes`` whose parts are not tied to the tensor as views."""
    return _split_apart_with_sizes(input, **_given(input, split_sizes, dim))


@public(out=False)
def unsafe_chunk(input, chunks, dim=0):
    """``chunk`` whose parts are not tied to the tensor as views."""
    return split_apart(input, **_chunks(input, chunks, dim))


# -- joining by named dimensions -------------------------------------------------------------------------------------


def _at_least(name, dims, widen):
    def widened(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            return tuple(widen(t) for t in tensors[0])
        return widen(tensors[0]) if len(tensors) == 1 else tuple(widen(t) for t in tensors)

    widened.__name__ = widened.__qualname__ = name
    widened.__doc__ = f"Tensors of fewer than {dims} dimensions with more of size 1."
    return public(method=False, out=False)(widened)


def _widen2(t):
    return t.reshape(1, 1) if t._array.ndim == 0 else t.unsqueeze(0) if t._array.ndim == 1 else t


def _widen3(t):
    if t._array.ndim == 0:
        return t.reshape(1, 1, 1)
    if t._array.ndim == 1:
        return t.unsqueeze(0).unsqueeze(-1)
    return t.unsqueeze(-1) if t._array.ndim == 2 else t


atleast_1d = _at_least("atleast_1d", 1, lambda t: t.reshape(1) if t._array.ndim == 0 else t)
atleast_2d = _at_least("atleast_2d", 2, _widen2)
atleast_3d = _at_least("atleast_3d", 3, _widen3)


@public(method=False)
def hstack(tensors):
    """Joined column-wise: along dimension 1, or 0 for vectors."""
    tensors = atleast_1d(_some(tensors, "hstack"))
    return cat(tensors, 0 if tensors[0]._array.ndim == 1 else 1)


@public(method=False, aliases=("row_stack",))
def vstack(tensors):
    """Joined row-wise: vectors become rows."""
    return cat(atleast_2d(_some(tensors, "vstack")), 0)


@public(method=False)
def dstack(tensors):
    """Joined along the third dimension."""
    return cat(atleast_3d(_some(tensors, "dstack")), 2)


@public(method=False)
def column_stack(tensors):
    """Joined along dimension 1, vectors as columns."""
    tensors = _some(tensors, "column_stack")
    return cat([t.reshape(-1, 1) if t._array.ndim <= 1 else t for t in tensors], 1)


def _some(tensors, name):
    tensors = _sequence(tensors, name)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


# -- combinations ----------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def meshgrid(*tensors, indexing=None):
    """Coordinate grids of vectors; ``indexing`` is "ij" (rows first) or "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
        if t._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing is None:
        warn_user("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t._array.size for t in tensors)
    grids = []
    for i, t in enumerate(tensors):
        grids.append(t.view([-1 if d == i else 1 for d in range(len(shape))]).expand(shape))
    if swap:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@public(method=False, out=False)
def cartesian_prod(*tensors):
    """All ways to take one element of each vector, as rows."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for t in tensors:
        _check_vector(t)
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


@public(out=False)
def combinations(input, r=2, with_replacement=False):
    """All ways to take ``r`` elements of a vector, in order, as rows."""
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    size = input._array.shape[0]
    affordable(math.comb(size + r - 1 if with_replacement else size, r) * r * 8)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(size), r)), dtype=np.int64).reshape(-1, r)
    return stack([input[wrap(column)] for column in rows.T], 1)


def _check_vector(t):
    if t._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")


def _blocks(xs_shape):
    """Where each matrix stands: (first row, end row, first column, end column)."""
    row = column = 0
    for shape in xs_shape:
        rows, columns = (1,) * (2 - len(shape)) + tuple(shape)
        yield row, row + rows, column, column + columns
        row, column = row + rows, column + columns


def _block_diag_rule(xp, g, xs_shape):
    parts = []
    for (top, bottom, left, right), shape in zip(_blocks(xs_shape), xs_shape):
        rows = xp.slice_part(g, axis=0, start=top, size=bottom - top)
        parts.append(xp.reshape(xp.slice_part(rows, axis=1, start=left, size=right - left), shape=shape))
    return parts


@op(promote="common", exact=True, xs=_block_diag_rule)
def block_diag_(xp, *xs):
    places = list(_blocks([x.shape for x in xs]))
    out = xp.zeros((places[-1][1], places[-1][3]), dtype=xs[0].dtype)
    for x, (top, bottom, left, right) in zip(xs, places):
        part = xp.reshape(x, shape=(bottom - top, right - left))
        out = xp.index_put(out, part, index=(slice(top, bottom), slice(left, right)))
    return out


@public(method=False, out=False)
def block_diag(*tensors):
    """A matrix with the given matrices down its diagonal, zeros elsewhere."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for i, t in enumerate(tensors):
        if t._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {t._array.ndim} dimensions"
            )
    return block_diag_(*tensors)


def _chunk_cat(tensors, dim, num_chunks):
    """Each tensor cut into ``num_chunks`` (zero-padded) parts along ``dim``; the parts of a number joined together."""
    if any(t.dtype is not tensors[0].dtype for t in tensors):
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    rows, dim = [], wrap_dim(dim, min(t._array.ndim for t in tensors))
    for t in tensors:
        shape = t._array.shape
        each = -(-shape[dim] // num_chunks)
        padding = [0, 0] * (len(shape) - dim - 1) + [0, each * num_chunks - shape[dim]]
        padded = PUBLIC["constant_pad_nd"](t, padding)
        rows.append(padded.reshape(*shape[:dim], num_chunks, -1))
    return cat(rows, dim + 1)


PUBLIC["_chunk_cat"] = _chunk_cat
