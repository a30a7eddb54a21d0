"""The way that Python takes through a function, where that depends on values.

``if loss > 1``, ``while error.any()``, ``int(lengths.max())``: Python asks for a truth or a whole number. An eager run
writes the answers down (``Path``). A trace is given them, follows the same way, and has its program check that they are
the same again. If they are not, the program has changed nothing, and another way is tried. So both sides of a branch
are compiled, each as one program with what comes before and after it.

Floating-point numbers are no path: they are seldom the same again, and are not worth a program each.
"""

from __future__ import annotations

import contextlib
import threading

import numpy as np

from ..config import epoch
from ..engine.xla.devices import expect
from ..errors import ValuesNeeded
from .meshes import whole

LONGEST = 64  # answers of one call; a way with more is not followed


class Path:
    """Collects what Python asks for, in ``taken``; with ``known`` a trace is given these answers."""

    def __init__(self, known: tuple | None = None):
        self._known, self._thread, self.taken = known, threading.get_ident(), []

    @contextlib.contextmanager
    def followed(self):
        self.taken, outer, epoch.path = [], epoch.path, self
        try:
            yield
        finally:
            epoch.path = outer

    def answer(self, t, read):
        """The one element of ``t``, a truth or a whole number; ``read()`` is what it is, or raises in a trace."""
        if threading.get_ident() != self._thread or len(self.taken) == LONGEST:
            return read()
        if self._known is None:
            value = read()
        elif len(self.taken) == len(self._known):
            return read()
        else:
            value = self._followed(t, read, self._known[len(self.taken)])
        self.taken.append(value)
        return value

    def _followed(self, t, read, value):
        if t._array.__class__ is np.ndarray:
            if read() != value:
                raise ValuesNeeded("its Python takes another way while it is traced")
        elif not expect(whole(t._array), lambda array: array == value):
            return read()
        return value
