"""Collectives of a function that is being traced: recorded as equations, which the host carries out between programs.

Nothing of this runs inside XLA's programs: what waits for another process there could not be interrupted.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.extend.core import Primitive

exchange_p = Primitive("exchange")  # without a lowering: a program cannot have one


@exchange_p.def_abstract_eval
def _(x, *, shape, group, what, static):
    return jax.core.ShapedArray(shape, x.dtype)


class Recorder:
    """Gives rings whose collectives become equations of the trace; ``count`` says how many."""

    def __init__(self):
        self.count = 0

    def __call__(self, group) -> RecordedRing:
        return RecordedRing(group, self)


class RecordedRing:
    """What ``Ring`` offers, in a trace."""

    def __init__(self, group, recorder: Recorder):
        self._group, self._recorder = group, recorder

    def all_reduce(self, x, op: str, into=None):
        return self._record("all_reduce", x, x.shape, op=op)

    def broadcast(self, x, source: int):
        return self._record("broadcast", x, x.shape, source=source)

    def all_gather(self, x):
        return self._record("all_gather", x, (self._group.size(), *x.shape))

    def reduce_scatter(self, rows, op: str, lengths: tuple[int, ...] | None = None):
        return self._record("reduce_scatter", rows, rows.shape[1:], op=op, lengths=lengths)

    def all_to_all(self, rows):
        return self._record("all_to_all", rows, rows.shape)

    def permute(self, x, targets: tuple[int, ...]):
        return self._record("permute", x, x.shape, targets=targets)

    def _record(self, what: str, x, shape, **static):
        self._recorder.count += 1
        return exchange_p.bind(x, shape=shape, group=self._group, what=what, static=tuple(sorted(static.items())))


def laid_out(x):
    """What a program computed, as collectives take it: on the host NumPy's, in the same memory."""
    if x.__class__ is np.ndarray:
        return x
    return np.asarray(x) if next(iter(x.devices())).platform == "cpu" else x
