"""Copies of a module on several devices."""

from __future__ import annotations

from ...device import device
from ...tensor import Tensor
from ..module import Module

__all__ = ["replicate"]


def replicate(network: Module, devices, detach: bool = False) -> list[Module]:
    """The module once for each device. Its parameters there are copies, through which gradients flow back.

    Where a device is the module's own, the copy has the module's own buffers: running statistics follow that part.
    """
    return [_replica(network, place_of(d), detach) for d in devices]


def _replica(network: Module, place: device, detach: bool) -> Module:
    moved: dict[int, Tensor] = {}  # shared parameters stay shared

    def there(t):
        if t is None:
            return None
        if id(t) not in moved:
            moved[id(t)] = (t.detach() if detach else t).to(place)
        return moved[id(t)]

    copies = {module: module._replicate_for_data_parallel() for module in network.modules()}
    for module, copy in copies.items():
        for name, child in module._modules.items():
            copy._modules[name] = None if child is None else copies[child]
        for name, parameter in module._parameters.items():
            copy._parameters.pop(name, None)
            copy.__dict__[name] = there(parameter)
        for name, buffer in module._buffers.items():
            copy._buffers[name] = None if buffer is None else buffer if buffer.device == place else buffer.to(place)
    return copies[network]


def place_of(given) -> device:
    """A GPU by its number, or any device; one with an index."""
    made = device("cpu" if given == -1 else f"cuda:{given}" if isinstance(given, int) else given)
    return made if made.index is not None or made.type == "cpu" else device(made.type, 0)
