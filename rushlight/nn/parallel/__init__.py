"""``torch.nn.parallel``."""

from ...compat import missing
from .data_parallel import DataParallel

__all__ = ["DataParallel"]

__getattr__ = missing(__name__)


def __dir__():
    return __all__
