"""What one process has of an array, and how the parts of all processes become one array.

A process's devices count as one: its part is all that lies on them. If it has one device of the mesh, its part is a
plain array; if it has several, an array that is spread over those.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..xla import devices
from .array import Spread, cuts, fetched, here, is_local, is_traced, padded_shape, piece, sharding_of, sizes_of, whole
from .namespace import laid_out, lay, pinned
from .seen import check_alike, seen


def local(array: Spread):
    """This process's part."""
    grid, places = array.grid, here(array.grid)
    if not places:
        return np.empty((0,), array.dtype)
    if is_local(grid) and len(places) > 1:
        return lay(array, _without_parts(array.how))
    if is_traced(array):
        return _traced_part(array)
    return _on_one(array, *places[0]) if len(places) == 1 else _on_some(array, places)


def copied(array: Spread) -> Spread:
    """The same in memory of its own, which no compiled program is given to write to. No other process is asked."""
    physical = array.physical
    shards = [jnp.copy(s.data) for s in physical.addressable_shards]
    made = jax.make_array_from_single_device_arrays(physical.shape, physical.sharding, shards, dtype=physical.dtype)
    return array.holding(made)


def _traced_part(array: Spread):
    mine = array.mesh.part()
    check_alike(array.how, array.grid, mine.grid, array.shape)
    part = seen(array.physical, array.how, array.grid, mine.grid)
    shape = part.shape[part.ndim - len(array.shape) :]
    return part.reshape(shape) if mine.grid.devices.size == 1 else Spread(part, array.how, mine, shape)


def _on_one(array: Spread, device, at):
    data = next(s.data for s in array.physical.addressable_shards if s.device == device)
    cut = piece(array.how, array.grid, array.shape, at)
    values = fetched(data).reshape(data.shape[data.ndim - len(array.shape) :])
    values = np.array(values[tuple(slice(c.stop - c.start) for c in cut)])
    return values if device.platform == "cpu" else devices.to_device(values, devices.device_at(device))


def _on_some(array: Spread, places):
    """Spread over this process's own devices; as one plain array where their padding would not go together."""
    mine, (start, shape) = array.mesh.part(), _extent(array, places)
    shards = {s.device: s.data for s in array.physical.addressable_shards}
    sizes = [sizes_of(mine.grid)[i] for i, h in enumerate(array.how) if h.__class__ is str]
    held = (*sizes, *padded_shape(array.how, mine.grid, shape))
    sharding = sharding_of(array.how, mine.grid, len(shape))
    if sharding.shard_shape(held) == next(iter(shards.values())).shape:
        parts = [shards[d] for d in mine.grid.devices.flat]
        return Spread(jax.make_array_from_single_device_arrays(held, sharding, parts), array.how, mine, shape)
    values = np.empty(shape, array.dtype)
    for device, at in places:
        cut = piece(array.how, array.grid, array.shape, at)
        data = fetched(shards[device]).reshape(shards[device].shape[-len(shape) :])
        inside = tuple(slice(c.start - s, c.stop - s) for c, s in zip(cut, start))
        values[inside] = data[tuple(slice(c.stop - c.start) for c in cut)]
    return values


def _extent(array, places):
    """(where this process's part begins, its shape)."""
    found = [piece(array.how, array.grid, array.shape, at) for _, at in places]
    start = [min(cut[d].start for cut in found) for d in range(len(array.shape))]
    stop = [max(cut[d].stop for cut in found) for d in range(len(array.shape))]
    return start, tuple(b - a for a, b in zip(start, stop))


def joined(part, how: tuple, mesh, shape: tuple | None = None) -> Spread:
    """The array whose part in this process is ``part``; ``shape``, if not all processes have equal parts."""
    grid, places = mesh.grid, here(mesh.grid)
    if is_local(grid) and len(places) > 1:
        how = _without_parts(how)
        return lay(part, how, mesh) if part.__class__ is Spread else laid_out(part, how, mesh)
    if shape is None:
        shape = whole_shape(part.shape, how, mesh)
    if is_traced(part):
        return _traced_whole(part, how, mesh, shape)
    sharding, start = sharding_of(how, grid, len(shape)), [0] * len(shape)
    if places:
        start = _extent(Spread(_Nothing, how, mesh, shape), places)[0]
    if part.__class__ is Spread and part.how == how:
        shards = [s.data for s in part.physical.addressable_shards]
    else:
        values = np.asarray(whole(part) if part.__class__ is Spread else part)
        shards = [_shard(values, how, mesh, shape, start, device, at) for device, at in places]
    held = tuple(sizes_of(grid)[i] for i, h in enumerate(how) if h.__class__ is str)
    physical = jax.make_array_from_single_device_arrays(
        (*held, *padded_shape(how, grid, shape)), sharding, shards, dtype=part.dtype
    )
    return Spread(physical, how, mesh, shape)


def _traced_whole(part, how: tuple, mesh, shape: tuple) -> Spread:
    mine = mesh.part()
    check_alike(how, mesh.grid, mine.grid, shape)
    if part.__class__ is not Spread or part.how != how:
        part = _traced_on_own(whole(part) if part.__class__ is Spread else part, how, mine)
    return pinned(seen(part.physical, how, mine.grid, mesh.grid), how, mesh, shape)


def _traced_on_own(values, how: tuple, mine) -> Spread:
    """An ordinary array of a trace, laid on this process's devices; its part of a sum counts once."""
    held = values
    for axis in reversed(range(len(how))):
        if how[axis].__class__ is str:
            first = held[None]
            others = jnp.zeros_like(first) if how[axis] == "sum" else first
            held = jnp.concatenate([first, *[others] * (sizes_of(mine.grid)[axis] - 1)])
    return pinned(held, how, mine, values.shape)


class _Nothing:
    dtype = None


def _shard(values, how, mesh, shape, start, device, at):
    cut = piece(how, mesh.grid, shape, at)
    part = values[tuple(slice(c.start - s, c.stop - s) for c, s in zip(cut, start))]
    held = [padded_shape(how, mesh.grid, shape)[d] // int(np.prod(cuts(how, mesh.grid, d))) for d in range(len(shape))]
    part = _padded(part, held)
    first = here(mesh.grid)[0][1]
    if any(h == "sum" and at[axis] != first[axis] for axis, h in enumerate(how)):
        part = np.zeros_like(part)  # a process's part of a sum counts once, however many devices it has
    return jax.device_put(part.reshape((1,) * sum(h.__class__ is str for h in how) + part.shape), device)


def _padded(values: np.ndarray, size) -> np.ndarray:
    return np.pad(values, [(0, n - m) for n, m in zip(size, values.shape)]) if values.ndim else values


def onto(array: Spread, how: tuple, mesh) -> Spread:
    """The array on a mesh that is a part of its own, or that its own is a part of: each device keeps what it has.

    ``how`` is a word for the same pieces there.
    """
    if array.grid == mesh.grid and array.how == how:
        return Spread(array.physical, how, mesh, array.shape)
    if is_traced(array):
        return _traced_onto(array, how, mesh)
    sharding, held = sharding_of(how, mesh.grid, len(array.shape)), padded_shape(how, mesh.grid, array.shape)
    parts = tuple(sizes_of(mesh.grid)[i] for i, h in enumerate(how) if h.__class__ is str)
    size = sharding.shard_shape((*parts, *held))
    by_device = {s.device: s.data for s in array.physical.addressable_shards}
    shards = [by_device[device].reshape(size) for device, _ in here(mesh.grid)]
    physical = jax.make_array_from_single_device_arrays((*parts, *held), sharding, shards)
    return Spread(physical, how, mesh, array.shape)


def _traced_onto(array: Spread, how: tuple, mesh) -> Spread:
    smaller, larger = sorted((array.grid, mesh.grid), key=lambda grid: grid.devices.size)
    check_alike(how, larger, smaller, array.shape)
    held = array.physical
    for axis in reversed(range(len(how))):
        if how[axis].__class__ is str and how[axis] != array.how[axis]:  # each device has one of the parts
            held = jnp.broadcast_to(held[None], (sizes_of(array.grid)[axis], *held.shape))
    own = pinned(held, how, array.mesh, array.shape)
    return pinned(seen(own.physical, how, array.grid, mesh.grid), how, mesh, array.shape)


def whole_shape(part: tuple, how: tuple, mesh) -> tuple[int, ...]:
    """The shape of the whole, if all processes have parts of this shape."""
    sizes, mine = sizes_of(mesh.grid), sizes_of(mesh.part().grid)
    shape = list(part)
    for axis, h in enumerate(how):
        if h.__class__ is int:
            shape[h] = shape[h] * sizes[axis] // mine[axis]
    return tuple(shape)


def _without_parts(how: tuple) -> tuple:
    """What a process alone has in parts it has whole: they are its own."""
    return tuple(None if h.__class__ is str else h for h in how)


def shape_and_offset(shape: tuple, how: tuple, mesh) -> tuple[tuple, tuple]:
    """The shape of this process's part, and where in the whole it begins."""
    start, size = _extent(Spread(_Nothing, how, mesh, shape), here(mesh.grid))
    return size, tuple(start)


def owned(array: Spread):
    """(where it begins, its values) of each piece that this process is to write: one process for each piece."""
    seen = set()
    for shard in array.physical.addressable_shards:
        at = next(at for device, at in here(array.grid) if device == shard.device)
        cut = piece(array.how, array.grid, array.shape, at)
        offset = tuple(c.start for c in cut)
        if shard.replica_id == 0 and offset not in seen:
            seen.add(offset)
            values = fetched(shard.data).reshape(shard.data.shape[shard.data.ndim - len(cut) :])
            yield offset, values[tuple(slice(c.stop - c.start) for c in cut)]


def extents(array: Spread) -> list[tuple[tuple, tuple]]:
    """(where it begins, its shape) of each different piece that this process's devices have; empty ones left out."""
    how, found = _without_parts(array.how), {}
    for _, at in here(array.grid):
        cut = piece(how, array.grid, array.shape, at)
        sizes = tuple(c.stop - c.start for c in cut)
        if all(sizes):
            found[tuple(c.start for c in cut)] = sizes
    return list(found.items())


def filled(array: Spread, read) -> Spread:
    """An array laid as ``array`` is; ``read(slices)`` gives the piece of each of this process's devices."""
    how = _without_parts(array.how)
    held = padded_shape(how, array.grid, array.shape)
    size = sharding_of(how, array.grid, len(held)).shard_shape(held)
    shards = []
    for device, at in here(array.grid):
        values = np.asarray(read(piece(how, array.grid, array.shape, at)))
        shards.append(jax.device_put(np.array(_padded(values, size)), device))
    physical = jax.make_array_from_single_device_arrays(held, sharding_of(how, array.grid, len(held)), shards)
    return Spread(physical, how, array.mesh, array.shape)


def grid_of(kind: str, ranks: np.ndarray, names: tuple, processes: bool):
    """JAX's mesh of the devices that ``ranks`` number: one of each process, or all of them in their order."""
    platform = {"cuda": "gpu"}.get(kind, "cpu" if kind in ("cpu", "xla") else kind)
    found = sorted(jax.devices(platform), key=lambda d: (d.process_index, d.id))
    if processes:
        first: dict = {}
        for device in found:
            first.setdefault(device.process_index, device)
        found = [first[p] for p in sorted(first)]
    picked = np.empty(ranks.shape, object)
    for at, rank in np.ndenumerate(ranks):
        picked[at] = found[rank]
    return _grid(picked, names)


def _grid(places: np.ndarray, names: tuple):
    """JAX's mesh, with what it would find out later: compiled functions see that nothing is added to it."""
    made = jax.sharding.Mesh(places, names)
    _ = made.shape, made.size, made.empty
    return made


def device_count(kind: str) -> int:
    """How many devices of this kind all processes have."""
    return len(jax.devices({"cuda": "gpu"}.get(kind, "cpu" if kind in ("cpu", "xla") else kind)))


def box(grid, axes=None):
    """The part of the grid that this process's devices span along ``axes``, or along all; the rest whole."""
    places = [at for _, at in here(grid)]
    cut = []
    for axis, n in enumerate(sizes_of(grid)):
        inside = [at[axis] for at in places]
        whole_axis = not places or (axes is not None and axis not in axes)
        cut.append(slice(0, n) if whole_axis else slice(min(inside), max(inside) + 1))
    return _grid(grid.devices[tuple(cut)], grid.axis_names)


def first_place(grid) -> tuple[int, ...] | None:
    """The place of this process's first device; None if it has none here."""
    places = here(grid)
    return places[0][1] if places else None
