"""Normalization."""

from __future__ import annotations

import math

from ... import dtypes
from ...autograd import mode
from ...autograd.mode import state, without_grad
from ...autograd.op import differentiable as xp
from ...autograd.views import check_writable, put
from ...layout import channels_last, channels_last_3d
from ...ops import norm as _ops
from ...ops.common import check_tensor, refuse, type_word
from ...ops.kinds import checked
from ...ops.public import PUBLIC
from ...storage import affordable
from ...tensor import Tensor

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


# -- per channel -------------------------------------------------------------------------------------------------------


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel (dimension 1) normalized with the batch's mean and variance (``training``) or the running ones.

    In training the running ones, where given, move by ``momentum`` towards the batch's.
    """
    if training and input._array.size and _values_per_channel(input) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    if not input._array.size:
        return _of_nothing(input, weight, bias)
    _check_channels(input, running_mean, running_var, weight, bias, training)
    if not training:
        return _ops_by(input, weight, bias, running_mean, running_var, eps)
    return _batch_norm_training(input, weight, bias, running_mean, running_var, momentum, eps)[0]


def _of_nothing(input, weight, bias):
    """What PyTorch makes of a batch without elements: the parameters are in the graph, and get zeros."""
    y = input.clone()
    y = y if weight is None else y * weight[0]
    return y if bias is None else y + bias[0]


def _values_per_channel(input) -> int:
    shape = input._array.shape
    return shape[0] * math.prod(shape[2:])


def _ops_by(input, weight, bias, mean, variance, eps):
    affine = _ops.channel_first(input.shape)
    return xp.normalized_by(input, weight, bias, mean, variance, affine=affine, eps=eps)


def _batch_norm_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """(y, mean, 1 / standard deviation), the running statistics updated."""
    _check_both(running_mean, running_var)
    y, mean, scale, variance = _ops.batch_norm_stats(input, weight, bias, eps)
    _follow(running_mean, running_var, mean, variance, momentum, _values_per_channel(input))
    return y, mean, scale


def _check_both(running_mean, running_var):
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def _follow(running_mean, running_var, mean, variance, momentum, size):
    """Move the running statistics, where there are any, towards those of a batch of ``size`` values a channel."""
    if running_mean is not None and size:
        if mode.active and any(one.holds(mean._array) and not one.holds(running_mean._array) for one in mode.maps()):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
                "in place, were not batched.\nIf you are using a module and do not need eval mode, please set "
                "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, "
                "please see the functorch website for resources on how to patch your module to work with vmap"
            )
        without_grad(_write, running_mean, running_var, mean, variance, momentum, size / max(size - 1, 1))


def _write(running_mean, running_var, mean, variance, momentum, scale):
    by = momentum if isinstance(momentum, Tensor) else float(momentum)  # a tensor: the plain average of all batches
    new_mean, new_var = xp.followed(running_mean, running_var, mean, variance, by, scale=scale)
    for running, new in ((running_mean, new_mean), (running_var, new_var)):
        check_writable(running)
        array = new._array
        put(running, array if array.dtype == running._array.dtype else array.astype(running._array.dtype))


def _check_channels(input, running_mean, running_var, weight, bias, training):
    channels = input._array.shape[1] if input.ndim > 1 else 0
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, t in named:
        if t is None:
            if not training and name.startswith("running"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif t._array.shape == (channels,):
            continue
        elif t.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")
        elif t.ndim != 1 and name.startswith("running"):
            raise RuntimeError(f"{name} must have one dimension, for the channels, but has the shape {list(t.shape)}")
    if (
        training
        and input._array.dtype.kind in "biu"
        and not (_in_one_piece(input) or [t for _, t in named if t is not None])
    ):
        input.mean()  # has the error: PyTorch takes statistics of what lies anyhow by this way
    if input.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim, 1) - 1}], "
            "but got 1)"
        )
    if input._array.dtype.kind != "f":  # or of half precision
        refuse("batch_norm", lambda d: not d.is_floating_point, input)
    _check_dtypes(input, weight, bias, running_mean, running_var)


def _in_one_piece(input) -> bool:
    """Does it lie in plain order, or channels last?"""
    last = {4: channels_last, 5: channels_last_3d}.get(input.ndim)
    return input.is_contiguous() or (last is not None and input.is_contiguous(memory_format=last))


def _check_dtypes(input, *parameters):
    """All of one dtype; only of half precision the parameters may be float32."""
    plain = input._array.dtype
    if not [p for p in parameters if p is not None and p._array.dtype is not plain] or state.casting:
        return
    given = [p.dtype for p in parameters if p is not None]
    if given[0] is input.dtype:
        for other in given:
            if other is not input.dtype:
                raise RuntimeError(f"expected scalar type {type_word(input.dtype)} but found {type_word(other)}")
    elif any(d is not dtypes.float32 for d in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    elif input.dtype not in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Each channel of each sample normalized on its own."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        _check_channels(input, running_mean, running_var, weight, bias, training=False)
        return _ops_by(input, weight, bias, running_mean, running_var, eps)
    size = math.prod(input.shape[2:])
    if size == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, t in named:
        if t is not None and t.numel() != input.shape[1]:
            n = input.shape[0]
            raise RuntimeError(f"{name} should contain {n * input.shape[1]} elements not {n * t.numel()}")
        if t is not None and t.ndim > 1:
            raise RuntimeError(f"{name} must have one dimension, for the channels, but has the shape {list(t.shape)}")
    if not input.numel() and not input.dtype.is_floating_point:
        return input.clone()
    refuse("batch_norm", lambda d: not d.is_floating_point, input)
    _check_dtypes(input, weight, bias)
    _check_both(running_mean, running_var)
    if running_var is not None and not running_var.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type {type_word(input.dtype)} but found {type_word(running_var.dtype)}")
    if not input.shape[0] and weight is not None:
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    y, mean, _, variance = _ops.instance_norm_stats(input, weight, bias, eps)
    if running_mean is not None:
        _follow(running_mean, running_var, mean.detach().mean(0), variance.detach().mean(0), momentum, size)
    return y


# -- per sample --------------------------------------------------------------------------------------------------------


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """The last dimensions, of shape ``normalized_shape``, normalized together.

    >>> F.layer_norm(rushlight.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    check_tensor("layer_norm", input)
    normalized_shape = _checked_shape("layer_norm", input, normalized_shape, weight, bias)
    _check_dtypes(input, weight, bias)
    if input._array.dtype.kind != "f":
        refuse("LayerNormKernelImpl", lambda d: not d.is_floating_point, input)
    return _ops.layer_norm_stats(input, normalized_shape, weight, bias, eps)[0]


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """The last dimensions, of shape ``normalized_shape``, divided by the root of their mean square."""
    check_tensor("rms_norm", input)
    normalized_shape = _checked_shape("rms_norm", input, normalized_shape, weight, None)
    refuse("rms_norm", lambda d: not (d.is_floating_point or d.is_complex), input)
    if eps is None:
        eps = dtypes.finfo(dtypes.float32 if input.dtype.itemsize < 4 else input.dtype).eps
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    result = xp.rms_normalized(input, weight, axes=axes, eps=eps)
    return result if result.dtype is input.dtype else result.to(input.dtype)


def _checked_shape(name, input, normalized_shape, weight, bias):
    if isinstance(normalized_shape, tuple) and normalized_shape:  # the usual case, in few steps
        fits = input._array.shape[-len(normalized_shape) :] == normalized_shape
        if fits and not [t for t in (weight, bias) if t is not None and t._array.shape != normalized_shape]:
            return tuple(normalized_shape)
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    wanted = [int(n) for n in normalized_shape]
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for argument, t in (("weight", weight), ("bias", bias)):
        if t is not None and list(t.shape) != wanted:
            raise RuntimeError(
                f"Expected {argument} to be of same shape as normalized_shape, but got {argument} of shape "
                f"{list(t.shape)} and normalized_shape = {wanted}"
            )
    if list(input.shape[max(input.ndim - len(wanted), 0) :]) != wanted:
        comma = ", " if name == "layer_norm" else ""
        raise RuntimeError(
            f"Given normalized_shape={wanted}, expected input with shape [*{comma}{', '.join(map(str, wanted))}], but "
            f"got input of size{list(input.shape)}"
        )
    return tuple(wanted)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Groups of channels of each sample normalized together."""
    _check_groups(input, num_groups, weight, bias)
    size = input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:])
    if size == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    refuse("GroupNormKernelImpl", lambda d: not d.is_floating_point, input)
    return _ops.group_norm_stats(input, num_groups, weight, bias, eps)[0]


def _check_groups(input, groups, weight, bias):
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(t.shape)} and input of shape {list(input.shape)}"
            )
    _check_dtypes(input, weight, bias)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha · the mean of x² over ``size`` neighbouring channels) ** beta."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if not input._array.size:
        return input
    if size < 1:
        raise RuntimeError(f"kernel size should be greater than zero, but got size {size}")
    refuse("avg_pool2d", lambda d: not d.is_floating_point and d.name != "int64", input)
    affordable((input._array.size // input.shape[1]) * (input.shape[1] + size) * input._array.dtype.itemsize)
    means = xp.channel_means(input * input, size=size)
    if input.dtype is dtypes.int64:
        means = means.long()  # PyTorch pools whole numbers as such
    return input / (means * alpha + k) ** beta


# -- PyTorch's functions that return the statistics --------------------------------------------------------------------


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """(y, mean, 1 / standard deviation); the last two are empty outside training."""
    _check_channels(input, running_mean, running_var, weight, bias, training)
    if training:
        if not input.numel():
            raise RuntimeError(
                f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}"
            )
        y, *statistics = _batch_norm_training(input, weight, bias, running_mean, running_var, momentum, eps)
        return y, *(t.detach().reshape(input.shape[1]) for t in statistics)
    empty = PUBLIC["empty"](0, dtype=input.dtype, device=input.device)
    return _ops_by(input, weight, bias, running_mean, running_var, eps), empty, empty.clone()


def _native_batch_norm_legit(input, weight, bias, *args):
    """``native_batch_norm``; without running statistics in the overload that leaves them out."""
    if len(args) == 3:
        args = (None, None, *args)
    return PUBLIC["native_batch_norm"](input, weight, bias, *args)


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(y, mean, 1 / standard deviation)."""
    normalized_shape = _checked_shape("layer_norm", input, normalized_shape, weight, bias)
    _check_dtypes(input, weight, bias)
    refuse("LayerNormKernelImpl", lambda d: not d.is_floating_point, input)
    y, mean, scale, _ = _ops.layer_norm_stats(input, normalized_shape, weight, bias, eps)
    return y, mean.detach(), scale.detach()


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(y, mean, 1 / standard deviation); the last two of shape (N, groups)."""
    if input.shape[:2] != (N, C) and (input.numel() == N * C * HxW or not N):
        y, *rest = native_group_norm(input.reshape(N, C, HxW), weight, bias, N, C, HxW, group, eps)
        return y.reshape(input.shape), *rest
    _check_groups(input, group, weight, bias)
    refuse("GroupNormKernelImpl", lambda d: not d.is_floating_point, input)
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.numel() != C:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(t.shape)} and {C} channels"
            )
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"Expected X.numel() == N * C * HxW, but got {input.numel()} and {N} * {C} * {HxW}")
    y, mean, scale, _ = _ops.group_norm_stats(input, group, weight, bias, eps, shown=True)
    return y, mean.reshape(N, group), scale.reshape(N, group)


# -- PyTorch's functions of these names outside of nn.functional, which know of cuDNN ----------------------------------


def _torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """``nn.functional.batch_norm`` with the arguments in another order."""
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _torch_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """``nn.functional.instance_norm`` with the arguments in another order."""
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _torch_layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """``nn.functional.layer_norm``."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


def _torch_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """``nn.functional.group_norm``."""
    return group_norm(input, num_groups, weight, bias, eps)


for _name, _function in (
    ("batch_norm", _torch_batch_norm), ("instance_norm", _torch_instance_norm), ("layer_norm", _torch_layer_norm),
    ("group_norm", _torch_group_norm), ("rms_norm", rms_norm), ("native_batch_norm", native_batch_norm),
    ("_native_batch_norm_legit", _native_batch_norm_legit), ("native_layer_norm", native_layer_norm),
    ("native_group_norm", native_group_norm),
):  # fmt: skip
    _function.__name__ = _function.__qualname__ = _name
    PUBLIC[_name] = checked(_function)
