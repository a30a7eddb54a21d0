"""What the commonest ops return, told from shapes alone: an engine that records need not trace their rules to know.

A rule here answers for the plain case. It returns None for any other, and for what is wrong: then the op itself is
traced, and complains in its own words.
"""

from __future__ import annotations

import math
from typing import Any

_FLOATS = "fV"  # kinds of floating-point dtypes; those of ml_dtypes are V


class Foreseen:
    """A shape and a dtype."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple, dtype):
        self.shape, self.dtype = shape, dtype


def foreseen(o, needs: int, target, final, arrays, static: dict):
    """What ``evaluate`` returns, with ``Foreseen`` for arrays; None where only the op knows."""
    rule = _RULES.get(o.name)
    if rule is None or target is not None or final is not None or (o.residuals and needs):
        return None
    given = [a for a in arrays if hasattr(a, "shape")]
    if o.lowered is not None:
        given = [Foreseen(a.shape, o.lowered) for a in given]
    elif any(a.dtype != given[0].dtype for a in given) and o.name != "embedding":
        return None
    out = rule(*given, **{**o.static, **static})
    return None if out is None else out if o.aux is not None else (out, None)


def _same(x, **_):
    return Foreseen(x.shape, x.dtype) if x.dtype.kind in _FLOATS else None


def _copy(x, **_):
    return Foreseen(x.shape, x.dtype)


def _sum(x, w=None, **_):
    if x.dtype.kind not in _FLOATS or (w is not None and len(w.shape) > len(x.shape)):
        return None
    other = () if w is None else w.shape
    fits = all(n in (1, m) for n, m in zip(reversed(other), reversed(x.shape)))
    return Foreseen(x.shape, x.dtype) if fits else None


def _reshaped(x, shape, **_):
    return Foreseen(tuple(shape), x.dtype) if math.prod(shape) == math.prod(x.shape) else None


def _swapped(x, axis1, axis2, **_):
    shape = list(x.shape)
    shape[axis1], shape[axis2] = shape[axis2], shape[axis1]
    return Foreseen(tuple(shape), x.dtype)


def _split(x, sizes, axis):
    if sum(sizes) != x.shape[axis]:
        return None
    return tuple([Foreseen((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype) for n in sizes])


def _slice(x, axis, size, **_):
    return Foreseen((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)


def _selected(x, axis, **_):
    return Foreseen((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)


def _joined(*xs, axis):
    first = xs[0].shape
    around = {(len(x.shape), *x.shape[:axis], *x.shape[axis + 1 :]) for x in xs}
    if len(around) > 1 or not 0 <= axis < len(first):
        return None
    return Foreseen((*first[:axis], sum(x.shape[axis] for x in xs), *first[axis + 1 :]), xs[0].dtype)


def _embedded(w, index, **_):
    return Foreseen((*index.shape, *w.shape[1:]), w.dtype) if index.dtype.kind in "iu" else None


def _projected(x, w, b=None):
    fits = len(w.shape) == 2 and x.shape and x.shape[-1] == w.shape[1] and (b is None or b.shape == w.shape[:1])
    return Foreseen((*x.shape[:-1], w.shape[0]), x.dtype) if fits and x.dtype.kind in _FLOATS else None


def _normalized(x, *others, view, axes, **_):
    moments = Foreseen(tuple([1 if i in axes else n for i, n in enumerate(view)]), x.dtype)
    return ((Foreseen(x.shape, x.dtype), *[moments] * 3), (moments,) * 3) if x.dtype.kind == "f" else None


def _attended(q, k, v, *others, **_):
    plain = not others and len(q.shape) == len(k.shape) == len(v.shape) and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    return Foreseen((*q.shape[:-1], v.shape[-1]), q.dtype) if plain and q.dtype.kind in _FLOATS else None


_RULES: dict[str, Any] = {
    "add": _sum, "attention": _attended, "cat": _joined, "clone": _copy, "embedding": _embedded, "gelu": _same,
    "linear": _projected, "log_softmax": _same, "multiply": _sum, "normalized": _normalized, "relu": _same,
    "select_part": _selected, "silu": _same, "slice_part": _slice, "softmax": _same, "split_sizes": _split,
    "subtract": _sum, "swapaxes": _swapped, "unsafe_view": _reshaped, "view_as_shape": _reshaped,
}  # fmt: skip
