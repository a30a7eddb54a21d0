"""Connectionist temporal classification (Graves et al., 2006), all sequences of a batch at once, for both engines.

Labels are extended with blanks between them and at both ends, S' = 2 S + 1. ``alpha[t, n, s]`` is the log-probability
of all beginnings that are at extended label ``s`` after step ``t``. A sequence that is over keeps its last alpha.
"""

from __future__ import annotations

import math

_NEVER = -math.inf


def paths(xp, scan, x, targets, input_lengths, target_lengths, blank):
    """(alpha, minus the log-probability of each sequence of labels)."""
    labels, may_skip = _extended(xp, targets, blank, x.shape[2])
    start = xp.where(xp.arange(labels.shape[1]) == 0, 0.0, _NEVER).astype(x.dtype)
    start = xp.broadcast_to(start, labels.shape)

    def step(alpha, t, emitted):
        arrived = _either(xp, alpha, _shifted(xp, alpha, 1), xp.where(may_skip, _shifted(xp, alpha, 2), _NEVER))
        return xp.where((t < input_lengths)[:, None], arrived + emitted, alpha)

    alpha = scan(step, start, xp.arange(x.shape[0]), _emitted(xp, x, labels))
    last = alpha[-1] if x.shape[0] else start
    end = 2 * target_lengths[:, None]
    total = xp.take_along_axis(last, end, axis=1)
    inside = xp.take_along_axis(last, xp.maximum(end - 1, 0), axis=1)
    total = xp.where(end > 0, xp.logaddexp(total, inside), total)
    return alpha, -total[:, 0]


def gradient(xp, scan, g, x, targets, input_lengths, target_lengths, alpha, loss, blank):
    """``g * (exp(x) - the expected number of times each class is read)``, 0 after a sequence's end."""
    labels, may_skip = _extended(xp, targets, blank, x.shape[2])
    steps = x.shape[0]
    end = xp.where(xp.arange(labels.shape[1]) == 2 * target_lengths[:, None], 0.0, _NEVER).astype(x.dtype)

    def step(beta, t, emitted):
        then = beta + emitted
        onward = _either(xp, then, _shifted(xp, then, -1), _shifted(xp, xp.where(may_skip, then, _NEVER), -2))
        return xp.where((t < input_lengths)[:, None], onward, beta)

    emitted = _emitted(xp, x, labels)
    # beta[t] is made of what is emitted after t. At a sequence's last step nothing is, if one of the two last labels is
    # reached there.
    finish = xp.logaddexp(end, _shifted(xp, end, -1))
    later = scan(step, finish, xp.arange(steps - 1, 0, -1), emitted[:0:-1])
    beta = xp.concatenate([finish[None], later], axis=0)[::-1]
    read = xp.exp(alpha + beta + loss[:, None])
    classes = (labels[:, :, None] == xp.arange(x.shape[2])).astype(x.dtype)
    expected = xp.matmul(read.swapaxes(0, 1), classes).swapaxes(0, 1)
    counts = (xp.arange(steps)[:, None] < input_lengths) & (g != 0)
    return xp.where(counts[:, :, None], (xp.exp(x) - expected) * g[:, None], 0.0)


def _extended(xp, targets, blank, classes):
    """(labels with blanks around each, whether a path may come to a label from the one two before it)."""
    inside = xp.clip(targets, 0, classes - 1)
    blanks = xp.full_like(inside, blank)
    labels = xp.stack([blanks, inside], axis=2).reshape(len(targets), -1)
    labels = xp.concatenate([labels, xp.full((len(targets), 1), blank, dtype=labels.dtype)], axis=1)
    before = _shifted(xp, labels, 2, fill=blank)
    return labels, (labels != blank) & (labels != before) & (xp.arange(labels.shape[1]) > 1)


def _emitted(xp, x, labels):
    """The log-probability of each extended label at each step, (T, N, S')."""
    return xp.take_along_axis(x, xp.broadcast_to(labels, (x.shape[0], *labels.shape)), axis=2)


def _shifted(xp, x, by, fill=_NEVER):
    """x moved ``by`` places to the right along its last axis (to the left if negative)."""
    size = x.shape[1]
    pad = xp.full((x.shape[0], min(abs(by), size)), fill, dtype=x.dtype)
    return xp.concatenate([pad, x[:, :-by]] if by > 0 else [x[:, -by:], pad], axis=1)[:, :size]


def _either(xp, a, b, c):
    return xp.logaddexp(xp.logaddexp(a, b), c)
