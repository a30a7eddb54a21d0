"""Where to cut a histogram so that few codes serve it best."""

from __future__ import annotations

import numpy as np

from ...ops.common import known_values

__all__ = ["closest_range"]

_STEP = 1e-5  # the share of all counts that is cut off at one end in a step


def closest_range(histogram, least, most, codes: int):
    """(least, most) after cutting off ends, as long as the squared error of ``codes`` values over it gets smaller."""
    counts = np.asarray(known_values(histogram.cpu()), dtype=np.float64)
    bins, width = len(counts), (most - least) / len(counts)
    total, below = counts.sum(), np.cumsum(counts)
    first, last, best = 0, bins - 1, np.inf
    low_share, high_share = 0.0, 1.0
    while low_share < high_share:
        next_low, next_high = low_share + _STEP, high_share - _STEP
        left, right = first, last
        while left < last and below[left] < next_low * total:
            left += 1
        while right > first and below[right] > next_high * total:
            right -= 1
        # The end whose next cut removes more bins is cut.
        next_first, next_last = first, last
        if left - first > last - right:
            next_first, low_share = left, next_low
        else:
            next_last, high_share = right, next_high
        if (next_first, next_last) == (first, last):
            continue
        error = _error(counts, float(width), next_first, next_last, codes)
        if error > best:
            break
        best, first, last = error, next_first, next_last
    return least + width * first, least + width * (last + 1)


def _error(counts, width: float, first: int, last: int, codes: int) -> float:
    """The squared distance of all counts from the middle of the code that stands for them, were it [first, last]."""
    step = width * (last - first + 1) / codes
    if step == 0.0:
        return 0.0
    begin = (np.arange(len(counts)) - first) * width
    end = begin + width
    from_code, to_code = (np.clip(np.floor(x / step), 0, codes - 1) for x in (begin, end))
    density = counts / width
    # Within a bin counts are spread evenly: a piece that ends `a` and `b` from the middle adds density · (b³ - a³) / 3.
    middle = from_code * step + step / 2
    within = from_code == to_code
    error = _cubes(np.where(within, end - middle, step / 2)) - _cubes(begin - middle)
    error += (to_code - from_code - 1).clip(0) * (_cubes(step / 2) - _cubes(-step / 2))
    error += np.where(within, 0.0, _cubes(end - (to_code * step + step / 2)) - _cubes(-step / 2))
    return float((density * error).sum())


def _cubes(x):
    return x**3 / 3
