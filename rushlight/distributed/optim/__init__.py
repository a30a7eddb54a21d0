"""``torch.distributed.optim``: optimizers of several processes."""

from __future__ import annotations

from ...compat import missing as _missing
from .apply_optimizer_in_backward import _apply_optimizer_in_backward, _get_in_backward_optimizers
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__
