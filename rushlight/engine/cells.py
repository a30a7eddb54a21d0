"""One step of each recurrent cell, for any namespace ``xp``: the definition that faster bodies are tested against.

In ``step``, ``rows`` is the input already multiplied by ``w_ih`` (and with ``b_ih`` added); it returns the new (h, c),
c being None but for LSTM.
"""

from __future__ import annotations

import numpy as np


class Packing:
    """Where the rows of packed sequences, ``sizes`` of them in each step, are among (step, sequence), and back."""

    def __init__(self, sizes, steps=None):
        counts = np.zeros(steps or len(sizes), dtype=np.int64)
        counts[: len(sizes)] = sizes
        self.alive = np.arange(counts[0]) < counts[:, None]
        self.steps, self.sequences = np.nonzero(self.alive)
        self.rows = np.zeros(self.alive.shape, dtype=np.int64)  # a dead place reads row 0
        self.rows[self.alive] = np.arange(counts.sum())


def step(xp, kind, rows, h, c, w_hh, b_hh, w_hr):
    return _CELLS[kind](xp, rows, xp.linear(h, w_hh, b_hh), h, c, w_hr)


def _tanh(xp, rows, hidden, h, c, w_hr):
    return xp.tanh(rows + hidden), None


def _relu(xp, rows, hidden, h, c, w_hr):
    return xp.relu(rows + hidden), None


def _gru(xp, rows, hidden, h, c, w_hr):
    size = h.shape[-1]
    x_r, x_z, x_n = xp.split_apart(rows, sizes=(size,) * 3, axis=1)
    h_r, h_z, h_n = xp.split_apart(hidden, sizes=(size,) * 3, axis=1)
    r, z = xp.sigmoid(x_r + h_r), xp.sigmoid(x_z + h_z)
    n = xp.tanh(x_n + r * h_n)
    return (h - n) * z + n, None


def _lstm(xp, rows, hidden, h, c, w_hr):
    i, f, g, o = xp.split_apart(rows + hidden, sizes=(c.shape[-1],) * 4, axis=1)
    c = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.tanh(g)
    h = xp.sigmoid(o) * xp.tanh(c)
    return (h if w_hr is None else xp.matmul(h, xp.matrix_transpose(w_hr))), c


_CELLS = {"rnn_tanh": _tanh, "rnn_relu": _relu, "gru": _gru, "lstm": _lstm}
