"""Steps that all processes take together: each does its part, and all learn who failed."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from .. import objects, world
from .api import CheckpointException

__all__ = ["Steps"]


class Steps:
    """The processes of a group, or this one alone; the first coordinates."""

    def __init__(self, group=None, alone: bool = False):
        self.together = not alone and world.is_initialized() and world.get_world_size(group) > 1
        self.group = group
        self.rank = world.get_rank(group) if self.together else 0
        self.size = world.get_world_size(group) if self.together else 1

    @property
    def is_coordinator(self) -> bool:
        return self.rank == 0

    def everywhere(self, name: str, work: Callable[[], Any]) -> list:
        """What ``work`` gives in each process, in all; if it raises in one, all raise."""
        mine = _tried(work)
        if self.together:
            all_of_them: list = [None] * self.size
            objects.all_gather_object(all_of_them, mine, self.group)
        else:
            all_of_them = [mine]
        failures = {rank: outcome[1:] for rank, outcome in enumerate(all_of_them) if outcome[0] == "failed"}
        if failures:
            raise CheckpointException(name, failures)
        return [outcome[1] for outcome in all_of_them]

    def first(self, name: str, work: Callable[[], Any]):
        """What ``work`` gives in the first process, in all."""
        outcome = [_tried(work) if self.is_coordinator else None]
        if self.together:
            objects.broadcast_object_list(outcome, group=self.group, group_src=0)
        return self._result(name, outcome[0])

    def handed_out(self, name: str, work: Callable[[], list]):
        """This process's entry of the list that ``work`` gives in the first."""
        return self.first(name, work)[self.rank]

    def _result(self, name: str, outcome):
        if outcome[0] == "failed":
            raise CheckpointException(name, {0: outcome[1:]})
        return outcome[1]


def _tried(work: Callable[[], Any]) -> tuple:
    try:
        return "done", work()
    except Exception as error:
        return "failed", error, traceback.extract_tb(error.__traceback__)
