"""The format of safetensors files: eight bytes of length, a JSON header, and the bytes of all tensors without gaps.

A header is believed only when it accounts for the whole file: the parts it names are those of their shapes and dtypes,
follow each other, begin where it ends and end where the file does.
"""

from __future__ import annotations

import json
import math
import struct
from typing import NamedTuple

import numpy as np

from .. import dtypes

__all__ = ["Entry", "Header", "read_header", "written_header"]

MAX_HEADER = 100_000_000  # bytes, as the safetensors library has it
# By rank: files have the tensors of the last one first, so that all lie at multiples of their size.
DTYPES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "F16": dtypes.float16, "BF16": dtypes.bfloat16, "I32": dtypes.int32, "U32": dtypes.uint32, "F32": dtypes.float32,
    "C64": dtypes.complex64, "F64": dtypes.float64, "I64": dtypes.int64, "U64": dtypes.uint64,
}  # fmt: skip
_OTHERS = {"F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}  # known, but not here
_NAMES = {dtype.numpy: name for name, dtype in DTYPES.items()}


class Entry(NamedTuple):
    """One tensor: its dtype as the file calls it, its shape, and where its bytes lie behind the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    entries: dict[str, Entry]
    metadata: dict[str, str] | None
    begin: int  # of the tensors' bytes in the file


def written_header(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None) -> tuple[bytes, list[str]]:
    """The header's bytes, and the names in the order in which their arrays' bytes follow."""
    rank = {dtype.numpy: i for i, dtype in enumerate(DTYPES.values())}
    order = sorted(arrays, key=lambda name: (-rank[arrays[name].dtype], name))
    table: dict = {} if metadata is None else {"__metadata__": dict(sorted(_checked_metadata(metadata).items()))}
    place = 0
    for name in order:
        array = arrays[name]
        offsets = [place, place + array.nbytes]
        table[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, order


def read_header(length: int, read) -> Header:
    """The header of a file of ``length`` bytes; ``read(count)`` gives its bytes from the beginning on."""
    if length < 8:
        raise damaged("header too small")
    size = struct.unpack("<Q", read(8))[0]
    if size > MAX_HEADER:
        raise damaged("header too large")
    if size > length - 8:
        raise damaged("invalid header length")
    try:
        table = json.loads(str(read(size), "utf-8"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise damaged(f"invalid JSON in header: {str(error)[:100]}") from None
    if type(table) is not dict:
        raise damaged("invalid JSON in header: not an object")
    metadata = table.pop("__metadata__", None)
    if metadata is not None and (type(metadata) is not dict or any(type(v) is not str for v in metadata.values())):
        raise damaged("invalid JSON in header: metadata that is not text")
    entries = {name: _entry(name, fields) for name, fields in table.items()}
    _check_places(entries, length - 8 - size)
    return Header(entries, metadata, 8 + size)


def damaged(reason: str) -> Exception:
    """The safetensors library's error where that is installed, for programs that catch it."""
    text = f"Error while deserializing: {reason}"
    try:
        from safetensors import SafetensorError
    except ImportError:
        return RuntimeError(text)
    return SafetensorError(text)


def dtype_of(name: str, entry: Entry) -> dtypes.dtype:
    if entry.dtype not in DTYPES:
        raise TypeError(f"tensor '{name}' is of type {entry.dtype}, which rushlight does not have")
    return DTYPES[entry.dtype]


def _entry(name: str, fields) -> Entry:
    try:
        kind, shape, (start, end) = fields["dtype"], fields["shape"], fields["data_offsets"]
        size = DTYPES[kind].itemsize if kind in DTYPES else _OTHERS[kind]
        numbers = [*shape, start, end]
    except (KeyError, TypeError, ValueError):
        raise damaged(f"invalid JSON in header: tensor {name[:100]!r} without dtype, shape or offsets") from None
    if type(shape) is not list or any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
        raise damaged(f"invalid JSON in header: tensor {name[:100]!r} has sizes that are no whole numbers")
    if len(shape) > 64 or math.prod(shape) * size != end - start:
        raise damaged(f"invalid shape, data type, or offset for tensor {name[:100]!r}")
    return Entry(kind, tuple(shape), start, end)


def _check_places(entries: dict[str, Entry], length: int) -> None:
    place = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != place:
            raise damaged(f"invalid offset for tensor {name[:100]!r}")
        place = entry.end
    if place != length:
        raise damaged("incomplete metadata, file not fully covered")


def _without_doubles(pairs: list) -> dict:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name that is there twice")
    return table


def _checked_metadata(metadata) -> dict[str, str]:
    if not isinstance(metadata, dict) or any(type(part) is not str for item in metadata.items() for part in item):
        raise TypeError(f"metadata must be a dict of text to text, got {metadata!r:.100}")
    return metadata
