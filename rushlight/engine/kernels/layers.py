"""Fused NumPy bodies of losses and activations: fewer calls, fewer passes over memory, buffers written in place."""

from __future__ import annotations

import numpy as np

BODIES: dict = {}
BACKWARD: dict = {}


def _mse_mean(xp, x, w):
    d = np.subtract(x, w).ravel()
    return d.dot(d) / d.size if d.size else d.sum() / np.float32(0)


def _mse_sum(xp, x, w):
    d = np.subtract(x, w).ravel()
    return d.dot(d)


def _mse_backward(scale):
    def backward(g, edges, saved):
        x = saved["x"]
        d = np.asarray(np.subtract(x, saved["w"]))
        np.multiply(d, g * (scale(d.size)), out=d)
        to_x, to_w = edges
        return (d if to_x is not None else None), (None if to_w is None else np.negative(d))

    return backward


BODIES["mse_mean"], BODIES["mse_sum"] = _mse_mean, _mse_sum
BACKWARD["mse_mean"] = _mse_backward(lambda n: 2.0 / n if n else np.nan)
BACKWARD["mse_sum"] = BACKWARD["mse_each"] = _mse_backward(lambda n: 2.0)
