"""What ``cuda.amp`` and ``cpu.amp`` keep for old programs: the names of ``amp``, for one kind of device each."""

from __future__ import annotations

from ..errors import warn_user
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["OlderAutocast", "OlderGradScaler", "cpu_GradScaler", "cpu_autocast", "warn"]


class OlderAutocast(autocast):
    """``amp.autocast(kind, …)``."""

    kind: str

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        warn(self.kind, "autocast", f"autocast('{self.kind}', args...)")
        super().__init__(self.kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class OlderGradScaler(GradScaler):
    """``amp.GradScaler(kind, …)``."""

    kind: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        warn(self.kind, "GradScaler", f"GradScaler('{self.kind}', args...)")
        super().__init__(self.kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class cpu_autocast(OlderAutocast):
    """``amp.autocast("cpu", …)``."""

    kind = "cpu"


class cpu_GradScaler(OlderGradScaler):
    """``amp.GradScaler("cpu", …)``."""

    kind = "cpu"


def warn(kind: str, old: str, new: str) -> None:
    """Say which name to use today."""
    text = f"`torch.{kind}.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead."
    warn_user(text, FutureWarning)
