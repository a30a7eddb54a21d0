"""Layers from codes to codes, for models that were calibrated or trained for it."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from ....compat import missing as _missing
from ....layout import per_tensor_affine, per_tensor_symmetric
from ....nn import functional as _functional
from ....nn.layers import conv as _conv
from ....nn.layers.linear import Identity
from ....nn.module import Module
from ....ops import quantize as _ops
from ....ops.public import PUBLIC
from ....tensor import Tensor

__all__ = ["Conv2d", "DeQuantize", "FloatFunctional", "Linear", "Quantize"]


def _quantized_weight(weight, observer):
    """The weight as codes of int8, by an observer (or a trained fake quantization) that sees it now."""
    observer(weight.detach())
    return _coded(weight, observer)


def _coded(weight, observer):
    if observer.dtype is not dtypes.qint8:
        raise NotImplementedError(f"weights are quantized to torch.qint8 here, not to {observer.dtype}")
    scale, zero = observer.calculate_qparams()
    value = weight.detach().float()
    if observer.qscheme in (per_tensor_affine, per_tensor_symmetric):
        return PUBLIC["quantize_per_tensor"](value, float(scale), int(zero), dtypes.qint8)
    return PUBLIC["quantize_per_channel"](value, scale.double(), zero.long(), observer.ch_axis, dtypes.qint8)


def _output(mod) -> tuple:
    scale, zero = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero)


def _in_one_line(module) -> str:
    """A module's ``repr`` without the part that holds its codes."""
    return f"{module._get_name()}({module.extra_repr()})"


class Quantize(Module):
    """Numbers become codes, by a scale and zero point that were observed."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None) -> None:
        super().__init__()
        self.register_buffer("scale", PUBLIC["as_tensor"](scale).detach().clone().reshape(-1).float())
        self.register_buffer("zero_point", PUBLIC["as_tensor"](zero_point).detach().clone().reshape(-1).long())
        self.dtype = dtype

    def forward(self, X):
        return PUBLIC["quantize_per_tensor"](X, float(self.scale), int(self.zero_point), self.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(*mod.activation_post_process.calculate_qparams(), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Codes become numbers."""

    def forward(self, Xq):
        return Xq.dequantize()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls()


class LinearPackedParams(Module):
    """Weight and bias of a quantized linear layer; in a state dict they are one entry."""

    _packed_params: Any

    def __init__(self, dtype=dtypes.qint8) -> None:
        super().__init__()
        self.dtype, self._packed_params = dtype, None

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._packed_params

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.dtype = state_dict.pop(prefix + "dtype")
        self._packed_params = state_dict.pop(prefix + "_packed_params")
        super()._load_from_state_dict(state_dict, prefix, *args)


class _WithScale(Module):
    """What quantized layers share: the scale and zero point of their output, kept in the state dict as tensors."""

    scale: float
    zero_point: int

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = PUBLIC["tensor"](self.scale)
        destination[prefix + "zero_point"] = PUBLIC["tensor"](self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class Linear(_WithScale):
    """A linear layer from codes to codes."""

    _RELU = False

    def __init__(self, in_features, out_features, bias_=True, dtype=dtypes.qint8) -> None:
        super().__init__()
        if dtype is not dtypes.qint8:
            raise NotImplementedError(f"quantized linear layers have torch.qint8 weights here, not {dtype}")
        self.in_features, self.out_features, self.scale, self.zero_point = in_features, out_features, 1.0, 0
        self._packed_params = LinearPackedParams(dtype)
        zeros = PUBLIC["zeros"](out_features, in_features)
        bias = PUBLIC["zeros"](out_features) if bias_ else None
        self.set_weight_bias(PUBLIC["quantize_per_tensor"](zeros, 1.0, 0, dtype), bias)

    def forward(self, x):
        return _ops.linear_static(x, *self._packed_params._packed_params, self.scale, self.zero_point, self._RELU)

    def weight(self):
        return self._packed_params._packed_params[0]

    def bias(self):
        return self._packed_params._packed_params[1]

    def set_weight_bias(self, w, b) -> None:
        self._packed_params._packed_params = (w, b)

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    __repr__ = _in_one_line

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a layer that was observed, or trained with a rounded weight."""
        inner, weight = _float_parts(mod)
        made = cls(inner.in_features, inner.out_features)
        made.set_weight_bias(weight, inner.bias)
        made.scale, made.zero_point = _output(mod)
        return made


class Conv2d(_WithScale):
    """A convolution from codes to codes."""

    _RELU = False
    in_channels: int
    out_channels: int
    kernel_size: tuple
    stride: tuple
    _OPTIONS = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()
        like = _conv.Conv2d(*args, **{**kwargs, "device": "meta"})
        if like.padding_mode != "zeros":
            raise NotImplementedError(f"a quantized convolution pads with zeros here, not by {like.padding_mode!r}")
        for name in self._OPTIONS:
            setattr(self, name, getattr(like, name))
        self.scale, self.zero_point = 1.0, 0
        zeros = PUBLIC["zeros"](like.weight.shape)
        bias = None if like.bias is None else PUBLIC["zeros"](self.out_channels)
        self.set_weight_bias(PUBLIC["quantize_per_tensor"](zeros, 1.0, 0, dtypes.qint8), bias)

    def forward(self, input):
        place = (self.scale, self.zero_point, self._convolve, self._RELU)
        return _ops.conv_static(input, *self._packed, *place)

    def _convolve(self, x, w, b):
        return _functional.conv2d(x, w, b, self.stride, self.padding, self.dilation, self.groups)

    def weight(self):
        return self._packed[0]

    def bias(self):
        return self._packed[1]

    def set_weight_bias(self, w, b) -> None:
        self._packed = (w, b)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[prefix + "weight"], destination[prefix + "bias"] = self._packed
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _get_name(self) -> str:
        return "QuantizedConv2d"

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", scale={self.scale}, zero_point={self.zero_point}"
        for name, usual in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias() is not None else text + ", bias=False"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a layer that was observed, or trained with a rounded weight."""
        inner, weight = _float_parts(mod)
        made = cls(**{name: getattr(inner, name) for name in cls._OPTIONS}, bias=inner.bias is not None)
        made.set_weight_bias(weight, inner.bias)
        made.scale, made.zero_point = _output(mod)
        return made


def _float_parts(mod) -> tuple:
    """The layer, and its weight as codes."""
    inner = mod[0] if hasattr(mod, "__getitem__") else mod
    trained = getattr(inner, "weight_fake_quant", None)
    return inner, _quantized_weight(inner.weight, mod.qconfig.weight() if trained is None else trained)


class FloatFunctional(Module):
    """Functions of tensors as a module, so that their output can be observed: ``self.add.add(x, y)``."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the corresponding operation"
        )

    def add(self, x, y):
        return self.activation_post_process(PUBLIC["add"](x, y))

    add_scalar = add

    def mul(self, x, y):
        return self.activation_post_process(PUBLIC["mul"](x, y))

    mul_scalar = mul

    def cat(self, x, dim=0):
        return self.activation_post_process(PUBLIC["cat"](x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(PUBLIC["relu"](PUBLIC["add"](x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(PUBLIC["matmul"](x, y))


class QFunctional(Module):
    """The functions of ``FloatFunctional`` from codes to codes: through the numbers they stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the corresponding operation")

    def _codes(self, value, kind):
        return PUBLIC["quantize_per_tensor"](value, self.scale, self.zero_point, kind)

    def add(self, x, y):
        return self._codes(x.dequantize() + y.dequantize(), x.dtype)

    def mul(self, x, y):
        return self._codes(x.dequantize() * y.dequantize(), x.dtype)

    def add_relu(self, x, y):
        return self._codes((x.dequantize() + y.dequantize()).relu(), x.dtype)

    def cat(self, x, dim=0):
        return self._codes(PUBLIC["cat"]([t.dequantize() for t in x], dim=dim), x[0].dtype)

    def matmul(self, x, y):
        return self._codes(x.dequantize() @ y.dequantize(), x.dtype)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        made = cls()
        made.scale, made.zero_point = _output(mod)
        return made


__all__ += ["QFunctional"]


def __dir__():
    return __all__


def _later(name):
    import importlib

    return importlib.import_module(f"{__name__}.{name}") if name == "dynamic" else None


__getattr__ = _missing(__name__, _later)
