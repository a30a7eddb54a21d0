"""Ways to exchange the gradients of ``DistributedDataParallel``, by name."""

from __future__ import annotations

import enum
import functools

from ....compat import missing as _missing
from . import debugging_hooks, default_hooks, powerSGD_hook, quantization_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


def _register(hook, model, state=None, rank: int | None = None) -> None:
    if rank is not None:
        state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(state, hook)


class DDPCommHookType(enum.Enum):
    """The hooks that ``register_ddp_comm_hook`` takes by name; each value is called with a model and a state."""

    ALLREDUCE = functools.partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = functools.partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = functools.partial(_register, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = functools.partial(_register, quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = functools.partial(_register, quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = functools.partial(_register, powerSGD_hook.powerSGD_hook, rank=1)
    POWER_SGD_RANK2 = functools.partial(_register, powerSGD_hook.powerSGD_hook, rank=2)
    BATCHED_POWER_SGD = functools.partial(_register, powerSGD_hook.batched_powerSGD_hook, rank=1)
    BATCHED_POWER_SGD_RANK2 = functools.partial(_register, powerSGD_hook.batched_powerSGD_hook, rank=2)
    NOOP = functools.partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model, state=None) -> None:
    """Have ``model`` exchange its gradients by that hook.

    ``state`` is the process group, or for PowerSGD the group that its own state is made for.
    """
    comm_hook_type.value(model=model, state=state)
