"""The array engines: one room each, with a namespace of NumPy-style functions of the same names and meanings.

    numpy/     eager code on the CPU
    xla/       compiled code, on JAX; imported only when a tensor of its kind appears
    deferred/  eager code on accelerators: promises, recorded and run as programs of the XLA engine
    cold/      such recordings call by call, with CuPy, as long as they are not worth compiling
    meta/      shapes and dtypes without values
    spread/    arrays in pieces on the devices of a mesh: ``DTensor``
    batched/   arrays with a hidden axis, over arrays of any of these: ``vmap``

Ops are written against a namespace, so what NumPy and JAX spell differently gets one name here. Beside its functions
a namespace has two tables of faster bodies, by op name: ``BODIES`` (same signature as the op's forward) and
``BACKWARD`` (all of an op's gradients at once). The op's own forward and rules stay the definition.

What engines share lies beside the rooms: formulas for any namespace (``special``, ``ctc``, ``cells``) and the way
names that an engine lacks are found among the operators (``fallback``). See docs/design/engines.md.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .numpy import namespace as numpy_namespace

# On NumPy these are stored as such but computed in single precision, as PyTorch's CPU kernels do.
WIDER = {
    np.dtype(np.float16): np.dtype(np.float32),
    np.dtype(ml_dtypes.bfloat16): np.dtype(np.float32),
    np.dtype(ml_dtypes.complex32): np.dtype(np.complex64),
}
LOW_PRECISION = frozenset(WIDER)


class Number(int):
    """A Python integer that is an operand, not a size or an axis: a recording may take it as an input."""


def operand(xp, value):
    """``value``, as a ``Number`` if it is an integer that an array can hold and ``xp`` records."""
    fits = value.__class__ is int and -(2**63) <= value < 2**63
    return Number(value) if fits and xp is _deferred.namespace else value


def namespace_of(array):
    """The engine that an array belongs to."""
    kind = array.__class__
    if kind is np.ndarray:
        return numpy_namespace
    if kind is _deferred.array:  # before a trace is asked for: ``once`` does that
        return _deferred.namespace
    if kind is _meta.array:
        return _meta.namespace
    if kind in KINDS:
        return KINDS[kind]
    if kind is _batched.array:
        return _batched.namespace
    return numpy_namespace if isinstance(array, (np.ndarray, np.generic)) else accelerated(array)


def replaced(written: list) -> None:
    """Of each (tensor, array) the tensor is about to have the array: an engine that may fail later notes it."""
    if written and written[0][1].__class__ is _deferred.array:
        _deferred.namespace.replaced(written)


KINDS: dict = {}  # what else travels as an array: its class, and a namespace of what the tape does with it


class SPREAD:
    """The class of arrays that lie in pieces on many devices, once that is imported."""

    array: Any = None


class _meta:
    """The class of arrays without values and their namespace, once that is imported."""

    array = namespace = None


class _batched:
    """The class of arrays with a hidden axis and their namespace, once that is imported."""

    array = namespace = None


class _deferred:
    """The class of promises and their namespace, once that is imported."""

    array = namespace = None


def meta():
    """The engine of arrays without values."""
    if _meta.namespace is None:
        from .meta import namespace

        _meta.array, _meta.namespace = namespace.Meta, namespace
    return _meta.namespace


def batched_engine():
    """The engine of ``vmap``."""
    if _batched.namespace is None:
        from .batched import namespace

        _batched.array, _batched.namespace = namespace.Batched, namespace
    return _batched.namespace


def is_batched(array) -> bool:
    """Is it of a ``vmap``, with a dimension that its tensor does not show?"""
    return array.__class__ is _batched.array


def joint(xp, array):
    """The engine for an array of engine ``xp``, which is not NumPy's, and another: one over a mesh, or of ``vmap``."""
    return xp if xp in (_batched.namespace, KINDS.get(SPREAD.array)) and xp is not None else namespace_of(array)


def accelerated(array=None):
    """The engine of an array of JAX's, or of new ones: promises, unless a trace is on or deferring is switched off."""
    from .xla import namespace as xla

    if not DEFER or xla.is_tracing() or xla.is_traced(array):
        return xla
    from .deferred import namespace as deferred

    _deferred.array, _deferred.namespace = deferred.Deferred, deferred
    return deferred


DEFER = os.environ.get("RUSHLIGHT_EAGER", "0") in ("", "0")  # else operators run one by one, for debugging


def computed(array):
    """``array``, or the JAX array that it promises, for good."""
    return array.force() if array.__class__ is _deferred.array else array


def expect(array, holds) -> None:
    """``holds(array)`` is to be true of all elements. Eager code has looked; a compiled program looks at every call."""
    if array.__class__ is not np.ndarray and _deferred.array is not array.__class__:
        devices = sys.modules.get("rushlight.engine.xla.devices")
        if devices is not None:
            devices.expect(array, holds)


def settle() -> None:
    """A step has ended: start what accelerators were asked for."""
    if _deferred.namespace is not None:
        _deferred.namespace.settle()


def collect() -> None:
    """Free what only reference cycles hold, those among what was set aside from the collector too."""
    if _deferred.namespace is not None:
        _deferred.namespace.spare_collector()


def landed() -> None:
    """Have everything that accelerators were asked for handed to them: arrays are about to be given away."""
    if _deferred.namespace is not None:
        _deferred.namespace.landed()
