"""Convolution on XLA: one ``lax`` convolution and its two transposes."""

from __future__ import annotations

import jax
from jax import lax

from .... import backends


def conv(x, w, *, stride, padding, dilation, groups):
    return lax.conv_general_dilated(
        x,
        w,
        stride,
        [(p, p) for p in padding],
        rhs_dilation=dilation,
        feature_group_count=groups,
        precision=lax.Precision.DEFAULT if backends.cudnn.allow_tf32 else lax.Precision.HIGHEST,
    )


def conv_input(g, w, *, size, stride, padding, dilation, groups):
    shape = (g.shape[0], w.shape[1] * groups, *size)

    def forward(x):
        return conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)

    return jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, g.dtype))(g)[0]


def conv_weight(x, g, *, size, stride, padding, dilation, groups):
    shape = (g.shape[1], x.shape[1] // groups, *size)

    def forward(w):
        return conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)

    return jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(g)[0]
