"""``torch.distributed.distributed_c10d``: the same names, where much code looks for them."""

# ruff: noqa: F401, F403, F405 (this file is a list of names)
from __future__ import annotations

from ..compat import missing as _missing
from .collectives import *
from .collectives import _coalescing_manager
from .debug import DebugLevel, get_debug_level, record_comm
from .group_calls import *
from .group_calls import AllgatherOptions
from .objects import *
from .options import ProcessGroupGloo, ProcessGroupNCCL
from .point_to_point import *
from .reduce_op import ReduceOp, _make_nccl_premul_sum
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import *
from .work import Work
from .world import *
from .world import _world
from .world import the as _the

__getattr__ = _missing(__name__)
reduce_op = ReduceOp


def _get_default_group():
    """The world; an error where none was joined."""
    return _the(None)


def _get_default_store():
    return _world.store


def _get_default_timeout(backend=None):
    return default_pg_timeout


def _set_pg_timeout(timeout, group=None) -> None:
    """From now on collectives of the group (the world) wait so long."""
    _the(group).set_timeout(timeout)


def _rank_not_in_group(group) -> bool:
    return group == GroupMember.NON_GROUP_MEMBER


def _get_pg_default_device(group=None):
    from ..device import device

    return device("cpu")
