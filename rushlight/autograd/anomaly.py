"""``detect_anomaly``: a backward pass that fails, or makes a nan, shows the forward call it goes back to."""

from __future__ import annotations

import os
import traceback

import numpy as np

from ..errors import warn_user
from . import mode
from .mode import state

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class set_detect_anomaly(mode._Switch):
    """Switch anomaly detection on or off, at once or for a ``with`` block."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self.value, self.check_nan = mode, check_nan
        self._outer = state.anomaly, state.check_nan
        _switch(mode, check_nan)

    def __enter__(self):
        return None

    def __exit__(self, *_):
        _switch(*self._outer)

    def clone(self):
        return set_detect_anomaly(self.value, self.check_nan)

    def __call__(self, function):
        _switch(*self._outer)  # used as a decorator: undo the switch that __init__ made
        return super().__call__(function)


class detect_anomaly(mode._Switch):
    """Inside, every recorded op remembers where it was called, and backward raises at the first nan.

    >>> x = rushlight.zeros(1, requires_grad=True)
    >>> with rushlight.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        warn_user(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging."
        )

    def __enter__(self):
        self._outer = state.anomaly, state.check_nan
        _switch(True, self.check_nan)

    def __exit__(self, *_):
        _switch(*self._outer)

    def clone(self):
        again = object.__new__(detect_anomaly)
        again.check_nan = self.check_nan
        return again


def is_anomaly_enabled() -> bool:
    """Is anomaly detection on?"""
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Does anomaly detection look for nan in gradients?"""
    return state.check_nan


def remember(node) -> None:
    """Keep the caller's traceback (without our own frames) with the node, and the node whose backward made it."""
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    node.metadata["traceback_"] = traceback.format_list(frames)
    if state.evaluating is not None:
        node.metadata["parent_"] = state.evaluating


def watch(node, xp, g, graph, retain):
    """Run a node; if it raises or returns a nan, warn with the traceback of its forward call."""
    outer, state.evaluating = state.evaluating, node
    try:
        grads = node.apply(xp, g, graph, retain)
        if state.check_nan:
            _check_nan(node, grads, graph)
        return grads
    except Exception:
        _report(node)
        raise
    finally:
        state.evaluating = outer


def _switch(value: bool, check_nan: bool) -> None:
    mode.active += bool(value) - state.anomaly
    state.anomaly, state.check_nan = bool(value), check_nan


def _check_nan(node, grads, graph) -> None:
    for i, value in enumerate(grads):
        array = getattr(value, "_array", value)
        if hasattr(array, "dtype") and array.dtype.kind in "fcV" and bool(np.isnan(np.asarray(array)).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _report(node) -> None:
    trace = node.metadata.get("traceback_")
    if trace is None:
        text = "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text = "Traceback of forward call that caused the error:\n" + "".join(trace)
    warn_user(f"Error detected in {node.name()}. {text}")
    while (parent := node.metadata.get("parent_")) is not None:
        trace = "".join(parent.metadata.get("traceback_", ()))
        warn_user(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{trace}"
        )
        node = parent
