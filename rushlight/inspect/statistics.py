"""What ``watch`` keeps of a tensor: a few numbers and a histogram, taken at once from its values.

In a compiled program there are no values to look at; there the same numbers are computed by operators and written to a
tensor of ours, a *cell*, which becomes an output of the program and is read when the step is over.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..autograd.mode import no_grad
from ..tensor import Tensor

__all__ = ["NAMES", "Cell", "Point", "column", "is_finite", "measured", "norm", "picked", "short", "values_of"]

BINS = 40
NAMES = ("rms", "mean", "std", "min", "max", "dead", "calls")


@dataclasses.dataclass
class Point:
    """The statistics of one step; ``histogram`` is (from, to, counts)."""

    count: int
    mean: float
    std: float
    min: float
    max: float
    dead: float | None
    calls: int = 1
    finite: bool = True
    histogram: list | None = None

    @property
    def rms(self) -> float:
        return math.hypot(self.mean, self.std)

    def with_(self, other: Point) -> Point:
        """Of the values of both."""
        count = self.count + other.count
        share = other.count / count
        apart = other.mean - self.mean
        variance = (1 - share) * self.std**2 + share * other.std**2 + share * (1 - share) * apart**2
        return Point(
            count,
            self.mean + share * apart,
            math.sqrt(variance),
            min(self.min, other.min),
            max(self.max, other.max),
            None if self.dead is None or other.dead is None else min(self.dead, other.dead),
            self.calls + other.calls,
            self.finite and other.finite,
            _added(self.histogram, other.histogram),
        )


def measured(values: np.ndarray, histogram: bool) -> Point | None:
    """The statistics of the finite ones of ``values``; None if there is none."""
    finite = values.reshape(-1)
    all_finite = is_finite(values)
    if not all_finite:
        finite = finite[np.isfinite(finite)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    # Squares of numbers beyond this are none; divided by the largest, they are.
    unit = max(abs(low), abs(high))
    unit = unit if unit > 1e100 else 1.0
    scaled = finite if unit == 1.0 else finite / unit
    mean, std = float(scaled.mean(dtype=np.float64)), float(scaled.std(dtype=np.float64))
    shown = _histogram(scaled, mean, std, low / unit, high / unit, unit) if histogram else None
    return Point(finite.size, mean * unit, std * unit, low, high, _dead(values), 1, all_finite, shown)


def _histogram(values, mean, std, low, high, unit) -> list:
    # A few outliers would leave everything else in one bin: they are counted in the first or last one.
    low, high = max(low, mean - 4 * std), min(high, mean + 4 * std)
    # Values that are all but equal are one bin in the middle: between them there may be no room for forty.
    if not high - low > 1e-5 * max(abs(low), abs(high)):
        half = 0.5 * max(abs(low), abs(high)) or 0.5
        low, high = (low + high) / 2 - half, (low + high) / 2 + half
    bins = np.clip((values.astype(np.float64) - low) * (BINS / (high - low)), 0, BINS - 1).astype(np.intp)
    return [short(low * unit), short(high * unit), np.bincount(bins, minlength=BINS).tolist()]


def _added(a: list | None, b: list | None) -> list | None:
    """Histograms of several calls, in one range: a bin's count goes where its middle is."""
    if a is None or b is None or None in (a[0], a[1], b[0], b[1]):
        return a or b
    low, high = min(a[0], b[0]), max(a[1], b[1])
    counts = [0] * BINS
    for first, last, old in (a, b):
        for i, n in enumerate(old):
            middle = first + (i + 0.5) * (last - first) / BINS
            counts[min(int((middle - low) / (high - low) * BINS), BINS - 1)] += n
    return [low, high, counts]


def _dead(values: np.ndarray) -> float | None:
    """The share of units (channels, features) that are zero everywhere in the batch."""
    if not values.size:
        return None
    if values.ndim < 2:
        return float(not values.any())
    unit_axis = 1 if values.ndim in (2, 4, 5) else values.ndim - 1
    others = tuple(a for a in range(values.ndim) if a != unit_axis)
    return float(1 - (values != 0).any(axis=others).mean())


def values_of(t: Tensor) -> np.ndarray:
    """The values, as numbers NumPy calculates with; of complex ones the size."""
    t._sync()
    array = np.asarray(t._array)
    if array.dtype.kind == "c":
        return np.abs(array)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def is_finite(values: np.ndarray) -> bool:
    # A sum of squares is one fast pass, and finite only if everything is; it may also overflow, so ask again.
    flat = values.reshape(-1)
    return math.isfinite(np.dot(flat, flat)) or bool(np.isfinite(values).all())


def norm(values: np.ndarray) -> float:
    return math.sqrt(float(np.sum(np.square(values, dtype=np.float64))))


def short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def column(points: list, i: int) -> list:
    return [None if p is None else short(p[i]) for p in points]


def picked(values: list, places: list[int]) -> list:
    return [values[i] for i in places if i < len(values)]


class Cell:
    """A small tensor that compiled code writes and ``watch`` reads: statistics as operators compute them."""

    EMPTY = -1.0  # in the first place: nothing was written since it was read

    @staticmethod
    def statistics(t: Tensor) -> list[Tensor]:
        """The same numbers as ``measured``: count, finite, mean, std, min, max, dead, the bins' range, and the bins."""
        from ..ops import PUBLIC as f

        with no_grad():
            x = (t.detach().abs() if t.is_complex() else t.detach()).float()
            flat = x.reshape(-1)
            finite = flat.isfinite()
            count = finite.sum()
            some = count.clamp(min=1)
            flat = f["where"](finite, flat, 0.0)
            mean = flat.sum() / some
            std = (f["where"](finite, flat - mean, 0.0).square().sum() / some).sqrt()
            low = f["where"](finite, flat, math.inf).amin() if flat.numel() else mean
            high = f["where"](finite, flat, -math.inf).amax() if flat.numel() else mean
            start, end = f["maximum"](low, mean - 4 * std), f["minimum"](high, mean + 4 * std)
            wide = f["where"](end - start > 1e-5 * f["maximum"](start.abs(), end.abs()), 0.0, 0.5)
            start, end = start - wide, end + wide
            place = ((flat - start) * (BINS / (end - start))).clamp(0, BINS - 1).long()
            counts = f["zeros"](BINS + 1, device=t.device).index_add(
                0, f["where"](finite, place, BINS), f["ones_like"](flat)
            )
            numbers = [count, (count == flat.numel()), mean, std, low, high, _dead_share(x), start, end]
            return [n.float().reshape(1) for n in numbers] + [counts[:BINS]]

    @staticmethod
    def norm(t: Tensor) -> Tensor:
        with no_grad():
            return t.detach().float().square().sum().sqrt().reshape(1)

    @staticmethod
    def written(cell: Tensor | None, numbers: list[Tensor], device) -> Tensor:
        """``cell``, made when there is none yet, with these numbers in it."""
        from ..ops import PUBLIC as f

        with no_grad():
            if cell is None:
                cell = f["full"]((sum(n.numel() for n in numbers),), Cell.EMPTY, device=device)
            cell.copy_(f["cat"](numbers))
        return cell

    @staticmethod
    def taken(cell: Tensor | None) -> list[float] | None:
        """What was written since the last time."""
        if cell is None:
            return None
        found = values_of(cell).tolist()
        if found[0] == Cell.EMPTY:
            return None
        cell.fill_(Cell.EMPTY)
        return found

    @staticmethod
    def point(found: list[float], histogram: bool) -> Point:
        count, finite, mean, std, low, high, dead, start, end, *counts = found
        shown = [short(start), short(end), [int(n) for n in counts]] if histogram else None
        return Point(int(count), mean, std, low, high, dead, 1, bool(finite), shown)


def _dead_share(x: Tensor) -> Tensor:
    if x.ndim < 2:
        return x.eq(0).all()
    unit_axis = 1 if x.ndim in (2, 4, 5) else x.ndim - 1
    return x.ne(0).any(dim=[a for a in range(x.ndim) if a != unit_axis]).logical_not().float().mean()
