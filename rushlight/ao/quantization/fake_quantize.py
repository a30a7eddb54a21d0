"""Fake quantization: modules that round a tensor to what codes could stand for, so that training learns with it."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...layout import per_channel_affine_float_qparams, per_channel_symmetric, per_tensor_affine, per_tensor_symmetric
from ...nn.module import Module
from ...ops.public import PUBLIC
from ...ops.quantize import FUSED, choose_for, ends
from ...tensor import Tensor
from .observer import (
    _PER_CHANNEL,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _Partial,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_dynamic_fake_quant",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
]


def __dir__():
    return __all__


class FakeQuantizeBase(Module):
    """Two switches: is the range observed, and is the tensor rounded?"""

    _SWITCH = dtypes.uint8
    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", PUBLIC["tensor"]([1], dtype=self._SWITCH))
        self.register_buffer("observer_enabled", PUBLIC["tensor"]([1], dtype=self._SWITCH))

    def calculate_qparams(self, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no calculate_qparams")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        self.enable_observer(False)

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(lambda cls, **kwargs: _Partial(cls).with_callable_args(**kwargs))


class FakeQuantize(FakeQuantizeBase):
    """Observes the range with ``observer``, and rounds by the scale and zero point that follow from it."""

    scale: Tensor
    zero_point: Tensor
    activation_post_process: Any

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            low, high = ends(observer_kwargs.get("dtype", dtypes.quint8))
            if quant_min < low:
                raise AssertionError("quant_min out of bound")
            if quant_max > high:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self._observe_with(observer(**observer_kwargs))
        if self.qscheme is per_channel_affine_float_qparams:
            self.register_buffer("zero_point", PUBLIC["tensor"]([0.0]))

    def _observe_with(self, made: Any) -> None:
        self.activation_post_process = made
        self.quant_min, self.quant_max, self.dtype = made.quant_min, made.quant_max, made.dtype
        self.is_dynamic, self.qscheme = made.is_dynamic, made.qscheme
        self.ch_axis = getattr(made, "ch_axis", -1)
        self.is_per_channel, self.is_per_tensor = self.qscheme in _PER_CHANNEL, self.qscheme not in _PER_CHANNEL
        self.register_buffer("scale", PUBLIC["tensor"]([1.0]))
        self.register_buffer("zero_point", PUBLIC["tensor"]([0], dtype=dtypes.int32))

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            for buffer, value in zip((self.scale, self.zero_point), self.calculate_qparams()):
                buffer.resize_(value.shape).copy_(value)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return PUBLIC["fake_quantize_per_channel_affine"](
                X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
            )
        return PUBLIC["fake_quantize_per_tensor_affine"](X, self.scale, self.zero_point, self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict, prefix, *args):
        """A scale for each channel has the size that the file says."""
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by a scale and zero point that are known before."""

    def __init__(self, observer) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a {FixedQParamsObserver.__name__}, but got "
                f"{type(self.activation_post_process)}"
            )
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point

    def calculate_qparams(self):
        return self.scale, self.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """``FakeQuantize`` of a moving average, which PyTorch computes in one kernel."""

    _SWITCH = dtypes.int64

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255, **observer_kwargs
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver or "
                "MovingAveragePerChannelMinMaxObserver"
            )
        self.is_symmetric_quant = self.qscheme in (per_tensor_symmetric, per_channel_symmetric)

    def forward(self, X):
        seen = self.activation_post_process
        if self.observer_enabled[0] == 1:
            seen(X.detach())
            seen_range = (seen.min_val, seen.max_val, seen.quant_min, seen.quant_max)
            chosen = choose_for(*seen_range, self.is_symmetric_quant)
            for buffer, value in zip((self.scale, self.zero_point), chosen):
                value = value.reshape(-1)
                buffer.resize_(value.shape).copy_(value)
        if self.fake_quant_enabled[0] != 1:
            return X
        parts = self.scale, self.zero_point.to(self.scale.dtype)
        shape = [-1 if d == self.ch_axis else 1 for d in range(X.ndim)] if self.is_per_channel else []
        return FUSED(X, *(p.reshape(shape) for p in parts), low=seen.quant_min, high=seen.quant_max)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )


_BYTES = {"quant_min": 0, "quant_max": 255, "dtype": dtypes.quint8}
_SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": dtypes.qint8}
_AVERAGE, _CHANNELS = MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver

default_fake_quant = FakeQuantize.with_args(observer=_AVERAGE, **_BYTES, qscheme=per_tensor_affine, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, **_SIGNED, qscheme=per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, quant_min=0, quant_max=255, is_dynamic=True, dtype=dtypes.quint8, averaging_constant=1
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=_CHANNELS, **_SIGNED, qscheme=per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTES, qscheme=per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=_AVERAGE, **_BYTES)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, **_SIGNED, qscheme=per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_CHANNELS, **_SIGNED, qscheme=per_channel_symmetric
)


def _switch(name: str, doc: str):
    def switch(mod) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = doc
    return switch


disable_fake_quant = _switch("disable_fake_quant", "Stop rounding: ``model.apply(disable_fake_quant)``.")
enable_fake_quant = _switch("enable_fake_quant", "Start rounding: ``model.apply(enable_fake_quant)``.")
disable_observer = _switch("disable_observer", "Stop observing ranges: ``model.apply(disable_observer)``.")
enable_observer = _switch("enable_observer", "Start observing ranges: ``model.apply(enable_observer)``.")
