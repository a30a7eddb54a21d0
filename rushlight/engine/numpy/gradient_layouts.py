"""How gradients lie in memory: PyTorch's rules, for those that somebody looks at.

Inside a backward pass gradients lie as their rules leave them, and a leaf's ``.grad`` lies as the leaf. What hooks and
``autograd.grad`` are handed is looked at here: f(gradient, g, inputs, which) is the gradient of input ``which``, copied
where it lies otherwise; ``g`` is the gradient of the output.
"""

from __future__ import annotations

import numpy as np

from .layouts import any_channels, channels, each_alone, like, plain


def after_gradient(out, g, inputs, which):
    """Element by element, the incoming gradient first, then what it is multiplied by; itself where by nothing."""
    if out is g:
        return out
    others = [a for i, a in enumerate(inputs) if i != which or len(inputs) == 1]
    return _elementwise(out, g, (g, *others))


def with_own(out, g, inputs, which):
    """Element by element, the incoming gradient first, then the input itself."""
    return _elementwise(out, g, (g, inputs[which]))


def after_input(out, g, inputs, which):
    """Element by element, the first input first: where it is, the incoming gradient is let through."""
    return _elementwise(out, g, (inputs[0], g))


def of_factors(out, g, inputs, which):
    """Of a sum with a product: the factors do not see what was added."""
    return after_gradient(out, g, inputs[1:], which - 1) if which else out


def of_quotient(out, g, inputs, which):
    """The numerator's is g / denominator; the denominator's begins with -g."""
    return after_gradient(out, g, inputs, which) if which == 0 else as_gradient(out, g, inputs, which)


def of_power(out, g, inputs, which):
    """The base's begins with the exponent."""
    return after_gradient(out, g, inputs, which) if which else _elementwise(out, g, (inputs[1], g))


def as_gradient(out, g, inputs, which):
    """As the incoming gradient."""
    return out if out is g or out.shape != g.shape else like(out, (g,))


def as_itself(out, g, inputs, which):
    """In the order that it has, without gaps and repetitions, in memory of its own."""
    out = np.broadcast_to(out, inputs[which].shape)
    made = like(out, (out[tuple([slice(None, None, -1 if step < 0 else 1) for step in out.strides])],))
    return made.copy(order="K") if made is out else made


def of_padding(out, g, inputs, which):
    """As the part of the incoming gradient that it is; channels last if that's are, where it is filled up."""
    return as_itself(out, g, inputs, which) if np.may_share_memory(out, g) else channels(out, (g,))


def untouched(out, g, inputs, which):
    return out


def plainly(out, g, inputs, which):
    return plain(out)


def by_input_channels(out, g, inputs, which):
    return channels(out, inputs)


def by_gradient_channels(out, g, inputs, which):
    return channels(out, (g,))


def by_any_channels(out, g, inputs, which):
    return any_channels(out, inputs)


def _elementwise(out, g, operands):
    return each_alone(out, operands) if out.shape == g.shape else out  # else of a weight, say, that was broadcast


_FAMILIES = {
    after_input: """
        relu leaky_relu clip prelu_kernel threshold where erf maximum minimum binary_cross_entropy
        binary_cross_entropy_with_logits""",
    with_own: "hypot PowBackward0",
    of_factors: "addcmul addcdiv",
    of_quotient: "divide fmod",
    of_power: "PowBackward1",
    after_gradient: """
        gelu silu elu hardtanh softplus hardswish hardsigmoid hardshrink softshrink mish nan_to_num abs
        native_dropped LerpBackward1""",
    as_gradient: "reciprocal rsqrt log_sigmoid flip rms_normalized subtract add_scaled lerp polar",
    untouched: "cat stack add",
    as_itself: "mean rot90",
    of_padding: "pad_constant",
    plainly: """
        cumsum tril triu masked_fill repeat grid_sampler mse_each smooth_l1_loss spread_masked solve_triangular
        normalized FractionalMaxPool2DBackward0 FractionalMaxPool3DBackward0 UpsampleBicubic2DBackward0 CopySlices
        AvgPool3DBackward0 AdaptiveAvgPool3DBackward0 AdaptiveMaxPool3DBackward0 UpsampleNearest3DBackward0
        UpsampleNearestExact3DBackward0""",
    by_input_channels: """
        max_pool avg_pool at_positions resample normalized_by NativeBatchNormBackward0 NativeGroupNormBackward0""",
    by_gradient_channels: """
        roll channel_shuffle UpsampleNearest2DBackward0 UpsampleBilinear2DBackward0 UpsampleNearestExact2DBackward0
        UpsampleBilinear2DAaBackward0 UpsampleTrilinear3DBackward0""",
    by_any_channels: "conv conv_input",
}
_RULES = {name: rule for rule, names in _FAMILIES.items() for name in names.split()}


def rule_of(op, node: str):
    """How gradients of an operator lie; None where the rules leave them as PyTorch does."""
    return _RULES.get(node) or _RULES.get(op.name) or (after_gradient if op.promote else None)
