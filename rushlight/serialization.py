"""``save`` and ``load``: PyTorch's files, both ways. Loading runs no code of a file unless asked to."""

from __future__ import annotations

import contextlib
import os
import pickle
from enum import Enum

from .errors import warn_user
from .io import settings
from .io.unpickler import UnpicklingError

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


def __dir__():
    return __all__


DEFAULT_PROTOCOL = 2
FILE_LIKE = "str | os.PathLike | a binary file"
MAP_LOCATION = "None | str | device | dict[str, str] | (storage, location) -> storage"


class SourceChangeWarning(Warning):
    """Kept for programs that filter it: the source code in old files is not compared here."""


class LoadEndianness(Enum):
    """The order of bytes that ``load`` assumes where a file does not say."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that PyTorch opens too. A path is replaced only when the new file is whole.

    >>> import io
    >>> file = io.BytesIO()
    >>> rushlight.save({"weight": rushlight.ones(2)}, file)
    >>> rushlight.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.])}
    """
    from .io import saving

    saving.save(obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, not _disable_byteorder_record)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what ``save`` or ``torch.save`` wrote: tensors and plain Python values, unless ``weights_only=False``.

    ``map_location`` says where tensors go; ``mmap=True`` leaves them in the file until they are used.
    """
    from .io import loading

    if weights_only is None:
        weights_only = pickle_module is None and os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0") not in _YES
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    _check_readable(f)
    if not weights_only:
        unpickling = loading.FullUnpickling(pickle_module or pickle, **pickle_load_args)
        return loading.load(f, map_location, unpickling, bool(mmap))
    try:
        return loading.load(f, map_location, loading.SafeUnpickling(**pickle_load_args), bool(mmap))
    except UnpicklingError as error:
        raise UnpicklingError(_weights_only_failed(str(error))) from error.__cause__


_YES = ("1", "y", "yes", "true")


def _weights_only_failed(reason: str) -> str:
    if "GLOBAL" not in reason:
        return f"Weights only load failed: {reason}."
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only "
        "if you trust the source of the checkpoint.\n"
        "\t(1) Re-running `load` with `weights_only` set to `False` will likely succeed, but it can result in "
        "arbitrary code execution.\n"
        "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the following "
        f"message.\n\t{reason}"
    )


def _check_readable(f) -> None:
    if isinstance(f, (str, os.PathLike)):
        return
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )


# -- what may be loaded ----------------------------------------------------------------------------------------------


def add_safe_globals(safe_globals: list) -> None:
    """Allow classes and functions in weights-only files: a list of them, or of (class, its full name in the file)."""
    settings.allowed_globals.extend(g for g in list(safe_globals) if g not in settings.allowed_globals)


def get_safe_globals() -> list:
    """The classes and functions allowed so far, beyond those that always are."""
    return list(settings.allowed_globals)


def clear_safe_globals() -> None:
    """Forget the classes that ``add_safe_globals`` allowed."""
    settings.allowed_globals.clear()


class safe_globals(contextlib.AbstractContextManager):
    """``with safe_globals([Config]): load(…)`` allows for the block."""

    def __init__(self, safe_globals: list):
        self.added = list(safe_globals)

    def __enter__(self):
        self.before = get_safe_globals()
        add_safe_globals(self.added)
        return self

    def __exit__(self, *_):
        settings.allowed_globals[:] = self.before


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The names in a file that would have to be allowed before it loads."""
    from .io import loading

    return loading.unsafe_globals(f)


# -- where and how ---------------------------------------------------------------------------------------------------


def default_restore_location(storage, location: str):
    """The storage at the place that a file says it was."""
    from .io import locations

    return locations.default_restore_location(storage, location)


def normalize_storage_type(storage_type: type) -> type:
    """The storage class of that name: ``torch.FloatStorage`` for one that was loaded from elsewhere."""
    from . import storage

    return getattr(storage, storage_type.__name__)


def location_tag(storage) -> str:
    """What a file says where a storage is: ``cpu``, ``cuda:0``."""
    from .io import locations

    return locations.location_tag(storage)


def register_package(priority: int, tagger, deserializer) -> None:
    """Teach ``save`` and ``load`` another kind of place."""
    from .io import locations

    locations.register_package(priority, tagger, deserializer)


def get_crc32_options() -> bool:
    """Does ``save`` compute checksums?"""
    return settings.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether ``save`` takes checksums. Differs from PyTorch: ``load`` compares those that a file has."""
    settings.checksums = bool(compute_crc32)


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes that ``load`` assumes where a file does not say."""
    return None if settings.byte_order is None else LoadEndianness[settings.byte_order.upper()]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The byte order of files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    settings.byte_order = endianness and endianness.name.lower()


def get_default_mmap_options() -> int | None:
    """The flags that ``load(mmap=True)`` maps files with."""
    return settings.map_flags


class set_default_mmap_options(contextlib.AbstractContextManager):
    """``MAP_PRIVATE`` (writes stay in this process) or ``MAP_SHARED`` (they reach the file) for ``load(mmap=True)``."""

    def __init__(self, flags: int):
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, settings.map_flags = settings.map_flags, flags

    def __exit__(self, *_):
        settings.map_flags = self.before


class skip_data(contextlib.AbstractContextManager):
    """``with skip_data():`` tensors are loaded without reading their values, and saved with room for them only."""

    def __init__(self, materialize_fake_tensors: bool = False):
        if materialize_fake_tensors:
            warn_user("skip_data: rushlight has no fake tensors to materialize")

    def __enter__(self):
        self.before, settings.skip_data = settings.skip_data, True
        return self

    def __exit__(self, *_):
        settings.skip_data = self.before
