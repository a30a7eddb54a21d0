"""Pooling: one number for each window of the last dimensions.

As in PyTorch, pooling in one dimension is pooling in two with a height of one; inputs come with or without a batch.
"""

from __future__ import annotations

import functools
import inspect
import math

import numpy as np

from ... import dtypes
from ...autograd.mode import state
from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...engine import expect, namespace_of
from ...ops.common import are_below, check_tensor, dtype_of, not_floating_dtype, own, refuse, type_word
from ...ops.dims import as_int, as_ints, for_dims, is_int
from ...ops.pool import offsets_of, taps_of
from ...ops.public import PUBLIC, public
from ...ops.random import rand
from ...ops.resize import Map, stretches
from ...storage import affordable
from ...tensor import Tensor, wrap

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip

_NUMBERS = {1: "one", 2: "two", 3: "three"}
_publish = public(method=False, out=False)


def _by_dims(call, pattern):
    """``call`` under the node names that PyTorch has for two and for three dimensions."""
    return {d: variant(call, pattern.format(d)) for d in (2, 3)}


_max_pool_op = _by_dims(xp.max_pool, "MaxPool{}DWithIndicesBackward0")
_avg_pool_op = _by_dims(xp.avg_pool, "AvgPool{}DBackward0")
_adaptive_avg_op = _by_dims(xp.resample, "AdaptiveAvgPool{}DBackward0")
_adaptive_max_op = _by_dims(xp.at_positions, "AdaptiveMaxPool{}DBackward0")
_fractional_op = _by_dims(xp.at_positions, "FractionalMaxPool{}DBackward0")
_unpool_op = _by_dims(xp.unpool, "MaxUnpool{}DBackward0")


def _flat_row(function, input, *args, **kwargs):
    """A function of images for a tensor of rows; a result of several tensors is fine."""
    result = function(input.unsqueeze(-2), *args, **kwargs)
    return tuple(t.squeeze(-2) for t in result) if isinstance(result, tuple) else result.squeeze(-2)


# -- the largest -------------------------------------------------------------------------------------------------------


def _max_pool(dims, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    name = f"max_pool{dims}d"
    check_tensor(name, input)
    if dims == 1:
        kernel, stride, padding, dilation = _row_arguments(input, kernel_size, stride, padding, dilation, ceil_mode)
        if not return_indices:  # PyTorch has another kernel for that
            refuse("max_pool1d_impl", not_floating_dtype, input)
        result = _flat_row(max_pool2d, input, kernel, stride, padding, dilation, ceil_mode, return_indices)
        return result if return_indices or result._node is not None else own(result)
    kernel, stride, padding, dilation = _arguments(name, dims, kernel_size, stride, padding, dilation)
    size = _output_size(dims, input, kernel, stride, padding, dilation, ceil_mode)
    if input._array.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_word(dtype_of(input))}'")
    offsets = offsets_of(kernel, dilation, padding)
    values, which = _max_pool_op[dims](input, offsets=offsets, size=size, step=stride)
    if not return_indices:
        return values
    return values, xp.flat_positions(which, offsets=offsets, step=stride, full=input._array.shape[-dims:])


max_pool1d, max_pool2d, max_pool3d = map(
    _publish, for_dims(_max_pool, "max_pool{}d", doc="The largest element of each window of the last {} dimension(s).")
)


def _with_indices(function):
    def called(*args, **kwargs):
        return function(*args, **{**kwargs, "return_indices": True})

    called.__signature__ = inspect.signature(function)
    called.__name__ = called.__qualname__ = function.__name__ + "_with_indices"
    called.__doc__ = f"``{function.__name__}`` and where in the flattened image each element was."
    return called


max_pool1d_with_indices = _publish(_with_indices(max_pool1d))
max_pool2d_with_indices, max_pool3d_with_indices = map(_with_indices, (max_pool2d, max_pool3d))


def _max_unpool(dims, input, indices, kernel_size, stride=None, padding=0, output_size=None):
    kernel = _repeated(kernel_size, dims)
    stride, padding = kernel if stride is None else _repeated(stride, dims), _repeated(padding, dims)
    size = _unpooled_size(dims, input, kernel, stride, padding, output_size)
    refuse("max_unpool3d" if dims == 3 else "max_unpool2d", not_floating_dtype, input)
    if dims == 1:
        rows, places = input.unsqueeze(-1), indices.unsqueeze(-1)
        return _unpool(2, rows, places, (*size, 1)).squeeze(-1)
    return _unpool(dims, input, indices, size)


def _unpool(dims, input, indices, size):
    if indices._array.dtype != np.int64:
        got = f" but got: {type_word(dtype_of(indices))}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    shape = input._array.shape
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dimensions."
        )
    if shape != indices._array.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    _check_filled(f"max_unpooling{dims}d_forward_out_cpu", dims, shape)
    places = indices._array
    expect(places, lambda i: (i >= 0) & (i < math.prod(size)))
    # Values on other devices are not looked at.
    if places.__class__ is np.ndarray and not are_below(places, math.prod(size)):
        wrong = places[(places < 0) | (places >= math.prod(size))]
        volume = "x".join(map(str, size))
        raise RuntimeError(f"Found an invalid max index: {wrong[0]} (output volumes are of size {volume})")
    return _unpool_op[dims](input, indices, full=size)


def _check_filled(name, dims, shape) -> None:
    """Only the batch may be empty."""
    first = len(shape) - dims - 1
    for d in range(first, len(shape)):
        if not shape[d]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(shape)} with "
                f"dimension {d} being empty."
            )


def _unpooled_size(dims, input, kernel, stride, padding, output_size):
    given = input._array.shape[-dims:]
    if len(given) < dims or any(len(numbers) < dims for numbers in (kernel, stride, padding)):
        raise IndexError("tuple index out of range")
    if len(kernel) != dims:
        raise IndexError(f"max_unpool{dims}d(): argument 'kernel_size' must have {dims} entries, not {len(kernel)}")
    default = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(given, stride, kernel, padding))
    if output_size is None:
        return as_ints(default, "output_size")
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d, (n, s) in enumerate(zip(default, stride)):
        if not n - s < output_size[d] < n + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {n - s} and {n + s})')
    return tuple(as_int(n, "output_size") for n in output_size)


max_unpool1d, max_unpool2d, max_unpool3d = for_dims(
    _max_unpool, "max_unpool{}d", doc="What ``max_pool{0}d`` took, put back at ``indices`` among zeros."
)


# -- the average -------------------------------------------------------------------------------------------------------


def _avg_pool(
    dims, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    name = f"avg_pool{dims}d"
    check_tensor(name, input)
    if dims == 1:
        _check_row(input, name)
        kernel, padding = (1, _one(name, "kernel_size", kernel_size)), (0, _one(name, "padding", padding))
        stride = kernel if stride is None or stride == () else (1, _one(name, "stride", stride))
        return _flat_row(avg_pool2d, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
    kernel, stride, padding, dilation = _arguments(name, dims, kernel_size, stride, padding, 1)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    size = _output_size(dims, input, kernel, stride, padding, dilation, ceil_mode, average=True)
    dtype = dtype_of(input)
    if not dtype.is_floating_point and dtype.name != "int64":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_word(dtype)}'")
    if dims == 3 and dtype.itemsize < 4 and input._array.__class__ is np.ndarray and state.casting is None:
        raise NotImplementedError(f"\"avg_pool3d_out_frame\" not implemented for '{type_word(dtype)}'")
    divisor = divisor_override or _window_sizes(
        input._array.shape[-dims:], kernel, stride, padding, size, count_include_pad
    )
    return _avg_pool_op[dims](input, taps=taps_of(kernel, dilation, padding), size=size, step=stride, divisor=divisor)


@functools.lru_cache(256)
def _window_sizes(full, kernel, stride, padding, size, with_padding):
    """How many elements each window has: one number if it is the same for all, else for each axis one per window."""
    counts = []
    for n, k, s, p, count in zip(full, kernel, stride, padding, size):
        starts = [i * s - p for i in range(count)]
        ends = [min(start + k, n + p if with_padding else n) for start in starts]
        counts.append(tuple(end - (start if with_padding else max(start, 0)) for start, end in zip(starts, ends)))
    if all(c == k for axis, k in zip(counts, kernel) for c in axis):
        return math.prod(kernel)
    return tuple(counts)


avg_pool1d, avg_pool2d, avg_pool3d = for_dims(
    _avg_pool, "avg_pool{}d", doc="The mean of each window of the last {} dimension(s)."
)
_publish(avg_pool1d)


def _lp_pool(dims, input, norm_type, kernel_size, stride=None, ceil_mode=False):
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
    kernel = _expanded(kernel_size, dims)
    mean = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * xp.relu(mean.abs())).mul(math.prod(kernel)).pow(1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = for_dims(
    _lp_pool, "lp_pool{}d", doc="(Σ xᵖ)^(1/p) of each window of the last {} dimension(s)."
)


# -- windows that fit the output ---------------------------------------------------------------------------------------


def _adaptive_avg_pool(dims, input, output_size):
    name = f"adaptive_avg_pool{dims}d"
    check_tensor(name, input)
    if dims == 1:
        _check_row(input, name)
        return _flat_row(adaptive_avg_pool2d, input, (1, _one(name, "output_size", output_size)))
    size = _adaptive_size(name, dims, input, output_size)
    if len(size) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if any(n < 0 for n in size):
        listed = ", ".join(map(str, size))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{listed}}}"
        )
    if size == (1,) * dims:
        return input.mean(tuple(range(-1, -dims - 1, -1)), keepdim=True)
    _check_adaptive(name, dims, input, "")
    if not dtype_of(input).is_floating_point and ((input._array.size and 0 not in size) or dims == 3):
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_word(dtype_of(input))}'")
    full = input._array.shape[-dims:]
    maps = tuple(None if n == out else Map("area", n, out) for n, out in zip(full, size))
    return _adaptive_avg_op[dims](input, maps=maps)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = for_dims(
    _adaptive_avg_pool,
    "adaptive_avg_pool{}d",
    doc="The means of windows chosen so that the output has ``output_size``.",
)
_publish(adaptive_avg_pool1d)


def _adaptive_max_pool(dims, input, output_size, return_indices=False):
    name = f"adaptive_max_pool{dims}d"
    check_tensor(name, input)
    if dims == 1:
        _check_row(input, name)
        return _flat_row(adaptive_max_pool2d, input, (1, _one(name, "output_size", output_size)), return_indices)
    _check_adaptive(name, dims, input, ":")
    size = _adaptive_size(name, dims, input, output_size)
    if len(size) != dims:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
    refuse(name if dims == 2 else f"{name}_cpu", not_floating_dtype, input)
    if any(n < 0 for n in size):
        shape = [*input.shape[:-dims], *size]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {shape}")
    starts, reach = [], []
    for n, out in zip(input._array.shape[-dims:], size):
        first, last = stretches(n, out)
        starts.append(wrap(namespace_of(input._array).asarray(first)))
        reach.append(tuple((last - first).tolist()))
    index = xp.largest_of(input, *starts, reach=tuple(reach))
    values = _adaptive_max_op[dims](input, index, dims=dims)
    return (values, index) if return_indices else values


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = for_dims(
    _adaptive_max_pool,
    "adaptive_max_pool{}d",
    doc="The largest elements of windows chosen so that the output has ``output_size``.",
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = map(
    _with_indices, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)
# PyTorch's top-level function always returns the indices too.
PUBLIC["adaptive_max_pool1d"] = adaptive_max_pool1d_with_indices


def _fractional_max_pool(
    dims, input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    name = f"fractional_max_pool{dims}d"
    check_tensor(name, input)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    kernel = (kernel_size,) * dims if is_int(kernel_size) else as_ints(kernel_size, "kernel_size")
    if len(kernel) != dims:
        raise RuntimeError(f"{name}: kernel_size must either be a single Int or tuple of Ints")
    shape = input._array.shape
    if len(shape) <= dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{len(shape)}, {len(shape) - 1}], but got -3)"
        )
    if len(shape) > dims + 2:
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
    if output_size is None:
        ratio = output_ratio
        if not isinstance(ratio, (tuple, list)):
            if dims == 2:
                raise TypeError(f"object of type '{type(ratio).__name__}' has no len()")
            ratio = (ratio,) * dims
        if len(ratio) != dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = tuple(int(n * r) for n, r in zip(shape[-dims:], ratio))
    size = _expanded(output_size, dims)
    if len(size) != dims:
        raise RuntimeError(f"{name}: output_size must either be a single Int or tuple of Ints")
    if kernel_size.__class__ is bool:
        raise TypeError(f"{name}(): argument 'kernel_size' (position 2) must be tuple of ints, not bool")
    _check_filled(name, dims, shape)
    _check_fractional(name, dims, shape, kernel, size)
    if 0 in size:
        values = input.new_empty((*shape[:-dims], *size))
        return (values, values.to(dtypes.int64)) if return_indices else values
    batch = 1 if len(shape) == dims + 1 else shape[0]
    samples = _random_samples
    if samples is None:
        samples = rand(batch, shape[-dims - 1], dims, dtype=input.dtype, device=input.device)
    elif samples._array.shape[1] != shape[-dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    elif samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    order = reversed(range(dims)) if dims == 2 else range(dims)  # which sample serves which axis
    starts = [
        xp.random_starts(samples.select(2, s).narrow(0, 0, batch), n=n, size=out, window=k).reshape(*shape[:-dims], out)
        for s, n, out, k in zip(order, shape[-dims:], size, kernel)
    ]
    index = xp.largest_of(input, *starts, reach=kernel)
    values = _fractional_op[dims](input, index, dims=dims)
    return (values, index) if return_indices else values


def _check_fractional(name, dims, shape, kernel, size):
    words = ("time", "height", "width")[3 - dims :]
    where = "fractional_max_pool3d_out" if dims == 3 else name
    for word, n, k, out in zip(words, shape[-dims:], kernel, size):
        if k < 1:
            raise RuntimeError(f"{where}(): kernel_size must be greater than zero, but got {k}")
        if out < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {out}: {[*shape[:-dims], *size]}")
        if out + k - 1 > n or (dims == 3 and out + k - 1 >= n):
            raise RuntimeError(f"{where}(): pool {word} {k} too large relative to input {word} {n}")


fractional_max_pool2d, fractional_max_pool3d = for_dims(
    _fractional_max_pool,
    "fractional_max_pool{}d",
    (2, 3),
    "The largest elements of windows of ``kernel_size`` that begin at random places, evenly on average.",
)
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = map(
    _with_indices, (fractional_max_pool2d, fractional_max_pool3d)
)


# -- arguments ---------------------------------------------------------------------------------------------------------


def _expanded(value, dims) -> tuple:
    values = (as_int(value, "size"),) if is_int(value) else as_ints(value, "size")
    if any(v.__class__ is int and v >> 31 > 0 for v in values):
        raise RuntimeError("value cannot be converted to type int without overflow")
    return values * dims if len(values) == 1 else values


def _repeated(value, dims) -> tuple:
    """One number for each dimension, as it is: ``max_unpool`` only reckons with them, in Python."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


def _one(name, argument, value) -> int:
    values = (value,) if is_int(value) else tuple(value)
    if len(values) != 1:
        raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(values)})")
    return as_int(values[0], argument)


def _arguments(name, dims, kernel_size, stride, padding, dilation):
    """kernel, stride, padding and dilation with an entry for each dimension, and no nonsense among them."""
    kernel = _expanded(kernel_size, dims)
    stride = kernel if stride is None or stride == () or stride == [] else _expanded(stride, dims)
    padding, dilation = _expanded(padding, dims), _expanded(dilation, dims)
    word = _NUMBERS[dims]
    for argument, values, form in (
        ("kernel_size", kernel, "either be"),
        ("stride", stride, "either be omitted,"),
        ("padding", padding, "either be"),
        ("dilation", dilation, "be either"),
    ):
        if len(values) != dims:
            raise RuntimeError(f"{name}: {argument} must {form} a single int, or a tuple of {word} ints")
    _check_arguments(kernel, stride, padding, dilation)
    return kernel, stride, padding, dilation


@functools.lru_cache(256)
def _check_arguments(kernel, stride, padding, dilation) -> None:
    letters = ("T", "H", "W")[3 - len(kernel) :]
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    for text, short, values in (
        ("kernel size", "k{}", kernel),
        ("stride", "d{}", stride),
        ("dilation", "dilation{}", dilation),
    ):
        if min(values) <= 0:
            got = " ".join(f"{short.format(a)}: {v}" for a, v in zip(letters, values))
            raise RuntimeError(f"{text} should be greater than zero, but got {got}")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > k // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )


def _row_arguments(input, kernel_size, stride, padding, dilation, ceil_mode):
    """What ``max_pool1d`` makes of its arguments; it has words of its own for what is wrong with them."""
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )
    given = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    if stride is None or stride == () or stride == []:
        given["stride"] = kernel_size
    found = {}
    for name, value in given.items():
        values = (value,) if is_int(value) else tuple(value)
        if len(values) != 1:
            raise RuntimeError(
                f"max_pool1d() {name} must be an int, list of ints or tuple of ints of size 1 but got size "
                f"{len(values)}"
            )
        found[name] = as_int(values[0], name)
    for name in ("kernel_size", "stride", "dilation"):
        if found[name] <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {found[name]}")
    k, s, p, d = found.values()
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    size = _windows(shape[-1], k, s, p, d, ceil_mode)
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")
    return (1, k), (1, s), (0, p), (1, d)


def _windows(n, k, s, p, d, ceil_mode) -> int:
    """How many windows fit."""
    room = n + 2 * p - d * (k - 1) - 1
    count = (-(-room // s) if ceil_mode else room // s) + 1
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def _output_size(dims, input, kernel, stride, padding, dilation, ceil_mode, average=False) -> tuple:
    shape = input._array.shape
    if len(shape) not in (dims + 1, dims + 2):
        if average and dims == 2 and len(shape) < 3:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{len(shape)}, {len(shape) - 1}], but got -3)"
            )
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    if 0 in shape[-dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )
    full = shape[-dims:]
    if average and dims == 3 and any(n + 2 * p < k for n, k, p in zip(full, kernel, padding)):
        sizes, kernels = (" ".join(f"{t}{a}: {v}" for a, v in zip("THW", vs)) for t, vs in (("", full), ("k", kernel)))
        raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({kernels})")
    size = tuple(map(_windows, full, kernel, stride, padding, dilation, [ceil_mode] * dims))
    if min(size) < 1:
        given, made = ("x".join(map(str, (shape[-dims - 1], *s))) for s in (full, size))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small")
    return size


def _check_row(input, name) -> None:
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


def _adaptive_size(name, dims, input, output_size) -> tuple:
    """``output_size`` for each dimension; None stands for the input's own size."""
    shape = input._array.shape
    if isinstance(output_size, Tensor) or is_int(output_size):
        size = (as_int(output_size, "output_size"),) * dims
    elif len(output_size) != dims:
        return tuple(output_size)
    else:
        size = tuple(
            n if s is None else int(s) if i and s.__class__ is bool else as_int(s, "output_size")
            for i, (s, n) in enumerate(zip(output_size, shape[-dims:]))
        )
    affordable(math.prod(max(n, 0) for n in size) * input._array.dtype.itemsize)
    return size


def _check_adaptive(name, dims, input, colon) -> None:
    shape = input._array.shape
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
    for d in range(1, len(shape)):
        if shape[d] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )
