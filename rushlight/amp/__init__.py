"""Mixed precision: ``autocast`` chooses each op's dtype, ``GradScaler`` keeps small gradients from vanishing."""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available

# PyTorch has these at the top, where they are looked up here.
from .autocast_mode import get_autocast_dtype, is_autocast_enabled, set_autocast_dtype
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]


def __dir__():
    return __all__
