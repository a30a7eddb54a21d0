"""Convolution: by the library in C where it is there, see ``native/src/conv.c``, else on NumPy.

On NumPy: column matrices in cache-sized blocks, multiplied by BLAS, the blocks shared out to threads. A convolution,
its transpose in the input and its transpose in the weight are three bilinear maps, each the derivative of the others;
all three go through ``Geometry``, which knows where the windows are. Images stay in PyTorch's NCHW layout throughout:
the columns of a few images at a time fit in the second-level cache, so building them costs little, and the product
lands in the output's own memory.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from ...native import library
from . import sums
from .parallel import BLOCK, cycled, over, rows
from .products import product

_BLOCK = 1 << 22  # bytes of columns to build at once; measured best of 256 KiB to 4 MiB
_FEW = 128  # positions below which the columns of several images are one matrix
_PIECES = 4  # into which images are cut at least, for threads
_WORTH = 1 << 14  # multiplications from which on the library in C is called


def conv(x, w, b=None, *, stride, padding, dilation, groups):
    """``y[n, o] = b[o] + sum over c, k of w[o, c, k] x[n, c, s*p + d*k]``, N-dimensional."""
    geometry = Geometry(x.shape[2:], w.shape[2:], stride, padding, dilation)
    n, o = x.shape[0], w.shape[0]
    if geometry.is_product(groups):
        return product(_matrix(x), _matrix(w).T, b).reshape(n, o, *geometry.out)
    y = np.empty((n, o, *geometry.out), dtype=x.dtype)
    if not y.size:
        return y
    if _serves(geometry, y.size * w.shape[1], x, w, b):
        library.conv(*_in_order(x, w, b), y, *geometry.numbers(x, w, groups))
        return y
    if _is_depthwise(w, groups):
        return _depthwise(x, w, b, y, geometry)
    positions = math.prod(geometry.out)
    weights = w.reshape(groups, o // groups, -1)
    bias = None if b is None else b.reshape(-1, 1)
    xp, flat = geometry.pad(x), y.reshape(n, o, positions)

    def make():
        columns = _Columns(xp, geometry, groups, merged=positions < _FEW)

        def work(start, stop):
            out, built = flat[start:stop], columns.of(start, stop)
            if columns.merged:  # (groups, inner, images * positions)
                out[...] = np.matmul(weights, built).reshape(o, -1, positions).transpose(1, 0, 2)
            else:
                np.matmul(weights, built, out=out.reshape(-1, groups, o // groups, positions))
            if bias is not None:
                out += bias

        return work

    _over_blocks(n, _images_per_block(geometry, *x.shape[:2], x.itemsize), make)
    return y


def conv_input(g, w, *, size, stride, padding, dilation, groups):
    """The transpose of ``conv`` in x: where each output's gradient came from, for an input of spatial ``size``."""
    geometry = Geometry(size, w.shape[2:], stride, padding, dilation)
    n, o, channels = g.shape[0], w.shape[0], w.shape[1] * groups
    if geometry.is_product(groups):
        return product(_matrix(g), _matrix(w)).reshape(n, channels, *size)
    if _serves(geometry, g.size * w.shape[1], g, w):
        out = np.empty((n, channels, *size), dtype=g.dtype)
        library.conv_input(*_in_order(g, w, None), out, *geometry.numbers(out, w, groups))
        return out
    padded = np.zeros((n, channels, *geometry.padded), dtype=g.dtype)
    g = np.ascontiguousarray(g)
    if _is_depthwise(w, groups):
        _depthwise_input(g, w, padded, geometry)
        return geometry.unpad(padded)
    positions = math.prod(geometry.out)
    weights = np.ascontiguousarray(w.reshape(groups, o // groups, -1).transpose(0, 2, 1))
    step = _images_per_block(geometry, n, channels, g.itemsize)
    if geometry.runs and geometry.out != geometry.padded and positions >= _FEW:
        _over_blocks(n, step, lambda: _add_runs(g, weights, padded, geometry))
        return geometry.unpad(padded)
    g = g.reshape(n, groups, o // groups, positions)
    merged = positions < _FEW

    def work(start, stop):
        part, target, count = g[start:stop], padded[start:stop], stop - start
        if merged:
            part = part.transpose(1, 2, 0, 3).reshape(groups, o // groups, count * positions)
        columns = _product(weights, part)
        columns = (
            columns.reshape(channels, -1, count, *geometry.out)
            if merged
            else columns.reshape(count, channels, -1, *geometry.out)
        )
        for k, offset in enumerate(np.ndindex(*geometry.kernel)):
            place = target[(slice(None), slice(None), *geometry.window(offset))]
            place += columns[:, k].swapaxes(0, 1) if merged else columns[:, :, k]

    _over_blocks(n, step, lambda: work)
    return geometry.unpad(padded)


def conv_backward(g, edges, known):
    """All gradients of ``conv``: those of its rules, and the bias's in one pass over ``g``."""
    to_x, to_w, *to_b = edges  # a convolution without bias may have two arguments
    static = {name: known[name] for name in ("stride", "padding", "dilation", "groups")}
    g = np.ascontiguousarray(g)
    gx = gw = None
    if to_x is not None:
        w = known["w"]
        gx = conv_input(g, w.conj() if w.dtype.kind == "c" else w, size=tuple(known["x_shape"][2:]), **static)
    if to_w is not None:
        x = known["x"]
        gw = conv_weight(x.conj() if x.dtype.kind == "c" else x, g, size=tuple(known["w_shape"][2:]), **static)
    return [gx, gw, *[None if edge is None else _channel_sums(g) for edge in to_b]]


def _channel_sums(g):
    if library is None or g.dtype.char not in "fd":
        return np.add.reduce(g, axis=(0, *range(2, g.ndim)))
    sums = np.empty(g.shape[1], g.dtype)
    library.channel_sums(g, sums, g.shape[0], g.shape[1], math.prod(g.shape[2:]))
    return sums


def _add_runs(g, weights, padded, geometry):
    """``conv_input``'s work with stride 1: whole runs of memory are added, see ``Geometry.runs``."""
    o, channels = g.shape[1], padded.shape[1]
    lines = padded.reshape(len(padded), channels, -1)

    def work(start, stop):
        count = stop - start
        spaced = np.zeros((count * o, geometry.run), g.dtype)
        geometry.inside_run(spaced)[...] = g[start:stop].reshape(count * o, *geometry.out)
        columns = _product(weights, spaced.reshape(count, len(weights), -1, geometry.run))
        columns = columns.reshape(count, channels, -1, geometry.run)
        for k, offset in enumerate(geometry.offsets):
            lines[start:stop, :, offset : offset + geometry.run] += columns[:, :, k]

    return work


def conv_weight(x, g, *, size, stride, padding, dilation, groups):
    """The transpose of ``conv`` in w, for a kernel of spatial ``size``."""
    geometry = Geometry(x.shape[2:], size, stride, padding, dilation)
    n, o, channels = g.shape[0], g.shape[1], x.shape[1]
    if geometry.is_product(groups):
        return product(_matrix(g).T, _matrix(x)).reshape(o, channels, *size)
    if channels == groups == o:
        if _serves(geometry, g.size, x, g):
            out = np.empty((o, 1, *size), dtype=x.dtype)
            library.depthwise_weight(*_in_order(x, g), out, *geometry.numbers(x, out, groups))
            return out
        return _depthwise_weight(x, np.ascontiguousarray(g), geometry).reshape(o, 1, *size)
    if _serves(geometry, g.size * channels // groups, x, g):
        out = np.empty((o, channels // groups, *size), dtype=x.dtype)
        library.conv_weight(*_in_order(x, g), out, *geometry.numbers(x, out, groups))
        return out
    total = np.zeros((groups, channels // groups * math.prod(size), o // groups), dtype=x.dtype)
    if g.size and x.size:
        positions = math.prod(geometry.out)
        g = np.ascontiguousarray(g).reshape(n, groups, o // groups, positions)
        xp, parts = geometry.pad(x), {}

        def make():
            columns = _Columns(xp, geometry, groups, merged=positions < _FEW)

            def work(start, stop):
                part, built = g[start:stop], columns.of(start, stop)
                if columns.merged:
                    part = part.transpose(1, 2, 0, 3).reshape(groups, o // groups, -1)
                product = np.matmul(built, part.swapaxes(-1, -2))  # this way round BLAS is faster
                parts[start] = product if columns.merged else np.add.reduce(product, axis=0)

            return work

        _over_blocks(n, _images_per_block(geometry, n, channels, x.itemsize), make)
        for start in sorted(parts):  # whichever thread was first: the sum is the same every time
            total += parts[start]
    return total.swapaxes(1, 2).reshape(o, channels // groups, *size)


def _serves(geometry, work, *arrays) -> bool:
    """Is the library in C there, and made for these?"""
    if library is None or not geometry.is_for_kernels(work):
        return False
    dtype = arrays[0].dtype
    return dtype.char in "fd" and all(a is None or (a.dtype == dtype and a.size) for a in arrays)


def _matrix(a):
    return a.reshape(len(a), math.prod(a.shape[1:]))


def _in_order(*arrays):
    return [a if a is None or a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays]


class Geometry:
    """Sizes and windows of one convolution."""

    def __init__(self, size, kernel, stride, padding, dilation):
        self.size, self.kernel, self.stride, self.padding, self.dilation = size, kernel, stride, padding, dilation
        self.padded = tuple(s + 2 * p for s, p in zip(size, padding))
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
        self.out = tuple((s - r) // t + 1 for s, r, t in zip(self.padded, reach, stride))
        # With stride 1, what a kernel element meets in a padded image lies in one run of memory, ``run`` elements from
        # its offset on: rows go on into each other, and what is computed between them is left out in the end.
        self.runs = all(t == 1 for t in stride)
        steps = [math.prod(self.padded[i + 1 :]) for i in range(len(size))]
        self.offsets = [sum(i * d * a for i, d, a in zip(at, dilation, steps)) for at in np.ndindex(*kernel)]
        self.steps, self.run = steps, sum((n - 1) * a for n, a in zip(self.out, steps)) + 1

    def is_product(self, groups) -> bool:
        """Is the kernel as large as the image? There is one window then, and all is one matrix product."""
        return groups == 1 and self.size == self.kernel and not any(self.padding)

    def is_for_kernels(self, work) -> bool:
        """``work``: multiplications, for each element of the kernel."""
        return len(self.size) <= 3 and work * math.prod(self.kernel) >= _WORTH

    def numbers(self, x, w, groups):
        """What the library in C wants to know, for three dimensions: images are (1, 1, width) or (1, height, width)."""
        fill = 3 - len(self.size)
        yield from (x.shape[0], groups, x.shape[1] // groups, w.shape[0] // groups)
        for sizes in (self.size, self.out, self.kernel, self.stride):
            yield from (*[1] * fill, *sizes)
        yield from (*[0] * fill, *self.padding, *[1] * fill, *self.dilation)

    def inside_run(self, runs):
        """The part of (images, run) that is no left-over, (images, *out)."""
        strides = (runs.strides[0], *(step * runs.itemsize for step in self.steps))
        return np.lib.stride_tricks.as_strided(runs, (len(runs), *self.out), strides)

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


def _images_per_block(geometry, n, channels, itemsize) -> int:
    """Few enough for several threads, where that is worth it, and the same however many there are."""
    columns = max(1, channels * math.prod(geometry.kernel) * math.prod(geometry.out))
    return max(1, min(_BLOCK // (columns * itemsize), max(BLOCK // columns, -(-n // _PIECES))))


def _over_blocks(n, step, make) -> None:
    """``over``, but no block is cut for more threads: a product's last bits depend on how large it is."""

    def blocks():
        work = make()

        def some(first, last):
            for start in range(first * step, min(last * step, n), step):
                work(start, min(start + step, n))

        return some

    over(-(-n // step), 1, blocks)


class _Columns:
    """Column matrices of some images at a time, in a buffer that is used again.

    They are (images, groups, inner, positions), or, ``merged``, (groups, inner, images * positions).
    """

    def __init__(self, x, geometry: Geometry, groups, merged):
        self.windows, self.geometry, self.groups, self.merged = geometry.windows(x), geometry, groups, merged
        self.pointwise = not merged and geometry.padded == geometry.out  # the image is its own column matrix
        self.x = x

    def of(self, start, stop):
        windows, out, kernel = self.windows[start:stop], self.geometry.out, self.geometry.kernel
        count, channels = windows.shape[:2]
        inner = channels // self.groups * math.prod(kernel)
        if self.pointwise:
            return self.x[start:stop].reshape(count, self.groups, inner, -1)
        flat = _scratch(windows.size, windows.dtype)
        if not self.merged:
            np.copyto(flat.reshape(windows.shape), windows)
            return flat.reshape(count, self.groups, inner, -1)
        d = len(kernel)
        order = (1, *range(2, 2 + d), 0, *range(2 + d, 2 + 2 * d))
        np.copyto(flat.reshape(channels, *kernel, count, *out), windows.transpose(order))
        return flat.reshape(self.groups, inner, -1)


_memory = threading.local()


def _scratch(size, dtype):
    """This thread's memory for columns; kept, for fresh memory has to be cleared by the system first."""
    need = size * dtype.itemsize
    if need > 4 * _BLOCK:
        return np.empty(size, dtype)
    found = getattr(_memory, "bytes", None)
    if found is None or found.size < need:
        found = _memory.bytes = np.empty(need, np.uint8)
    return found[:need].view(dtype)


def _product(weights, columns):
    """Their matrix product, in this thread's memory."""
    shape = (*columns.shape[:-2], weights.shape[-2], columns.shape[-1])
    return np.matmul(weights, columns, out=_scratch(math.prod(shape), columns.dtype).reshape(shape))


# -- one filter per channel: a product per kernel element is cheaper than columns of a single row ----------------------


def _is_depthwise(w, groups) -> bool:
    return w.shape[1] == 1 and w.shape[0] == groups


def _depthwise(x, w, b, y, geometry):
    xp, target, taps = _by_channel(geometry.pad(x)), _by_channel(y), _Taps(geometry)
    bias = None if b is None else b.reshape(-1, *[1] * len(geometry.out))

    def work(start, stop):
        total = taps.buffer(stop - start, y.dtype)
        scratch = np.empty_like(total)
        for k, (read, factors) in enumerate(zip(taps.each(xp[start:stop]), taps.values(w, start, stop))):
            np.multiply(read, factors, out=scratch if k else total)
            if k:
                total += scratch
        target[start:stop] = taps.inside(total)
        if bias is not None:
            target[start:stop] += cycled(bias, start, stop)

    rows(len(target), taps.size, work)
    return y


def _depthwise_input(g, w, padded, geometry):
    source, target, taps = _by_channel(g), _by_channel(padded), _Taps(geometry)

    def work(start, stop):
        spaced = taps.spaced(source[start:stop])
        scratch = np.empty_like(spaced)
        for place, factors in zip(taps.each(target[start:stop]), taps.values(w, start, stop)):
            np.multiply(spaced, factors, out=scratch)
            place += scratch

    rows(len(source), taps.size, work)


def _depthwise_weight(x, g, geometry):
    xp, source, taps = _by_channel(geometry.pad(x)), _by_channel(g), _Taps(geometry)
    products = np.empty((len(source), len(geometry.offsets)), x.dtype)

    def work(start, stop):
        spaced = taps.spaced(source[start:stop]).reshape(stop - start, -1)
        for k, met in enumerate(taps.each(xp[start:stop])):
            np.vecdot(met.reshape(spaced.shape), spaced, out=products[start:stop, k])

    rows(len(source), taps.size, work)
    taken = len(geometry.offsets)
    return sums.rows(products.reshape(len(x), x.shape[1] * taken)).reshape(x.shape[1], taken)


def _by_channel(x):
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


class _Taps:
    """What each kernel element of a depthwise convolution meets in images of one channel."""

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        self.shape = (geometry.run,) if geometry.runs else geometry.out
        self.size = math.prod(self.shape)

    def buffer(self, count, dtype):
        return np.empty((count, *self.shape), dtype)

    def inside(self, buffer):
        """The part of a buffer that is the result, (images, *out)."""
        return self.geometry.inside_run(buffer) if self.geometry.runs else buffer

    def spaced(self, g):
        """A buffer with ``g`` in that part, and 0 elsewhere."""
        buffer = self.buffer(len(g), g.dtype)
        buffer[...] = 0
        self.inside(buffer)[...] = g
        return buffer

    def each(self, images):
        """What the kernel elements meet, one after the other."""
        geometry, lines = self.geometry, images.reshape(len(images), -1)
        for at, offset in zip(np.ndindex(*geometry.kernel), geometry.offsets):
            if geometry.runs:
                yield lines[:, offset : offset + geometry.run]
            else:
                yield images[(slice(None), *geometry.window(at))]

    def values(self, w, start, stop):
        """The value of each kernel element for those images."""
        values = cycled(w.reshape(len(w), -1), start, stop)
        return values.T.reshape(-1, stop - start, *[1] * len(self.shape))
