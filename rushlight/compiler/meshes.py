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
from ..engine.xla.world import in_time, quiet, settle, told
from ..tensor import Tensor, wrap
from .guards import CompileError
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
    """The mesh that tensors of a function lie on, or are a process's part of; None if all are ordinary ones."""
    if SPREAD.array is None:
        return None
    meshes = [t._array.mesh if is_spread(t._array) else getattr(t, "_part_of", None) for t in tensors]
    meshes = [mesh for mesh in meshes if mesh is not None]
    return max(meshes, key=lambda mesh: (mesh.grid.devices.size, mesh.ndim)) if meshes else None


def is_here(mesh) -> bool:
    """Are all its devices this process's?"""
    from ..engine.spread.array import is_local

    return is_local(mesh.grid)


def processes(mesh, forms: list):
    """The processes of a program over several; raises if there is none for inputs that lie as ``forms`` say."""
    from .apart import Processes

    if any(how is not None and how.mesh.grid != mesh.grid for how in forms):
        raise CompileError("compile: its state has DTensors of different meshes, or parts of one.")
    return Processes(mesh.grid, mesh.part().grid)


def agreed(mesh, checks: list) -> list:
    """What must be true of values, of those of all processes."""
    if mesh is None or is_here(mesh):
        return checks
    from ..engine.spread.seen import agreed

    return [agreed(check) for check in checks]


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


def mine(value, shape: tuple):
    """What this process has of a program's output that is no DTensor."""
    found = value.addressable_data(0)
    return found if found.shape == shape else found.reshape(shape)


def result(value, how: Laid | None, shape: tuple) -> Tensor:
    """A program's output as a tensor; ``shape`` is what this process has of it, as JAX knows it."""
    if how is not None:
        return wrap(_array(value, how, shape))
    value = mine(value, shape)
    place = next(iter(value.devices()))
    if place.platform != "cpu" or device_at(place).index:
        return wrap(value)
    t = wrap(np.empty(value.shape, value.dtype))
    move(t, value)
    return t


def _part(value, how: Laid, shape: tuple):
    """What one process, or some of them, have of an array that all of them have joined."""
    lies = how.sharding
    size, shards = lies.shard_shape(shape), {s.device: s.data for s in value.addressable_shards}
    mine = [shards[device].reshape(size) for device in lies.addressable_devices]
    return jax.make_array_from_single_device_arrays(shape, lies, mine)


class Backward:
    """A compiled backward pass whose results or targets lie on a mesh, as a function of arrays."""

    def __init__(self, run, given: list[Laid | None], found: list):
        self._run, self._given, self._found = run, given, found

    def __call__(self, residuals, gradients):
        made = self._run(residuals, [_entering(g, how) for g, how in zip(gradients, self._given)])
        return [x if x is None else np.array(x) if how is None else how.of(x) for x, how in zip(made, self._found)]


class BackwardTogether:
    """A compiled backward pass of several processes.

    ``body`` takes what is ``kept``, (shape and dtype, level) of each, and the gradients of results, which are ``like``
    these and lie as ``given`` says; ``found`` will say how its results lie.
    """

    def __init__(self, body, processes, kept: list, like: list, given: list[Laid | None], found: list, options):
        self._body, self._processes, self._options = body, processes, options
        self._kept, self._like, self._given, self._found = kept, like, given, found
        self._run: Any = None
        self._shapes: list = []  # of its results, None where there is none

    def __call__(self, residuals, gradients):
        from ..engine.spread.array import processes_of

        entered = [self._entered(g, how) for g, how in zip(gradients, self._given)]
        ranks = processes_of(self._processes.grid)
        what = f"a compiled backward pass of rank {jax.process_index()} among ranks {ranks}"
        settle()
        with told(what):
            first = self._run is None
            if first:
                self._run = self._made()
                self._run.trace(*residuals, *entered)  # here, where the forward pass was traced
            with quiet() if first else contextlib.nullcontext():
                made = in_time(what, lambda: jax.block_until_ready(self._run(*residuals, *entered)), connects=first)
        made = iter(made)
        pairs = zip(self._shapes, self._found)
        return [None if shape is None else _array(next(made), how, shape) for shape, how in pairs]

    def _entered(self, gradient, how: Laid | None):
        if how is None:
            return self._processes.home.put(gradient)
        return self._processes.joining(_entering(gradient, how), how.sharding)

    def _made(self):
        from . import apart

        def flat(*arrays):
            made = self._body(arrays[: len(self._kept)], arrays[len(self._kept) :])
            self._shapes = [None if x is None else x.shape for x in made]
            return [x for x in made if x is not None]

        levels = [level for _, level in self._kept]
        levels += [self._processes.level_of(how) for how in self._given]
        run, _ = apart.program(flat, self._processes, [*(aval for aval, _ in self._kept), *self._like], levels)
        laid = [how for how, shape in zip(self._found, self._shapes) if shape is not None]
        lie = tuple(None if how is None else self._processes.sharding(how.sharding) for how in laid)
        return jax.jit(run, out_shardings=lie, compiler_options=self._options)


def _array(value, how: Laid | None, shape: tuple):
    """A program's output as an array."""
    if how is None:
        return np.array(mine(value, shape))
    return how.of(value if value.sharding.device_set == how.sharding.device_set else _part(value, how, shape))


def _entering(gradient, how: Laid | None):
    """A result's gradient, laid as the result is."""
    from ..engine.spread import namespace

    if how is None:
        return gradient
    if not is_spread(gradient):
        return namespace.laid_out(np.asarray(gradient), how.how, how.mesh).physical
    return namespace.lay(gradient, how.how, how.mesh).physical
