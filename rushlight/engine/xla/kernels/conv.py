"""Convolution on XLA: one ``lax`` convolution and its two transposes; on the CPU by the kernels in C."""

from __future__ import annotations

import jax
from jax import lax

from .... import backends
from ...numpy.kernels.conv import Geometry
from . import native


def conv(x, w, *, stride, padding, dilation, groups):
    geometry = Geometry(x.shape[2:], w.shape[2:], stride, padding, dilation)
    shape = (x.shape[0], w.shape[0], *geometry.out)
    if _serves(geometry, x, w):
        return _run("conv", geometry, x, w, None, native.Place(shape, x.dtype), x, w, groups)
    return _conv(x, w, stride, padding, dilation, groups)


def conv_input(g, w, *, size, stride, padding, dilation, groups):
    geometry = Geometry(size, w.shape[2:], stride, padding, dilation)
    like = jax.ShapeDtypeStruct((g.shape[0], w.shape[1] * groups, *size), g.dtype)
    if _serves(geometry, g, w):
        return _run("conv_input", geometry, g, w, None, native.Place(like.shape, g.dtype), like, w, groups)

    def forward(x):
        return _conv(x, w, stride, padding, dilation, groups)

    return jax.linear_transpose(forward, like)(g)[0]


def conv_weight(x, g, *, size, stride, padding, dilation, groups):
    geometry = Geometry(x.shape[2:], size, stride, padding, dilation)
    channels = x.shape[1] // groups
    like = jax.ShapeDtypeStruct((g.shape[1], channels, *size), x.dtype)
    if _serves(geometry, x, g):
        kernel = "depthwise_weight" if x.shape[1] == groups == g.shape[1] else "conv_weight"
        return _run(kernel, geometry, x, g, native.Place(like.shape, x.dtype), x, like, groups)

    def forward(w):
        return _conv(x, w, stride, padding, dilation, groups)

    return jax.linear_transpose(forward, like)(g)[0]


def _serves(geometry, *arrays) -> bool:
    """Is there a kernel? Small ones, too, take no longer than XLA's, and a program of kernels is played."""
    return native.serves(*arrays) and len(geometry.size) <= 3


def _run(kernel, geometry, *arrays_x_w_groups):
    *arrays, x, w, groups = arrays_x_w_groups
    return native.call(kernel, *arrays, *map(int, geometry.numbers(x, w, groups)))[0]


def _conv(x, w, stride, padding, dilation, groups):
    return lax.conv_general_dilated(
        x,
        w,
        stride,
        [(p, p) for p in padding],
        rhs_dilation=dilation,
        feature_group_count=groups,
        precision=lax.Precision.DEFAULT if backends.cudnn.allow_tf32 else lax.Precision.HIGHEST,
    )
