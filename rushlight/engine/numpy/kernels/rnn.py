"""A recurrent layer on NumPy, with backward through time written out.

The input's products of all steps are one matrix product, and so are the gradients of input and weights; only the
hidden state's product is done step by step. Gates are computed in place in the array of those products, which is then
what backward needs. Rows that belong to one step lie together, ``sizes`` of them: packed sequences have ever fewer.
"""

from __future__ import annotations

import itertools

import numpy as np

from ...native import library
from . import sums
from .products import product


def recurrent(needs, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, kind, sizes, reverse):
    """(y, h_n[, c_n]) and what ``recurrent_backward`` reuses: see ``ops.rnn.recurrent``."""
    cell, steps, flat = _CELLS[kind], _steps(x, sizes, reverse), _flat(x, sizes)
    biases = [bias for bias in (b_ih, b_hh if cell.adds_up else None) if bias is not None]
    gates = product(flat, w_ih.T, biases[0] + biases[1] if len(biases) == 2 else biases[0] if biases else None)
    if w_hr is None and _serves(gates, h, c, w_hh, b_hh):
        return _native(needs, x, h, c, w_hh, b_hh, gates, kind, sizes, reverse)
    run = cell(len(flat), h, c, w_hh, b_hh, w_hr)
    before = np.empty((len(flat), h.shape[1]), dtype=gates.dtype)
    y = np.empty_like(before)
    h = h.copy()
    for rows in steps:
        count = rows.stop - rows.start
        before[rows] = h[:count]
        run.forward(rows, gates[rows], h[:count])
        y[rows] = h[:count]
    outputs = (_shaped(y, x, sizes), h) if run.c is None else (_shaped(y, x, sizes), h, run.c)
    return outputs, ((gates, before, *run.kept(y)) if needs else None)


def recurrent_backward(g, edges, known):
    """Gradients of all arguments at once."""
    x, w_ih, w_hh, w_hr, sizes = (known[name] for name in ("x", "w_ih", "w_hh", "w_hr", "sizes"))
    gates, before, *kept = known["aux"]
    steps, flat = _steps(x, sizes, known["reverse"]), _flat(x, sizes)
    gy, dh = g[0].reshape(len(flat), -1), g[1].copy()
    run = _CELLS[known["kind"]].again(kept, g, w_hr)
    from_x = np.empty_like(gates)
    from_h = from_x if run.adds_up else np.empty_like(gates)
    native = w_hr is None and _serves(gates, dh, run.dc, w_hh, None)
    if native:
        _native_backward(known, gates, before, kept, gy, dh, run.dc, from_x, from_h)
    for rows in () if native else reversed(steps):
        part = dh[: rows.stop - rows.start]
        part += gy[rows]
        run.backward(rows, gates[rows], before[rows], part, from_x[rows], from_h[rows])
        part += from_h[rows] @ w_hh
    wanted = [e is not None for e in edges]
    to_b_ih = sums.rows(from_x) if wanted[5] or (wanted[6] and run.adds_up) else None
    return (
        product(from_x, w_ih).reshape(x.shape) if wanted[0] else None,
        dh if wanted[1] else None,
        run.dc if wanted[2] else None,
        product(from_x.T, flat) if wanted[3] else None,
        product(from_h.T, before) if wanted[4] else None,
        to_b_ih if wanted[5] else None,
        None if not wanted[6] else to_b_ih.copy() if run.adds_up else sums.rows(from_h),
        run.weight_gradient() if wanted[7] else None,
    )


# -- steps by the library in C -----------------------------------------------------------------------------------------

KINDS = ("rnn_tanh", "rnn_relu", "gru", "lstm")
WORTH = 1 << 12  # elements of the gates from which on it is called


def _serves(gates, h, c, w_hh, b_hh) -> bool:
    if library is None or gates.size < WORTH or gates.dtype.char not in "fd":
        return False
    return all(a is None or a.dtype == gates.dtype for a in (h, c, w_hh, b_hh))


def _native(needs, x, h, c, w_hh, b_hh, gates, kind, sizes, reverse):
    h, c = np.array(h, order="C"), None if c is None else np.array(c, order="C")
    before = np.empty((len(gates), h.shape[1]), gates.dtype)
    y = np.empty_like(before)
    inner = None if kind.startswith("rnn") else np.empty_like(y)
    squashed = None if c is None else np.empty_like(y)
    weights, bias = np.ascontiguousarray(w_hh), None
    if kind == "gru" and b_hh is not None:
        bias = np.ascontiguousarray(b_hh)
    numbers = (KINDS.index(kind), *h.shape, int(reverse))
    library.recurrent(*places(x, sizes), weights, bias, gates, before, y, h, c, inner, squashed, *numbers)
    outputs = (_shaped(y, x, sizes), h) if c is None else (_shaped(y, x, sizes), h, c)
    return outputs, ((gates, before, *[a for a in (inner, squashed) if a is not None]) if needs else None)


def _native_backward(known, gates, before, kept, gy, dh, dc, from_x, from_h):
    inner, squashed = [*kept, None, None][:2]
    numbers = (KINDS.index(known["kind"]), *dh.shape, int(known["reverse"]))
    steps, weights = places(known["x"], known["sizes"]), np.ascontiguousarray(known["w_hh"])
    gy, apart = np.ascontiguousarray(gy), None if from_h is from_x else from_h
    library.recurrent_backward(*steps, weights, gates, before, inner, squashed, gy, dh, dc, from_x, apart, *numbers)


def places(x, sizes):
    """The row where each step begins, and how many rows it has."""
    sizes = np.array(sizes or [x.shape[1]] * x.shape[0], dtype=np.int64)
    return np.cumsum(sizes) - sizes, sizes


# -- steps on NumPy ----------------------------------------------------------------------------------------------------


def _steps(x, sizes, reverse) -> list:
    """The rows of each step, in the order they are run."""
    sizes = sizes or [x.shape[1]] * x.shape[0]
    ends = list(itertools.accumulate(sizes))
    steps = [slice(end - n, end) for n, end in zip(sizes, ends)]
    return steps[::-1] if reverse else steps


def _flat(x, sizes):
    return x if sizes else x.reshape(-1, x.shape[-1])


def _shaped(y, x, sizes):
    return y if sizes else y.reshape(*x.shape[:2], y.shape[-1])


def _sigmoid(x):
    """In place."""
    x *= 0.5
    np.tanh(x, out=x)
    x += 1
    x *= 0.5


class _Plain:
    """h' = tanh or relu of (rows + W h); ``gates`` ends up holding h'."""

    adds_up = True  # the gates are a sum of the input's and the hidden state's part, so one gradient serves both
    c = dc = None

    def __init__(self, length, h, c, w_hh, b_hh, w_hr):
        self.w = w_hh.T

    @classmethod
    def again(cls, kept, g, w_hr):
        return object.__new__(cls)

    def kept(self, y):
        return ()

    def forward(self, rows, gates, h):
        gates += h @ self.w
        self.activate(gates)
        h[...] = gates

    def backward(self, rows, gates, before, dh, from_x, from_h):
        np.multiply(dh, self.slope(gates), out=from_x)
        dh[...] = 0

    def weight_gradient(self):
        return None


class _Tanh(_Plain):
    def activate(self, gates):
        np.tanh(gates, out=gates)

    def slope(self, gates):
        return 1 - gates * gates


class _Relu(_Plain):
    def activate(self, gates):
        np.maximum(gates, 0, out=gates)

    def slope(self, gates):
        return gates > 0


class _Gru(_Plain):
    """``gates`` ends up holding r, z, n; ``inner`` is the hidden state's part of n, before r."""

    adds_up = False

    def __init__(self, length, h, c, w_hh, b_hh, w_hr):
        self.w, self.b = w_hh.T, b_hh
        self.inner = np.empty((length, h.shape[1]), dtype=h.dtype)

    @classmethod
    def again(cls, kept, g, w_hr):
        run = object.__new__(cls)
        (run.inner,) = kept
        return run

    def kept(self, y):
        return (self.inner,)

    def forward(self, rows, gates, h):
        size = h.shape[1]
        hidden = h @ self.w
        if self.b is not None:
            hidden += self.b
        self.inner[rows] = hidden[:, 2 * size :]
        both, n = gates[:, : 2 * size], gates[:, 2 * size :]
        both += hidden[:, : 2 * size]
        _sigmoid(both)
        n += both[:, :size] * hidden[:, 2 * size :]
        np.tanh(n, out=n)
        h -= n
        h *= both[:, size:]
        h += n

    def backward(self, rows, gates, before, dh, from_x, from_h):
        size = dh.shape[1]
        r, z, n = gates[:, :size], gates[:, size : 2 * size], gates[:, 2 * size :]
        d_r, d_z, d_n = from_x[:, :size], from_x[:, size : 2 * size], from_x[:, 2 * size :]
        np.multiply(dh * (1 - z), 1 - n * n, out=d_n)
        np.multiply(dh * (before - n), z * (1 - z), out=d_z)
        np.multiply(d_n * self.inner[rows], r * (1 - r), out=d_r)
        from_h[:, : 2 * size] = from_x[:, : 2 * size]
        np.multiply(d_n, r, out=from_h[:, 2 * size :])
        dh *= z


class _Lstm(_Plain):
    """``gates`` ends up holding i, f, g, o; ``cells`` is c before each step, ``squashed`` tanh of c after it."""

    def __init__(self, length, h, c, w_hh, b_hh, w_hr):
        self.w, self.w_hr, self.c = w_hh.T, w_hr, c.copy()
        self.cells = np.empty((length, c.shape[1]), dtype=c.dtype)
        self.squashed = np.empty_like(self.cells)

    @classmethod
    def again(cls, kept, g, w_hr):
        run = object.__new__(cls)
        run.cells, run.squashed, *run.out = kept
        run.dc, run.w_hr = g[2].copy(), w_hr
        if w_hr is not None:
            run.projected = np.empty((len(run.cells), w_hr.shape[0]), dtype=run.cells.dtype)
            run.hidden = np.empty_like(run.cells)
        return run

    def kept(self, y):
        return self.cells, self.squashed

    def forward(self, rows, gates, h):
        size = self.cells.shape[1]
        gates += h @ self.w
        _sigmoid(gates[:, : 2 * size])
        np.tanh(gates[:, 2 * size : 3 * size], out=gates[:, 2 * size : 3 * size])
        _sigmoid(gates[:, 3 * size :])
        i, f, g, o = self.parts(gates)
        c = self.c[: len(gates)]
        self.cells[rows] = c
        c *= f
        c += i * g
        squashed = np.tanh(c, out=self.squashed[rows])
        if self.w_hr is None:
            np.multiply(o, squashed, out=h)
        else:
            np.matmul(o * squashed, self.w_hr.T, out=h)

    def backward(self, rows, gates, before, dh, from_x, from_h):
        i, f, g, o = self.parts(gates)
        d_i, d_f, d_g, d_o = self.parts(from_x)
        squashed, dc = self.squashed[rows], self.dc[: len(gates)]
        d_hidden = dh
        if self.w_hr is not None:
            self.projected[rows], self.hidden[rows] = dh, o * squashed
            d_hidden = dh @ self.w_hr
        dc += d_hidden * o * (1 - squashed * squashed)
        np.multiply(d_hidden * squashed, o * (1 - o), out=d_o)
        np.multiply(dc * g, i * (1 - i), out=d_i)
        np.multiply(dc * self.cells[rows], f * (1 - f), out=d_f)
        np.multiply(dc * i, 1 - g * g, out=d_g)
        dc *= f
        dh[...] = 0

    def parts(self, gates):
        size = self.cells.shape[1]
        return (gates[:, k * size : (k + 1) * size] for k in range(4))

    def weight_gradient(self):
        return self.projected.T @ self.hidden


_CELLS = {"rnn_tanh": _Tanh, "rnn_relu": _Relu, "gru": _Gru, "lstm": _Lstm}
