"""Recurrent layers: one op per layer and direction, the functions PyTorch builds its modules on, and the cells."""

from __future__ import annotations

import functools

import numpy as np

from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..engine import cells
from . import quantize
from .public import PUBLIC, public


@op(node="StackBackward0", derive=True, residuals=True)
def recurrent(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, kind, sizes=None, reverse=False):
    """(y, h_n) or, for an LSTM, (y, h_n, c_n), of one layer in one direction.

    x is (steps, batch, features); or (rows, features) when ``sizes`` says how many rows each step of packed sequences
    has. A sequence that has ended, or in ``reverse`` not begun, keeps its state.
    """
    rows = xp.linear(x, w_ih, b_ih)
    if not sizes:
        rows = xp.reshape(rows, shape=(-1, rows.shape[-1]))
    counts = sizes or (x.shape[1],) * x.shape[0]
    rows, outputs = xp.split_apart(rows, sizes=counts, axis=0), [None] * len(counts)
    for t in reversed(range(len(counts))) if reverse else range(len(counts)):
        before = [_first(xp, a, counts[t]) for a in (h, c)]
        after = cells.step(xp, kind, rows[t], *before, w_hh, b_hh, w_hr)
        outputs[t] = after[0]
        h, c = (_with_rest(xp, new, old) for new, old in zip(after, (h, c)))
    y = xp.concatenate(outputs, axis=0) if sizes else xp.stack(outputs, axis=0)
    return (y, h) if c is None else (y, h, c)


def _first(xp, state, count):
    if state is None or state.shape[0] == count:
        return state
    return xp.split_apart(state, sizes=(count, state.shape[0] - count), axis=0)[0]


def _with_rest(xp, new, old):
    if new is None or new.shape[0] == old.shape[0]:
        return new
    _, rest = xp.split_apart(old, sizes=(new.shape[0], old.shape[0] - new.shape[0]), axis=0)
    return xp.concatenate([new, rest], axis=0)


_oneDNN = variant(xp_.recurrent, "MkldnnRnnLayerBackward0")  # what PyTorch prints for an LSTM without projections


# -- packed sequences --------------------------------------------------------------------------------------------------


@op(
    node="PackPaddedSequenceBackward0",
    exact=True,
    x=lambda xp, g, x_shape, sizes: xp.pad_rows(g, sizes=sizes, steps=x_shape[0], value=0.0),
)
def pack_rows(xp, x, *, sizes):
    """The rows of (steps, batch, …) that are in the first ``sizes[t]`` sequences of step t, one after the other."""
    at = cells.Packing(sizes)
    return xp.getitem(x, index=(at.steps, at.sequences))


@op(node="CopySlices", exact=True, x=lambda xp, g, sizes: xp.pack_rows(g, sizes=sizes))
def pad_rows(xp, x, *, sizes, steps, value):
    """The opposite: (steps, batch, …) with ``value`` in all other places."""
    at = cells.Packing(sizes, steps)
    alive = np.reshape(at.alive, at.alive.shape + (1,) * (x.ndim - 1))
    return xp.where(xp.asarray(alive), xp.getitem(x, index=(at.rows,)), xp.asarray(value, dtype=x.dtype))


# -- torch.lstm and its kin --------------------------------------------------------------------------------------------


def _layers(name):
    """``torch.<name>(input, hx, params, …)``, and the same for packed sequences: (data, batch_sizes, hx, params, …)."""

    def run(input, *args):
        if isinstance(args[2], bool):  # has_biases; where batch_sizes come first it is params
            hx, params, _, *options, batch_first = args
            y, *state = _run(name, input.transpose(0, 1) if batch_first else input, None, hx, params, *options)
            return (y.transpose(0, 1) if batch_first else y, *state)
        batch_sizes, hx, params, _, *options = args
        return _run(name, input, tuple(batch_sizes.tolist()), hx, params, *options)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"The layers of ``nn.{name.split('_')[0].upper()}`` as a function of flat ``params``."
    return public(run, method=False, out=False)


def _run(name, x, sizes, hx, params, num_layers, dropout, train, bidirectional):
    state = [s.unbind(0) for s in (hx if name == "lstm" else (hx,))]
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    finals = [[] for _ in state]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            h, c = state[0][k], state[1][k] if name == "lstm" else None
            weights = _weights(params[k * each : (k + 1) * each])
            call = _recurrence(name, weights)
            y, *last = call(x, h, c, *weights, kind=name, sizes=sizes, reverse=direction == 1)
            outputs.append(y)
            for final, value in zip(finals, last):
                final.append(value)
        x = outputs[0] if directions == 1 else PUBLIC["cat"](outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = PUBLIC["dropout"](x, dropout, train)
    return (x, *(PUBLIC["stack"](final, 0) for final in finals))


def _recurrence(name, weights):
    """The operator; its forward alone, in the namespace of codes, for weights that are quantized."""
    if weights[0].is_quantized:
        return functools.partial(xp_.recurrent.op.forward, quantize.DYNAMIC)
    return _oneDNN if name == "lstm" and weights[-1] is None else xp_.recurrent


def _weights(params):
    """(w_ih, w_hh, b_ih, b_hh, w_hr), from those that there are."""
    w_ih, w_hh, *rest = params
    biases = rest[:2] if len(rest) >= 2 else (None, None)
    return w_ih, w_hh, *biases, rest[-1] if len(rest) % 2 else None


lstm, gru, rnn_tanh, rnn_relu = (_layers(name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))


# -- cells -------------------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(W_ih x + b_ih + W_hh h + b_hh)."""
    return _cell("rnn_tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@public(method=False, out=False)
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """relu(W_ih x + b_ih + W_hh h + b_hh)."""
    return _cell("rnn_relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@public(method=False, out=False)
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU: the new hidden state."""
    return _cell("gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@public(method=False, out=False)
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: the new (h, c)."""
    return _cell("lstm", input, *hx, w_ih, w_hh, b_ih, b_hh)


def _cell(kind, input, h, c, w_ih, w_hh, b_ih, b_hh):
    xp = quantize.DYNAMIC if w_ih.is_quantized else xp_
    return cells.step(xp, kind, xp.linear(input, w_ih, b_ih), h, c, w_hh, b_hh, None)
