"""Backward passes as PyTorch's calls. An entry asks by name, as gradient rules do, for what it needs:

``g``, ``y``, an array, its shape, an option; ``wanted``, which gradients are; ``rest``, what the call in forward
returned beside its first output. It returns the gradients of all arrays, or None to leave them to the rules.
"""

from __future__ import annotations

from ...tensor import Tensor
from .forward import REDUCTIONS, dim_given, dims_of, end_of, unless
from .several import as_view
from .space import aten

__all__ = ["GRADIENTS"]

GRADIENTS: dict = {}


def _gradient(function):
    GRADIENTS[function.__name__.strip("_")] = function
    return function


@_gradient
def relu(g, y):
    return (aten.threshold_backward.default(g, y, 0),)


@_gradient
def _sigmoid(g, y):
    return (aten.sigmoid_backward.default(g, y),)


@_gradient
def _tanh(g, y):
    return (aten.tanh_backward.default(g, y),)


@_gradient
def _gelu(g, x, approximate):
    return (aten.gelu_backward.default(g, x, **unless("none", approximate=approximate)),)


@_gradient
def _silu(g, x):
    return (aten.silu_backward.default(g, x),)


@_gradient
def _leaky_relu(g, x, negative_slope):
    return (aten.leaky_relu_backward.default(g, x, negative_slope, False),)


@_gradient
def _softmax(g, y, axis, given):
    return (aten._softmax_backward_data.default(g, y, dim_given("softmax", axis, given), g.dtype),)


@_gradient
def _log_softmax(g, y, axis, given):
    return (aten._log_softmax_backward_data.default(g, y, dim_given("log_softmax", axis, given), g.dtype),)


@_gradient
def _select_part(g, x_shape, axis, index):
    return (aten.select_backward.default(g, list(x_shape), axis, index),)


@_gradient
def _slice_part(g, x_shape, axis, start, size, step, given):
    end = end_of(x_shape[axis], start, size, step, given)
    return (aten.slice_backward.default(g, list(x_shape), axis, start, end, step),)


@_gradient
def _expand_dims(g, axis):
    return (aten.squeeze.dim(g, axis),) if isinstance(axis, int) else None


@_gradient
def _swapaxes(g, axis1, axis2):
    return (aten.transpose.int(g, axis1, axis2),)


@_gradient
def _matrix_transpose(g):
    return (aten.t.default(g) if g.ndim == 2 else aten.transpose.int(g, -2, -1),)


@_gradient
def _sum(g, x_shape, axis, keepdims):
    return (_spread_out(g, x_shape, axis, keepdims),)


@_gradient
def _mean(g, x_shape, axis, keepdims):
    count = 1
    for i in range(len(x_shape)) if axis is None else dims_of(axis):
        count *= x_shape[i]
    return (aten.div.Scalar(_spread_out(g, x_shape, axis, keepdims), count),)


def _spread_out(g, shape, axis, keepdims):
    if axis is not None and not keepdims:
        for i in sorted(a % len(shape) for a in dims_of(axis)):
            g = aten.unsqueeze.default(g, i)
    return aten.expand.default(g, list(shape))


@_gradient
def _power(g, wanted, x, w):
    if isinstance(w, Tensor) or not isinstance(x, Tensor) or not wanted[0] or w == 0:
        return None
    slope = aten.mul.Scalar(aten.pow.Tensor_Scalar(x, float(w - 1)), float(w))
    return aten.mul.Tensor(g, slope), None


@_gradient
def _divide(g, wanted, x, w):
    of_w = None
    if wanted[1]:
        ratio = aten.div.Tensor(aten.div.Tensor(x, w), w)
        of_w = aten.mul.Tensor(aten.neg.default(g), ratio)
    return aten.div.Tensor(g, w) if wanted[0] else None, of_w


@_gradient
def _reciprocal(g, y):
    square = aten.mul.Tensor(y, y)
    return (aten.mul.Tensor(aten.neg.default(g), square),)


@_gradient
def _multiply(g, wanted, x, w):
    of_w = aten.mul.Tensor(g, x) if wanted[1] else None  # of several, PyTorch computes the last first here
    return aten.mul.Tensor(g, w) if wanted[0] else None, of_w


@_gradient
def _sqrt(g, y):
    return (aten.div.Tensor(g, aten.mul.Scalar(y, 2)),)


@_gradient
def _cos(g, x):
    return (aten.mul.Tensor(g, aten.neg.default(aten.sin.default(x))),)


@_gradient
def _rsqrt(g, y):
    cube = aten.pow.Tensor_Scalar(y, 3)
    return (aten.mul.Tensor(aten.mul.Scalar(g, -0.5), cube),)


@_gradient
def _abs(g, x):
    return (aten.mul.Tensor(g, aten.sgn.default(x)),)


@_gradient
def _masked_fill(g, wanted, mask):
    return None if wanted[2] else (aten.masked_fill.Scalar(g, mask, 0), None, None)


@_gradient
def _view_as_shape(g, x_shape):
    return (aten.view.default(g, list(x_shape)) if g.is_contiguous() or 0 in g.stride() else as_view(g, x_shape),)


GRADIENTS["unsafe_view"] = _view_as_shape


@_gradient
def _matmul(g, wanted, x, w):
    if x.ndim == w.ndim == 2:
        of_w = _right_slope(g, x, w) if wanted[1] else None
        return _left_slope(g, x, w) if wanted[0] else None, of_w
    if x.ndim == w.ndim == 3:
        of_w = aten.bmm.default(aten.transpose.int(x, 1, 2), g) if wanted[1] else None
        return aten.bmm.default(g, aten.transpose.int(w, 1, 2)) if wanted[0] else None, of_w
    return None


def _left_slope(g, x, w):
    """The gradient of x in ``x @ w``, laid out as x is."""
    if _by_columns(x):
        return aten.t.default(aten.mm.default(w, aten.t.default(g)))
    return aten.mm.default(g, aten.t.default(w))


def _right_slope(g, x, w):
    if _by_columns(w):
        return aten.t.default(aten.mm.default(aten.t.default(g), x))
    return aten.mm.default(aten.t.default(x), g)


def _by_columns(t) -> bool:
    return tuple(t.stride()) == (1, t.shape[0])


@_gradient
def _add_matmul(g, wanted, a, b, beta, alpha):
    if (beta, alpha) != (1, 1) or g.ndim != 2:
        return None
    of_a = _left_slope(g, a, b) if wanted[1] else None
    of_b = _right_slope(g, a, b) if wanted[2] else None
    return g if wanted[0] else None, of_a, of_b


@_gradient
def _astype(g, x):
    from ... import strided

    return (aten._to_copy.default(g, dtype=x.dtype, layout=strided, device=g.device),)


@_gradient
def _nll_loss(g, x, target, weight, ignore_index, reduction, rest):
    if not rest:
        return None
    place = REDUCTIONS[reduction]
    return aten.nll_loss_backward.default(g, x, target, weight, place, ignore_index, rest[0]), None, None


@_gradient
def _normalized(g, wanted, x, w, b, axes, rest):
    if len(rest) != 2:
        return None
    shape = list(x.shape[len(x.shape) - len(axes) :])
    return tuple(aten.native_layer_norm_backward.default(g[0], x, shape, *rest, w, b, list(wanted)))


@_gradient
def _embedding(g, w_shape, index, padding_idx, by_freq):
    rest = (w_shape[0], -1 if padding_idx is None else padding_idx, by_freq)
    return aten.embedding_dense_backward.default(g, index, *rest), None


@_gradient
def _conv(g, wanted, x, w, b, stride, padding, dilation, groups):
    if any(not isinstance(p, int) for p in padding):
        return None
    rest = (list(stride), list(padding), list(dilation), False, [0] * len(stride), groups, list(wanted))
    return tuple(aten.convolution_backward.default(g, x, w, [0 if b is None else w.shape[0]], *rest))


@_gradient
def _mse_mean(g, wanted, x, w):
    of_x = aten.mse_loss_backward.default(g, x, w, 1) if wanted[0] else None
    return of_x, aten.mse_loss_backward.default(g, w, x, 1) if wanted[1] else None
