"""Tensors over a mesh in a compiled function: its program is one over all devices of the mesh.

Outside, such a tensor's array is a ``Spread``, and JAX has what that holds. A trace is given tracers of that and puts a
``Spread`` around each; what comes out is taken out of its ``Spread`` again, and ``Laid`` remembers how it lies. Inside,
every operator's results lie as in eager code, see ``engine/spread``.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ..engine import SPREAD
from ..engine.xla.devices import device_at, portable
from ..engine.xla.world import quiet
from ..tensor import Tensor, wrap
from .residence import move


class Laid(NamedTuple):
    """How an array lies that JAX holds."""

    how: tuple
    mesh: Any
    shape: tuple

    def of(self, physical):
        return SPREAD.array(physical, self.how, self.mesh, self.shape)

    @property
    def sharding(self):
        from ..engine.spread.array import sharding_of

        return sharding_of(self.how, self.mesh.grid, len(self.shape))


def laid(array) -> Laid | None:
    return Laid(array.how, array.mesh, array.shape) if is_spread(array) else None


def is_spread(array) -> bool:
    return array.__class__ is SPREAD.array


def held(array):
    """What JAX has of an array."""
    return array.physical if is_spread(array) else array


def whole(array):
    """The array of a trace, if it is over a mesh without a word how it lies."""
    return array.namespace.to_numpy(array) if is_spread(array) else array


def mesh_of(tensors):
    """The mesh that tensors of a function lie on; None if all of them are ordinary ones."""
    if SPREAD.array is None:
        return None
    meshes = [t._array.mesh for t in tensors if is_spread(t._array)]
    return max(meshes, key=lambda mesh: mesh.ndim) if meshes else None


def is_here(mesh) -> bool:
    """Are all its devices this process's?"""
    from ..engine.spread.array import is_local

    return is_local(mesh.grid)


def staging(mesh):
    """While a program over a mesh is traced: kernels in C know no mesh."""
    return contextlib.nullcontext() if mesh is None else portable()


def everywhere(mesh) -> NamedSharding:
    """Where what is not spread goes: to all devices."""
    return NamedSharding(mesh.grid, PartitionSpec())


def sent(values, home):
    """NumPy's values at ``home``; JAX's own way would compare them with other processes' first."""
    from ..engine.spread.array import spread_out

    return spread_out(values, home) if isinstance(home, NamedSharding) else jax.device_put(values, home)


def connecting(mesh):
    """While a program runs first: in a world XLA's gloo tells standard output whom it connects."""
    return contextlib.nullcontext() if mesh is None or is_here(mesh) else quiet()


def result(value, how: Laid | None) -> Tensor:
    """A program's output as a tensor."""
    if how is not None:
        return wrap(how.of(value))
    value = value.addressable_data(0)
    place = next(iter(value.devices()))
    if place.platform != "cpu" or device_at(place).index:
        return wrap(value)
    t = wrap(np.empty(value.shape, value.dtype))
    move(t, value)
    return t


class Backward:
    """A compiled backward pass whose results or targets lie on a mesh, as a function of arrays."""

    def __init__(self, run, given: list[Laid | None], found: list):
        self._run, self._given, self._found = run, given, found

    def __call__(self, residuals, gradients):
        made = self._run(residuals, [_entering(g, how) for g, how in zip(gradients, self._given)])
        return [x if x is None else np.array(x) if how is None else how.of(x) for x, how in zip(made, self._found)]


def _entering(gradient, how: Laid | None):
    """A result's gradient, laid as the result is."""
    from ..engine.spread import namespace

    if how is None:
        return gradient
    if not is_spread(gradient):
        return namespace.laid_out(np.asarray(gradient), how.how, how.mesh).physical
    return namespace.lay(gradient, how.how, how.mesh).physical
