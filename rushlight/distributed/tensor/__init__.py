"""``torch.distributed.tensor``: tensors over a mesh."""

from ...compat import missing as _missing
from ..device_mesh import DeviceMesh, init_device_mesh
from .creation import empty, full, ones, rand, randn, zeros
from .dtensor import DTensor, distribute_module, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

__getattr__ = _missing(__name__)
__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip


def __dir__():
    return __all__
