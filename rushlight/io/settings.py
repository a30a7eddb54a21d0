"""What programs set for all checkpoints: allowed classes, how files are mapped, checksums, byte order."""

from __future__ import annotations

import mmap
import sys

from .names import names_of

__all__ = ["allowed", "assumed_byte_order", "mapped", "writes_through"]

allowed_globals: list = []  # classes and functions, or (class, name in the file)
byte_order: str | None = None  # little, big or native: assumed where a file does not say
map_flags = getattr(mmap, "MAP_PRIVATE", None)  # None where the system has none
checksums = True  # whether save takes them
skip_data = False  # whether save and load leave the values of tensors out


def allowed() -> dict[str, object]:
    """The allowed classes and functions, by every name a file may call them by."""
    table = {}
    for entry in allowed_globals:
        if isinstance(entry, tuple):
            table[entry[1]] = entry[0]
        else:
            table.update(dict.fromkeys(names_of(entry), entry))
    return table


def assumed_byte_order() -> str:
    return sys.byteorder if byte_order in (None, "native") else byte_order


def mapped(file):
    """The whole file as memory; writes stay private to this process unless MAP_SHARED was asked for."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if writes_through() else mmap.ACCESS_COPY)


def writes_through() -> bool:
    return map_flags is not None and map_flags == mmap.MAP_SHARED
