"""How gamma and Dirichlet variates move with their parameters: by the library in C where it is there."""

from __future__ import annotations

import sys

import numpy as np

from ... import special
from ...native import library

_NAMESPACE = __name__.replace("kernels.slopes", "namespace")


def gamma_slope(a, x):
    return _by("gamma_slope", special.gamma_slope, a, x)


def dirichlet_slope(x, a, total):
    return _by("dirichlet_slope", _dirichlet, x, a, total)


@special.blocked
def _dirichlet(x, a, total):
    return special.dirichlet_slope(sys.modules[_NAMESPACE], x, a, total)


def _by(name, plain, *arrays):
    if library is None or arrays[0].dtype.char not in "fd":
        return plain(*arrays)
    alike = [np.ascontiguousarray(v, arrays[0].dtype) for v in np.broadcast_arrays(*arrays)]
    made = np.empty(alike[0].shape, alike[0].dtype)
    getattr(library, name)(*alike, made)
    return made
