"""What calls compute that torch has no function for, by name, with their arguments there."""

from __future__ import annotations

from ...autograd import mode as switches
from ...autograd.grad import grad as backward_of
from ...autograd.op import differentiable as xp
from .forward import REDUCTIONS

__all__ = ["BODIES"]


def _to_copy(t, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return t.to(device=device, dtype=dtype, copy=True)


def _unsafe_view(t, size):
    return t.reshape(size)


def _softmax_body(t, dim, half_to_float):
    return xp.softmax(t, axis=dim)


def _log_softmax_body(t, dim, half_to_float):
    return xp.log_softmax(t, axis=dim)


def _backward(name: str, *names: str, **defaults):
    """``aten.name_backward``: the rule of the operator, given what it asks for by name."""

    def body(*args, **kwargs):
        o = getattr(xp, name).op
        known = {**o.static, **defaults, **dict(zip(names, args)), **kwargs}
        rule = o.rules["x"]
        return rule.function(xp, known["g"], *[known[n] for n in rule.needs])

    return body


def _threshold_backward(g, t, threshold):
    return xp.where(xp.greater(t, threshold), g, 0.0)


def _slice_backward(g, shape, dim, start, end, step):
    made = _zeros(g, shape)
    made[(slice(None),) * dim + (slice(start, end, step),)] = g
    return made


def _select_backward(g, shape, dim, index):
    made = _zeros(g, shape)
    made[(slice(None),) * (dim % len(shape)) + (index,)] = g
    return made


def _zeros(like, shape):
    return like.new_zeros(tuple(shape))


def _embedding_dense_backward(g, index, rows, padding_idx, scale_grad_by_freq):
    where = None if padding_idx == -1 else padding_idx
    return xp.embedding_slope(g, index, rows=rows, padding_idx=where, by_freq=scale_grad_by_freq)


def _mse_loss_backward(g, x, target, reduction):
    scale = {0: 2.0, 1: 2.0 / max(x.numel(), 1), 2: 2.0}[reduction]
    return (x - target) * scale * g


def _convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        raise NotImplementedError("aten.convolution: transposed is not served here; use torch.conv_transpose2d")
    return xp.conv(x, w, b, stride=tuple(stride), padding=tuple(padding), dilation=tuple(dilation), groups=groups)


def _convolution_backward(
    g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    if transposed:
        raise NotImplementedError("aten.convolution_backward: transposed is not served here")
    options = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    o = xp.conv.op
    known = {"x": x, "w": w, "x_shape": tuple(x.shape), "w_shape": tuple(w.shape), **options}
    found = []
    for argument, wanted in zip(o.arrays, output_mask):
        rule = o.rules[argument]
        found.append(rule.function(xp, g, *[known[n] for n in rule.needs]) if wanted else None)
    return tuple(found)


def _native_layer_norm(x, shape, w, b, eps):
    from ..norm import layer_norm_stats

    return layer_norm_stats(x, tuple(shape), w, b, eps)[:3]


def _nll_loss_forward(x, target, weight, reduction, ignore_index):
    from ..creation import scalar_tensor

    word = next(name for name, number in REDUCTIONS.items() if number == reduction)
    loss = xp.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=word)
    kept = target != ignore_index
    if word == "none":
        total = scalar_tensor(0.0, dtype=x.dtype)
    else:
        total = (kept if weight is None else weight[target.where(kept, 0)] * kept).sum().to(x.dtype)
    return loss, total


def _by_autograd(function, inputs, g, wanted) -> tuple:
    """The gradients of a function's first output, for those inputs that are wanted."""
    with switches.enable_grad():
        leaves = [t if t is None else t.detach().requires_grad_(asked) for t, asked in zip(inputs, wanted)]
        out = function(*leaves)
        sought = [t for t in leaves if t is not None and t.requires_grad]
        found = iter(backward_of(out, sought, g))
    return tuple([next(found) if t is not None and t.requires_grad else None for t in leaves])


def _nll_loss_backward(g, x, target, weight, reduction, ignore_index, total_weight):
    word = next(name for name, number in REDUCTIONS.items() if number == reduction)
    loss = lambda x: xp.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=word)
    return _by_autograd(loss, (x,), g, (True,))[0]


def _native_layer_norm_backward(g, x, shape, mean, rstd, w, b, output_mask):
    last, rows = tuple(range(-len(shape), 0)), tuple(range(x.ndim - len(shape)))
    normal = (x - mean) * rstd
    slope = g if w is None else g * w
    shared = slope.mean(last, keepdim=True) + normal * (slope * normal).mean(last, keepdim=True)
    found = rstd * (slope - shared), (g * normal).sum(rows) if rows else g * normal, g.sum(rows) if rows else g
    return tuple([value if wanted else None for value, wanted in zip(found, output_mask)])


def _local_scalar_dense(t):
    return t.item()


def _linalg_vector_norm(t, ord=2, dim=None, keepdim=False, *, dtype=None):
    return xp.vector_norm(t, ord=ord, axis=None if dim is None else tuple(dim), keepdims=keepdim)


def _slice(t, dim=0, start=None, end=None, step=1):
    return t[(slice(None),) * (dim % t.ndim) + (slice(start, end, step),)]


def _index(t, indices):
    return t[tuple([slice(None) if i is None else i for i in indices])]


def _mean_squares(x, target, reduction=1):
    from ...nn import functional

    return functional.mse_loss(x, target, reduction=next(n for n, k in REDUCTIONS.items() if k == reduction))


def _binary_cross_entropy(x, target, weight=None, pos_weight=None, reduction=1):
    word = next(name for name, number in REDUCTIONS.items() if number == reduction)
    return xp.binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction=word)


def _embedding_body(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    where = None if padding_idx == -1 else padding_idx
    return xp.embedding(weight, indices, padding_idx=where, by_freq=scale_grad_by_freq)


def _random_like(name: str):
    def body(t, *, pin_memory=False, layout=None, **options):
        from ..public import PUBLIC

        return PUBLIC[name](t, **options)

    return body


BODIES = {
    "rand_like": _random_like("rand_like"),
    "randn_like": _random_like("randn_like"),
    "_to_copy": _to_copy,
    "_unsafe_view": _unsafe_view,
    "_softmax": _softmax_body,
    "_log_softmax": _log_softmax_body,
    "_local_scalar_dense": _local_scalar_dense,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "embedding": _embedding_body,
    "embedding_dense_backward": _embedding_dense_backward,
    "gelu_backward": _backward("gelu", "g", "x", approximate="none"),
    "index": _index,
    "leaky_relu_backward": _backward("leaky_relu", "g", "x", "negative_slope"),
    "linalg_vector_norm": _linalg_vector_norm,
    "mse_loss": _mean_squares,
    "mse_loss_backward": _mse_loss_backward,
    "native_layer_norm": _native_layer_norm,
    "native_layer_norm_backward": _native_layer_norm_backward,
    "nll_loss_backward": _nll_loss_backward,
    "nll_loss_forward": _nll_loss_forward,
    "binary_cross_entropy_with_logits": _binary_cross_entropy,
    "select_backward": _select_backward,
    "sigmoid_backward": _backward("sigmoid", "g", "y"),
    "silu_backward": _backward("silu", "g", "x"),
    "slice": _slice,
    "slice_backward": _slice_backward,
    "tanh_backward": _backward("tanh", "g", "y"),
    "threshold_backward": _threshold_backward,
    "_softmax_backward_data": _backward("softmax", "g", "y", "axis", "dtype"),
    "_log_softmax_backward_data": _backward("log_softmax", "g", "y", "axis", "dtype"),
}
