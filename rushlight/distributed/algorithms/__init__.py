"""``torch.distributed.algorithms``."""

from ...compat import missing as _missing
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
__getattr__ = _missing(__name__)
