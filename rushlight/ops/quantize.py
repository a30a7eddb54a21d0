"""Numbers as small integers: codes, and what they stand for, ``(code - zero_point) · scale``.

Quantized tensors themselves are in ``quantized/``, imported when one is made.
"""

from __future__ import annotations

from .. import dtypes
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..tensor import Tensor
from .common import check_tensor, type_word
from .public import PUBLIC, public

# -- training with rounded numbers -------------------------------------------------------------------------------------


def _rounded(xp, x, scale, zero):
    """The codes before they are cut off, still of x's dtype."""
    return xp.rint(x * (1.0 / scale)) + zero


def _where_kept(xp, g, x, scale, zero, low, high):
    code = _rounded(xp, x, scale, zero)
    return g * xp.logical_and(code >= low, code <= high)


@op(node="FakeQuantizePerTensorAffineCachemaskBackward0", x=_where_kept)
def fake_quantize(xp, x, scale, zero, *, low, high):
    """What ``x`` is after a way through codes; the gradient goes where the code was not cut off."""
    return (xp.clip(_rounded(xp, x, scale, zero), low, high) - zero) * scale


_PER_TENSOR = variant(xp_.fake_quantize, "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0")
_PER_CHANNEL = variant(xp_.fake_quantize, "FakeQuantizePerChannelAffineCachemaskBackward0")
FUSED = variant(xp_.fake_quantize, "FusedMovingAvgObsFqHelperBackward0")


@public(method=False, out=False)
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """``input`` rounded to the values that codes from ``quant_min`` to ``quant_max`` can stand for.

    >>> rushlight.fake_quantize_per_tensor_affine(rushlight.tensor([0.12, 0.18, 9.0]), 0.1, 0, 0, 10)
    tensor([0.1000, 0.2000, 1.0000])
    """
    _check_range(quant_min, quant_max)
    if isinstance(scale, Tensor):
        parts = scale.detach().to(input.dtype), zero_point.detach().to(input.dtype)
        return _PER_TENSOR(input, *(p.reshape(()) for p in parts), low=quant_min, high=quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    parts = [PUBLIC["tensor"](v, dtype=input.dtype, device=input.device) for v in (scale, zero_point)]
    return fake_quantize(input, *parts, low=quant_min, high=quant_max)


@public(method=False, out=False)
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """``fake_quantize_per_tensor_affine`` with a scale and zero point for each index along ``axis``."""
    _check_range(quant_min, quant_max)
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {type_word(zero_point.dtype)}")
    _check_channels(input, scale, zero_point, axis)
    parts = [along(v.detach().to(input.dtype), axis, input.ndim) for v in (scale, zero_point)]
    return _PER_CHANNEL(input, *parts, low=quant_min, high=quant_max)


def _check_range(low, high) -> None:
    if low > high:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _check_channels(input, scale, zero_point, axis) -> None:
    if scale.shape != zero_point.shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not 0 <= axis < input.ndim:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.numel() != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")


def along(values, axis, ndim):
    """A value for each index along ``axis``, to be broadcast against ``ndim`` dimensions."""
    return values.reshape([-1 if d == axis else 1 for d in range(ndim)])


# -- codes -------------------------------------------------------------------------------------------------------------


def codes(x, scale, zero, dtype):
    """The codes of ``x``, as a plain tensor: round(x / scale + zero) in one rounding, cut off at the ends."""
    inverse = 1.0 / scale.float()
    if dtype is dtypes.qint32:
        at = (x * inverse + zero.float()).double()
    else:
        at = (x.double() * inverse.double() + zero.double()).float()
    low, high = ends(dtype)
    return at.round().clamp(low, high).to(dtypes.of_numpy(dtype.numpy))


def ends(dtype) -> tuple[int, int]:
    """The smallest and the largest code."""
    stored = dtypes.iinfo(dtypes.of_numpy(dtype.numpy))
    return int(stored.min), int(stored.max)


def choose(x, low, high):
    """(scale, zero point), float64 and whole, by which codes from ``low`` to ``high`` cover all of ``x``, and 0."""
    return choose_for(x.amin(), x.amax(), low, high)


def choose_for(least, most, low, high, symmetric=False):
    """``choose`` for values between ``least`` and ``most``; ``symmetric``, the code for 0 is in the middle."""
    least, most = least.double().clamp(max=0.0), most.double().clamp(min=0.0)
    if symmetric:
        half = (high - low) // 2
        widest = PUBLIC["maximum"](least.abs() / (half + 1), most.abs() / half)
        least, most = -widest * (half + 1), widest * half
    scale = (most - least) / (high - low)
    unfit = (scale.float() == 0) | (1.0 / scale.float()).isinf()
    scale = PUBLIC["where"](unfit, 0.1, scale)
    # Of the two ends the one whose distance from 0 has the smaller error gives the zero point.
    from_least, from_most = low - least / scale, high - most / scale
    worse = (abs(low) - (least / scale).abs()) < (abs(high) - (most / scale).abs())
    zero = PUBLIC["where"](worse, from_least, from_most)
    if symmetric:
        zero = PUBLIC["full_like"](zero, (low + high) / 2)
    return scale.clamp(min=_SMALLEST), zero.clamp(low, high).round()


_SMALLEST = 6.0999998822808266e-05  # PyTorch's, as a float32: its inverse is still a float16


@op()
def integer_product(xp, x, w):
    """``x @ w.T`` of whole numbers, summed in int32."""
    return xp.matmul(x, xp.matrix_transpose(xp.astype(w, x.dtype)))


def linear_dynamic(input, weight, scale, bias, bits=7):
    """A linear layer whose weight is codes (int8, with ``scale``), and whose input is made codes on the way.

    The products are of whole numbers; scale and bias are applied with one rounding. 7 bits leave the sums of two
    products room in 16, for which PyTorch's kernels on x86 reduce the range too.
    """
    x = input.detach()
    rows, high = x.reshape(-1, x.shape[-1]), 2**bits - 1
    step, zero = choose(rows, 0, high)
    at = (rows.double() * (1.0 / step.float()).double() + zero).float().round().clamp(0, high)
    total = integer_product((at.double() - zero).int(), weight)
    y = total.double() * (step.float() * scale.float()).double()
    if bias is not None:
        y = y + bias.detach().double()
    return y.float().reshape(*x.shape[:-1], weight.shape[0])


# -- quantized tensors -------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def quantize_per_tensor(input, scale, zero_point, dtype):
    """A quantized tensor: codes of ``dtype`` (qint8, quint8 or qint32) with one scale and zero point.

    >>> q = rushlight.quantize_per_tensor(rushlight.tensor([0.0, 0.5, 1.0]), 0.1, 3, rushlight.quint8)
    >>> q.int_repr()
    tensor([ 3,  8, 13], dtype=torch.uint8)
    """
    if isinstance(input, (list, tuple)):
        parts = zip(input, scale.tolist(), zero_point.tolist())
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in parts)
    _check_quantizable(input, dtype)
    scale, zero_point = (v.item() if isinstance(v, Tensor) else v for v in (scale, zero_point))
    low, high = ends(dtype)
    if not low <= zero_point <= high:
        side = "below lower" if zero_point < low else "above upper"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound.")
    from ..quantized import QuantizedTensor

    parts = (PUBLIC["tensor"](float(v), dtype=dtypes.float64, device=input.device) for v in (scale, zero_point))
    return QuantizedTensor(codes(input.detach(), *parts, dtype), dtype, float(scale), int(zero_point))


@public(method=False, out=False)
def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """A quantized tensor with a scale and zero point for each index along ``axis``."""
    _check_quantizable(input, dtype)
    if scales.ndim != 1 or zero_points.ndim != 1:
        raise RuntimeError("scale and zero_points tensors must be one-dimensional")
    _check_channels(input, scales, zero_points, axis)
    from ..quantized import QuantizedTensor

    scales, zero_points = scales.detach().double(), zero_points.detach().long()
    parts = [along(v, axis, input.ndim) for v in (scales, zero_points)]
    return QuantizedTensor(codes(input.detach(), *parts, dtype), dtype, scales, zero_points, axis)


@public(method=False, out=False)
def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """``quantize_per_tensor`` with the scale and zero point that cover all of ``input``."""
    _check_quantizable(input, dtype)
    if dtype is dtypes.qint32:
        raise RuntimeError("dtype torch.qint32 not supported")
    low, high = ends(dtype)
    if reduce_range:
        low, high = low // 2, high // 2
    scale, zero = choose(input.detach(), low, high)
    return quantize_per_tensor(input, scale.item(), int(zero.item()), dtype)


@public(method=False, out=False)
def _choose_qparams_per_tensor(input, reduce_range=False):
    """(scale, zero point) by which bytes cover all of ``input``."""
    scale, zero = choose(input.detach(), 0, 127 if reduce_range else 255)
    return scale.item(), int(zero.item())


@public(out=False)
def dequantize(input):
    """The float32 tensor that the codes stand for; of a list, each."""
    if isinstance(input, (list, tuple)):
        return tuple(dequantize(t) for t in input)
    check_tensor("dequantize", input)
    return input.float()


def _only_quantized(name: str, doc: str) -> None:
    def method(self):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. Only quantized tensors have it; "
            "quantize_per_tensor makes one"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    public(method, out=False)


for _name, _doc in {
    "int_repr": "The codes of a quantized tensor.",
    "q_scale": "How far apart the numbers of a quantized tensor are.",
    "q_zero_point": "The code of a quantized tensor that stands for 0.",
    "q_per_channel_scales": "The scale of each channel.",
    "q_per_channel_zero_points": "The code that stands for 0 in each channel.",
    "q_per_channel_axis": "The dimension whose indices are the channels.",
}.items():
    _only_quantized(_name, _doc)
_only_quantized("qscheme", "How the codes of a quantized tensor stand for numbers.")
PUBLIC.pop("qscheme", None)  # torch.qscheme is the class


def _check_quantizable(input, dtype) -> None:
    if dtype not in dtypes.QUANTIZED:
        word = type_word(dtype) if isinstance(dtype, dtypes.dtype) else type(dtype).__name__
        raise RuntimeError(f"ScalarType {word} is not supported in new_qtensor.")
    if input.dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {type_word(input.dtype)}")


# -- layers ------------------------------------------------------------------------------------------------------------


class _Dynamic:
    """The namespace of a layer whose weights are codes: ``linear`` makes codes of its input, the rest is as ever."""

    @staticmethod
    def linear(x, w, b=None):
        return linear_dynamic(x, w._codes, scale_of(w), b)

    def __getattr__(self, name):
        return getattr(xp_, name)


DYNAMIC = _Dynamic()


def scale_of(w) -> Tensor:
    """The scale of a quantized weight, or of each of its rows."""
    return (
        w._scale if isinstance(w._scale, Tensor) else PUBLIC["tensor"](w._scale, dtype=dtypes.float64, device=w.device)
    )


def requantized(total, x, w, bias, scale, zero_point, relu, axis):
    """Codes from the sums of an operator's products: ``total`` has the steps of x's scale times w's, along ``axis``."""
    from ..quantized import QuantizedTensor

    steps = PUBLIC["tensor"](x._scale, device=x.device) * scale_of(w).float()
    multiplier = steps / PUBLIC["tensor"](scale, dtype=dtypes.float32, device=x.device)
    shape = [-1 if d == axis else 1 for d in range(total.ndim)]
    at = total.float()
    if bias is not None:
        at = at + (bias.detach() / steps).reshape(shape)
    at = (at * (multiplier.reshape(shape) if multiplier.ndim else multiplier)).round() + zero_point
    low, high = ends(x.dtype)
    made = at.clamp(zero_point if relu else low, high).to(x._codes.dtype)
    return QuantizedTensor(made, x.dtype, float(scale), int(zero_point))


def linear_static(x, w, bias, scale, zero_point, relu=False):
    """A linear layer from codes to codes."""
    rows = x._codes.int().reshape(-1, x.shape[-1]) - x._zero
    total = integer_product(rows, w._codes).reshape(*x.shape[:-1], w.shape[0])
    return requantized(total, x, w, bias, scale, zero_point, relu, total.ndim - 1)


def conv_static(x, w, bias, scale, zero_point, convolve, relu=False):
    """A convolution from codes to codes; float64 holds its sums of whole numbers exactly."""
    total = convolve((x._codes.int() - x._zero).double(), w._codes.double(), None)
    return requantized(total, x, w, bias, scale, zero_point, relu, 1)
