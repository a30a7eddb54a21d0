"""Steps that all processes take together: each does its part, and all learn who failed."""

from __future__ import annotations

import datetime
import functools
import itertools
import pickle
import socket
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from .. import objects, world
from ..errors import DistBackendError, DistStoreError
from ..store import PrefixStore
from .api import CheckpointException

__all__ = ["Steps"]


class Steps:
    """The processes of a group, or this one alone; the first coordinates.

    ``beside``: they are taken in another thread, while the one that makes them goes on with collectives.
    """

    def __init__(self, group=None, alone: bool = False, beside: bool = False):
        self.together = not alone and world.is_initialized() and world.get_world_size(group) > 1
        self.group = group
        self.rank = world.get_rank(group) if self.together else 0
        self.size = world.get_world_size(group) if self.together else 1
        self._board = _Board(world.the(group)) if self.together and beside else None

    @property
    def is_coordinator(self) -> bool:
        return self.rank == 0

    def everywhere(self, name: str, work: Callable[[], Any]) -> list:
        """What ``work`` gives in each process, in all; if it raises in one, all raise."""
        mine = _tried(work)
        all_of_them = self._gathered(mine) if self.together else [mine]
        failures = {rank: outcome[1:] for rank, outcome in enumerate(all_of_them) if outcome[0] == "failed"}
        if failures:
            raise CheckpointException(name, failures)
        return [outcome[1] for outcome in all_of_them]

    def first(self, name: str, work: Callable[[], Any]):
        """What ``work`` gives in the first process, in all."""
        outcome = _tried(work) if self.is_coordinator else None
        if self._board is not None:
            outcome = self._gathered(outcome)[0]
        elif self.together:
            given = [_packed(outcome)]
            objects.broadcast_object_list(given, group=self.group, group_src=0)
            outcome = pickle.loads(given[0])  # noqa: S301
        return self._result(name, outcome)

    def handed_out(self, name: str, work: Callable[[], list]):
        """This process's entry of the list that ``work`` gives in the first."""
        return self.first(name, work)[self.rank]

    def _gathered(self, mine) -> list:
        given: list = [None] * self.size
        if self._board is not None:
            given = self._board.all_gather(_packed(mine))
        else:
            objects.all_gather_object(given, _packed(mine), self.group)
        return [pickle.loads(data) for data in given]  # noqa: S301  # from our own processes

    def _result(self, name: str, outcome):
        if outcome[0] == "failed":
            raise CheckpointException(name, {0: outcome[1:]})
        return outcome[1]


class _Board:
    """Bytes that a group's processes show each other at its store.

    Collectives of a thread beside training would come between those of training, in each process at another place; but
    XLA tells them apart by their order only.
    """

    _made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # group -> numbers of its boards

    def __init__(self, group):
        number = next(self._made.setdefault(group, itertools.count()))
        store = group.get_group_store().clone()  # a connection of its own: waiting holds up nobody else
        self._store, self._turns = PrefixStore(f"board/{number}", store), itertools.count()
        self._rank, self._size, self._seconds = group.rank(), group.size(), group.seconds()
        self._world, self._doors = world.the(None), PrefixStore("doors", store)
        if door := _door(world._world.host):
            self._doors.set(str(self._rank), door)

    def all_gather(self, mine: bytes) -> list[bytes]:
        """Every process's bytes. Who reads them last takes them away."""
        turn = next(self._turns)
        keys = [f"{turn}/{rank}" for rank in range(self._size)]
        self._store.set(keys[self._rank], mine)
        self._wait(keys)
        found = self._store.multi_get(keys)
        if self._store.add(f"{turn}/readers", 1) == self._size:
            for key in (*keys, f"{turn}/readers"):
                self._store.delete_key(key)
        return found

    def _wait(self, keys: list[str]) -> None:
        """Until all are there; the world may end, or be found broken, before."""
        end, glance = time.monotonic() + self._seconds, datetime.timedelta(seconds=1)
        while True:
            try:
                return self._store.wait(keys, glance)
            except DistStoreError:
                missing = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
                if world._world.default is not self._world or world._world.failed:
                    raise DistBackendError(f"a checkpoint waited for ranks {missing} as the world ended") from None
                gone = [rank for rank in missing if self._is_gone(rank) and not self._store.check([keys[rank]])]
                if gone:
                    raise DistBackendError(f"a checkpoint waited for ranks {gone}, which are gone") from None
                if time.monotonic() > end:
                    raise DistBackendError(
                        f"a checkpoint waited for ranks {missing}: timed out after {int(self._seconds * 1000)}ms"
                    ) from None

    def _is_gone(self, rank: int) -> bool:
        """Has the process ended? Nobody listens at its door then."""
        if not self._doors.check([str(rank)]):
            return False  # it has not come yet, or has none
        host, _, port = self._doors.get(str(rank)).decode().rpartition(":")
        try:
            socket.create_connection((host, int(port)), 1).close()
        except ConnectionRefusedError:
            return True
        except OSError:  # a machine that cannot be reached, or too busy: the timeout decides
            return False
        return False


def _tried(work: Callable[[], Any]) -> tuple:
    try:
        return "done", work()
    except Exception as error:
        return "failed", error, traceback.extract_tb(error.__traceback__)


def _packed(outcome) -> bytes:
    """An outcome for the others, who wait for it: also of what ``pickle`` does not take, or does not give back."""
    try:
        data = pickle.dumps(outcome)
        if outcome is not None and outcome[0] == "failed":
            pickle.loads(data)  # noqa: S301  # an exception's ``__init__`` may want more than its message
        return data
    except Exception as error:
        told, where = outcome[1:] if outcome[0] == "failed" else (error, traceback.extract_tb(error.__traceback__))
        return pickle.dumps(("failed", RuntimeError(f"{type(told).__name__}: {told}"), where))


_doors: list = []


@functools.cache
def _door(host: str) -> str:
    """Where others see that this process is there: an address at which it listens as long as it lives ("": nowhere)."""
    try:
        _doors.append(socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET))
    except OSError:
        return ""
    return f"{host}:{_doors[-1].getsockname()[1]}"
