"""``Spread``: an array that lies in pieces on the devices of a mesh; and how its pieces make the whole.

``how`` has an entry for each axis of the mesh's grid of devices: a number is the dimension that this axis cuts, None
says that all along the axis have the same, a word that what they have must be reduced so ("sum") to give the array.

JAX cuts only what can be cut evenly, and knows nothing of parts to be reduced. So what JAX holds, ``physical``, is
padded where a dimension is uneven, and has a leading axis for each axis of parts. Programs begin with ``logical`` and
end with ``physical_of``; where nothing is uneven or in parts, both do nothing.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ..operators import Operators
from ..xla.world import in_time, told


def spread_out(values: np.ndarray, sharding):
    """NumPy's values on the devices of ``sharding``: each has memory of its own.

    JAX would have them share the memory that it is given, also with whoever gave it; and a program that writes into
    what it was lent would write there while another device reads.
    """
    pieces = sharding.addressable_devices_indices_map(values.shape)
    with jax.ensure_compile_time_eval():  # constants in a trace, too
        shards = [jax.device_put(np.array(values[index]), device) for device, index in pieces.items()]
    return jax.make_array_from_single_device_arrays(values.shape, sharding, shards, dtype=values.dtype)


class Spread(Operators):
    """An array over the devices of ``mesh`` (which has a ``grid``, JAX's mesh), laid as ``how`` says."""

    __slots__ = ("__weakref__", "dtype", "how", "mesh", "physical", "shape")
    flags = base = None  # what only arrays with memory of their own have

    def __init__(self, physical, how: tuple, mesh, shape: tuple):
        self.physical, self.how, self.mesh = physical, how, mesh
        self.shape, self.dtype = shape, physical.dtype

    @property
    def grid(self):
        return self.mesh.grid

    def holding(self, physical) -> Spread:
        """Another array that lies as this one does."""
        return Spread(physical, self.how, self.mesh, self.shape)

    def copy(self) -> Spread:
        return self  # arrays cannot be written: nobody can tell two apart

    def __array__(self, dtype=None, copy=None):
        return np.asarray(whole(self), dtype=dtype)

    def item(self):
        return whole(self).item()

    def tolist(self):
        return whole(self).tolist()

    def __bool__(self) -> bool:
        return bool(whole(self))

    def __int__(self) -> int:
        return int(whole(self))

    def __float__(self) -> float:
        return float(whole(self))

    def __repr__(self) -> str:
        return f"<Spread {self.dtype}{list(self.shape)}, {self.how}>"


def is_traced(x) -> bool:
    """Is it, or what it holds, part of a program that is being made?"""
    return isinstance(getattr(x, "physical", x), jax.core.Tracer)


def whole(array: Spread):
    """The values of all of it, where this process can see them; in a trace an array without a word how it lies."""
    physical = array.physical
    if is_traced(physical):
        return _traced_whole(array)
    if physical.is_fully_replicated:
        physical = physical.addressable_data(0)
    elif not physical.is_fully_addressable:
        raise RuntimeError(
            "the values of this DTensor lie in several processes; call full_tensor() in all of them, or to_local() for "
            "the part that lies here"
        )
    return np.asarray(logical(np, fetched(physical), array.how, array.grid, array.shape))


def fetched(x) -> np.ndarray:
    """The values of an array of JAX's; a program that makes them may wait for other processes, and not for ever."""
    if x.is_ready():
        return np.asarray(x)
    with told("a DTensor's values"):
        in_time(f"a DTensor's values in rank {jax.process_index()}", lambda: jax.block_until_ready(x))
        return np.asarray(x)


def _traced_whole(array: Spread):
    from .seen import seen

    values = logical(jnp, array.physical, array.how, array.grid, array.shape)
    if is_local(array.grid):
        return values
    nowhere = (None,) * len(array.how)
    values = jax.lax.with_sharding_constraint(values, sharding_of(nowhere, array.grid, values.ndim))
    return seen(values, nowhere, array.grid, array.mesh.part().grid)


# -- the whole and its pieces ------------------------------------------------------------------------------------------


def sizes_of(grid) -> tuple[int, ...]:
    return grid.devices.shape


def cuts(how: tuple, grid, dim: int) -> tuple[int, ...]:
    """Into how many parts each axis of the grid cuts ``dim``, outermost first."""
    return tuple(n for n, h in zip(sizes_of(grid), how) if h == dim and h.__class__ is int)


def padded(n: int, parts: tuple[int, ...]) -> int:
    """The size of a dimension of ``n`` when each cut is into equal parts."""
    return n if not parts else parts[0] * padded(-(-n // parts[0]), parts[1:])


def is_even(how: tuple, grid, shape: tuple) -> bool:
    return all(padded(n, cuts(how, grid, d)) == n for d, n in enumerate(shape))


def is_whole(how: tuple) -> bool:
    """Is there nothing to reduce?"""
    return not any(h.__class__ is str for h in how)


def padded_shape(how: tuple, grid, shape: tuple) -> tuple[int, ...]:
    return tuple(padded(n, cuts(how, grid, d)) for d, n in enumerate(shape))


@functools.lru_cache(maxsize=4096)
def sharding_of(how: tuple, grid, ndim: int) -> NamedSharding:
    """JAX's word for ``how``, of the physical array."""
    names = grid.axis_names
    parts = [name for name, h in zip(names, how) if h.__class__ is str]
    dims = [tuple(name for name, h in zip(names, how) if h == d and h.__class__ is int) for d in range(ndim)]
    return NamedSharding(grid, PartitionSpec(*parts, *[d or None for d in dims]))


def how_of(sharding, grid, ndim: int) -> tuple | None:
    """``how``, read from the sharding of an array without parts; None if there is no such word for it."""
    if not isinstance(sharding, NamedSharding) or sharding.mesh != grid:
        return None
    how: list = [None] * len(grid.axis_names)
    for dim, names in enumerate(sharding.spec):
        names = () if names is None else names if isinstance(names, tuple) else (names,)
        axes = [grid.axis_names.index(name) for name in names]
        if axes != sorted(axes):
            return None
        for axis in axes:
            how[axis] = dim
    return tuple(how)


def logical(xp, physical, how: tuple, grid, shape: tuple):
    """The array itself, of what JAX holds."""
    for op in reversed([h for h in how if h.__class__ is str]):
        axis = physical.ndim - len(shape) - 1
        physical = _reduced(xp, physical, op, axis)
    for d, n in enumerate(shape):
        physical = _without_padding(physical, d, n, cuts(how, grid, d))
    return physical


def _reduced(xp, x, op: str, axis: int):
    if op == "avg":
        return (x.sum(axis=axis, dtype=x.dtype) / x.shape[axis]).astype(x.dtype)
    if op in ("sum", "product"):
        return getattr(x, {"product": "prod"}.get(op, op))(axis=axis, dtype=x.dtype)
    return {"max": x.max, "min": x.min}[op](axis=axis)


def physical_of(xp, x, how: tuple, grid, shape: tuple):
    """What JAX is to hold for the array ``x``; of parts that are summed each has its share."""
    for d, n in enumerate(shape):
        x = _with_padding(xp, x, d, n, cuts(how, grid, d))
    for axis in reversed(range(len(how))):
        if how[axis].__class__ is str:
            parts = sizes_of(grid)[axis]
            share = (x / parts).astype(x.dtype) if how[axis] == "sum" else x
            x = xp.broadcast_to(share[None], (parts, *share.shape))
    return x


def _without_padding(x, axis: int, n: int, parts: tuple):
    if x.shape[axis] == n:
        return x
    before, after, each = x.shape[:axis], x.shape[axis + 1 :], -(-n // parts[0])
    x = x.reshape(*before, parts[0], x.shape[axis] // parts[0], *after)
    x = _without_padding(x, axis + 1, each, parts[1:]).reshape(*before, parts[0] * each, *after)
    return x[(slice(None),) * axis + (slice(n),)]


def _with_padding(xp, x, axis: int, n: int, parts: tuple):
    if not parts or padded(n, parts) == n:
        return x
    before, after, each = x.shape[:axis], x.shape[axis + 1 :], -(-n // parts[0])
    x = xp.pad(x, [(0, parts[0] * each - n if d == axis else 0) for d in range(x.ndim)])
    x = _with_padding(xp, x.reshape(*before, parts[0], each, *after), axis + 1, each, parts[1:])
    return x.reshape(*before, padded(n, parts), *after)


def piece(how: tuple, grid, shape: tuple, at: tuple[int, ...]) -> tuple[slice, ...]:
    """Which part of the whole the device at place ``at`` of the grid has."""
    found = []
    for d, n in enumerate(shape):
        start, stop = 0, n
        for axis, h in enumerate(how):
            if h == d and h.__class__ is int:
                # The parts are those of a full chunk, also in the last one, which may be shorter.
                each = -(-_chunk(how, grid, d, n, axis) // sizes_of(grid)[axis])
                start = min(start + at[axis] * each, stop)
                stop = min(start + each, stop)
        found.append(slice(start, stop))
    return tuple(found)


def _chunk(how: tuple, grid, dim: int, n: int, before: int) -> int:
    """The size of what axis ``before`` cuts: a full chunk of the axes outside it."""
    for axis in range(before):
        if how[axis] == dim and how[axis].__class__ is int:
            n = -(-n // sizes_of(grid)[axis])
    return n


@functools.lru_cache(maxsize=1024)
def here(grid) -> list:
    """The devices of the grid that are this process's, with their places."""
    me = jax.process_index()
    return [(device, at) for at, device in np.ndenumerate(grid.devices) if device.process_index == me]


@functools.lru_cache(maxsize=1024)
def is_local(grid) -> bool:
    """Are all its devices this process's?"""
    return len(here(grid)) == grid.devices.size


@functools.lru_cache(maxsize=1024)
def processes_of(grid) -> list[int]:
    """The processes whose devices these are."""
    return sorted({device.process_index for device in grid.devices.flat})
