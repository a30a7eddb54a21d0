"""Convolution, in any number of dimensions.

Three bilinear ops: ``conv``, its transpose in the input (which is also transposed convolution), its transpose in the
weight. The gradients of each are the other two, so every order of differentiation is here.
"""

from __future__ import annotations

import functools

from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant
from ..errors import warn_user
from ..tensor import Tensor
from .common import bool_dtype, c_name, dtype_of, refuse, type_word
from .dims import as_int, as_ints, for_dims, is_int
from .public import PUBLIC, public

_NODE = "ConvolutionBackward0"


def _per_channel(xp, g):
    """A bias's gradient: the sum over everything but channels."""
    return xp.sum(g, axis=(0, *range(2, g.ndim)), keepdims=False)


def _with_bias(xp, y, b):
    return y if b is None else xp.add(y, xp.reshape(b, shape=(1, -1, *[1] * (y.ndim - 2))))


def _one_dtype(x, w, b=None):
    if b is not None and b.dtype != x.dtype:
        raise RuntimeError(f"Input type ({c_name(x)}) and bias type ({c_name(b)}) should be the same")
    if x.dtype != w.dtype:
        raise RuntimeError(f"expected scalar type {type_word(dtype_of(x))} but found {type_word(dtype_of(w))}")


def _convolved(x, w, b=None):
    _one_dtype(x, w, b)
    if x.size:
        refuse(f"slow_conv{max(x.ndim - 2, 2)}d_cpu", bool_dtype, x)


def _transposed(x, w, b=None):
    _one_dtype(x, w, b)
    if x.size:
        refuse(f"slow_conv_transpose{max(x.ndim - 2, 2)}d_out_cpu", bool_dtype, x)


@op(
    node=_NODE,
    check=_convolved,
    x=lambda xp, g, w, x_shape, stride, padding, dilation, groups: xp.conv_input(
        g, xp.conj(w), size=tuple(x_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda xp, g, x, w_shape, stride, padding, dilation, groups: xp.conv_weight(
        xp.conj(x), g, size=tuple(w_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda xp, g: _per_channel(xp, g),
)
def conv(xp, x, w, b=None, *, stride, padding, dilation, groups):
    """x: (N, C, *size), w: (O, C / groups, *kernel); stride, padding and dilation have one entry per dimension."""
    return _with_bias(xp, xp.conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups), b)


@op(
    node=_NODE,
    check=_transposed,
    g_=lambda xp, g, w, stride, padding, dilation, groups: xp.conv(
        g, xp.conj(w), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda xp, g, g_, w_shape, stride, padding, dilation, groups: xp.conv_weight(
        g, xp.conj(g_), size=tuple(w_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda xp, g: _per_channel(xp, g),
)
def conv_input(xp, g_, w, b=None, *, size, stride, padding, dilation, groups):
    """The transpose of ``conv`` in x, for an input of spatial ``size``."""
    return _with_bias(
        xp, xp.conv_input(g_, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups), b
    )


@op(
    node=_NODE,
    x=lambda xp, g, g_, x_shape, stride, padding, dilation, groups: xp.conv_input(
        xp.conj(g_), g, size=tuple(x_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    g_=lambda xp, g, x, stride, padding, dilation, groups: xp.conv(
        xp.conj(x), g, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)
def conv_weight(xp, x, g_, *, size, stride, padding, dilation, groups):
    """The transpose of ``conv`` in w, for a kernel of spatial ``size``."""
    return xp.conv_weight(x, g_, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)


@op(derive=True)
def conv_tbc_(xp, x, w, b, *, pad):
    """A convolution over time: x is (time, batch, channels), w is (kernel, channels, outputs)."""
    x, w = xp.transpose(x, axes=(1, 2, 0)), xp.transpose(w, axes=(2, 1, 0))
    y = xp.conv(x, w, stride=(1,), padding=(pad,), dilation=(1,), groups=1)
    return xp.add(xp.lay_out(xp.transpose(y, axes=(2, 0, 1)), order=(0, 1, 2)), b)


_publish = public(method=False, out=False)


# -- PyTorch's functions -----------------------------------------------------------------------------------------------


def _conv(dims, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    name = f"conv{dims}d"
    _check_tensors(name, input, weight, bias)
    batched = _batched(name, dims, input)
    count = _spatial(weight)
    stride, dilation = _per_dim(stride, "stride", dims, count), _per_dim(dilation, "dilation", dims, count)
    _check_weight_dims(input, weight, dims)
    before = None
    if isinstance(padding, str):
        padding, before = _named_padding(padding, stride, dilation, weight._array.shape[2:])
    else:
        padding = _per_dim(padding, "padding", dims, count)
    _check_numbers(stride, padding, dilation, groups)
    x = input if batched else input.unsqueeze(0)
    _check_channels(x._array.shape, weight._array.shape, bias, groups)
    if before is not None:
        x = PUBLIC["constant_pad_nd"](x, before)
    _check_sizes(x._array.shape[2:], weight._array.shape[2:], padding, dilation)
    if max(*stride, *dilation) >> 31:  # further than any input reaches
        stride, dilation = (tuple(min(n, 1 << 31) for n in numbers) for numbers in (stride, dilation))
    if weight._array.shape[1] == 0:
        y = _of_nothing(x, weight, stride, padding, dilation)
        return y if batched else y.squeeze(0)
    y = conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return y if batched else y.squeeze(0)


def _conv_transpose(dims, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    name = f"conv_transpose{dims}d"
    _check_tensors(name, input, weight, bias)
    if isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    batched = _batched(name, dims, input)
    count = _spatial(weight)
    stride, padding = _per_dim(stride, "stride", dims, count), _per_dim(padding, "padding", dims, count)
    dilation = _per_dim(dilation, "dilation", dims, count)
    _check_weight_dims(input, weight, dims)
    extra = _per_dim(output_padding, "output_padding", dims, count)
    _check_numbers(stride, padding, dilation, groups, extra)
    x = input if batched else input.unsqueeze(0)
    shape, w_shape = x._array.shape, weight._array.shape
    _check_transposed_channels(shape, w_shape, bias, groups)
    if 0 in w_shape[2:]:
        raise RuntimeError(f"kernel size should be greater than zero, but got {_named('kernel', w_shape[2:])}")
    if 0 in shape[2:]:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(shape)}")
    if w_shape[1] == 0:
        raise RuntimeError(f"non-empty weight tensor expected, but got: {list(w_shape)}")
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(shape[2:], stride, padding, dilation, w_shape[2:], extra)
    )
    _check_output(shape[2:], size, stride, dilation, extra)
    if any(e >= s for e, s in zip(extra, stride)):
        # More than a stride: the input goes on with zeros, so that a convolution of the output has the input's size.
        pad = [n for e, s in zip(extra[::-1], stride[::-1]) for n in (0, e // s)]
        x = PUBLIC["constant_pad_nd"](x, pad)
    if bias is not None and dims < 3 and not bias.dtype.is_complex and state.casting is None:
        bias = bias.to(x.dtype)  # added after the product in PyTorch, which does not look at its dtype
    y = conv_input(x, weight, bias, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return y if batched else y.squeeze(0)


conv1d, conv2d, conv3d = map(
    _publish,
    for_dims(
        _conv, "conv{}d", doc="``weight`` (outputs, inputs / groups, *kernel) slid over the last {} dimension(s)."
    ),
)
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(
    _publish,
    for_dims(
        _conv_transpose, "conv_transpose{}d", doc="The gradient of conv{}d in its input, as a function of its own."
    ),
)


@public(method=False, out=False)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Any of ``conv1d`` to ``conv_transpose3d``; the weight says how many dimensions."""
    dims = weight._array.ndim - 2
    if transposed:
        return _conv_transpose(dims, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _conv(dims, input, weight, bias, stride, padding, dilation, groups)


@public(method=False, out=False)
def conv_tbc(input, weight, bias, pad=0):
    """conv1d on (time, batch, channels), with weights (kernel, channels, outputs)."""
    if input._array.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight._array.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias._array.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input._array.shape[2] != weight._array.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight._array.shape[2] != bias._array.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return conv_tbc_(input, weight, bias, pad=pad)


# -- what can be wrong with their arguments ----------------------------------------------------------------------------


def _check_tensors(name, input, weight, bias) -> None:
    for position, (argument, value) in enumerate((("input", input), ("weight", weight), ("bias", bias)), 1):
        if not isinstance(value, Tensor) and (value is not None or position < 3):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def _batched(name, dims, input) -> bool:
    ndim = input._array.ndim
    if ndim == dims + 2:
        return True
    if ndim != dims + 1:
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return False


def _spatial(weight) -> int:
    """How many dimensions the kernel has."""
    if weight._array.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    return weight._array.ndim - 2


def _check_weight_dims(input, weight, dims) -> None:
    ndim = weight._array.ndim
    if ndim != dims + 2:
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight {list(weight.shape)}, but got "
            f"{input._array.ndim}-dimensional input of size {list(input.shape)} instead"
        )


def _per_dim(value, name, dims, count) -> tuple:
    """``value`` for each of ``dims`` dimensions, which should be the ``count`` that the weight has."""
    if value.__class__ is tuple and len(value) == count and {*map(type, value)} == {int}:
        return value
    if is_int(value):
        value = (as_int(value, name),) * dims
    elif not isinstance(value, (tuple, list)):
        raise TypeError(f"argument '{name}' must be tuple of ints, not {type(value).__name__}")
    value = as_ints(value, name)
    if len(value) != count:
        if len(value) == 1:
            return value * count
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match the convolution "
            f"dimensions, but got {name}={list(value)}"
        )
    return value


def _named_padding(padding, stride, dilation, kernel):
    """(padding on both sides, what ``constant_pad_nd`` must add first or None)."""
    if padding == "valid":
        return (0,) * len(kernel), None
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if not any(t % 2 for t in total):
        return tuple(t // 2 for t in total), None
    _warn_uneven()
    return tuple(t // 2 for t in total), [n for t in total[::-1] for n in (0, t % 2)]


@functools.cache
def _warn_uneven() -> None:  # once, as PyTorch does
    warn_user(
        "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be "
        "created"
    )


def _check_numbers(stride, padding, dilation, groups, output_padding=()) -> None:
    if min(padding, default=0) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding, default=0) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride, default=1) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation, default=1) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_groups(w_shape, groups) -> None:
    if w_shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(w_shape)} instead"
        )
    if w_shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(w_shape)}] instead"
        )


def _check_channels(shape, w_shape, bias, groups) -> None:
    _check_groups(w_shape, groups)
    if shape[1] != w_shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w_shape)}, expected input{list(shape)} to have "
            f"{w_shape[1] * groups} channels, but got {shape[1]} channels instead"
        )
    if bias is not None and bias._array.shape != w_shape[:1]:
        raise RuntimeError(
            f"Given weight of size {list(w_shape)}, expected bias to be 1-dimensional with {w_shape[0]} elements, but "
            f"got bias of size {list(bias.shape)} instead"
        )


def _check_transposed_channels(shape, w_shape, bias, groups) -> None:
    _check_groups(w_shape, groups)
    if shape[1] != w_shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w_shape)}, expected input{list(shape)} to have {w_shape[0]} "
            f"channels, but got {shape[1]} channels instead"
        )
    if bias is not None and bias._array.shape != (w_shape[1] * groups,):
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w_shape)}, expected bias to be 1-dimensional with "
            f"{w_shape[1] * groups} elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_sizes(size, kernel, padding, dilation) -> None:
    if 0 in kernel:
        raise RuntimeError(f"kernel size should be greater than zero, but got {_named('kernel', kernel)}")
    padded = [n + 2 * p for n, p in zip(size, padding)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(n < r for n, r in zip(padded, reach)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: ({_by(reach)}). Kernel size "
            "can't be greater than actual input size"
        )


def _check_output(given, size, stride, dilation, extra) -> None:
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            + " ".join(_named(n, v) for n, v in (("output_padding", extra), ("stride", stride), ("dilation", dilation)))
        )
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Given input size per channel: ({_by(given)}). Calculated output size per channel: ({_by(size)}). Output "
            "size is too small"
        )


def _by(sizes) -> str:
    return " x ".join(map(str, sizes))


def _named(name, values) -> str:
    words = ("depth", "height", "width")[3 - len(values) :]
    return " ".join(f"{name}_{word}: {value}" for word, value in zip(words, values))


def _of_nothing(x, weight, stride, padding, dilation):
    """No input channels: PyTorch gives no output channels either."""
    size = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(x._array.shape[2:], padding, dilation, weight._array.shape[2:], stride)
    ]
    y = xp.reshape(x, shape=(x._array.shape[0], 0, *size))
    return y if weight._node is None else _with_nothing(y, weight.sum())


_with_nothing = variant(xp.add, _NODE)  # for the weight's gradient: zeros, of which there are none
