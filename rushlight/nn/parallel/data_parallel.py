"""``DataParallel``: several devices in one process, in PyTorch; here, a name in checkpoints."""

from __future__ import annotations

from ..module import Module

__all__ = ["DataParallel", "data_parallel", "parallel_apply", "replicate"]


class DataParallel(Module):
    """A wrapper that calls its module; checkpoints have PyTorch's ``module.`` before each name.

    Differs from PyTorch: the batch is not cut up between GPUs, it runs where the module is.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or [])
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """``module`` of the whole batch: it runs where the module is."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def replicate(network: Module, devices, detach: bool = False) -> list[Module]:
    """The module once for each device. Differs from PyTorch: it is the same one, where it is."""
    return [network for _ in devices]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Each module of its own inputs, one after the other."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    return [m(*(i if isinstance(i, tuple) else (i,)), **k) for m, i, k in zip(modules, inputs, kwargs_tup)]
