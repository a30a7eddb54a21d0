"""Ways to exchange the gradients of ``DistributedDataParallel``, by name."""

from __future__ import annotations

import enum
import functools

from ....compat import missing as _missing
from . import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


class DDPCommHookType(enum.Enum):
    """The hooks that ``register_ddp_comm_hook`` takes by name."""

    ALLREDUCE = functools.partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = functools.partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = functools.partial(default_hooks.bf16_compress_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model, state=None) -> None:
    """Have ``model`` exchange its gradients by that hook."""
    model.register_comm_hook(state, comm_hook_type.value)
