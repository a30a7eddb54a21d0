"""Adaptive pooling, resizing, border padding and sampling by kernels."""

from __future__ import annotations

import math

import numpy as np

from ..numpy.kernels.copies import copied, put

_LONGEST = (1 << 31) - 1  # an axis whose places the kernel counts in 32 bits
_MOST = 1 << 28  # elements; whether there is memory for more is asked by the rule


def install(library, bodies, backward) -> None:
    bodies["resample"], backward["resample"] = _resample(library.resample, bodies["resample"])
    bodies["largest_of"] = _largest_of(library.largest_of, bodies["largest_of"])
    bodies["at_positions"] = _at_positions(library.at_positions, bodies["at_positions"])
    backward["at_positions"] = _add_positions(library.add_positions)
    bodies["pad_constant"], backward["pad_constant"] = _padded, _padded_backward
    bodies["unpool"] = _unpooled(library.put_positions, bodies["unpool"])
    backward["unpool"] = _unpooled_backward(library.at_positions)
    bodies["grid_sampler"] = _sampled(library.grid_sample, bodies["grid_sampler"])
    backward["grid_sampler"] = _sampled_backward(library.grid_sample_slope)


# -- sums along axes ---------------------------------------------------------------------------------------------------


def _resample(kernel, plain):
    def forward(xp, x, *, maps, transposed=False):
        found = resampled(x, maps, transposed)
        return plain(xp, x, maps=maps, transposed=transposed) if found is None else found

    def backward(g, edges, saved):
        found = resampled(g, saved["maps"], not saved["transposed"])
        return None if found is None else (found,)

    def resampled(x, maps, transposed):
        """None where the kernel does not serve."""
        if x.dtype.char not in "fd" or x.ndim < 2 or not x.size or not any(maps):
            return None
        maps = (None,) * (x.ndim - len(maps)) + tuple(maps)
        if not 0 < math.prod(_lengths(x.shape, maps, transposed)) <= _MOST:
            return None
        x = np.ascontiguousarray(x)
        for axis, along in enumerate(maps[:-2]):
            if along is not None:
                x = _along(kernel, x, axis, (along, None), transposed)
        return _along(kernel, x, x.ndim - 2, maps[-2:], transposed) if any(maps[-2:]) else x

    return forward, backward


def _lengths(shape, maps, transposed):
    return [n if m is None else m.results(transposed) for n, m in zip(shape, maps)]


def _along(kernel, x, axis, maps, transposed):
    """An axis and the one that follows it, or all that do; only if it is one axis has it a map."""
    seen = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    after = _lengths(seen[1:], maps, transposed)
    tables = [(None, None) if m is None else m.table(transposed, x.dtype) for m in maps]
    out = np.empty((*x.shape[:axis], after[0], *(x.shape[axis + 1 :] if maps[1] is None else after[1:])), x.dtype)
    kernel(x, *tables[0], *tables[1], out, *seen, *after)
    return out


# -- a constant around it ----------------------------------------------------------------------------------------------


_FEW = 1 << 12  # elements


def _padded(xp, x, *, pad, value=0):
    """What is inside is copied on all threads; the borders are few."""
    out = np.empty([n + before + after for n, (before, after) in zip(x.shape, pad)], x.dtype)
    value, lead = np.asarray(value).astype(x.dtype), ()
    if out.size < _FEW:  # one write more is less than finding the borders
        out[...] = value
        out[_inside(pad, out.shape)] = x
        return out
    put(out[_inside(pad, out.shape)], x)
    for (before, after), n in zip(pad, out.shape):
        for border in filter(None, (before and slice(0, before), after and slice(n - after, n))):
            out[(*lead, border)] = value
        lead += (slice(before, n - after),)  # the rest of the first axes is done
    return out


def _padded_backward(g, edges, saved):
    return (copied(g[_inside(saved["pad"], g.shape)]),)


def _inside(pad, shape) -> tuple:
    return tuple([slice(before, n - after) for (before, after), n in zip(pad, shape)])


# -- the largest -------------------------------------------------------------------------------------------------------


def _largest_of(kernel, plain):
    def largest_of(xp, x, *starts, reach):
        """In two dimensions at most, where all planes have the same windows."""
        if x.dtype.char not in "fd" or len(starts) > 2 or any(s.ndim > 1 for s in starts) or max(x.shape) > _LONGEST:
            return plain(xp, x, *starts, reach=reach)
        found = np.empty((*x.shape[: x.ndim - len(starts)], *map(len, starts)), np.int64)
        if x.size and found.size:
            bounds = [np.array([s, s + np.asarray(r)], np.int64) for s, r in zip(starts, reach)]
            one_row = [np.array([[0], [1]])] * (2 - len(starts))
            height, width = (1, *x.shape)[-2:] if len(starts) == 2 else (1, x.shape[-1])
            kernel(np.ascontiguousarray(x), *one_row, *bounds, found, height, width)
        return found

    return largest_of


def _at_positions(kernel, plain):
    def at_positions(xp, x, index, *, dims):
        if x.shape[: x.ndim - dims] != index.shape[: index.ndim - dims]:
            return plain(xp, x, index, dims=dims)
        out = np.empty(index.shape, x.dtype)
        try:
            kernel(np.ascontiguousarray(x), np.ascontiguousarray(index), out, math.prod(x.shape[: x.ndim - dims]))
        except (TypeError, IndexError):
            return plain(xp, x, index, dims=dims)
        return out

    return at_positions


def _add_positions(kernel):
    def backward(g, edges, saved):
        """None where the kernel does not take the arrays, or an index is out of bounds."""
        index, shape = saved["index"], saved["x_shape"]
        lead = shape[: len(shape) - saved["dims"]]
        if g.shape != index.shape or tuple(lead) != g.shape[: len(lead)]:
            return None
        out = np.empty(shape, g.dtype)
        try:
            kernel(np.ascontiguousarray(g), np.ascontiguousarray(index), out, math.prod(lead))
        except (TypeError, IndexError):
            return None
        return out, None

    return backward


def _unpooled(kernel, plain):
    def unpool(xp, x, index, *, full):
        out = np.empty((*x.shape[: x.ndim - len(full)], *full), x.dtype)
        try:
            kernel(np.ascontiguousarray(x), np.ascontiguousarray(index), out, math.prod(x.shape[: x.ndim - len(full)]))
        except (TypeError, IndexError):
            return plain(xp, x, index, full=full)
        return out

    return unpool


def _unpooled_backward(kernel):
    def backward(g, edges, saved):
        """None where the kernel does not take the arrays."""
        out, lead = np.empty(saved["index"].shape, g.dtype), g.shape[: g.ndim - len(saved["full"])]
        try:
            kernel(np.ascontiguousarray(g), np.ascontiguousarray(saved["index"]), out, math.prod(lead))
        except (TypeError, IndexError):
            return None
        return out, None

    return backward


# -- sampling ----------------------------------------------------------------------------------------------------------

_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _sampled(kernel, plain):
    def sampled(xp, x, grid, *, mode, padding, align):
        if not _samples(x, grid):
            return plain(xp, x, grid, mode=mode, padding=padding, align=align)
        out = np.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
        kernel(*map(np.ascontiguousarray, (x, grid)), out, *_sampler(x.shape, grid.shape, mode, padding, align))
        return out

    return sampled


def _sampled_backward(kernel):
    def backward(g, edges, saved):
        """None where the op's rule does the work."""
        x, grid = saved["x"], saved["grid"]
        if not _samples(x, grid) or g.dtype != x.dtype:
            return None
        made = [None if edge is None else np.empty(a.shape, a.dtype) for edge, a in zip(edges, (x, grid))]
        numbers = _sampler(x.shape, grid.shape, *[saved[name] for name in ("mode", "padding", "align")])
        kernel(*map(np.ascontiguousarray, (g, x, grid)), *made, *numbers)
        return made

    return backward


def _samples(x, grid) -> bool:
    return x.dtype.char in "fd" and x.dtype == grid.dtype and x.size > 0 and math.prod(x.shape[2:]) <= _LONGEST


def _sampler(shape, points, mode, padding, align):
    """What the kernel wants to know: sizes, those of an image with a depth of 1, and how to sample."""
    dims = len(shape) - 2
    sizes = (*shape[:2], *(1,) * (3 - dims), *shape[2:], math.prod(points[1:-1]))
    return *sizes, dims, _MODES[mode], _PADDINGS[padding], int(align)
