"""``torch.distributed.elastic.multiprocessing``: see ``errors``."""

from __future__ import annotations

from ....compat import missing as _missing

__getattr__ = _missing(__name__)
