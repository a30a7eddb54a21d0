"""The same elements in another shape or order; most are views."""

from __future__ import annotations

import numpy as np

from ..autograd import views
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..engine import accelerated
from ..engine.open_size import example, has_open
from ..errors import warn_user
from ..tensor import Mirror, Tensor, wrap
from .dims import as_int, as_ints, is_int, numel, sizes, wrap_dim, wrap_dims
from .public import public

_ndarray = np.ndarray

# -- another shape ---------------------------------------------------------------------------------------------------


@op(
    node="ViewBackward0",
    view=True,
    write=lambda xp, x, value, shape: xp.reshape(value, shape=x.shape),
    x=lambda xp, g: g,
)
def view_as_shape(xp, x, *, shape):
    return xp.reshape(x, shape=shape)


@op(node="UnsafeViewBackward0", exact=True, x=lambda xp, g: g)
def unsafe_view(xp, x, *, shape):
    return xp.reshape(x, shape=shape)


_reshape_alias = variant(view_as_shape, "ReshapeAliasBackward0")


def _reshape(x: Tensor, *, shape) -> Tensor:
    """``shape`` as a view where strides allow it, else of a copy. This is ``reshape`` in rules and composites too."""
    strides = _strides(x)
    if strides is None:
        return view_as_shape(x, shape=shape)
    if _allow(strides, shape):
        return _reshape_alias(x, shape=shape)
    return unsafe_view(xp_.clone(x), shape=shape)


xp_.reshape = _reshape


def _strides(x: Tensor) -> np.ndarray | None:
    """An array with the tensor's strides; None if it lies in plain order."""
    array = x._array
    if array.__class__ is not _ndarray:
        if x._view is None and not hasattr(array, "laid_out"):
            return None
        array = views.strides(x)
    return None if array.flags.c_contiguous else array


def _allow(strides: np.ndarray, shape) -> bool:
    """Can memory laid out like this be seen in another shape?"""
    try:
        np.reshape(strides, example(shape) if has_open(shape) else shape, copy=False)
    except ValueError:
        return False
    return True


@public(function=False)
def view(self, *shape, size=None, dtype=None):
    """The same memory in another shape, or read as another dtype.

    >>> rushlight.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if dtype is not None or (len(shape) == 1 and hasattr(shape[0], "itemsize") and not is_int(shape[0])):
        return _view_dtype(self, dtype or shape[0])
    shape = _inferred(sizes(shape) if size is None else sizes((size,)), self._array.size)
    strides = _strides(self)
    if strides is not None and not _allow(strides, shape):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return view_as_shape(self, shape=shape)


@public(out=False)
def reshape(input, *sizes_, shape=None):
    """Another shape: a view where the strides allow it, otherwise a copy.

    >>> rushlight.arange(4).reshape(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return _reshape(input, shape=_inferred(sizes(sizes_ if shape is None else (shape,)), input._array.size))


def _inferred(shape, size: int) -> tuple:
    """``shape`` with its one -1 worked out."""
    known, unknown = 1, None
    for i, n in enumerate(shape):
        if n >= 0:
            known *= n
        elif n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        else:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
    if unknown is None:
        if known == size:
            return shape
    elif known and size % known == 0:
        return shape[:unknown] + (size // known,) + shape[unknown + 1 :]
    elif known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")


@op(view=True, write=lambda xp, x, value, dtype: xp.bitcast(value, dtype=x.dtype))
def bitcast(xp, x, *, dtype):
    return xp.bitcast(x, dtype=dtype)


def _word(dtype) -> str:
    return dtype.char.removesuffix("Tensor")


def _view_dtype(x: Tensor, dtype) -> Tensor:
    have, want = x._array.dtype.itemsize, dtype.itemsize
    if x.dtype is dtype:
        return xp_.alias(x)
    if x._view.__class__ is Mirror:
        word = "conjugate" if x.is_conj() else "negative"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {word} view tensors when converting to a different dtype."
        )
    if have != want:
        if x._array.ndim == 0:
            raise RuntimeError(
                f"self.dim() cannot be 0 to view {_word(x.dtype)} as {_word(dtype)} (different element sizes)"
            )
        if views.layout(x).strides[-1] != views.layout(x).itemsize:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {_word(x.dtype)} as {_word(dtype)} (different element sizes), but "
                f"got {views.layout(x).strides[-1] // views.layout(x).itemsize}"
            )
        if x._array.shape[-1] * have % want:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {want // have} to view {_word(x.dtype)} as {_word(dtype)} "
                f"(different element sizes), but got {x._array.shape[-1]}"
            )
        if want > have and x.storage_offset() % (want // have):
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {want // have} to view {_word(x.dtype)} as {_word(dtype)} "
                f"(different element sizes), but got {x.storage_offset()}"
            )
    return bitcast(x, dtype=dtype.numpy)


@public(function=False)
def view_as(self, other):
    """``self.view(other.size())``."""
    return self.view(other.shape)


@public(function=False)
def reshape_as(self, other):
    """``self.reshape(other.size())``."""
    return reshape(self, other.shape)


@public
def flatten(input, start_dim=0, end_dim=-1):
    """The dimensions ``start_dim`` to ``end_dim`` as one.

    >>> rushlight.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    shape = input._array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end and shape:
        return input
    return _reshape(input, shape=(*shape[:start], numel(shape[start : end + 1]), *shape[end + 1 :]))


@public
def ravel(input):
    """One dimension; a view if the memory is in order."""
    return _reshape(input.contiguous(), shape=(input._array.size,))


@public
def unflatten(input, dim, sizes):
    """One dimension as several: ``unflatten(x, 1, (3, -1))``."""
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    if is_int(sizes):
        sizes = (sizes,)
    if len(sizes) == 0:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inner = _inferred(as_ints(sizes, "sizes"), shape[dim])
    except RuntimeError as error:
        if "is invalid for input" not in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        ) from None
    return input.view((*shape[:dim], *inner, *shape[dim + 1 :]))


@op(
    node="SqueezeBackward1",
    view=True,
    write=lambda xp, x, value, axis: xp.reshape(value, shape=x.shape),
    x=lambda xp, g, x_shape: xp.reshape(g, shape=x_shape),
)
def squeeze_(xp, x, *, axis=None):
    return xp.squeeze(x, axis=axis)


_squeeze_all, _squeeze_dims = variant(squeeze_, "SqueezeBackward0"), variant(squeeze_, "SqueezeBackward2")


@public
def squeeze(input, dim=None):
    """Without its dimensions of size 1, or without those of ``dim`` that are.

    >>> rushlight.zeros(2, 1, 3, 1).squeeze().shape
    torch.Size([2, 3])
    """
    shape = input._array.shape
    if dim is None:
        return _squeeze_all(input, axis=tuple([i for i, n in enumerate(shape) if n == 1]))
    axes = wrap_dims(dim, len(shape))
    call = squeeze_ if is_int(dim) else _squeeze_dims
    return call(input, axis=tuple(a for a in axes if shape and shape[a] == 1))


@op(
    node="UnsqueezeBackward0",
    view=True,
    write=lambda xp, x, value, axis: xp.reshape(value, shape=x.shape),
    x=lambda xp, g, axis: xp.squeeze(g, axis=axis),
)
def expand_dims(xp, x, *, axis):
    return xp.expand_dims(x, axis)


@public
def unsqueeze(input, dim):
    """With a dimension of size 1 put in at ``dim``.

    >>> rushlight.zeros(3).unsqueeze(-1).shape
    torch.Size([3, 1])
    """
    return expand_dims(input, axis=wrap_dim(dim, input._array.ndim + 1))


# -- another order of dimensions -------------------------------------------------------------------------------------


def _inverse(axes):
    order = [0] * len(axes)
    for i, a in enumerate(axes):
        order[a] = i
    return tuple(order)


@op(
    node="PermuteBackward0",
    view=True,
    write=lambda xp, x, value, axes: xp.transpose(value, axes=_inverse(axes)),
    x=lambda xp, g, axes: xp.transpose(g, axes=_inverse(axes)),
)
def transpose_(xp, x, *, axes):
    return xp.transpose(x, axes)


@op(
    node="TransposeBackward0",
    view=True,
    write=lambda xp, x, value, axis1, axis2: xp.swapaxes(value, axis1=axis1, axis2=axis2),
    x=lambda xp, g, axis1, axis2: xp.swapaxes(g, axis1=axis1, axis2=axis2),
)
def swapaxes_(xp, x, *, axis1, axis2):
    return xp.swapaxes(x, axis1, axis2)


@op(
    node="TBackward0",
    view=True,
    write=lambda xp, x, value: xp.matrix_transpose(value),
    x=lambda xp, g: xp.matrix_transpose(g),
)
def matrix_transpose(xp, x):
    return xp.matrix_transpose(x)


_one_dim_t = variant(xp_.alias, "TBackward0")


@public(out=False)
def permute(input, *dims_, dims=None):
    """The dimensions in another order.

    >>> rushlight.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    if not dims_ and dims is None:
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    dims = sizes(dims_ if dims is None else (dims,), "dims")
    ndim = input._array.ndim
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    axes = tuple([d if -1 < d < ndim else wrap_dim(d, ndim) for d in dims])
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return transpose_(input, axes=axes)


@public(aliases=("swapdims",))
def transpose(input, dim0, dim1):
    """Two dimensions exchanged."""
    ndim = input._array.ndim
    axis1, axis2 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    return swapaxes_(input, axis1=axis1, axis2=axis2) if ndim else xp_.alias(input)


@public
def swapaxes(input, axis0, axis1):
    """Two dimensions exchanged, under NumPy's argument names."""
    return transpose(input, axis0, axis1)


@public
def t(input):
    """A matrix transposed; fewer dimensions stay as they are."""
    return matrix_or_vector_t(input, "t")


def matrix_or_vector_t(input, name):
    if input._array.ndim > 2:
        raise RuntimeError(f"{name}() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return matrix_transpose(input) if input._array.ndim == 2 else _one_dim_t(input)


@public(aliases=("moveaxis",))
def movedim(input, source, destination):
    """Dimensions moved to other places, the rest in their old order."""
    ndim = input._array.ndim
    given = [(d,) if is_int(d) else tuple(d) for d in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(given[0])} dims) should contain the same number of dims as destination ({list(given[1])} dims)"
        )
    moved = []
    for name, dims in zip(("source", "destination"), given):
        wrapped = [wrap_dim(d, ndim) for d in dims]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
        moved.append(wrapped)
    if not ndim:
        return xp_.alias(input)
    place = dict(zip(moved[1], moved[0]))
    rest = iter(d for d in range(ndim) if d not in moved[0])
    return transpose_(input, axes=tuple(place[i] if i in place else next(rest) for i in range(ndim)))


def _warn(text):
    warn_user(text)


def _matrix_property(name, function):
    def get(self):
        return function(self)

    get.__doc__ = function.__doc__
    setattr(Tensor, name, property(get))


def _reversed_dims(self):
    """All dimensions in reverse order."""
    if self._array.ndim not in (0, 2):
        _warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return transpose_(self, axes=tuple(range(self._array.ndim))[::-1])


def _swap_last(self, name):
    if self._array.ndim < 2:
        if self._array.ndim == 0:
            _warn(f"Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases.")
            return self
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor."
        )
    return swapaxes_(self, axis1=self._array.ndim - 2, axis2=self._array.ndim - 1)


def _m_t(self):
    """The last two dimensions exchanged."""
    return _swap_last(self, "mT")


def _conjugated(swapped):
    return swapped.conj() if swapped._array.dtype.kind in "cW" else swapped


def _m_h(self):
    """The last two dimensions exchanged and conjugated."""
    return _conjugated(_swap_last(self, "mH"))


def _h(self):
    """A matrix, transposed and conjugated."""
    if self._array.ndim == 0:
        _warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
        return _conjugated(self)
    if self._array.ndim != 2:
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self._array.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if self._array.ndim > 2 else "")
        )
    return _conjugated(_swap_last(self, "H"))


for _name, _function in {"T": _reversed_dims, "mT": _m_t, "mH": _m_h, "H": _h}.items():
    _matrix_property(_name, _function)


@public
def adjoint(input):
    """The last two dimensions exchanged and conjugated."""
    return _m_h(input)


# -- repeated without copying ----------------------------------------------------------------------------------------


@op(node="ExpandBackward0", view=True, x=lambda xp, g: g)
def broadcast_to_(xp, x, *, shape):
    return xp.expanded(x, shape)


@public(function=False)
def expand(self, *sizes_, size=None, implicit=False):
    """Dimensions of size 1 (and new ones in front) made larger without copying.

    >>> rushlight.zeros(3, 1).expand(2, 3, 4).shape
    torch.Size([2, 3, 4])
    """
    shape = _expanded(self, sizes(sizes_ if size is None else (size,)))
    if self._array.__class__ is _ndarray and has_open(shape):  # a constant of the trace becomes part of it
        self = wrap(accelerated().asarray(self._array))
    return broadcast_to_(self, shape=shape)


@public
def broadcast_to(input, *sizes_, size=None):
    """``input.expand(size)``."""
    return expand(input, *sizes_, size=size)


@public(function=False)
def expand_as(self, other):
    """``self.expand(other.size())``."""
    return expand(self, other.shape)


def _expanded(t, want) -> tuple:
    """The shape that ``t.expand(want)`` has; checked from the last dimension on."""
    have = t._array.shape
    extra = len(want) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.{t.dtype.char}{{{list(have)}}}, size={list(want)}): the number of sizes provided "
            f"({len(want)}) must be greater or equal to the number of dimensions in the tensor ({len(have)})"
        )
    shape = list(want)
    for i in range(len(want) - 1, -1, -1):
        n, size = want[i], have[i - extra] if i >= extra else None
        if n == -1:
            if size is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                )
            shape[i] = size
        elif n < 0 or size not in (None, 1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({size}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(want)}.  Tensor sizes: {list(have)}"
            )
    return tuple(shape)


def check_expands(t, shape) -> None:
    """Raise PyTorch's error unless ``t`` can be expanded to ``shape``."""
    _expanded(t, shape)


@public(method=False)
def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    from ..tensor import Size

    result: list = []
    for which, shape in enumerate(shapes):
        if shape is None:  # as PyTorch has it: it says nothing
            continue
        shape = (int(shape),) if is_int(shape) else tuple(shape)
        result = [1] * (len(shape) - len(result)) + result
        for i in range(1, len(shape) + 1):
            n = shape[-i]
            if n < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({n}): ({n})")
            if result[-i] == 1:
                result[-i] = n
            elif n not in (1, result[-i]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {-i}! Mismatching argument at index {which} "
                    f"had {shape}; but expected shape should be broadcastable to {result}"
                )
    return Size(result)


@public(method=False)
def broadcast_tensors(*tensors):
    """The tensors expanded to one common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    from ..autograd.op import check_broadcast

    check_broadcast([t._array for t in tensors])
    shape = tuple(broadcast_shapes(*[t._array.shape for t in tensors]))
    return tuple(t if t._array.shape == shape else broadcast_to_(t, shape=shape) for t in tensors)


# -- one part of it --------------------------------------------------------------------------------------------------


def _at(axis, index):
    return (slice(None),) * axis + (index,)


@op(
    node="SelectBackward0",
    view=True,
    position="index",
    write=lambda xp, x, value, axis, index: xp.put_slice(
        x, xp.expand_dims(value, axis=axis), axis=axis, start=index, size=1
    ),
    x=lambda xp, g, axis, index, x_shape: xp.embed_slice(
        xp.expand_dims(g, axis=axis), axis=axis, start=index, length=x_shape[axis]
    ),
)
def select_part(xp, x, *, axis, index):
    return x[(*_at(axis, index), ...)]  # with the Ellipsis NumPy makes a view of a single element too, no scalar


@op(
    node="SliceBackward0",
    view=True,
    position="start",
    write=lambda xp, x, value, axis, start, size, step: xp.put_slice(
        x, value, axis=axis, start=start, size=size, step=step
    ),
    x=lambda xp, g, axis, start, step, x_shape: xp.embed_slice(
        g, axis=axis, start=start, step=step, length=x_shape[axis]
    ),
)
def slice_part(xp, x, *, axis, start, size, step=1):
    """``size`` elements along ``axis``, the first at ``start``, the others ``step`` apart."""
    return x[_at(axis, slice(start, start + size * step, step))]


@op(
    exact=True,
    x=lambda xp, g, x_shape, axis, start, step: xp.slice_part(g, axis=axis, start=start, size=x_shape[axis], step=step),
)
def embed_slice(xp, x, *, axis, start, length, step=1):
    """Zeros of ``length`` along ``axis`` with ``x`` put into them: what a slice's gradient is."""
    zeros = xp.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), dtype=x.dtype)
    return xp.put_slice(zeros, x, axis=axis, start=start, size=x.shape[axis], step=step)


@op(
    node="SliceScatterBackward0",
    exact=True,
    x=lambda xp, g, axis, start, size, step: xp.put_slice(g, 0, axis=axis, start=start, size=size, step=step),
    value=lambda xp, g, axis, start, size, step: xp.slice_part(g, axis=axis, start=start, size=size, step=step),
)
def put_slice(xp, x, value, *, axis, start, size, step=1):
    """``x`` with ``value`` where ``slice_part`` would look."""
    return xp.index_put(x, value, index=_at(axis, slice(start, start + size * step, step)))


def slice_of(x, dim, s: slice):
    """``x[s]`` along ``dim``, whatever the slice asks for."""
    start, stop, step = s.indices(x._array.shape[dim])
    return slice_part(x, axis=dim, start=start, size=len(range(start, stop, step)), step=step)


@public(out=False)
def select(input, dim, index):
    """The ``index``-th part along ``dim``, without that dimension."""
    return select_part(input, axis=(dim := _select_dim(input, dim)), index=_select_index(input, dim, index))


def _select_dim(input, dim) -> int:
    if input._array.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    return wrap_dim(dim, input._array.ndim)


def _select_index(input, dim, index) -> int:
    index, size = as_int(index, "index"), input._array.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input._array.shape)} at dimension {dim}"
        )
    return index % size


@public(out=False)
def narrow(input, dim, start, length):
    """``length`` entries of ``dim`` from ``start`` on."""
    if input._array.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim, size = wrap_dim(dim, input._array.ndim), input._array.shape[dim]
    if isinstance(start, Tensor) and start._array.ndim:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start, length = as_int(start, "start"), as_int(length, "length")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_part(input, axis=dim, start=start, size=length)
