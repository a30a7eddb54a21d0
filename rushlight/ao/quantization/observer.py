"""Observers: modules that let a tensor through and remember its range, from which scale and zero point follow."""

from __future__ import annotations

import functools

from ... import dtypes
from ...errors import warn_user
from ...layout import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from ...nn.module import Module
from ...ops.public import PUBLIC
from ...ops.quantize import ends
from ...tensor import Tensor
from .histogram import closest_range

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "UniformQuantizationObserverBase",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_weight_observer",
]

_EPS = dtypes.finfo(dtypes.float32).eps
_SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)
_PER_CHANNEL = (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)


def __dir__():
    return __all__


class _Partial:
    """A class with some of its arguments, to be called later: what a qconfig holds."""

    def __init__(self, made):
        self.p = made
        self.callable_args: dict = {}

    def __call__(self, *args, **kwargs):
        late = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **{**late, **kwargs})

    def __repr__(self):
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs):
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        made = _Partial(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(made, **kwargs):
    """``made`` with these arguments, as something that can be called again and again."""
    partial = _Partial(functools.partial(made.p if isinstance(made, _Partial) else made, **kwargs))
    partial.callable_args = dict(made.callable_args) if isinstance(made, _Partial) else {}
    return partial


class ObserverBase(Module):
    """An observer's ``forward`` gives its input back; ``calculate_qparams`` says (scale, zero point)."""

    def __init__(self, dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def calculate_qparams(self, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no calculate_qparams")

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(lambda cls, **kwargs: _Partial(cls).with_callable_args(**kwargs))


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of ranges: scale and zero point from a smallest and a largest value."""

    eps: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype=dtypes.quint8,
        qscheme=per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        super().__init__(dtype, is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warn_user(
                "Please use quant_min and quant_max to specify the range for observers.                     "
                "reduce_range will be deprecated in a future release of PyTorch."
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", PUBLIC["tensor"]([eps], **(factory_kwargs or {})))
        if self.qscheme not in (per_tensor_affine, per_tensor_symmetric, *_PER_CHANNEL):
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, "
                "per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        if dtype not in (*dtypes.QUANTIZED, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int16):
            raise AssertionError(
                "Default Observer only works for qint8, quint8 and qint32 data type here, and their plain "
                f"counterparts; got {dtype}"
            )
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            self._validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = self._range(quant_min, quant_max)

    @staticmethod
    def _validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
        if not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        if quant_min >= quant_max:
            raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")

    def _range(self, low, high):
        if not self.has_customized_qrange:
            low, high = ends(self.dtype)
        elif high - low + 1 > 256 and self.dtype not in (dtypes.qint32, dtypes.int32):
            raise AssertionError(f"quantization range [{low}, {high}] should have at most 256 values")
        return (low // 2, high // 2) if self.reduce_range else (low, high)

    def _calculate_qparams(self, min_val, max_val):
        """(scale, zero point) by which codes from quant_min to quant_max cover the range and 0."""
        if not _was_observed(min_val, max_val):
            place = min_val.device
            return PUBLIC["tensor"]([1.0], device=place), PUBLIC["tensor"]([0], device=place)
        least, most = min_val.clamp(max=0.0), max_val.clamp(min=0.0)
        steps = float(self.quant_max - self.quant_min)
        zero = PUBLIC["zeros"](least.size(), dtype=dtypes.int64, device=least.device)
        if self.qscheme in _SYMMETRIC:
            scale = PUBLIC["maximum"](-least, most) / (steps / 2)
            scale = PUBLIC["maximum"](scale, self.eps)
            if self.dtype in (dtypes.quint8, dtypes.uint8):
                middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
                zero = zero.new_full(zero.size(), middle)
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = PUBLIC["where"](scale > self.eps, scale, PUBLIC["ones_like"](scale))
            zero = -1 * min_val / scale
        else:
            scale = PUBLIC["maximum"]((most - least) / steps, self.eps)
            zero = (self.quant_min - (least / scale).round().int()).clamp(self.quant_min, self.quant_max)
        # One value for all is still a vector.
        return tuple(v.reshape(1) if v.ndim == 0 else v for v in (scale, zero.to(scale.device)))

    def reset_min_max_vals(self) -> None:
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


def _was_observed(min_val, max_val) -> bool:
    if min_val.numel() == 0 or max_val.numel() == 0 or (min_val.numel() == 1 and min_val.item() == float("inf")):
        warn_user("must run observer before calling calculate_qparams. Returning default values.")
        return False
    if not bool((min_val <= max_val).all()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """The smallest and largest value of all that came."""

    def __init__(
        self,
        dtype=dtypes.quint8,
        qscheme=per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme not in (per_tensor_affine, per_tensor_symmetric):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.register_buffer("min_val", PUBLIC["tensor"](float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", PUBLIC["tensor"](float("-inf"), **(factory_kwargs or {})))
        if qscheme is per_tensor_symmetric and reduce_range and dtype is dtypes.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        self._observe(x.amin(), x.amax())
        return x_orig

    def _observe(self, least, most) -> None:
        self.min_val.copy_(PUBLIC["minimum"](least, self.min_val))
        self.max_val.copy_(PUBLIC["maximum"](most, self.max_val))

    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.copy_(PUBLIC["tensor"](float("inf")))
        self.max_val.copy_(PUBLIC["tensor"](float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A moving average of each batch's smallest and largest value."""

    def __init__(
        self,
        averaging_constant=0.01,
        dtype=dtypes.quint8,
        qscheme=per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme not in (per_tensor_affine, per_tensor_symmetric):
            raise NotImplementedError(
                "MovingAverageMinMaxObserver's qscheme only support "
                "torch.per_tensor_symmetric and torch.per_tensor_affine. "
                f"but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)

    def _observe(self, least, most) -> None:
        if self.min_val.item() == float("inf") and self.max_val.item() == float("-inf"):
            self.min_val.copy_(least)
            self.max_val.copy_(most)
        else:
            self.min_val.copy_(self.min_val + self.averaging_constant * (least - self.min_val))
            self.max_val.copy_(self.max_val + self.averaging_constant * (most - self.max_val))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The smallest and largest value of each channel."""

    def __init__(
        self,
        ch_axis=0,
        dtype=dtypes.quint8,
        qscheme=per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme not in _PER_CHANNEL:
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, "
                "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", PUBLIC["tensor"]([], **(factory_kwargs or {})))
        self.register_buffer("max_val", PUBLIC["tensor"]([], **(factory_kwargs or {})))

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype).movedim(self.ch_axis, 0).flatten(1)
        least, most = x.amin(1), x.amax(1)
        if self.min_val.numel():
            least, most = self._joined(least, most)
        self.min_val.resize_(least.shape).copy_(least)
        self.max_val.resize_(most.shape).copy_(most)
        return x_orig

    def _joined(self, least, most):
        return PUBLIC["minimum"](least, self.min_val), PUBLIC["maximum"](most, self.max_val)

    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, *args):
        """What was seen has the size that the file says."""
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = PUBLIC["rand"](0), PUBLIC["rand"](0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """A moving average of each channel's smallest and largest value."""

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=dtypes.quint8,
        qscheme=per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, None, eps, is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, least, most):
        weight = self.averaging_constant
        return self.min_val + weight * (least - self.min_val), self.max_val + weight * (most - self.max_val)


_PARTS = 16  # of a bin, when its counts move to a wider histogram


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all that came; the range is cut where that makes the squared error of the codes smallest."""

    histogram: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype=dtypes.quint8,
        qscheme=per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme not in (per_tensor_affine, per_tensor_symmetric):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.bins, self.dst_nbins = bins, 2 ** (8 * min(dtype.itemsize, 2))
        self.register_buffer("histogram", PUBLIC["zeros"](bins, **(factory_kwargs or {})))
        self.register_buffer("min_val", PUBLIC["tensor"](float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", PUBLIC["tensor"](float("-inf"), **(factory_kwargs or {})))

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().float()
        if x.isinf().any() or x.isnan().any():
            warn_user("torch.inf detected in input tensor, ignoring input")
            x = x[x.isfinite()]
        least = PUBLIC["minimum"](x.amin(), self.min_val)
        most = PUBLIC["maximum"](x.amax(), self.max_val)
        counts = PUBLIC["histc"](x, self.bins, least.item(), most.item())
        if self.histogram.sum() > 0:
            counts = counts + self._moved(least, most)
        self.histogram.copy_(counts)
        self.min_val.copy_(least)
        self.max_val.copy_(most)
        return x_orig

    def _moved(self, least, most):
        """The counts so far, in the bins of a range that may be wider: parts of a bin go where their centres lie."""
        if least == self.min_val and most == self.max_val:
            return self.histogram
        parts = self.bins * _PARTS
        width = (self.max_val - self.min_val) / parts
        centres = PUBLIC["linspace"](self.min_val.item(), self.max_val.item(), parts + 1)[:-1] + 0.5 * width
        edges = PUBLIC["linspace"](least.item(), most.item(), self.bins + 1)
        bins = (PUBLIC["bucketize"](centres, edges, right=True) - 1).clamp(0, self.bins - 1)
        counts = self.histogram.repeat_interleave(_PARTS) / _PARTS
        return PUBLIC["zeros"](self.bins).index_add(0, bins, counts)

    def calculate_qparams(self):
        if self.min_val.item() == float("inf"):
            return self._calculate_qparams(self.min_val, self.max_val)
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of bins supplied")
        return self._calculate_qparams(*closest_range(self.histogram, self.min_val, self.max_val, self.dst_nbins))

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.histogram.zero_()
        self.min_val.copy_(PUBLIC["tensor"](float("inf")))
        self.max_val.copy_(PUBLIC["tensor"](float("-inf")))


class FixedQParamsObserver(ObserverBase):
    """A scale and zero point that are known before, as of a sigmoid."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale,
        zero_point,
        dtype=dtypes.quint8,
        qscheme=per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", PUBLIC["tensor"]([scale], dtype=dtypes.float32))
        self.register_buffer("zero_point", PUBLIC["tensor"]([zero_point], dtype=dtypes.int32))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Sees nothing: says only which dtype is wanted, as of an input that is quantized on the way."""

    def __init__(
        self,
        dtype=dtypes.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ) -> None:
        super().__init__(dtype, is_dynamic or compute_dtype is not None)
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.custom_op = quant_min, quant_max, custom_op_name
        self.eps = _EPS if eps is None else eps

    def forward(self, x):
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Keeps a copy of all that came."""

    def __init__(self, dtype=dtypes.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list:
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Sees nothing and says nothing."""

    def __init__(self, dtype=dtypes.float16, custom_op_name="") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for NoopObserver")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=dtypes.qint8, qscheme=per_tensor_symmetric)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=per_channel_symmetric
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=dtypes.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=dtypes.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=dtypes.quint8, quant_min=0, quant_max=255
)
