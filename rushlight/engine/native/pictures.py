"""Adaptive pooling, resizing and border padding by kernels."""

from __future__ import annotations

import math

import numpy as np

_LONGEST = (1 << 31) - 1  # an axis whose places the kernel counts in 32 bits
_MOST = 1 << 28  # elements; whether there is memory for more is asked by the rule


def install(library, bodies, backward) -> None:
    bodies["resample"], backward["resample"] = _resample(library.resample, bodies["resample"])
    bodies["largest_of"] = _largest_of(library.largest_of, bodies["largest_of"])
    bodies["at_positions"] = _at_positions(library.at_positions, bodies["at_positions"])
    backward["at_positions"] = _add_positions(library.add_positions)


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
