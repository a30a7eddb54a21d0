"""Compiled functions over several processes: before a program is launched, its processes agree that all launch it.

A process whose guards fail while others' hold would launch other programs than they do, and all would wait for ever. So
at each call every process says which program it is about to launch, by a digest of it, or that it has none. That is a
collective of the mesh's processes as any other: it has their timeout, can be interrupted, and fails if one has ended.
If all say the same they launch it; otherwise all call the function as it is, in this call.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np

from ..distributed import world
from ..distributed.collectives import gathered_numbers
from ..distributed.errors import DistBackendError
from ..engine.xla.world import told
from .meshes import mesh_of

EAGER, NEVER = 0, 1  # instead of a digest: no program at this call; none ever
_WHAT = "a compiled function"


class Disagreed(Exception):
    """Other processes launch something else than this one would: nobody has launched anything."""


class Together:
    """The processes of a mesh, and how often they have called a function together."""

    def __init__(self, mesh):
        self.group = _group_of(mesh)
        self._calls = self.launched = 0
        self.differed = 0  # calls in a row at which they had different programs

    def vote(self) -> Vote | None:
        """For one call; None if the world that they were in is over."""
        if self.group not in world._world.groups:
            return None
        self._calls += 1
        return Vote(self, self._calls)


class Vote:
    """What the processes say to one call."""

    def __init__(self, together: Together, call: int):
        self._together, self._group = together, (group := together.group)
        self._call, self._round = call, 0
        self.what = f"{_WHAT} of rank {group.rank()} among ranks {group.ranks}"
        self.told = told(self.what)  # of processes that have ended
        self._found: list[int] | None = None
        self.agreed = False

    def launch(self, program) -> None:
        """Return when all processes are about to launch this program; ask them once only."""
        if not self._ask(digest(program)):
            self._together.differed += min(self._found or [NEVER]) > NEVER
            raise Disagreed
        if not self.agreed:
            self.agreed, self._together.differed = True, 0
            self._together.launched += 1

    def abstain(self, reason: int = EAGER) -> bool:
        """Say that there is no program, unless something was said; is that what all say?"""
        return self._ask(reason)

    def again(self) -> None:
        """The program that all have launched was not the one for these values, as it says in all processes."""
        if self.agreed:
            self._found, self.agreed, self._round = None, False, self._round + 1

    def _ask(self, what: int) -> bool:
        if self._found is None:
            every = gathered_numbers(self._group, [self._call, self._round, what], _WHAT)
            if len({tuple(row[:2]) for row in every}) > 1:
                raise DistBackendError(
                    f"{self.what}: they are not at the same call of it, but at {[row[0] for row in every]}; all must "
                    "call it equally often"
                )
            self._found = [row[2] for row in every]
        return set(self._found) == {what}


def over_processes(tensors):
    """The mesh that tensors of a function lie on, if it has devices of other processes."""
    mesh = mesh_of(tensors)
    if mesh is None:
        return None
    from ..engine.spread.array import is_local

    return None if is_local(mesh.grid) else mesh


def digest(program) -> int:
    """A number for what a program computes, and how what it is given and gives lies."""
    if program.digest is None:
        learned = program.learned
        lies = [how and (how.how, how.shape) for how in (*learned.forms, *learned.laid)]
        text = re.sub(r"0x[0-9a-f]+", "", f"{learned.jaxpr}{lies}{sorted(learned.written)}")  # addresses are no matter
        found = hashlib.blake2b(text.encode(), digest_size=7)
        for constant in learned.jaxpr.consts:
            if isinstance(constant.dtype, np.dtype) and getattr(constant, "is_fully_addressable", True):
                found.update(np.asarray(constant).tobytes())
        program.digest = int.from_bytes(found.digest(), "little") + NEVER + 1
    return program.digest


def _group_of(mesh):
    """The group of a mesh's processes, which all of them make here if there is none."""
    from ..engine.spread.array import processes_of

    ranks = list(processes_of(mesh.grid))
    for group in world._world.groups:
        if group.ranks == ranks:
            return group
    return world.new_group(ranks, use_local_synchronization=True)
