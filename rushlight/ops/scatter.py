"""Reading and writing along a dimension by index tensors: gather, scatter, index_add and their kin."""

from __future__ import annotations

import numpy as np

from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..engine import expect
from ..engine.open_size import places
from ..tensor import Tensor, wrap
from .common import (
    are_below,
    bool_dtype,
    check_tensor,
    complex_dtype,
    dtype_of,
    number_of,
    refuse,
    refuse_complex_gradient,
    type_word,
)
from .data import fill_value
from .dims import numel, wrap_dim
from .public import PUBLIC, public
from .shape import slice_part

_ndarray = np.ndarray
_LONG = (np.dtype(np.int32), np.dtype(np.int64))

# -- the ops: one index for each element -----------------------------------------------------------------------------


def _grid(index, axis) -> tuple:
    """``index`` for one axis, and for the others the place that each of its elements has."""
    grid = []
    for d, n in enumerate(index.shape):
        steps = places(n).reshape([-1 if i == d else 1 for i in range(index.ndim)])
        grid.append(index if d == axis else steps)
    return tuple(grid)


@op(exact=True, x=lambda xp, g, index, axis, x_shape: xp.scatter_zeros(g, index, axis=axis, shape=x_shape))
def gather_(xp, x, index, *, axis):
    return xp.getitem(x, index=_grid(index, axis))


@op(x=lambda xp, g, index, axis: xp.gather(g, index, axis=axis))
def scatter_zeros(xp, x, index, *, axis, shape):
    """Zeros of ``shape`` with ``x`` added where ``gather`` would read: what gather's gradient is."""
    return xp.index_add(xp.zeros(shape, dtype=x.dtype), x, index=_grid(index, axis))


@op(
    exact=True,
    x=lambda xp, g, index, axis: xp.scatter(g, index, 0, axis=axis),
    src=lambda xp, g, index, axis: xp.gather(g, index, axis=axis),
)
def scatter_(xp, x, index, src, *, axis):
    return xp.index_put(x, src, index=_grid(index, axis))


_scatter_value = variant(scatter_, "ScatterBackward1")


@op(x=lambda xp, g: g, src=lambda xp, g, index, axis: xp.gather(g, index, axis=axis))
def scatter_add_(xp, x, index, src, *, axis):
    return xp.index_add(x, src, index=_grid(index, axis))


def _share(xp, x, index, src, y, axis):
    """For a maximum or minimum: which elements attained it, and how many share each result."""
    own, theirs = xp.astype(x == y, dtype=y.dtype), xp.astype(src == xp.gather(y, index, axis=axis), dtype=y.dtype)
    return own, theirs, xp.scatter_add(own, index, theirs, axis=axis)


def _one_where(xp, condition, x):
    return xp.where(condition, xp.ones_like(x), x)


def _reduce_rule_x(xp, g, x, index, src, y, axis, how):
    if how == "prod":
        # The product of all others: with a zero in x replaced by 1, the new product over the new x.
        filled = _one_where(xp, x == 0, x)
        return g * xp.conj(xp.scatter_reduce(filled, index, src, axis=axis, how=how) / filled)
    own, _, count = _share(xp, x, index, src, y, axis)
    return g * own / count


def _reduce_rule_src(xp, g, x, index, src, y, axis, how):
    if how == "prod":
        # y / src; where src is the only zero that went into y, the product of the others.
        zeros = xp.scatter_add(xp.zeros_like(x), index, xp.astype(src == 0, dtype=x.dtype), axis=axis)
        alone = (src == 0) & (xp.gather(zeros, index, axis=axis) == 1)
        others = xp.scatter_reduce(x, index, _one_where(xp, alone, src), axis=axis, how=how)
        ratio = xp.gather(y, index, axis=axis) / _one_where(xp, src == 0, src)
        return xp.gather(g, index, axis=axis) * xp.conj(xp.where(alone, xp.gather(others, index, axis=axis), ratio))
    _, theirs, count = _share(xp, x, index, src, y, axis)
    return xp.gather(g / count, index, axis=axis) * theirs


@op(x=_reduce_rule_x, src=_reduce_rule_src)
def scatter_reduce_(xp, x, index, src, *, axis, how):
    """``x`` with ``src`` worked in: multiplied (``how="prod"``), or the larger or smaller kept ("amax", "amin")."""
    return xp.index_reduce(x, src, index=_grid(index, axis), how=how)


# -- the ops: one index for each slice -------------------------------------------------------------------------------


def _at(axis, index):
    return (slice(None),) * axis + (index,)


@op(
    node="IndexSelectBackward0",
    exact=True,
    x=lambda xp, g, index, axis, x_shape: xp.add_slices(g, index, axis=axis, shape=x_shape),
)
def take_slices(xp, x, index, *, axis):
    return xp.getitem(x, index=_at(axis, index))


@op(x=lambda xp, g, index, axis: xp.take_slices(g, index, axis=axis))
def add_slices(xp, x, index, *, axis, shape):
    """Zeros of ``shape`` with slices ``x`` added at ``index``: what index_select's gradient is."""
    return xp.index_add(xp.zeros(shape, dtype=x.dtype), x, index=_at(axis, index))


@op(
    x=lambda xp, g: g,
    src=lambda xp, g, index, axis, alpha: xp.take_slices(g if alpha == 1 else g * alpha, index, axis=axis),
)
def index_add_(xp, x, index, src, *, axis, alpha=1):
    return xp.index_add(x, src if alpha == 1 else src * alpha, index=_at(axis, index))


@op(
    node="IndexCopyBackward0",
    exact=True,
    x=lambda xp, g, index, axis: xp.put_slices(g, index, 0, axis=axis),
    src=lambda xp, g, index, axis: xp.take_slices(g, index, axis=axis),
)
def put_slices(xp, x, index, src, *, axis):
    return xp.index_put(x, src, index=_at(axis, index))


@op(
    node="IndexFillBackward1",
    exact=True,
    x=lambda xp, g, index, axis: xp.fill_slices(g, index, 0, axis=axis),
    value=lambda xp, g, index, axis: xp.sum(g - xp.fill_slices(g, index, 0, axis=axis), axis=None, keepdims=False),
)
def fill_slices(xp, x, index, value, *, axis):
    return xp.index_put(x, value, index=_at(axis, index))


_fill_with_number = variant(fill_slices, "IndexFillBackward0")

# -- gather and scatter ----------------------------------------------------------------------------------------------


@public
def gather(input, dim, index, *, sparse_grad=False):
    """``out[i][j] = input[index[i][j]][j]`` (for dim 0): elements picked along a dimension.

    >>> rushlight.tensor([[1, 2], [3, 4]]).gather(1, rushlight.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    axis = wrap_dim(dim, input._array.ndim)
    _check_long(index, "gather")
    if not input._array.ndim and index._array.ndim > 1 and index._array.size:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if not input._array.ndim:
        return number_of(gather(input.reshape(1), 0, index.reshape(-1)), index._array.shape)
    if not index._array.ndim:
        return number_of(gather(input, 0, index.reshape(1)))
    input, index = _checked(input, axis, index, "Size does not match at dimension {} expected index {} to be no larger "
                            "than self {} apart from dimension {}")  # fmt: skip
    if not index._array.size:  # only its shape counts
        return _gather_nothing(input, index.long())
    return gather_(input, index, axis=axis)


def _check_long(index, name):
    if index._array.dtype not in _LONG and index._array.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def _checked(input, axis, index, message, what="input"):
    """Index and input of equal rank, with index within bounds and no larger than the input elsewhere."""
    have, want = index._array.shape, input._array.shape
    if len(have) != len(want) and max(len(have), 1) != max(len(want), 1) and index._array.size:
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")
    if index._array.size:
        for d, (a, b) in enumerate(zip(have, want)):
            if a > b and d != axis:
                raise RuntimeError(message.format(d, list(have), list(want), axis))
        check_bounds(index, want[axis] if want else 1, axis)
    return input, index


def check_bounds(index, size, axis, kind=RuntimeError, negative=False, message=None):
    """Raise if an index of an eager CPU tensor is out of range; XLA keeps them inside silently."""
    array = index._array
    if array.__class__ is _ndarray and not negative and are_below(array, size):
        return
    expect(array, lambda i: (i >= (-size if negative else 0)) & (i < size))
    if array.__class__ is not _ndarray or not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < (-size if negative else 0) or high >= size:
        bad = low if low < (-size if negative else 0) else high
        raise kind(message or f"index {bad} is out of bounds for dimension {axis} with size {size}")


_OUT_OF_RANGE = "index out of range in self"
_TOO_LARGE = "Expected index {1} to be no larger than self {2} apart from dimension {3}"


def _prepared(input, dim, index, src, name):
    """What every scatter checks: returns the axis, the index, and src cut to the index's size."""
    axis = wrap_dim(dim, input._array.ndim)
    _check_long(index, name)
    if index._array.ndim == 0 and input._array.ndim == 1:
        index = index.reshape(1)
    message = _TOO_LARGE
    if isinstance(src, Tensor):
        if src._array.dtype != input._array.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        message += f" and to be no larger size than src {list(src._array.shape)}"
    _, index = _checked(input, axis, index, message, "self")
    if isinstance(src, Tensor) and index._array.size:
        _check_dimensions(index._array, src._array)
        src = _cut(src, index._array.shape, message, input, axis)
    return axis, index, src


def _check_dimensions(index, src) -> None:
    if max(src.ndim, 1) == max(index.ndim, 1):
        return
    if 0 < src.ndim < index.ndim and all(n <= m for n, m in zip(index.shape, src.shape)):
        wrap_dim(src.ndim, src.ndim)  # says that there is no such dimension
    raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")


def _cut(src, shape, message, input, axis):
    if not src._array.ndim and shape:
        src = src.reshape((1,) * len(shape))
    if src._array.ndim and not shape:
        if not src._array.size:
            raise RuntimeError(message.format(0, list(shape), list(input._array.shape), axis))
        return src.reshape(-1)[0]
    for d, n in enumerate(shape):
        size = src._array.shape[d]
        if n > size:
            raise RuntimeError(message.format(d, list(shape), list(input._array.shape), axis))
        if n < size:
            src = slice_part(src, axis=d, start=0, size=n)
    return src


def _number(value, input):
    """A number to be written: in ``input``'s dtype, or refused."""
    if not isinstance(value, (int, float, complex)):
        return value
    number = fill_value(value, input.dtype)
    return number.item() if number.dtype.char in "fd" else number  # one of Python's needs no conversion


def _scattered(value, index, input):
    return _number(value, input) if index._array.size else 0  # where nothing is written, nobody looks at it


def _nothing_of(index, src, input):
    """An empty index and part of ``src``, with the dimensions of ``input``: nothing of it goes anywhere."""
    shape = (0,) * max(input._array.ndim, 1)
    return index.reshape(shape), src.reshape(-1)[:0].reshape(shape)


def _vectors(call, input, index, src, **static):
    """Run a scatter on 0-dim tensors as on vectors."""
    if not index._array.size and not _wants_gradient(input, src):
        return xp_.clone(input)
    if not index._array.size:
        index, src = _nothing_of(index, src, input)
    if input._array.ndim:
        return call(input, index, src, **static)
    index, src = index.reshape(-1), src.reshape(-1) if isinstance(src, Tensor) and src._array.ndim else src
    return number_of(call(input.reshape(1), index, src, **static))


@public(inplace="apart")
def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """``out[index[i][j]][j] = src[i][j]`` (for dim 0): elements placed along a dimension.

    >>> rushlight.zeros(1, 3).scatter(1, rushlight.tensor([[2]]), 1.5)
    tensor([[0.0000, 0.0000, 1.5000]])
    """
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter() received an invalid combination of arguments: src or value must be Tensor or Number")
    axis, index, src = _prepared(input, dim, index, src, "scatter")
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        if not isinstance(src, Tensor):
            src = wrap(np.full(index._array.shape, src, input._array.dtype))
        if reduce == "add":
            return _vectors(scatter_add_, input, index, src, axis=axis)
        return _vectors(scatter_reduce_, input, index, src, axis=axis, how="prod")
    if isinstance(src, Tensor):
        return _vectors(scatter_, input, index, src, axis=axis)
    return _vectors(_scatter_value, input, index, _scattered(src, index, input), axis=axis)


@public(inplace="apart")
def scatter_add(input, dim, index, src):
    """``out[index[i][j]][j] += src[i][j]`` (for dim 0)."""
    axis, index, src = _prepared(input, dim, index, src, "scatter_add")
    return _vectors(scatter_add_, input, index, src, axis=axis)


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@public(inplace="apart")
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """``scatter_add`` with a choice of "sum", "prod", "mean", "amax", "amin"."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis, index, src = _prepared(input, dim, index, src, "scatter_reduce")
    unordered = complex_dtype if reduce in ("amax", "amin") else bool_dtype if reduce == "mean" else None
    if unordered is not None and (index._array.size or reduce == "mean"):
        refuse(f"scatter_gather_tensor_cpu_reduce_{reduce}", unordered, input)
    refuse_complex_gradient("scatter_reduce", input, src)
    return _reduced(input, index, src, axis, reduce, include_self, _NODES["ScatterReduceBackward0"])


def _named(node):
    return {
        "add": variant(scatter_add_, node),
        "reduce": variant(scatter_reduce_, node),
        "mean": variant(xp_.divide, node),
    }


_NODES = {node: _named(node) for node in ("ScatterReduceBackward0", "IndexReduceBackward0")}


def _wants_gradient(input, src) -> bool:
    """Is there a node to keep ``src``, even where nothing of it goes anywhere?"""
    return isinstance(src, Tensor) and (src._node is not None or input._node is not None)


def _reduced(input, index, src, axis, reduce, include_self, calls):
    if not index._array.size and not _wants_gradient(input, src):
        return xp_.clone(input)
    if not index._array.size:
        index, src = _nothing_of(index, src, input)
    if not input._array.ndim:
        index, src = index.reshape(-1), src.reshape(-1)
        return number_of(_reduced(input.reshape(1), index, src, 0, reduce, include_self, calls))
    if not include_self:
        input = _scatter_value(input, index, _identity(reduce, input._array.dtype), axis=axis)
    if reduce in ("prod", "amax", "amin"):
        return calls["reduce"](input, index, src, axis=axis, how=reduce)
    if reduce == "sum":
        return calls["add"](input, index, src, axis=axis)
    total = calls["add"](input, index, src, axis=axis)
    count = _count(input, index, src, axis, include_self)
    return (
        calls["mean"](total, count) if total._array.dtype.kind not in "iu" else total.div(count, rounding_mode="floor")
    )


def _count(input, index, src, axis, include_self):
    """How many elements meet in each place; 1 where there is only the input's own."""
    ones = xp_.ones_like(input.detach())
    if not include_self:
        ones = _scatter_value(ones, index, 0, axis=axis)
    return scatter_add_(ones, index, xp_.ones_like(src.detach()), axis=axis)


def _identity(reduce, dtype):
    """The value that does not change a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    sign = -1 if reduce == "amax" else 1
    if dtype.kind in "fV":
        return sign * float("inf")
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max


@public
def take_along_dim(input, indices, dim=None):
    """``gather`` that broadcasts the tensor and the indices together first."""
    if indices._array.dtype not in _LONG:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got " + indices.dtype.char)
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input._array.ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._array.ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    axis = wrap_dim(dim, input._array.ndim)
    have, want = list(input._array.shape), list(indices._array.shape)
    shape = list(PUBLIC["broadcast_shapes"](*[[1 if d == axis else n for d, n in enumerate(s)] for s in (have, want)]))
    whole, picked = [*shape], [*shape]
    whole[axis : axis + 1], picked[axis : axis + 1] = have[axis : axis + 1], want[axis : axis + 1]
    check_bounds(indices, have[axis], axis, negative=True)
    return gather(input.expand(whole), axis, (indices % (have[axis] or 1)).expand(picked))


# -- index_select and its kin ----------------------------------------------------------------------------------------


@public
def index_select(input, dim, index):
    """The slices of a dimension that ``index`` names; a copy."""
    axis = wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._array.dtype not in _LONG:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if input._array.ndim > 1 and not input._array.shape[axis] and index._array.size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if not input._array.ndim and index._array.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._array.size} value(s)")
    size = input._array.shape[axis] if input._array.ndim else 1
    if axis == 1 or (input._array.ndim > 1 and not input._array.size):
        check_bounds(index, size, axis, RuntimeError, False, f"INDICES element is out of DATA bounds, axis_dim={size}")
    check_bounds(index, size, axis, IndexError, False, _OUT_OF_RANGE)
    if not input._array.ndim:
        return number_of(take_slices(input.reshape(1), index.reshape(-1)[:1], axis=0))
    return take_slices(input, index.reshape(-1), axis=axis)


@public(inplace="apart")
def index_add(input, dim, index, source, *, alpha=1):
    """``out[index[i]] += alpha * source[i]`` along a dimension."""
    check_tensor("index_add", source, "source", 3)
    axis = wrap_dim(dim, input._array.ndim)
    index, source = _slices(input, axis, index, source, "index_add_")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"index_add_(): self ({_word(input)}) and source ({_word(source)}) must have the same scalar type"
        )
    if input._array.ndim > 1:
        if not input._array.size and not _wants_gradient(input, source):
            return xp_.clone(input)
        check_bounds(index, input._array.shape[axis], axis)
    else:
        check_bounds(index, input._array.size, axis, IndexError, False, _OUT_OF_RANGE)
    if source._array.dtype.kind in "biu" and alpha != 1:
        source, alpha = source * alpha, 1
    return _vectors(index_add_, input, index, source, axis=axis, alpha=alpha)


def _word(t) -> str:
    return t.dtype.char.removesuffix("Tensor")


def _slices(input, axis, index, source, name):
    """index and source checked to have one slice for each index."""
    if index._array.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index._array.ndim} with type: {_word(index)} "
            f"and size: {list(index._array.shape)}"
        )
    if index._array.dtype not in _LONG:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {_word(index)}")
    index = index.reshape(-1)
    if axis and axis >= source._array.ndim:
        raise RuntimeError(
            f"{name}(): Indexing dim {axis} is out of bounds of the source tensor with dim {source._array.ndim}"
        )
    if input._array.ndim and not source._array.ndim and name != "index_add_":
        source = source.reshape(1)
    count = source._array.shape[axis] if source._array.ndim else 1
    if index._array.size != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({index._array.size}) should be equal to source.size(dim): ({count}), for "
            f"dim: {axis}"
        )
    have, want = ([n for d, n in enumerate(t._array.shape) if d != axis] for t in (source, input))
    same_ndim = input._array.ndim == source._array.ndim or name != "index_add_"
    if (have != want and input._array.ndim) or not same_ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input._array.shape)} source.shape = {list(source._array.shape)}"
        )
    return index, source


@public(inplace="apart first")
def index_copy(input, dim, index, source):
    """``out[index[i]] = source[i]`` along a dimension."""
    axis = wrap_dim(dim, input._array.ndim)
    _check_copied(input, axis, index, source)
    index, source = _slices(input, axis, index, source, "index_copy_")
    size = input._array.shape[axis] if input._array.ndim else 1
    check_bounds(index, size, axis, IndexError if size else RuntimeError)
    return _vectors(put_slices, input, index, source, axis=axis)


def _check_copied(input, axis, index, source) -> None:
    if input._array.ndim and source._array.ndim and input._array.ndim != source._array.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source._array.ndim}), destination dimensionality ({input._array.ndim})"
        )
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{_word(input)} and (source) {_word(source)}"
        )
    want, have = ([n for d, n in enumerate(t._array.shape) if d != axis] for t in (input, source))
    if want != have:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, want))} at dimension {axis} and source slice shape: {' '.join(map(str, have))} at "
            "dimension 0."
        )
    if index._array.ndim < 2 and source._array.ndim and index._array.size != source._array.shape[axis]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index._array.size}) should be equal to source.size(dim) "
            f"({source._array.shape[axis]})"
        )


@public(inplace="one value")
def index_fill(input, dim, index, value):
    """``out[index[i]] = value`` along a dimension."""
    axis = wrap_dim(dim, input._array.ndim)
    if index._array.dtype not in _LONG:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value._array.ndim} "
            "dimension(s)."
        )
    if dtype_of(value).is_complex and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    size = input._array.shape[axis] if input._array.ndim else 1
    if input._array.size or 0 not in input._array.shape[:axis] + input._array.shape[axis + 1 :]:
        check_bounds(index, size, axis, IndexError if size else RuntimeError, True)
    elif not input._array.size:
        index = index.reshape(-1)[:0]  # there is nothing to fill
    if isinstance(value, Tensor):
        return _vectors(fill_slices, input, index.reshape(-1), value, axis=axis)
    return _vectors(_fill_with_number, input, index.reshape(-1), _number(value, input), axis=axis)


@public(inplace="apart")
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """``index_add`` with a choice of "prod", "mean", "amax", "amin"."""
    if reduce not in _REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_tensor("index_reduce", source, "source", 3)
    axis = wrap_dim(dim, input._array.ndim)
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({type_word(input.dtype)}) and source ({type_word(source.dtype)}) must have the "
            "same scalar type"
        )
    if source._array.ndim != input._array.ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input._array.shape)} source.shape = {list(source._array.shape)}"
        )
    index, source = _slices(input, axis, index, source, "index_reduce_")
    if index._array.size:
        _check_reducible(input, reduce)
    check_bounds(index, input._array.shape[axis] if input._array.ndim else 1, axis, IndexError)
    refuse_complex_gradient("index_reduce", input, source)
    if source._array.ndim:
        index = index.reshape([-1 if d == axis else 1 for d in range(source._array.ndim)]).expand(source._array.shape)
    return _reduced(input, index, source, axis, reduce, include_self, _NODES["IndexReduceBackward0"])


def _check_reducible(input, reduce) -> None:
    if input._array.ndim < 2:
        refuse("index_func_", lambda d: d.is_complex or bool_dtype(d), input)
    elif reduce == "mean":
        refuse("div_floor_cpu", bool_dtype, input)
    elif reduce != "prod":
        refuse("minimum_cpu" if reduce == "amin" else "maximum_cpu", complex_dtype, input)


# -- by flat position ------------------------------------------------------------------------------------------------


@op(
    exact=True, x=lambda xp, g, index, x_shape: xp.add_at_zeros(_flat(xp, g), _flat(xp, index), shape=(numel(x_shape),))
)
def take_flat(xp, x, index):
    return xp.getitem(_flat(xp, x), index=(index,))


def _flat(xp, x):
    return xp.reshape(x, shape=(numel(x.shape),))


_take, _gather_nothing = variant(take_flat, "TakeBackward0"), variant(take_flat, "GatherBackward0")


@public
def take(input, index):
    """The elements at ``index`` of the flattened tensor, in the index's shape."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {_word(index)}")
    _check_flat(input, index)
    return _take(input, index)


def _check_flat(input, index):
    array, size = index._array, input._array.size
    expect(array, lambda i: (i >= -size) & (i < size))
    if array.__class__ is _ndarray and array.size:
        bad = next((int(i) for i in (array.min(), array.max()) if not -size <= i < size), None)
        if bad is not None:
            raise IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")


@op(
    node="PutBackward0",
    x=lambda xp, g, index, accumulate: g if accumulate else xp.put_flat(g, index, 0, accumulate=False),
    src=lambda xp, g, index: xp.take_flat(g, index),
)
def put_flat(xp, x, index, src, *, accumulate=False):
    place = xp.index_add if accumulate else xp.index_put
    return xp.reshape(place(_flat(xp, x), src, index=(index,)), shape=x.shape)


@public(inplace="apart", function=True)
def put(input, index, source, accumulate=False):
    """``source`` placed (or added) at positions of the flattened tensor."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {_word(index)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {_word(input)} and "
            f"source.dtype = {_word(source)}"
        )
    if source._array.size != index._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    _check_flat(input, index)
    return put_flat(input, index, source.reshape(index._array.shape), accumulate=bool(accumulate))
