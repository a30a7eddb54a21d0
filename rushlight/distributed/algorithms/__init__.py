"""``torch.distributed.algorithms``."""

from ...compat import missing as _missing

__getattr__ = _missing(__name__)
