"""Puts the kernels before NumPy's bodies of the same ops; what a kernel does not take falls through to those.

A kernel takes arrays of float32 or float64 in C order; the binding raises TypeError for others before anything is
computed, and then the plain body, or rule, does the work.
"""

from __future__ import annotations

from ..fallback import FORWARDS
from . import activations, extremes, library, losses, norms, pictures, softmax, tables

FAMILIES = (activations, extremes, losses, norms, pictures, softmax, tables)


def install(bodies: dict, backward: dict) -> None:
    """Wrap the entries of an engine's tables."""
    if library is not None:
        for family in FAMILIES:
            family.install(library, Plain(bodies), backward)


class Plain:
    """A table of bodies that can be asked for any op: where there is no body, its forward is one."""

    def __init__(self, bodies):
        self.bodies = bodies

    def __getitem__(self, name):
        return self.bodies.get(name) or (lambda xp, *arrays, **static: FORWARDS[name](xp, *arrays, **static))

    def __setitem__(self, name, body):
        self.bodies[name] = body
