"""``cuda.amp``: PyTorch's older names for ``amp`` on a GPU."""

from __future__ import annotations

from .. import amp
from ..amp import older

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

__path__: list[str] = []  # a package to the import system: programs import torch.cuda.amp.grad_scaler


def __dir__():
    return __all__


class autocast(older.OlderAutocast):
    """``amp.autocast("cuda", …)``."""

    kind = "cuda"


class GradScaler(older.OlderGradScaler):
    """``amp.GradScaler("cuda", …)``."""

    kind = "cuda"


def custom_fwd(fwd=None, *, cast_inputs=None):
    """``amp.custom_fwd(…, device_type="cuda")``."""
    older.warn("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """``amp.custom_bwd(…, device_type="cuda")``."""
    older.warn("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Is there no GPU?"""
    from . import is_available

    return not is_available()
