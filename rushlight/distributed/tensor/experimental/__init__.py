"""``torch.distributed.tensor.experimental``: functions of local tensors, and attention over sequences that are cut."""

from ....compat import missing as _missing
from ._attention import context_parallel
from ._func_map import implicit_replication, local_map
from ._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__
