"""The array engines: one room each, with a namespace of NumPy-style functions of the same names and meanings.

    numpy/   eager code on the CPU
    xla/     accelerators and compiled code, on JAX; imported only when a tensor of its kind appears
    meta/    shapes and dtypes without values

Ops are written against a namespace, so what NumPy and JAX spell differently gets one name here. Beside its functions
a namespace has two tables of faster bodies, by op name: ``BODIES`` (same signature as the op's forward) and
``BACKWARD`` (all of an op's gradients at once). The op's own forward and rules stay the definition.

What engines share lies beside the rooms: formulas for any namespace (``special``, ``ctc``, ``cells``) and the way
names that an engine lacks are found among the operators (``fallback``). See docs/design/engines.md.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .numpy import namespace as numpy_namespace

# On NumPy these are stored as such but computed in float32, as PyTorch's CPU kernels do.
LOW_PRECISION = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def namespace_of(array):
    """The engine that an array belongs to."""
    if isinstance(array, (np.ndarray, np.generic)):
        return numpy_namespace
    if array.__class__ is _meta.array:
        return _meta.namespace
    from .xla import namespace

    return namespace


class _meta:
    """The class of arrays without values and their namespace, once that is imported."""

    array = namespace = None


def meta():
    """The engine of arrays without values."""
    if _meta.namespace is None:
        from .meta import namespace

        _meta.array, _meta.namespace = namespace.Meta, namespace
    return _meta.namespace
