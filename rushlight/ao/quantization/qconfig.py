"""What observes a layer's output and its weight: a pair of things to call, for a module and all in it."""

from __future__ import annotations

from collections import namedtuple

from ... import dtypes
from ...nn.layers.linear import Identity
from ...nn.module import Module
from . import fake_quantize as _fake
from . import observer as _seen
from .fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from .observer import HistogramObserver, MovingAverageMinMaxObserver, PlaceholderObserver

__all__ = [
    "QConfig",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_per_channel_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "per_channel_dynamic_qconfig",
]


def __dir__():
    return __all__


class QConfig(namedtuple("QConfig", "activation weight")):
    """``activation()`` makes the observer of outputs, ``weight()`` that of the weight."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


_HALF = PlaceholderObserver.with_args(dtype=dtypes.float16)
default_qconfig = QConfig(_seen.default_observer, _seen.default_weight_observer)
default_debug_qconfig = QConfig(_seen.default_debug_observer, _seen.default_weight_observer)
default_per_channel_qconfig = QConfig(_seen.default_observer, _seen.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(_seen.default_dynamic_quant_observer, _seen.default_weight_observer)
per_channel_dynamic_qconfig = QConfig(_seen.default_dynamic_quant_observer, _seen.default_per_channel_weight_observer)
float16_dynamic_qconfig = QConfig(PlaceholderObserver.with_args(dtype=dtypes.float16, is_dynamic=True), _HALF)
float16_static_qconfig = QConfig(_HALF, _HALF)
default_qat_qconfig = QConfig(_fake.default_fake_quant, _fake.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(_fake.default_dynamic_fake_quant, _fake.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, _fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(_fake.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(_fake.default_fused_act_fake_quant, _fake.default_fused_wt_fake_quant)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def get_default_qconfig(backend="x86", version=0) -> QConfig:
    """For calibration: a histogram of outputs, the range of each channel of the weight."""
    _check(backend, version, (0,), "QConfig")
    if backend == "qnnpack":
        return QConfig(HistogramObserver.with_args(reduce_range=False), _seen.default_weight_observer)
    reduce = {"reduce_range": backend != "onednn"}
    return QConfig(HistogramObserver.with_args(**reduce), _seen.default_per_channel_weight_observer)


def get_default_qat_qconfig(backend="x86", version=1) -> QConfig:
    """For training: rounded outputs by a moving average of their range, rounded weights."""
    _check(backend, version, (0, 1), "QATQConfig")
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    reduce = backend in ("fbgemm", "x86")
    act = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=reduce)
    if backend == "onednn":
        act = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
    if backend == "qnnpack":
        return QConfig(act, _fake.default_fused_wt_fake_quant if version else _fake.default_weight_fake_quant)
    channels = _fake.default_fused_per_channel_wt_fake_quant if version else _fake.default_per_channel_weight_fake_quant
    return QConfig(act, channels)


def _check(backend, version, versions, name) -> None:
    if version not in versions:
        raise AssertionError(
            f"Version number: {version} in get_default_{name.lower()} is not supported. Version number must be "
            f"one of {versions}"
        )
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}")
