"""The namespace of ``Spread`` arrays: every function of the XLA engine, as one program over all devices of a mesh.

An operator, all its gradients, or an optimizer's step is one call of ``once`` and so one program. XLA sees how its
inputs lie, decides how results lie, and puts in what must be communicated. No operator has a rule for it.

With several processes all must call the same functions in the same order, as in PyTorch.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import re
import sys
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...device import cpu, device
from .. import KINDS, SPREAD, Number, counting
from ..fallback import run, through
from ..numpy import namespace as numpy_engine
from ..xla import devices
from ..xla import namespace as xla
from ..xla.options import compiler_options
from ..xla.world import in_time, quiet, settle, told
from .array import (
    Spread,
    fetched,
    how_of,
    is_even,
    is_local,
    is_traced,
    is_whole,
    logical,
    padded_shape,
    physical_of,
    processes_of,
    sharding_of,
    spread_out,
    whole,
)
from .seen import seen

DEFERS = True  # an operator or all its gradients are one program
BODIES: dict = {}
BACKWARD: dict = {}
serves_update = None  # kernels in C know no mesh
Spread.namespace = sys.modules[__name__]
KINDS[Spread] = sys.modules[__name__]
SPREAD.array = Spread


# -- programs ----------------------------------------------------------------------------------------------------------


def once(name: str, function, constants: tuple, *args):
    """``function(xp, *constants, *args)``, pure in the arrays anywhere in ``args``, as one program."""
    leaves, tree = jax.tree.flatten(args)
    mesh = _mesh_of([leaf.mesh for leaf in leaves if leaf.__class__ is Spread])
    if mesh is None:  # made of nothing: NumPy's, which goes anywhere
        return function(numpy_engine, *constants, *args)
    program, numbers = _find(name, function, constants, leaves, tree, mesh.grid)
    run = program.staged if xla.is_tracing() or any(map(is_traced, leaves)) else program
    return run(mesh, [leaf for leaf in leaves if _is_array(leaf)], numbers)


class _Program:
    """One kind of call, compiled: the same function, shapes and layouts."""

    def __init__(self, name, function, constants, leaves, tree, grid, moving: dict):
        self.grid = grid
        self._body: Any = None
        self.form: Any = None
        self.hows: list | None = None
        kinds = [_Like(leaf, grid) if _is_array(leaf) else leaf for leaf in leaves]  # holds no array

        def run(arrays, numbers, enter=lambda like, x: like.enter(x)):
            given, counted, filled, place = iter(arrays), iter(numbers), [], 0
            for leaf in kinds:
                if leaf.__class__ is _Like:
                    leaf = enter(leaf, next(given))
                elif leaf.__class__ in _NUMBERS:
                    leaf = next(counted) if place in moving else _NUMBERS[leaf.__class__](leaf)
                    place += 1
                filled.append(leaf)
            result = function(xla, *constants, *jax.tree.unflatten(tree, filled))
            made, out = jax.tree.flatten(result, is_leaf=lambda x: x is None)
            self.form = out, [None if _is_array(x) else (x,) for x in made]
            return [jnp.asarray(x) for x in made if _is_array(x)]

        run.__name__ = name
        self._numbers = list(moving.values())
        self._like = like = [k for k in kinds if k.__class__ is _Like]
        self.shapes = [x.shape for x in jax.eval_shape(lambda a, n: run(a, n), [k.aval for k in like], self._numbers)]
        options = compiler_options(next(iter(grid.devices.flat)).platform, None)
        if all(k.even for k in like):
            self._body = run
            self.run = jax.jit(run, keep_unused=True, compiler_options=options)
        else:
            self.hows = hows = _propagated(run, like, self._numbers, self.shapes, grid)
            laid = [sharding_of(how, grid, len(shape)) for how, shape in zip(hows, self.shapes)]

            def pad(arrays, numbers):
                made = run(arrays, numbers)
                return [physical_of(jnp, x, how, grid, x.shape) for x, how in zip(made, hows)]

            self._body = pad
            self.run = jax.jit(pad, keep_unused=True, out_shardings=laid, compiler_options=options)

    def __call__(self, mesh, arrays, numbers):
        # NumPy's are copied: some device may read them when eager code has begun to write there again.
        physical = [a.physical if a.__class__ is Spread else np.array(a) for a in arrays]
        made = _ran(self.grid, self.run, physical, numbers)
        if self.hows is None:
            self.hows = [how_of(x.sharding, self.grid, x.ndim) for x in made]
        return self._formed([_entered(x, how, mesh, shape) for x, how, shape in zip(made, self.hows, self.shapes)])

    def staged(self, mesh, arrays, numbers):
        """As part of a program that is being traced: results lie there as they would by themselves."""
        made = self._body([a.physical if a.__class__ is Spread else _from_all(a, mesh) for a in arrays], numbers)
        laid = zip(made, self._layouts(), self.shapes)
        return self._formed([pinned(x, how, mesh, shape) for x, how, shape in laid])

    def _layouts(self) -> list:
        """How results lie, which XLA says of a program that it has compiled."""
        if self.hows is None or None in self.hows:
            avals = [k.laid for k in self._like]
            found = jax.jit(self._body, keep_unused=True).lower(avals, self._numbers).compile().output_shardings
            named = [how_of(s, self.grid, len(shape)) for s, shape in zip(found, self.shapes)]
            hows = zip(named, found, self.shapes)
            return [_nearest(s, self.grid, shape) if how is None else how for how, s, shape in hows]
        return self.hows

    def _formed(self, spread: list):
        out, fixed = self.form
        arrays = iter(spread)
        return jax.tree.unflatten(out, [next(arrays) if f is None else f[0] for f in fixed])


# How arguments lay of programs that have run in a world of several processes: each way has its own connections.
_connected: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _ran(grid, program, *args):
    """``program(*args)``, which other processes run too; whoever does not come in time is an error.

    On CPUs it has ended then: with gloo, what a group exchanges next must not overtake it in one process and not in the
    other. In a first run gloo tells standard output whom it connects: hushed.
    """
    if counting.WATCHERS and not any(map(is_traced, jax.tree.leaves(args))):
        _tell_collectives(program, args)
    if jax.process_count() == 1 or any(map(is_traced, jax.tree.leaves(args))):
        return program(*args)
    lie = tuple([getattr(a, "sharding", None) for a in jax.tree.leaves(args)])
    first = lie not in _connected.setdefault(program, set())
    wait = first or (grid.devices.flat[0].platform == "cpu" and not is_local(grid))
    what = f"{program.__name__} of DTensors of rank {jax.process_index()} among ranks {processes_of(grid)}"
    run = lambda: jax.block_until_ready(program(*args)) if wait else program(*args)
    if not is_local(grid):
        settle()
    with told(what), quiet() if first else contextlib.nullcontext():
        if is_local(grid):
            made = run()
        else:
            if first:
                program.trace(*args)  # here: what Python code asks of its thread is this one's to answer
            made = in_time(what, run, connects=first)
    _connected[program].add(lie)
    return made


_communicates: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # the collectives in each program
_COLLECTIVE = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def _tell_collectives(program, args) -> None:
    """Tell who counts what XLA has put into a program; it is compiled once more for that."""
    if program not in _communicates:
        with told("a program of DTensors"):
            found = _COLLECTIVE.findall(program.lower(*args).compile().as_text())
        _communicates[program] = collections.Counter(found)
    for what, count in _communicates[program].items():
        counting.tell(what, count)


class _Like:
    """What a program must know of an array that enters it."""

    def __init__(self, array, grid):
        self.shape, self.how = tuple(array.shape), None
        self.aval = jax.ShapeDtypeStruct(self.shape, array.dtype)
        self.even, self.grid = True, grid
        if array.__class__ is Spread:
            self.how, self.even = array.how, is_even(array.how, grid, self.shape)
            self.aval = jax.ShapeDtypeStruct(array.physical.shape, array.dtype)

    @property
    def laid(self):
        """What JAX must know of it."""
        if self.how is None:
            return self.aval
        sharding = sharding_of(self.how, self.grid, len(self.shape))
        return jax.ShapeDtypeStruct(self.aval.shape, self.aval.dtype, sharding=sharding)

    def enter(self, x):
        return x if self.how is None else logical(jnp, x, self.how, self.grid, self.shape)


def _propagated(run, like: list, numbers: list, shapes: list, grid) -> list:
    """How results lie where an input is uneven, which JAX cannot say: as if the padding belonged to it."""
    nowhere = (None,) * len(grid.axis_names)

    def padded(arrays, numbers):
        return run(arrays, numbers, enter=lambda k, x: _summed(k, x))

    try:
        lowered = jax.jit(padded, keep_unused=True).lower([k.laid for k in like], numbers)
        found = [how_of(s, grid, len(shape)) or nowhere for s, shape in zip(lowered.compile().output_shardings, shapes)]
        made = [x.shape for x in jax.tree.leaves(lowered.out_info)]
    except Exception:  # the function does not go with other shapes: a reshape, say
        return [nowhere] * len(shapes)
    return [how if padded_shape(how, grid, shape) == size else nowhere for how, shape, size in zip(found, shapes, made)]


def _summed(like: _Like, x):
    """A physical array as it is, but for its axes of parts."""
    return x if like.how is None else logical(jnp, x, like.how, like.grid, x.shape[x.ndim - len(like.shape) :])


def _entered(x, how, mesh, shape):
    """A result of a program as an array of this engine."""
    if how is None:  # XLA found an order of axes that has no name here, or laid it on one device
        how = _nearest(x.sharding, mesh.grid, shape)
        x = moved(x, sharding_of(how, mesh.grid, len(shape)))
    return Spread(x, how, mesh, shape)


def _nearest(sharding, grid, shape) -> tuple:
    """How an array can lie that XLA has laid in a way that has no name here."""
    found: list = [None] * len(grid.axis_names)
    for dim, names in enumerate(getattr(sharding, "spec", ())):
        for name in () if names is None else names if isinstance(names, tuple) else (names,):
            found[grid.axis_names.index(name)] = dim
    how = tuple(
        h if h is not None and padded_shape((None,) * i + (h,), grid, shape) == shape else None
        for i, h in enumerate(found)
    )
    return how if is_even(how, grid, shape) else (None,) * len(how)


def pinned(x, how, mesh, shape) -> Spread:
    """An array of a trace, which is to lie so."""
    return Spread(jax.lax.with_sharding_constraint(x, sharding_of(how, mesh.grid, len(shape))), how, mesh, shape)


def _from_all(values, mesh):
    """An ordinary array of a trace that all processes have, and have alike, as far as anybody knows."""
    if not is_traced(values):
        return values
    return seen(values, (None,) * len(mesh.grid.axis_names), mesh.part().grid, mesh.grid)


_programs: dict = {}
_families: dict = {}  # calls that differ only in numbers: those of the first, and whether they decide what is computed
_NUMBERS = {float: float, Number: int}


def _find(name, function, constants, leaves, tree, grid):
    """(the program of this call, the numbers that it takes as inputs)."""
    key = [function, constants, tree, grid]
    general = list(key)
    numbers = []
    for leaf in leaves:
        kind = leaf.__class__
        if kind in _NUMBERS:
            numbers.append(_NUMBERS[kind](leaf))
            key.append((kind, leaf if leaf == leaf and leaf else repr(leaf)))
            general.append(kind)
            continue
        part = _part(leaf, kind)
        key.append(part)
        general.append(part)
    full = tuple(key)
    program = _programs.get(full)
    if program is not None:
        return program, []
    if numbers:
        first, stays = _families.setdefault(tuple(general), [numbers, False])
        if not stays and str(first) != str(numbers):
            places = dict(enumerate(numbers))
            moving = (tuple(general), "numbers")
            program = _programs.get(moving)
            try:
                if program is None:
                    program = _programs[moving] = _Program(name, function, constants, leaves, tree, grid, places)
                return program, numbers
            except devices.NEEDS_VALUE:  # a number decides what is computed: it stays a constant
                _families[tuple(general)][1] = True
    program = _programs[full] = _Program(name, function, constants, leaves, tree, grid, {})
    return program, []


def _part(leaf, kind):
    """What of an argument makes another program."""
    if kind is Spread:
        return leaf.how, leaf.shape, leaf.dtype
    if _is_array(leaf):
        return leaf.shape, leaf.dtype
    if kind is slice:
        return slice, leaf.start, leaf.stop, leaf.step
    return kind, leaf


def _is_array(x) -> bool:
    return x.__class__ is Spread or isinstance(x, (np.ndarray, np.generic, jax.Array))


def _mesh_of(meshes: list):
    """The mesh that all arrays of a call lie on; None if there is none."""
    if not meshes:
        return None
    found = meshes[0]
    for mesh in meshes[1:]:
        if mesh is not found:
            if mesh.grid != found.grid:
                raise RuntimeError(
                    f"DTensors on different meshes meet: {found} and {mesh}; redistribute one of them to the other's"
                )
            found = mesh if mesh.ndim > found.ndim else found
    return found


def __getattr__(name: str):
    """The XLA engine's function of that name, as a program; found once, then an ordinary global."""
    found = globals()[name] = through(once, xla, name)
    return found


devices.traced_for_precision.append(_programs.clear)


# -- laying out --------------------------------------------------------------------------------------------------------


def lay(array: Spread, how: tuple, mesh=None) -> Spread:
    """``array`` with its pieces laid as ``how`` says, on the same devices."""
    mesh = mesh or array.mesh
    if how == array.how and mesh is array.mesh:
        return array
    if mesh.grid != array.grid:
        raise RuntimeError(f"a DTensor cannot move from {array.mesh} to {mesh}: they are of other devices")
    if is_traced(array):
        return pinned(_laid_anew(array.physical, array.how, how, array.grid, array.shape), how, mesh, array.shape)
    move = _laying(array.how, how, array.grid, array.shape)
    return Spread(_ran(array.grid, move, array.physical), how, mesh, array.shape)


@functools.lru_cache(maxsize=4096)
def _laying(before: tuple, after: tuple, grid, shape: tuple):
    def move(x):
        return _laid_anew(x, before, after, grid, shape)

    return jax.jit(move, out_shardings=sharding_of(after, grid, len(shape)))


def _laid_anew(x, before: tuple, after: tuple, grid, shape: tuple, dtype=None):
    x = logical(jnp, x, before, grid, shape)
    return physical_of(jnp, x if dtype is None else x.astype(dtype), after, grid, shape)


def lay_all(arrays: list, hows: list, dtype=None) -> list:
    """Many arrays laid anew by one program for each mesh; made of another dtype first, if one is given."""
    if any(map(is_traced, arrays)):
        held = [_laid_anew(a.physical, a.how, how, a.grid, a.shape, dtype) for a, how in zip(arrays, hows)]
        return [pinned(x, how, a.mesh, a.shape) for x, how, a in zip(held, hows, arrays)]
    if len(grids := dict.fromkeys([a.grid for a in arrays])) > 1:  # some are cut by tensor parallelism too, some not
        found: list = [None] * len(arrays)
        for grid in grids:
            numbers = [i for i, a in enumerate(arrays) if a.grid == grid]
            for i, a in zip(numbers, lay_all([arrays[i] for i in numbers], [hows[i] for i in numbers], dtype)):
                found[i] = a
        return found
    mesh, before = arrays[0].mesh, tuple([(a.how, a.shape) for a in arrays])
    move = _laying_all(before, tuple(hows), mesh.grid, None if dtype is None else np.dtype(dtype))
    made = _ran(mesh.grid, move, [a.physical for a in arrays])
    return [Spread(x, how, a.mesh, a.shape) for x, how, a in zip(made, hows, arrays)]


@functools.lru_cache(maxsize=1024)
def _laying_all(before: tuple, hows: tuple, grid, dtype):
    def move(given):
        return [_laid_anew(x, how, to, grid, shape, dtype) for x, (how, shape), to in zip(given, before, hows)]

    laid = [sharding_of(after, grid, len(shape)) for (_, shape), after in zip(before, hows)]
    return jax.jit(move, out_shardings=laid)


def moved(x, sharding):
    """An array of JAX's, on the same devices or with the same values everywhere, laid anew."""
    if isinstance(x.sharding, type(sharding)) and x.sharding.device_set == sharding.device_set:
        return _ran(sharding.mesh, _moving(sharding), x)
    return spread_out(fetched(x.addressable_data(0)), sharding)


@functools.lru_cache(maxsize=4096)
def _moving(sharding):
    def move(x):
        return x

    return jax.jit(move, out_shardings=sharding)


def laid_out(values: np.ndarray, how: tuple, mesh) -> Spread:
    """An array that every process has whole, laid out."""
    if is_traced(values):
        return pinned(physical_of(jnp, _from_all(values, mesh), how, mesh.grid, values.shape), how, mesh, values.shape)
    values = np.asarray(values)
    shape, sharding = values.shape, sharding_of(how, mesh.grid, values.ndim)
    return Spread(spread_out(physical_of(np, values, how, mesh.grid, shape), sharding), how, mesh, shape)


def like(values: np.ndarray, array: Spread) -> Spread:
    """NumPy's values laid as ``array`` is, where it is whole."""
    return laid_out(values, tuple(None if h.__class__ is str else h for h in array.how), array.mesh)


def kept(new, old: Spread) -> Spread:
    """What is written into ``old``: it lies as before."""
    if new.__class__ is not Spread:
        return like(new, old)
    return lay(new, old.how, old.mesh) if new.grid == old.grid else new


def everywhere(array, mesh) -> Spread:
    """An array that all devices are to have whole."""
    return array if array.__class__ is Spread else laid_out(array, (None,) * len(mesh.grid.axis_names), mesh)


def full_like(x, fill_value, dtype=None):
    """Filled, and laid as ``x``."""
    how = tuple(None if h.__class__ is str else h for h in x.how)
    shape, dtype = padded_shape(how, x.grid, x.shape), np.dtype(dtype or x.dtype)
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if xla.is_tracing() or is_traced(x):
        return pinned(jnp.full(shape, fill_value, dtype), how, x.mesh, x.shape)
    make = _filling(shape, fill_value, dtype, sharding_of(how, x.grid, len(shape)))
    return Spread(make(), how, x.mesh, x.shape)


@functools.lru_cache(maxsize=4096)
def _filling(shape, value, dtype, sharding):
    return lambda: spread_out(np.broadcast_to(np.array(value, dtype), shape), sharding)


def zeros_like(x, dtype=None):
    return full_like(x, 0, dtype) if x.__class__ is Spread else np.zeros_like(x, dtype)


def ones_like(x, dtype=None):
    return full_like(x, 1, dtype) if x.__class__ is Spread else np.ones_like(x, dtype)


empty_like = zeros_like


# -- arrays and devices ------------------------------------------------------------------------------------------------


def device_of(array) -> device:
    """The kind of device that the mesh is of."""
    place = array.grid.devices.flat[0]
    return cpu if place.platform == "cpu" else devices.device_at(jax.local_devices(backend=place.platform)[0])


def to_device(array, d):
    """Where the pieces lie is the mesh's to say."""
    if array.__class__ is not Spread or d.type == device_of(array).type:  # an index that is not spread stays what it is
        return array
    raise NotImplementedError(f"a DTensor cannot move to '{d}'; use full_tensor().to('{d}')")


def place_of(d):
    return d


def to_numpy(array) -> np.ndarray:
    """The values; in a trace what stands for them."""
    array = whole(array) if array.__class__ is Spread else array
    return array if is_traced(array) else np.array(array)


def gathered(array: Spread) -> np.ndarray:
    """The values of all of it, in every process."""
    return to_numpy(lay(array, (None,) * len(array.how)))


def asarray(x, dtype=None):
    if x.__class__ is not Spread:
        return jnp.asarray(x, dtype) if is_traced(x) else np.asarray(x, dtype)
    return x if dtype is None or x.dtype == dtype else astype(x, dtype)


def astype(x, dtype):
    if x.__class__ is not Spread:
        return asarray(x, dtype)
    return x if x.dtype == dtype else once("astype", run, ("astype",), (x, np.dtype(dtype)), {})


def alias(x):
    return x


def lay_out(x, order):
    return x


def check_same_device(arrays) -> None:
    """Raise PyTorch's error for a tensor that is not spread: whose it is, no other process knows."""
    mesh: Any = next(a.mesh for a in arrays if a.__class__ is Spread)
    if is_local(mesh.grid):
        return
    for a in arrays:
        if isinstance(a, np.ndarray) and a.ndim and a.size > 1 and not replicating:
            raise RuntimeError(
                "got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                "distributed operators! Use distribute_tensor or DTensor.from_local."
            )


replicating: list = []  # not empty inside ``implicit_replication``


def explained(place=None, holding=""):
    return devices.explained(None, holding)


def is_known(x) -> bool:
    """Values may lie elsewhere: checks of them are left out."""
    return False


def on_host(function, name, *arrays):
    """``function`` of NumPy copies of ``arrays``; every process gets the same results."""
    mesh = _mesh_of([a.mesh for a in arrays if a.__class__ is Spread])
    results = function(*[np.asarray(a) for a in arrays])
    if isinstance(results, tuple):
        return tuple([everywhere(r, mesh) for r in results])
    return everywhere(results, mesh)


def nonzero(x):
    return on_host(np.nonzero, "nonzero", x)


def draw(kind: str, generator, d, args: tuple, options: dict):
    raise NotImplementedError(f"random numbers ({kind}) with parameters that are DTensors")
