"""``torch.signal``: window functions."""

from . import windows

__all__ = ["windows"]


def __dir__():
    return __all__
