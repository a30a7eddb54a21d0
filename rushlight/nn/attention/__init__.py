"""``rushlight.nn.attention``: which kernel computes attention is chosen here by itself; asking for one is accepted."""

from __future__ import annotations

import contextlib
import enum

from ...backends import cuda
from ...compat import missing as _missing

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


_SWITCHES = {
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.OVERRIDEABLE: "overrideable",
}


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority: bool = False):
    """A block in which PyTorch would use one of these kernels: without ``MATH``, what only it can do is refused."""
    given = backends if isinstance(backends, list) else [backends]
    if not all(isinstance(backend, SDPBackend) for backend in given):
        kind = type(backends).__name__
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {kind}")
    before = dict(cuda.attention)
    cuda.attention.update({name: backend in given for backend, name in _SWITCHES.items()})
    try:
        yield {}
    finally:
        cuda.attention.update(before)


def _cur_sdpa_kernel_backends(with_priority: bool = False):
    return [backend for backend, name in _SWITCHES.items() if cuda.attention[name]]


__getattr__ = _missing(__name__)
