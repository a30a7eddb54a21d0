"""A product and a sum rounded once, as processors' fused instruction does; NumPy has none."""

from __future__ import annotations

import numpy as np


def fused(x, scale, shift) -> np.ndarray:
    """x * scale + shift of float32 or float64."""
    if x.dtype == np.float32:  # float64 holds the product exactly
        return (x.astype(np.float64) * np.float64(scale) + np.float64(shift)).astype(np.float32)
    product, lost = _exact_product(x, scale)
    total = product + shift
    back = total - product
    return total + ((product - (total - back)) + (shift - back) + lost)


def _exact_product(x, y):
    """x * y as a float64 and what its rounding lost (Dekker, 1971)."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    return product, x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)


def _halves(x):
    shifted = x * (2.0**27 + 1)
    high = shifted - (shifted - x)
    return high, x - high
