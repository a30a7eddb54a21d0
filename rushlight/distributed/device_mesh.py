"""``DeviceMesh``: devices, or processes, in a grid with a name for each dimension."""

from __future__ import annotations

import math
import os

import numpy as np

from ..tensor import Tensor, wrap
from . import world as _world
from .store import HashStore

__all__ = ["DeviceMesh", "init_device_mesh"]


def __dir__():
    return __all__


def init_device_mesh(device_type: str, mesh_shape, *, mesh_dim_names=None, backend_override=None) -> DeviceMesh:
    """A mesh of all processes, or of all devices that they have, in the shape that is given.

    ``backend_override`` has a backend, its options, or both for dimensions, by their number or name; their groups are
    made with it.
    """
    mesh_shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        mesh_dim_names = tuple(mesh_dim_names)
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. "
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'."
        )
    override = None
    if backend_override is not None:
        override = _overrides(backend_override, mesh_dim_names, len(mesh_shape))
    _join_if_alone()
    ranks = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=override)


def _join_if_alone() -> None:
    """Join the world that the launcher describes; without one, a world of this process."""
    if _world.is_initialized():
        return
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        _world.init_process_group()
    else:
        _world.init_process_group(store=HashStore(), rank=0, world_size=1)


class DeviceMesh:
    """Ranks in a grid. With as many ranks as processes a rank is a process, else it is one of all devices.

    ``grid`` is JAX's mesh of the devices. A mesh that was sliced out has all axes of the one it comes from, but of the
    other axes only what this process has: so one process with all devices uses all of them.
    """

    def __init__(
        self, device_type: str, mesh=None, *, mesh_dim_names=None, backend_override=None, _init_backend: bool = True,
        _rank: int | None = None, _layout=None, _rank_map=None, _root_mesh: DeviceMesh | None = None,
    ):  # fmt: skip
        if mesh is None or _layout is not None or _rank_map is not None or _root_mesh is not None:
            raise TypeError("DeviceMesh: the argument mesh is needed; _layout, _rank_map and _root_mesh are not here")
        ranks = np.asarray(mesh._array if isinstance(mesh, Tensor) else mesh).astype(np.int64)
        if len(np.unique(ranks)) < ranks.size:
            raise ValueError(f"ranks list must not contain duplicate entries, got {ranks.ravel().tolist()}")
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._ranks = ranks
        self._root: DeviceMesh | None = None  # what it was sliced out of
        self._groups: list | None = None
        self._flattened: dict[str, DeviceMesh] = {}
        self._axes = tuple((i,) for i in range(ranks.ndim))
        if backend_override is not None and len(backend_override) != ranks.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, but got "
                f"{len(backend_override)} and {ranks.ndim}."
            )
        self._overrides = tuple([(b, o) for b, o in backend_override]) if backend_override else None
        _join_if_alone()
        self.grid = _grid(device_type, ranks, self.mesh_dim_names or tuple(f"dim{i}" for i in range(ranks.ndim)))
        self._part: DeviceMesh | None = None
        self._coordinate = _first_place(self.grid)
        self.part()  # now: a trace may not add to what is there
        if _init_backend:
            self._make_groups()

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def mesh(self) -> Tensor:
        """The ranks, as a tensor."""
        return wrap(self._ranks.astype(np.int32))

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ranks.shape

    @property
    def ndim(self) -> int:
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, or of those along one dimension."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process (its first device) stands; None outside."""
        return self._coordinate

    def get_rank(self) -> int:
        """This process's number in the world."""
        return _world.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        if self._coordinate is None:
            raise RuntimeError("this process is not part of the mesh")
        return self._coordinate[self._dim(mesh_dim or 0)]

    def get_group(self, mesh_dim: int | str | None = None):
        """The processes that stand with this one along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use "
                "`get_all_groups()` instead.",
            )
        return self.get_all_groups()[self._dim(mesh_dim or 0)]

    def get_all_groups(self) -> list:
        """A group for each dimension."""
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return list(self._groups)

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        if self.mesh_dim_names is None or dim not in self.mesh_dim_names:
            raise KeyError(f"mesh dimension '{dim}' does not exist. Available are: {self.mesh_dim_names}")
        return self.mesh_dim_names.index(dim)

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if not self.mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        return self._dim(mesh_dim_name)

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root or self

    # -- parts of it -----------------------------------------------------------------------------------------------

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The dimensions with these names, for the ranks that stand with this process in the others."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (names,) if isinstance(names, str) else tuple(names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._get_root_mesh()._flattened:
            return self._get_root_mesh()._flattened[names[0]]
        unknown = [name for name in names if name not in self.mesh_dim_names]
        if unknown:
            valid = [*self.mesh_dim_names, *self._get_root_mesh()._flattened]
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        if len(set(names)) < len(names):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        dims = [self.mesh_dim_names.index(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        return self._sliced(dims, names)

    def _sliced(self, dims: list[int], names: tuple[str, ...]) -> DeviceMesh:
        at = self._coordinate or (0,) * self.ndim
        index = tuple(slice(None) if d in dims else at[d] for d in range(self.ndim))
        axes = tuple(self._axes[d] for d in dims)
        groups = None if self._groups is None else [self._groups[d] for d in dims]
        coordinate = None if self._coordinate is None else tuple(at[d] for d in dims)
        return self._derived(self._ranks[index], names, axes, groups, coordinate)

    def _derived(self, ranks, names, axes, groups, coordinate) -> DeviceMesh:
        """A mesh of some axes of this one; of the others it keeps what this process has."""
        from ..engine.spread.pieces import box

        made = object.__new__(DeviceMesh)
        made.device_type, made.mesh_dim_names, made._ranks = self.device_type, names, ranks
        made._root, made._groups, made._flattened, made._axes = self._get_root_mesh(), groups, {}, axes
        made._overrides = None
        kept = {a for mine in axes for a in mine}
        made.grid = box(self.grid, [a for a in range(len(self.grid.axis_names)) if a not in kept])
        made._part, made._coordinate = None, coordinate
        made.part()
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override=None) -> DeviceMesh:
        """All dimensions as one."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or [str(i) for i in range(self.ndim)])
        root = self._get_root_mesh()
        if name in root._flattened:
            return root._flattened[name]
        at = None if self._coordinate is None else int(np.ravel_multi_index(self._coordinate, self.shape))
        axes = (tuple(a for mine in self._axes for a in mine),)
        made = self._derived(self._ranks.reshape(-1), (name,), axes, None, None if at is None else (at,))
        made._make_groups()
        root._flattened[name] = made
        return made

    def part(self) -> DeviceMesh:
        """The devices that are this process's own, as a mesh with the same dimensions."""
        if self._part is None:
            from ..engine.spread.pieces import box

            mine = box(self.grid)
            if mine == self.grid:
                self._part = self
            else:
                made = object.__new__(DeviceMesh)
                made.__dict__.update(self.__dict__)
                made.grid, made._part = mine, made
                sizes = [math.prod(mine.devices.shape[a] for a in axes) for axes in self._axes]
                made._ranks = np.arange(math.prod(sizes)).reshape(sizes)
                self._part = made
        return self._part

    def _make_groups(self) -> None:
        """Every process makes the groups of all rows, in the same order."""
        owners = np.asarray([d.process_index for d in self.grid.devices.flat])
        if self._root is not None:  # of a flattened mesh each process knows its own row, and makes that
            self._groups = [_group(tuple(sorted(set(owners.tolist()))))]
            return
        self._groups = []
        for dim in range(self.ndim):
            rows = np.moveaxis(owners.reshape(self.shape), dim, -1).reshape(-1, self.shape[dim])
            backend, options = self._overrides[dim] if self._overrides else (None, None)
            made = [
                _group(ranks, backend, options)
                for ranks in dict.fromkeys(tuple(sorted(set(row.tolist()))) for row in rows)
            ]
            self._groups.append(next((g for g in made if g is not _world.GroupMember.NON_GROUP_MEMBER), None))

    @staticmethod
    def from_group(group, device_type: str, mesh=None, *, mesh_dim_names=None) -> DeviceMesh:
        """A mesh of the processes of a group."""
        groups = group if isinstance(group, (list, tuple)) else [group]
        if mesh is None and isinstance(group, (list, tuple)):
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if mesh is None:
            mesh = _world.get_process_group_ranks(groups[0])
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups = list(groups)
        return made

    # -- as a value ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes = [f"{names[i]}={n}" if names else str(n) for i, n in enumerate(self.shape)]
        shape = ", ".join(sizes) + ("," if not names and len(sizes) == 1 else "")
        strides = tuple(_step(np.moveaxis(self._ranks, i, 0)) for i in range(self.ndim))
        return f"DeviceMesh(({shape}), '{self.device_type}', stride={strides})"

    def __eq__(self, other) -> bool:
        if self is other:
            return True
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self):
        return self.device_type, self._ranks.shape, tuple(self._ranks.flat), self.mesh_dim_names, self._axes, self.grid

    def __enter__(self) -> DeviceMesh:
        _entered.append(self)
        return self

    def __exit__(self, *_) -> None:
        _entered.pop()


def _step(ranks: np.ndarray):
    """How far neighbours are apart along the first dimension; PyTorch writes () where there are none."""
    return () if len(ranks) < 2 else abs(int(ranks[1].flat[0] - ranks[0].flat[0]))


_entered: list[DeviceMesh] = []


def current_mesh() -> DeviceMesh:
    """The mesh of the ``with`` block, or one of all ranks."""
    if _entered:
        return _entered[-1]
    _join_if_alone()
    return DeviceMesh("cpu", np.arange(_world.get_world_size()))


def _group(ranks: tuple[int, ...], backend=None, options=None):
    """The group of these processes: the world where it has no others and nothing else is asked for."""
    if len(ranks) == _world.get_world_size() and backend is None and options is None:
        return _world.the(None)
    return _world.new_group(list(ranks), backend=backend, pg_options=options)


def _overrides(given: dict, names: tuple[str, ...] | None, ndim: int) -> tuple:
    """(backend, options) for each dimension, of what ``init_device_mesh`` is given: by a dimension's number or name."""
    names = names or ()
    known = {key: value if isinstance(value, tuple) else _override(value) for key, value in given.items()}
    for i, name in enumerate(names):
        if name in known and i in known:
            raise RuntimeError(f"Found redundant dim index {i} and name {name} in backend_override")
    wrong = [key for key in known if key not in names and not (isinstance(key, int) and 0 <= key < ndim)]
    if wrong:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {wrong}, expected integers in range [0, {ndim}) or one of "
            f"{names}"
        )
    by_name = dict(zip(names, range(ndim)))
    found = {by_name.get(key, key): value for key, value in known.items()}
    return tuple(found.get(i, (None, None)) for i in range(ndim))


def _override(value) -> tuple:
    """A backend's name, or its options."""
    if isinstance(value, str):
        return value, None
    if hasattr(value, "_timeout"):
        return None, value
    raise TypeError(f"backend_override: a backend, its options, or both are expected, but got {value!r}")


def _grid(kind: str, ranks: np.ndarray, names: tuple):
    try:
        from ..engine.spread import pieces
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ModuleNotFoundError(
            "a mesh needs JAX: pip install 'rushlight[xla]', or 'rushlight[cuda]' for NVIDIA GPUs", name="jax"
        ) from None
    size, count = _world.get_world_size(), pieces.device_count(kind)
    if ranks.size > max(size, count) or (ranks.size and ranks.max() >= max(size, count)):
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {max(size, count)}, but found {ranks.size} ranks!"
        )
    processes = size > 1 and int(ranks.max()) < size
    return pieces.grid_of(kind, ranks, names, processes)


def _first_place(grid):
    from ..engine.spread.pieces import first_place

    return first_place(grid)
