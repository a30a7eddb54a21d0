"""Several tensors to one, and one to several."""

from __future__ import annotations

from ..autograd.op import differentiable as xp_, op, variant
from ..tensor import Tensor
from .dims import as_int, is_int, wrap_dim
from .public import public
from .shape import slice_part

# -- joining ---------------------------------------------------------------------------------------------------------


def _cat_rule(xp, g, xs_shape, axis):
    parts, start = [], 0
    for shape in xs_shape:
        parts.append(xp.slice_part(g, axis=axis, start=start, stop=start + shape[axis]))
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
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    tensors = tuple(tensors)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
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
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if t._array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    # PyTorch lets an empty 1-d tensor stand among tensors of any shape; it only counts for the dtype.
    real = [t for t in tensors if t._array.shape != (0,)] or tensors[:1]
    first = real[0]._array.shape
    dim = wrap_dim(dim, len(first))
    for t in real:
        _check_cat(first, t._array.shape, dim, next(i for i, other in enumerate(tensors) if other is t))
    if len(real) < len(tensors):
        tensors = tuple(_empty_like(t, first, dim) if t._array.shape == (0,) and len(first) > 1 else t for t in tensors)
    return cat_(*tensors, axis=dim)


def _empty_like(t, shape, dim):
    return (
        t.reshape(tuple(0 if i == dim else n for i, n in enumerate(shape)))
        if 0 not in shape
        else _no_part(t, shape, dim)
    )


def _no_part(t, shape, dim):
    return t.new_empty(tuple(0 if i == dim else n for i, n in enumerate(shape)))


def _check_cat(first, shape, dim, i):
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
    return xp.put_slice(x, value, axis=axis, start=start, stop=start + sizes[output])


@op(
    node="SplitBackward0",
    view=True,
    write=_write_part,
    x=lambda xp, g, axis: xp.concatenate(g, axis=axis),
)
def split_sizes(xp, x, *, sizes, axis):
    parts, start = [], 0
    for size in sizes:
        parts.append(x[(slice(None),) * axis + (slice(start, start + size),)])
        start += size
    return tuple(parts)


@op(
    node="UnbindBackward0",
    view=True,
    write=lambda xp, x, value, axis, output: xp.put_slice(
        x, xp.expand_dims(value, axis=axis), axis=axis, start=output, stop=output + 1
    ),
    x=lambda xp, g, axis: xp.stack(g, axis=axis),
)
def unbind_(xp, x, *, axis):
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


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
        raise RuntimeError(
            f"{name} expects split_size > 0 if dimension size is not 0, but got split_size=0 and dimension size of {length}"
        )
    count = max(-(-length // size), 1) if size else 1
    return {"sizes": tuple(min(size, length - i * size) for i in range(count)), "axis": dim}


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
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={list(sizes)}"
        )
    return {"sizes": sizes, "axis": dim}


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
        return {"sizes": (0,) * chunks, "axis": dim}
    return _even(input, -(-length // chunks), dim, "chunk")


@public(out=False)
def unbind(input, dim=0):
    """The parts along ``dim``, without that dimension; views."""
    if input._array.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_(input, axis=wrap_dim(dim, input._array.ndim))
