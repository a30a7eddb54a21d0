"""``Deferred``: an array on an accelerator whose values may still have to be computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operators import Operators


class Aval:
    """A shape and a dtype; one object for each pair, so that it is its own key."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple, dtype):
        self.shape, self.dtype = shape, dtype


_avals: dict = {}


def aval_of(shape: tuple, dtype) -> Aval:
    found = _avals.get((shape, dtype))
    if found is None:
        found = _avals.setdefault((shape, dtype), Aval(shape, dtype))
    return found


class Deferred(Operators):
    """An immutable array on an accelerator. Its ``value`` is a JAX array, or None until it is computed.

    Asked for but not started, it is number ``slot`` of ``recording``. Started, it is on ``flight``. Computed, it may be
    an input of ``recording``; then its slot is negative. ``owned``: nobody outside this engine holds the buffer.
    ``place`` is the JAX device; None for a number from NumPy, which can go anywhere.
    """

    __slots__ = (
        "__weakref__", "aval", "dtype", "flight", "owned", "place", "recording", "seat", "shape", "slot",
        "value",
    )  # fmt: skip
    flags = base = None  # what only arrays with memory of their own have

    def __init__(self, value, owned=False):
        self.shape, self.dtype, self.value, self.owned = value.shape, value.dtype, value, owned
        self.aval = aval_of(value.shape, value.dtype)
        self.place = None if isinstance(value, np.ndarray) else next(iter(value.devices()))
        self.recording: Any = None
        self.flight: Any = None
        self.slot = 0

    def force(self):
        """The value as a JAX array, to keep; what is promised is computed now."""
        self.owned = False
        return self.computed()

    def computed(self):
        """The value, to look at but not to keep: its memory may be used again when nobody holds this array."""
        if self.value is None:
            if self.flight is None:
                self.recording.run()
            flight = self.flight  # it may land while we look
            if flight is not None:
                flight.wait()
                if flight.failure is not None:
                    flight.failure.tell()
        return self.value

    @property
    def sharding(self):
        return self.computed().sharding

    def devices(self):
        return {self.place}

    def unsafe_buffer_pointer(self) -> int:
        return self.force().unsafe_buffer_pointer()

    def copy(self) -> Deferred:
        return self

    # -- out to Python -----------------------------------------------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        return np.array(self.computed(), dtype=dtype) if copy is not False else np.asarray(self.force(), dtype=dtype)

    def __jax_array__(self):
        return self.force()

    def __dlpack__(self, **options):
        return self.force().__dlpack__(**options)

    def __dlpack_device__(self):
        return self.force().__dlpack_device__()

    def item(self):
        return np.asarray(self.computed()).item()

    def tolist(self):
        return np.asarray(self.computed()).tolist()

    def __bool__(self) -> bool:
        return bool(np.asarray(self.computed()))

    def __int__(self) -> int:
        return int(np.asarray(self.computed()))

    def __float__(self) -> float:
        return float(np.asarray(self.computed()))

    def __repr__(self) -> str:
        state = "promised" if self.value is None else "computed"
        return f"<Deferred {self.dtype}{list(self.shape)}, {state}>"
