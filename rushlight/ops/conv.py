"""Convolution, in any number of dimensions.

Three bilinear ops: ``conv``, its adjoint in the input (which is also transposed convolution), its adjoint in the
weight. The gradients of each are the other two, so every order of differentiation is here.
"""

from __future__ import annotations

from ..autograd.op import op

_NODE = "ConvolutionBackward0"


def _per_channel(xp, g):
    """A bias's gradient: the sum over everything but channels."""
    return xp.sum(g, axis=(0, *range(2, g.ndim)), keepdims=False)


def _with_bias(xp, y, b):
    return y if b is None else xp.add(y, xp.reshape(b, shape=(1, -1, *[1] * (y.ndim - 2))))


@op(
    node=_NODE,
    x=lambda xp, g, w, x_shape, stride, padding, dilation, groups: xp.conv_input(
        g, w, size=tuple(x_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda xp, g, x, w_shape, stride, padding, dilation, groups: xp.conv_weight(
        x, g, size=tuple(w_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda xp, g: _per_channel(xp, g),
)
def conv(xp, x, w, b=None, *, stride, padding, dilation, groups):
    """x: (N, C, *size), w: (O, C / groups, *kernel); stride, padding and dilation have one entry per dimension."""
    return _with_bias(xp, xp.conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups), b)


@op(
    node=_NODE,
    g_=lambda xp, g, w, stride, padding, dilation, groups: xp.conv(
        g, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda xp, g, g_, w_shape, stride, padding, dilation, groups: xp.conv_weight(
        g, g_, size=tuple(w_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda xp, g: _per_channel(xp, g),
)
def conv_input(xp, g_, w, b=None, *, size, stride, padding, dilation, groups):
    """The adjoint of ``conv`` in x, for an input of spatial ``size``."""
    return _with_bias(
        xp, xp.conv_input(g_, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups), b
    )


@op(
    node=_NODE,
    x=lambda xp, g, g_, x_shape, stride, padding, dilation, groups: xp.conv_input(
        g_, g, size=tuple(x_shape[2:]), stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    g_=lambda xp, g, x, stride, padding, dilation, groups: xp.conv(
        x, g, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)
def conv_weight(xp, x, g_, *, size, stride, padding, dilation, groups):
    """The adjoint of ``conv`` in w, for a kernel of spatial ``size``."""
    return xp.conv_weight(x, g_, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
