"""``rushlight.nn.attention``: which kernel computes attention is chosen here by itself; asking for one is accepted."""

from __future__ import annotations

import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


def __dir__():
    return __all__


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority: bool = False):
    """A block in which PyTorch would use one of these kernels."""
    given = backends if isinstance(backends, list) else [backends]
    if not all(isinstance(backend, SDPBackend) for backend in given):
        raise TypeError("sdpa_kernel(): backends must be an SDPBackend or a list of them")
    yield {}
