"""``DataParallel``: one process, several devices, a part of the batch on each."""

from __future__ import annotations

import itertools

from ...device import device
from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import place_of, replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Runs ``module`` on each of ``device_ids`` (by default all GPUs) with a part of the batch, and joins.

    Checkpoints have ``module.`` before each name. Differs from PyTorch: devices of any kind can be named, such as
    ``["xla:0", "xla:1"]``, and without GPUs all of the module's kind are taken (on the CPU, the module is called); the
    parts are started one after the other and run at once.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module, self.dim = module, dim
        places = _places(device_ids, module)
        self.device_ids = [_number(place) for place in places]
        self.__dict__["_places"] = places
        self.output_device = None
        if places:
            self.output_device = _number(place_of(output_device)) if output_device is not None else self.device_ids[0]
            self.src_device_obj = places[0]
            if len(places) == 1:
                self.module.to(places[0])

    def forward(self, *inputs, **kwargs):
        places = self._places
        if not places:
            return self.module(*inputs, **kwargs)
        for t in itertools.chain(self.module.parameters(), self.module.buffers()):
            if t.device != places[0]:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {places[0]} (device_ids[0]) but found one "
                    f"of them on device: {t.device}"
                )
        given, named = scatter_kwargs(inputs, kwargs, places, self.dim)
        if not given:  # a module without arguments
            given, named = ((),), ({},)
        if len(places) == 1:
            return self.module(*given[0], **named[0])
        replicas = self.replicate(self.module, places[: len(given)])
        return self.gather(self.parallel_apply(replicas, given, named), self.output_device)

    def replicate(self, module, device_ids):
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs, output_device):
        return gather(outputs, place_of(output_device), self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """``module`` of ``inputs``, a part of the batch on each device."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    wrapped = DataParallel(module, device_ids, output_device, dim)
    wrapped.train(module.training)
    return wrapped(*inputs, **(module_kwargs or {}))


def _places(device_ids, module: Module) -> list[device]:
    """The devices that are meant; if none are named, all GPUs, or all of the kind that the module lies on."""
    if device_ids is None:
        from ... import cuda

        kind = next((p.device.type for p in module.parameters()), "cpu")
        device_ids = range(cuda.device_count())
        if not device_ids and kind in ("xla", "tpu"):
            from ...engine.xla.devices import local_count

            device_ids = [f"{kind}:{i}" for i in range(local_count(kind))]
    return [place_of(d) for d in device_ids]


def _number(place: device):
    return place.index if place.type == "cuda" else place
