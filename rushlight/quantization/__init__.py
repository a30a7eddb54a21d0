"""``rushlight.quantization``: the older name of ``rushlight.ao.quantization``."""

from __future__ import annotations

from ..ao import quantization as _quantization
from ..ao.quantization import *
from ..compat import missing as _missing

__all__ = list(_quantization.__all__)


def __dir__():
    return sorted(__all__)


__getattr__ = _missing(__name__)
