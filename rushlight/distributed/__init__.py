"""``torch.distributed``: many processes, one program. The engine is JAX's runtime."""

from __future__ import annotations

from ..compat import missing as _missing
from . import distributed_c10d
from .collectives import *
from .collectives import _coalescing_manager, all_gather_single, reduce_scatter_single
from .debug import *
from .device_mesh import DeviceMesh, init_device_mesh
from .errors import *
from .group_calls import *
from .objects import *
from .options import ProcessGroupGloo, ProcessGroupNCCL
from .point_to_point import *
from .reduce_op import ReduceOp, _make_nccl_premul_sum
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import *
from .work import Work
from .world import *

__getattr__ = _missing(__name__)
_NOT_SHOWN = {
    "ProcessGroupNCCL",  # as in PyTorch's builds for the CPU, where it is missing
    "annotations",
    "collectives",
    "debug",
    "errors",
    "group_calls",
    "launchers",
    "objects",
    "options",
    "point_to_point",
    "store",
    "work",
    "world",
}
reduce_op = ReduceOp
_all_gather_base, _reduce_scatter_base = all_gather_single, reduce_scatter_single


def __dir__():
    return [name for name in globals() if name[0] != "_" and name not in _NOT_SHOWN]
