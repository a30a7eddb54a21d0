"""Who takes part: the world, groups of some of its processes, and how a process joins and leaves."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import enum
import operator
import os
import socket
import sys
import time
from typing import Any

from ..autograd.mode import state as mode_state
from ..errors import ValuesNeeded, warn_user
from . import rendezvous as _rendezvous
from .errors import DistBackendError, DistStoreError
from .options import DEFAULT_TIMEOUT
from .store import PrefixStore, Store
from .work import Lane

__all__ = [
    "Backend", "BackendConfig", "GroupMember", "ProcessGroup", "default_pg_timeout", "destroy_process_group",
    "get_backend", "get_backend_config", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "new_group", "new_subgroups", "new_subgroups_by_enumeration", "shrink_group", "split_group", "supports_complex",
]  # fmt: skip

default_pg_timeout = DEFAULT_TIMEOUT
_DEVICES = {"nccl": "cuda:nccl", "undefined": "cpu:gloo,cuda:nccl"}  # other backends serve both
_NOT_JOINED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a way to communicate. All of them are JAX's runtime here, which chooses by device."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo", "hpu": "fake"}
    backend_capability = {
        "gloo": ["cpu", "cuda"], "nccl": ["cuda"], "xccl": ["xpu"], "ucc": ["cpu", "cuda"], "mpi": ["cpu", "cuda"],
        "fake": ["cpu", "cuda", "hpu", "xpu"],
    }  # fmt: skip

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class BackendConfig:
    """Which backend serves which kind of device."""

    def __init__(self, backend: str):
        pairs = backend if ":" in backend else _DEVICES.get(backend, f"cpu:{backend},cuda:{backend}")
        self.device_backend_map = dict(pair.split(":") for pair in pairs.split(","))
        for name in self.device_backend_map.values():
            if name not in Backend.backend_list:
                raise AssertionError(f"Unknown backend type {name}")

    def get_device_backend_map(self) -> dict[str, str]:
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


class _BackendType(enum.Enum):
    """The backends by PyTorch's numbers."""

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = 0, 1, 2, 5, 3, 4, 6

    def __repr__(self):
        return f"<BackendType.{self.name}: {self.value}>"


class ProcessGroup:
    """Some of the world's processes, in order. Collectives of all groups run in one thread, one after the other."""

    unguarded = True  # by compile: what changes in it is what is under way
    BackendType = _BackendType

    def __init__(self, ranks: list[int], me: int, backend: str, timeout: datetime.timedelta, number, description):
        self.ranks, self.number, self.timeout = ranks, number, timeout  # the number may be a name
        self.bound_device_id: Any = None
        self._config = BackendConfig(backend)
        self._backend = backend
        self._rank = ranks.index(me) if me in ranks else -1
        self._rings: dict = {}
        self.group_desc = description
        self.was_left = False
        self._members = frozenset(ranks)
        _world.of_members[self._members] = _world.of_members.get(self._members, 0) + 1

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return len(self.ranks)

    def name(self) -> str:
        return next(iter(self._config.device_backend_map.values()))

    @property
    def group_name(self) -> str:
        return str(self.number)

    @property
    def lane(self) -> Lane:
        """The thread that runs its collectives, and those of all others."""
        return _world.lane

    @property
    def is_one_of_several(self) -> bool:
        """Were there ever other groups of the same processes?"""
        return _world.of_members[self._members] > 1

    def ring(self, platform: str = "cpu"):
        """One device of each member, for arrays of that platform."""
        if platform not in self._rings:
            from ..engine.xla.collectives import Ring

            self._rings[platform] = Ring(self.ranks, platform)
        return self._rings[platform]

    def seconds(self) -> float:
        return self.timeout.total_seconds()

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self.timeout = timeout

    _set_default_timeout = set_timeout

    def get_group_store(self) -> Store:
        """The world's store, with keys of this group's own."""
        return PrefixStore(f"rushlight/group/{self.number}", _world.store)

    def _get_backend_name(self) -> str:
        return self.name()

    def __reduce__(self):
        raise TypeError("a ProcessGroup cannot be pickled")


class _World:
    """What this process knows of the world it joined."""

    def __init__(self):
        self.default: ProcessGroup | None = None
        self.store: Any = None
        self.made = 0  # groups made so far: all processes make them in the same order
        self.groups: list[ProcessGroup] = []
        self.backend_of: dict = {}
        self.mail: Any = None
        self.host = "127.0.0.1"
        self.failed = False
        self.connected = False
        self.counts: dict = {}  # messages so far, by who to whom
        self.of_members: dict = {}  # {processes: how many groups of them were made}
        self.lane = Lane()


_world = _World()


class _Groups(type):
    @property
    def WORLD(cls):
        return _world.default

    @WORLD.setter
    def WORLD(cls, group):
        _world.default = group


class group(metaclass=_Groups):
    """``group.WORLD``: all processes."""


class GroupMember(metaclass=_Groups):
    """``NON_GROUP_MEMBER`` is what ``new_group`` gives to processes that are not in it."""

    NON_GROUP_MEMBER = -100


# -- joining and leaving -----------------------------------------------------------------------------------------------


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options=None,
    device_id=None,
    _ranks: list[int] | None = None,
) -> None:
    """Join the world that ``init_method`` (by default the launcher's environment) or ``store`` describes.

    ``group_name``, ``_ranks`` and ``pg_options`` (see ``ProcessGroupNCCL.Options``) are taken and change nothing: they
    tune what JAX's runtime does by itself. ``device_id`` is remembered, and decides the backend if none is named.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    timeout = checked_timeout(timeout, pg_options, default_pg_timeout)
    device_id = _checked_device(device_id)
    if backend is None:
        backend = "undefined" if device_id is None else get_default_backend_for_device(device_id)
    backend = Backend(backend)
    BackendConfig(backend)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    else:
        meet = _rendezvous.rendezvous(init_method or "env://", rank, world_size, timeout=timeout)
        store, rank, world_size = next(meet)
        store.set_timeout(timeout)
    if world_size > 1:
        _connect(store, rank, world_size, timeout)
    _world.store, _world.made, _world.counts, _world.failed = store, 1, {}, False
    _world.of_members, _world.lane = {}, Lane()
    _world.default = ProcessGroup(list(range(world_size)), rank, backend, timeout, 0, "default_pg")
    _world.default.bound_device_id = device_id
    _world.groups = [_world.default]


def _connect(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> None:
    """Bring JAX's runtimes of all processes together; the store tells them where process 0 serves them."""
    try:
        from ..engine.xla import world
    except ImportError as error:
        raise DistBackendError(
            f"processes communicate through JAX, which cannot be imported ({error}); pip install 'rushlight[xla]'"
        ) from error
    _world.host = os.environ.get("RUSHLIGHT_HOST") or _own_host(store)
    if rank == 0:
        store.set("rushlight/coordinator", world.serve(size, _world.host))
    _wait_for_all(store, rank, size, timeout)
    seconds = lambda: (timeout if _world.default is None else _world.default.timeout).total_seconds()
    world.wait_at_most(seconds, lambda: _world.lane.settle())
    world.join(store.get("rushlight/coordinator").decode(), size, rank, timeout.total_seconds(), _world.host)
    _world.connected = True
    atexit.register(_leave)


def _wait_for_all(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> None:
    """Meet at the store: JAX's own way of waiting for a process that never comes ends the others by SIGABRT."""
    here = [f"rushlight/here/{r}" for r in range(size)]
    store.set(here[rank], b"")
    try:
        store.wait(here, timeout)
    except DistStoreError:
        missing = [r for r, key in enumerate(here) if not store.check([key])]
        raise DistStoreError(
            f"init_process_group of rank {rank} of {size}: timed out after {int(timeout.total_seconds() * 1000)}ms; "
            f"ranks {missing} have not joined"
        ) from None


def _own_host(store: Store) -> str:
    """The address under which other processes reach this one: that which leads to the store's own host."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    host = getattr(store, "host", "127.0.0.1")
    if host in ("localhost", "127.0.0.1"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing: only asks for the way
        probe.connect((host, 9))
        return probe.getsockname()[0]


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, or with none given the world and all its groups."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if _world.default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is _world.default:
        _leave(asked=True)
        _world.default, _world.groups, _world.store = None, [], None
    elif group in _world.groups:
        group.was_left = True
        _world.groups.remove(group)
    else:
        raise ValueError("Invalid process group specified")


def _leave(asked: bool = False) -> None:
    """Leave the runtime. Process 0, which serves it, is the last, unless something went wrong.

    The others may wait in a collective that it does not come to, until it is gone. So if it failed it leaves at once;
    if it just ends, nobody knows whether that was meant: it waits as long as processes need that end together.
    """
    atexit.unregister(_leave)
    default, store = _world.default, _world.store
    if default is None or store is None:
        return
    for one in _world.groups:
        one.was_left = True
    _world.lane.close()
    failed = _world.failed or getattr(sys, "last_value", None) is not None
    if _world.connected:
        from ..engine.xla import world

        failed, serves = failed or world.lost.is_set(), default.rank() == 0
        patience = 0 if failed else 60 if asked or _world.mail is not None else 3
        alone = serves and _others_have_left(default.size() - 1, store, patience)
        if _world.mail is not None:
            _world.mail.close()
        world.wait_at_most(None)
        busy = {_world.lane.thread} if _world.lane.busy else set()
        if failed and (world.is_hung() or busy):
            world.abandon(busy)
        else:
            world.leave(used_by_others=serves and not alone)
        if not serves:
            _say_goodbye(store, 3 if failed else 60)
        _world.connected, _world.mail = False, None
    close = getattr(store, "close", None)
    if close is not None:
        close()


def _others_have_left(count: int, store: Store, patience: float) -> bool:
    """Process 0 waits until so many others have said that they have left, but no longer than so many seconds."""
    end, left = time.monotonic() + patience, 0
    store._hurry(max(patience, 3))  # who serves it may be stopped, and not answer
    with contextlib.suppress(RuntimeError):  # or gone
        left = store.add("rushlight/away", 0)
        while left < count and time.monotonic() < end:
            time.sleep(0.002)
            left = store.add("rushlight/away", 0)
    return left >= count


def _say_goodbye(store: Store, patience: float) -> None:
    """Tell process 0 that this one has left."""
    store._hurry(patience)
    with contextlib.suppress(RuntimeError):
        store.add("rushlight/away", 1)


# -- groups ------------------------------------------------------------------------------------------------------------


def new_group(
    ranks=None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id=None,
    sort_ranks: bool = True,
):
    """A group of some of the world's processes. All processes call it, members or not, in the same order.

    A process's rank in the group is its place among ``ranks``: as they are given, unless ``sort_ranks``. With
    ``use_local_synchronization`` only members have to call it. ``pg_options`` are taken and change nothing.
    """
    world = the(None)
    refuse_in_trace("new_group")
    timeout = checked_timeout(timeout, pg_options, default_pg_timeout)
    device_id = _checked_device(device_id)
    ranks = list(world.ranks) if ranks is None else [int(r) for r in ranks]
    if sort_ranks:
        ranks.sort()
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    for r in ranks:
        if not 0 <= r < world.size():
            raise ValueError(
                f"Rank {r} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if use_local_synchronization:
        number: int | str = f"{ranks}:{_turn(str(ranks))}"  # others do not count it
    else:
        number = _world.made
        _world.made += 1
    if world.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    return _made(ranks, backend or world._backend, timeout, number, group_desc or "undefined", device_id)


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list | None = None,
    timeout: datetime.timedelta | None = None,
    pg_options=None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Divide a group: its members all call it, with the same lists of their numbers in it. None for who is in no list.

    Timeout, backend and device are the parent's if none are given; ``pg_options`` are taken and change nothing.
    Differs from PyTorch: every backend's groups can be divided, and the world need not have a device of its own.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    if parent_pg == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified: parent_pg is of other processes")
    parent = the(parent_pg)
    refuse_in_trace("split_group")
    lists = _checked_split(split_ranks, parent)
    asked = BackendConfig(backend).device_backend_map if backend else {}
    for kind, name in asked.items():
        if parent._config.device_backend_map.get(kind) != name:
            raise ValueError(
                f"split_group: backend {backend} has {name} for {kind}, but the parent's is {parent._config}; a part "
                "of a group has its backends, or some of them"
            )
    timeout = checked_timeout(timeout, pg_options, parent.timeout)
    turn = _turn(f"{parent.group_name}:split")  # processes that are not in the parent do not count this one
    mine = next((ranks for ranks in lists if parent.rank() in ranks), None)
    if mine is None:
        return None
    members, number = [parent.ranks[r] for r in mine], f"{parent.group_name}:split:{turn}:{mine[0]}"
    description = group_desc or f"{parent.group_desc}:split:{turn}"
    return _made(members, backend or parent._backend, timeout, number, description, parent.bound_device_id)


def shrink_group(ranks_to_exclude, group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options=None):
    """PyTorch's error for gloo: what is under way in a group cannot be given up for a smaller one."""
    raise TypeError(
        f"Process group backend for '{the(group).group_name}' does not support shrinking operations: use new_group or "
        "split_group with the ranks that stay; if one failed, start the world anew (rushlight launch --max-restarts)"
    )


def _made(ranks: list[int], backend: str, timeout, number, description: str, device_id) -> ProcessGroup:
    made = ProcessGroup(ranks, the(None).rank(), Backend(backend), timeout, number, description)
    made.bound_device_id = device_id
    _world.groups.append(made)
    return made


def _turn(what: str) -> int:
    """How often this was done: for names of groups that only some processes make."""
    _world.counts[what] = turn = _world.counts.get(what, 0) + 1
    return turn


def _checked_split(split_ranks, parent: ProcessGroup) -> list[list[int]]:
    seen: set[int] = set()
    lists = [sorted(int(r) for r in ranks) for ranks in split_ranks]
    for ranks in lists:
        if not ranks:
            raise ValueError("split_ranks: a list of ranks is empty")
        for r in ranks:
            if not 0 <= r < parent.size():
                raise ValueError(f"split_ranks: {r} is not a rank of the parent, which has {parent.size()} processes")
            if r in seen:
                raise ValueError(f"split_ranks: rank {r} is there twice; a process is in one part only")
            seen.add(r)
    return lists


def checked_timeout(timeout, pg_options, otherwise: datetime.timedelta) -> datetime.timedelta:
    """The time that collectives may take. As in PyTorch, that of ``pg_options`` does not count."""
    if timeout is not None and not isinstance(timeout, datetime.timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    timeout = timeout or otherwise
    wanted = getattr(pg_options, "_timeout", timeout)
    if wanted not in (timeout, default_pg_timeout):
        warn_user(f"pg_options has a timeout of {wanted}, but the argument `timeout` counts, which is {timeout}")
    return timeout


def _checked_device(device_id):
    """The device that this process says it works on: none, or an accelerator's."""
    if device_id is None:
        return None
    from ..device import device

    found = device("cuda", device_id) if isinstance(device_id, int) else device(device_id)
    if found.type == "cpu" or found.index is None:
        raise ValueError("init_process_group device_id parameter must be an accelerator with an index")
    return found


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(this process's, all) groups of ``group_size`` neighbours each."""
    size = get_world_size()
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [list(range(i, i + group_size)) for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(this process's, all) groups of the ranks that are listed."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        twice = seen & set(ranks)
        if twice:
            raise ValueError(f"Rank {min(twice)} has appeared in several subgroups")
        seen |= set(ranks)
    mine, every = None, []
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        every.append(made)
        if get_rank() in ranks:
            mine = made
    return mine, every


def the(given) -> ProcessGroup:
    """The group that is meant: the world, where none is given."""
    if isinstance(given, ProcessGroup):
        if given.was_left:
            raise ValueError(f"Group {given} is not registered: it was left, by destroy_process_group")
        return given
    if given is not None and given is not _Groups:
        raise ValueError(
            f"Process group {given} is not initialized in the world group map. Please initialize the group first."
        )
    if _world.default is None:
        raise ValueError(_NOT_JOINED)
    return _world.default


def refuse_in_trace(what: str) -> None:
    """Raise if a function is being compiled: what processes agree on without a collective is done at every call."""
    if mode_state.rings:
        raise ValuesNeeded(f"{what} has to be done at every call.")


def is_outside(given, what: str) -> bool:
    """Is this process not in that group? Then the call does nothing, and says so."""
    if given != GroupMember.NON_GROUP_MEMBER:
        return False
    where = -1 if _world.default is None else _world.default.rank()
    warn_user(f"Running {what} on global rank {where} which does not belong to the given group.")
    return True


def refuse_outside(given) -> None:
    """Raise if this process is not in that group: of these calls PyTorch wants a member."""
    if given == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")


def rank_in(given: ProcessGroup, global_rank, group_rank, what: str = "broadcast") -> int:
    """The member that is meant, by its number in the world or in the group."""
    return checked_root(given, number_in(given, global_rank, group_rank), what)


def checked_root(given: ProcessGroup, rank: int, what: str) -> int:
    """``rank``, if a member of the group has that number."""
    if not 0 <= rank < given.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {rank}")
    return rank


def number_in(given: ProcessGroup, global_rank, group_rank) -> int:
    """What would be a member's number in the group."""
    if global_rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    return operator.index(get_group_rank(given, global_rank) if group_rank is None else group_rank)


# -- questions ---------------------------------------------------------------------------------------------------------


def is_initialized() -> bool:
    """Has this process joined a world?"""
    return _world.default is not None


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's number in the group; -1 outside."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else the(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes are in the group; -1 outside."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else the(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The backend that was asked for."""
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    backend = the(group)._backend
    return Backend(backend)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backend of a group for each kind of device, as text."""
    return str(the(group)._config)


def get_default_backend_for_device(device) -> str:
    """The backend for a kind of device."""
    kind = getattr(device, "type", None) or str(device).split(":")[0]
    found = {"cpu": "gloo", "cuda": "nccl", "xla": "gloo", "tpu": "gloo"}.get(kind)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The members, by their numbers in the world."""
    return list(the(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """A member's number in the world."""
    if the(group) is _world.default:
        return group_rank
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A process's number in the group."""
    if the(group) is _world.default:
        return global_rank
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, as the launcher says."""
    known = os.environ if "LOCAL_RANK" in os.environ else _rendezvous.by_scheduler()
    if "LOCAL_RANK" in known:
        return int(known["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    """How many groups were made in this world, by whomever."""
    return 0 if _world.default is None else _world.made


def supports_complex(reduceOp) -> bool:
    """Can complex numbers be reduced so?"""
    return reduceOp.name in ("SUM", "AVG", "PREMUL_SUM")


def is_available() -> bool:
    """Is this part of the package here? It is; communicating takes JAX."""
    return True


def is_gloo_available() -> bool:
    """Is there a backend for processes on CPUs?"""
    return True


def is_nccl_available() -> bool:
    """Is there a GPU's way to communicate? JAX brings it along with its GPU support."""
    from importlib.util import find_spec

    return any(find_spec(f"jax_cuda{version}_plugin") is not None for version in (12, 13))


def is_mpi_available() -> bool:
    """Is there MPI? No."""
    return False


def is_ucc_available() -> bool:
    """Is there UCC? No."""
    return False


def is_xccl_available() -> bool:
    """Is there XCCL? No."""
    return False


def is_backend_available(backend: str) -> bool:
    """Can ``init_process_group`` be given this name?"""
    check = {"gloo": is_gloo_available, "nccl": is_nccl_available}.get(backend.lower())
    return check is not None and check()


def is_torchelastic_launched() -> bool:
    """Was this process started by ``torchrun`` or ``rushlight launch``?"""
    return "TORCHELASTIC_RUN_ID" in os.environ
