"""``DataParallel``: several devices in one process, in PyTorch; here, a name in checkpoints."""

from __future__ import annotations

from ..module import Module

__all__ = ["DataParallel"]


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
