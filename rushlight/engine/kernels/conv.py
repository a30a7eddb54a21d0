"""Convolution on NumPy: column matrices in cache-sized blocks, multiplied by BLAS.

A convolution, its adjoint in the input and its adjoint in the weight are three bilinear maps, each the derivative of
the others; all three go through ``_Geometry``, which knows where the windows are. Images stay in PyTorch's NCHW
layout throughout: the columns of a few images at a time fit in the second-level cache, so building them costs little,
and the product lands in the output's own memory.
"""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 1 << 22  # bytes of columns to build at once; measured best of 256 KiB to 4 MiB


def conv(x, w, *, stride, padding, dilation, groups):
    """``y[n, o] = sum over c, k of w[o, c, k] x[n, c, s*p + d*k]``, N-dimensional."""
    geometry = _Geometry(x.shape[2:], w.shape[2:], stride, padding, dilation)
    n, o = x.shape[0], w.shape[0]
    positions, inner = math.prod(geometry.out), math.prod(w.shape[1:])
    y = np.empty((n, o, *geometry.out), dtype=x.dtype)
    if not y.size:
        return y
    if w.shape[1] == 1 and o == groups:
        return _depthwise(x, w, y, geometry)
    xp = geometry.pad(x)
    weights = w.reshape(groups, o // groups, inner)
    for block, columns in _columns(xp, geometry, groups, merged=positions < 128):
        count = block.stop - block.start
        if columns.ndim == 3:  # (groups, inner, images * positions)
            product = np.matmul(weights, columns).reshape(o, count, positions)
            y[block].reshape(count, o, positions)[...] = product.transpose(1, 0, 2)
        else:
            np.matmul(weights, columns, out=y[block].reshape(count, groups, o // groups, positions))
    return y


def conv_input(g, w, *, size, stride, padding, dilation, groups):
    """The adjoint of ``conv`` in x: where each output's gradient came from, for an input of spatial ``size``."""
    geometry = _Geometry(size, w.shape[2:], stride, padding, dilation)
    n, o, inner = g.shape[0], w.shape[0], math.prod(w.shape[1:])
    channels = w.shape[1] * groups
    positions = math.prod(geometry.out)
    padded = np.zeros((n, channels, *geometry.padded), dtype=g.dtype)
    weights = np.ascontiguousarray(w.reshape(groups, o // groups, inner).transpose(0, 2, 1))
    step = max(1, _BLOCK // max(1, groups * inner * positions * g.itemsize))
    g = np.ascontiguousarray(g).reshape(n, groups, o // groups, positions)
    merged = positions < 128
    for start in range(0, n, step):
        part = g[start : start + step]
        count = part.shape[0]
        if merged:
            columns = np.matmul(weights, part.transpose(1, 2, 0, 3).reshape(groups, o // groups, count * positions))
            columns = columns.reshape(channels, -1, count, *geometry.out)
        else:
            columns = np.matmul(weights, part).reshape(count, channels, -1, *geometry.out)
        target = padded[start : start + count]
        for k, offset in enumerate(np.ndindex(*geometry.kernel)):
            place = target[(slice(None), slice(None), *geometry.window(offset))]
            place += columns[:, k].swapaxes(0, 1) if merged else columns[:, :, k]
    return geometry.unpad(padded)


def conv_weight(x, g, *, size, stride, padding, dilation, groups):
    """The adjoint of ``conv`` in w, for a kernel of spatial ``size``."""
    geometry = _Geometry(x.shape[2:], size, stride, padding, dilation)
    n, o, channels = g.shape[0], g.shape[1], x.shape[1]
    positions = math.prod(geometry.out)
    total = np.zeros((groups, o // groups, channels // groups * math.prod(size)), dtype=x.dtype)
    if g.size and x.size:
        g = g.reshape(n, groups, o // groups, positions)
        for block, columns in _columns(geometry.pad(x), geometry, groups, merged=True):
            part = g[block].transpose(1, 2, 0, 3).reshape(groups, o // groups, -1)
            total += np.matmul(part, columns.swapaxes(1, 2))
    return total.reshape(o, channels // groups, *size)


class _Geometry:
    """Sizes and windows of one convolution."""

    def __init__(self, size, kernel, stride, padding, dilation):
        self.size, self.kernel, self.stride, self.padding, self.dilation = size, kernel, stride, padding, dilation
        self.padded = tuple(s + 2 * p for s, p in zip(size, padding))
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
        self.out = tuple((s - r) // t + 1 for s, r, t in zip(self.padded, reach, stride))

    def pad(self, x):
        if not any(self.padding):
            return np.ascontiguousarray(x)
        padded = np.zeros((*x.shape[:2], *self.padded), dtype=x.dtype)
        padded[self._inside()] = x
        return padded

    def unpad(self, padded):
        return np.ascontiguousarray(padded[self._inside()]) if any(self.padding) else padded

    def _inside(self):
        return (slice(None), slice(None), *(slice(p, p + s) for p, s in zip(self.padding, self.size)))

    def window(self, offset):
        """The input positions that kernel element ``offset`` meets, as slices."""
        return tuple(
            slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in zip(offset, self.dilation, self.out, self.stride)
        )

    def windows(self, x):
        """A view of padded ``x``, (images, channels, *kernel, *out)."""
        spatial = x.strides[2:]
        strides = (
            *x.strides[:2],
            *(s * d for s, d in zip(spatial, self.dilation)),
            *(s * t for s, t in zip(spatial, self.stride)),
        )
        return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *self.kernel, *self.out), strides, writeable=False)


def _columns(x, geometry: _Geometry, groups, merged):
    """Yield (slice of images, their columns) in blocks that stay in cache.

    Columns are (images, groups, inner, positions), or, ``merged``, (groups, inner, images * positions).
    """
    n, channels = x.shape[:2]
    taps, positions = math.prod(geometry.kernel), math.prod(geometry.out)
    windows = geometry.windows(x)
    inner = channels // groups * taps
    step = min(n, max(1, _BLOCK // max(1, channels * taps * positions * x.itemsize)))
    buffer = np.empty((step, channels * taps * positions), dtype=x.dtype)
    for start in range(0, n, step):
        block = slice(start, min(n, start + step))
        count = block.stop - block.start
        flat = buffer.reshape(-1)[: count * channels * taps * positions]
        if merged:
            d = len(geometry.kernel)
            order = (1, *range(2, 2 + d), 0, *range(2 + d, 2 + 2 * d))
            np.copyto(flat.reshape(channels, *geometry.kernel, count, *geometry.out), windows[block].transpose(order))
            yield block, flat.reshape(groups, inner, count * positions)
        else:
            np.copyto(flat.reshape(count, channels, *geometry.kernel, *geometry.out), windows[block])
            yield block, flat.reshape(count, groups, inner, positions)


def _depthwise(x, w, y, geometry):
    """One filter per channel: a product per kernel element is cheaper than columns of a single row."""
    xp = geometry.pad(x)
    y[...] = 0
    scratch = np.empty_like(y)
    for offset in np.ndindex(*geometry.kernel):
        tap = w[(slice(None), 0, *offset)].reshape(-1, *[1] * len(geometry.kernel))
        np.multiply(xp[(slice(None), slice(None), *geometry.window(offset))], tap, out=scratch)
        y += scratch
    return y
