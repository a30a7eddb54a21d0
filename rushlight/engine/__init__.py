"""The array engines: one namespace of NumPy-style functions each, with the same names and meanings.

``numpy`` serves the CPU; ``xla`` (imported only when a tensor of its kind appears) serves accelerators and compiled
code. Ops are written against a namespace, so what NumPy and JAX spell differently gets one name here. Beside its
functions a namespace has two tables of faster bodies, by op name: ``BODIES`` (same signature as the op's forward) and
``BACKWARD`` (all of an op's gradients at once). The op's own forward and rules stay the definition.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from . import numpy

# On NumPy these are stored as such but computed in float32, as PyTorch's CPU kernels do.
LOW_PRECISION = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def namespace_of(array):
    """The engine that an array belongs to."""
    if isinstance(array, (np.ndarray, np.generic)):
        return numpy
    from . import xla

    return xla
