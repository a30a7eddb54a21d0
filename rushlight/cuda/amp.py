"""``cuda.amp``: PyTorch's older names for ``amp`` on a GPU."""

from __future__ import annotations

import functools

from .. import amp

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

__path__: list[str] = []  # a package to the import system: programs import torch.cuda.amp.grad_scaler


def __dir__():
    return __all__


class autocast(amp.autocast):
    """``amp.autocast("cuda", …)``."""

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler("cuda", …)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Is there no GPU?"""
    from . import is_available

    return not is_available()
