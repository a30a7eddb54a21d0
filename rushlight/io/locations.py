"""Where the storages of a file go: location tags, and ``map_location`` in all its forms."""

from __future__ import annotations

from ..device import cpu, device
from ..storage import UntypedStorage
from .rebuild import LoadedStorage

__all__ = ["default_restore_location", "location_tag", "register_package", "restore_function"]

_packages: list[tuple] = []  # (priority, tagger, deserializer), best first


def register_package(priority: int, tagger, deserializer) -> None:
    """Teach ``save`` and ``load`` a kind of place: ``tagger(storage) -> tag``, ``deserializer(storage, tag)``."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage) -> str:
    """The word that a file says where a storage was: ``cpu``, ``cuda:0``."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage, location: str):
    """The storage, at the place that a tag names."""
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location}); "
        "load with map_location='cpu'"
    )


def restore_function(map_location):
    """``map_location`` as a function of a storage and its tag."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, device)):
        place = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, place)

    def restore(storage, location):
        restored = map_location(storage, location)
        return default_restore_location(storage, location) if restored is None else restored

    return restore


def _tag(storage) -> str:
    # Only GPUs have a tag that PyTorch knows; what was on a TPU is a CPU's tensor for who loads it.
    place = storage.device
    return str(place) if place.type == "cuda" else "cpu"


def _restore(storage: UntypedStorage, location: str):
    try:
        place = device(location)
    except RuntimeError:
        return None
    if place.type == "cuda":
        place = _checked_gpu(place)
    elif place == cpu:
        place = cpu
    return storage if place == storage.device else _moved(storage, place)


def _moved(storage: UntypedStorage, place: device) -> UntypedStorage:
    return storage.moved(place) if isinstance(storage, LoadedStorage) else UntypedStorage(storage._memory, place)


def _checked_gpu(place: device) -> device:
    from .. import cuda

    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    index = cuda.current_device() if place.index is None else place.index
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
            f"{cuda.device_count()}. Please use torch.load with map_location to map your storages to an existing "
            "device."
        )
    return device("cuda", index)


register_package(10, _tag, _restore)
