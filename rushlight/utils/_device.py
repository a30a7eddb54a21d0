"""``DeviceContext``: the mode that gives factories a device. ``with device(…)`` does the same by a setting."""

from __future__ import annotations

import functools

from ..autograd.overriding import FACTORIES
from ..device import device as _device
from ..overrides import TorchFunctionMode

__all__ = ["DeviceContext", "set_device"]

CURRENT_DEVICE = None


class DeviceContext(TorchFunctionMode):
    """Inside, functions that make tensors from nothing make them on ``device`` unless told otherwise."""

    def __init__(self, device):
        self.device = _device(device)

    def __enter__(self):
        global CURRENT_DEVICE
        self.old_device, CURRENT_DEVICE = CURRENT_DEVICE, self.device
        return super().__enter__()

    def __exit__(self, *error):
        global CURRENT_DEVICE
        CURRENT_DEVICE = self.old_device
        super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in FACTORIES and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


def set_device(device):
    """A decorator: the function runs inside ``DeviceContext(device)``."""

    def decorate(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            with _device(device):
                return function(*args, **kwargs)

        return called

    return decorate
