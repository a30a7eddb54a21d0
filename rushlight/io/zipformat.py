"""The zip container of checkpoints: records stored as they are, each beginning at a multiple of 64 bytes.

Python's ``zipfile`` is not used: it copies through small buffers, cannot align records, and trusts more of a file than
a reader of other people's files should. The writer here needs no seeking; the reader looks at nothing but the central
directory and the headers it points to, and refuses records that overlap, leave the file or are compressed.
"""

from __future__ import annotations

import _thread
import os
import struct
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from .checksum import crc32

__all__ = ["Damaged", "Reader", "Record", "Writer", "fill", "fill_at", "write_all"]

ALIGNMENT = 64
CHUNK = 1 << 21  # read and checked in parts: what was read is still in the cache when its checksum is taken
_LARGE = 4 << 20
ZIP64 = 0xFFFFFFFF  # from this size on, sizes and places are written in zip64's fields

_LOCAL = struct.Struct("<4s5H3I2H")  # signature, version, flags, method, time, date, crc, size, size, name, extra
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_DESCRIPTOR = struct.Struct("<4sI")  # what may follow a record: signature, crc, and sizes
_DESCRIBED, _UTF8 = 0x8, 0x800  # flags
_DATE = 0x21  # 1 January 1980: equal contents give equal files


class Damaged(RuntimeError):
    """The file is no checkpoint, or no longer the one that was written."""

    def __init__(self, text: str):
        super().__init__(text if len(text) <= 500 else text[:500] + "...")  # names in it are the file's


class Record(NamedTuple):
    """One record: where its bytes lie in the file, how many they are, and their checksum, if it was taken."""

    name: str
    offset: int
    size: int
    crc: int | None


# -- writing ---------------------------------------------------------------------------------------------------------


class Writer:
    """Writes records into ``file`` one after the other; ``close`` adds the directory."""

    def __init__(self, file, archive: str, checksums: bool = True):
        self.file, self.archive, self.checksums = file, archive, checksums
        self.position = 0
        self.entries: list[Record] = []

    def add(self, name: str, data, crc: int | None = None) -> None:
        """Add a record; ``data`` is bytes or anything that shows its memory as bytes, ``crc`` its checksum if known."""
        data = memoryview(data).cast("B") if len(data) else b""
        if crc is None and self.checksums:
            crc = crc32(data)
        self._begin(name, len(data), crc)
        self._write(data)

    def add_all(self, named: dict[str, np.ndarray]) -> None:
        """Add many records. The checksums of large ones are taken by another thread, while those before are written."""
        if not self.checksums or sum(data.size for data in named.values()) < _LARGE:
            for name, data in named.items():
                self.add(name, data)
            return
        # No pool: its locks would stop a signal handler for ever that saves while this thread does.
        sums: SimpleQueue = SimpleQueue()
        _thread.start_new_thread(_checksums, (list(named.values()), sums))
        for name, data in named.items():
            self.add(name, data, sums.get())

    def reserve(self, name: str, size: int) -> None:
        """Add a record of zeros, without a checksum, for somebody to write into."""
        self._begin(name, size, None)
        if hasattr(self.file, "seekable") and self.file.seekable():
            self.file.seek(size, 1)
            self.position += size
        else:
            self._write(bytes(size))

    def close(self) -> None:
        start = self.position
        for entry in self.entries:
            self._write(_directory_entry(entry))
        size, count = self.position - start, len(self.entries)
        if start >= ZIP64 or count >= 0xFFFF:
            end64 = self.position
            self._write(_END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, count, count, size, start))
            self._write(_LOCATOR.pack(b"PK\6\7", 0, end64, 1))
        count, start = min(count, 0xFFFF), min(start, 0xFFFFFFFF)
        self._write(_END.pack(b"PK\5\6", 0, 0, count, count, min(size, 0xFFFFFFFF), start, 0))

    def _begin(self, name: str, size: int, crc: int | None) -> None:
        full = f"{self.archive}/{name}"
        self.entries.append(Record(full, self.position, size, crc))
        self._write(self._header(full.encode(), size, crc))

    def _header(self, name: bytes, size: int, crc: int | None) -> bytes:
        extra = struct.pack("<2H2Q", 1, 16, size, size) if size >= ZIP64 else b""
        begin = self.position + _LOCAL.size + len(name) + len(extra) + 4
        padding = -begin % ALIGNMENT
        extra += struct.pack("<2s H", b"FB", padding) + b"Z" * padding
        short = 0xFFFFFFFF if size >= ZIP64 else size
        fixed = (b"PK\3\4", 45, _UTF8, 0, 0, _DATE, crc or 0, short, short, len(name), len(extra))
        return _LOCAL.pack(*fixed) + name + extra

    def _write(self, data) -> None:
        write_all(self.file, data)
        self.position += len(data)


def _checksums(records: list, sums: SimpleQueue) -> None:
    for data in records:
        try:
            sums.put(crc32(data))
        except BaseException:
            sums.put(None)  # then it is taken, or fails, where the record is written


def write_all(file, data) -> None:
    """Raw files may write less than they are given; other files say nothing."""
    done, size = 0, len(data)
    while done < size:
        count = file.write(memoryview(data)[done:] if done else data)
        done += size if count is None else count


def _directory_entry(entry: Record) -> bytes:
    name, long = entry.name.encode(), []
    size, offset = entry.size, entry.offset
    if size >= ZIP64:
        long, size = [size, size], 0xFFFFFFFF
    if offset >= ZIP64:
        long, offset = [*long, offset], 0xFFFFFFFF
    extra = struct.pack(f"<2H{len(long)}Q", 1, 8 * len(long), *long) if long else b""
    lengths = (size, size, len(name), len(extra))
    fixed = (b"PK\1\2", 45, 45, _UTF8, 0, 0, _DATE, entry.crc or 0, *lengths, 0, 0, 0, 0, offset)
    return _CENTRAL.pack(*fixed) + name + extra


# -- reading ---------------------------------------------------------------------------------------------------------


class Reader:
    """The records of a zip file, by name without the archive's own prefix."""

    def __init__(self, file):
        self.file = file
        self.length = file.seek(0, 2)
        entries = self._directory()
        if not entries:
            raise Damaged("the file is a zip archive without records: no checkpoint")
        self.archive = entries[0].name.partition("/")[0]
        self.records: dict[str, Record] = {}
        for entry in entries:
            if entry.name.endswith("/") and not entry.size:
                continue  # a folder, as other zip programs add
            name = self._checked_name(entry.name)
            if name in self.records:
                raise Damaged(f"the archive has two records called '{entry.name}'")
            self.records[name] = entry
        _check_apart(entries)

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def may_be_packed(self, name: str) -> bool:
        """May this record be compressed? Its reader unpacks it then."""
        return False

    def find(self, name: str) -> Record:
        if name not in self.records:
            raise Damaged(
                f"file in archive is not in a subdirectory {self.archive}/ or missing: record '{name}' not found"
            )
        return self.records[name]

    def read(self, name: str) -> bytes:
        """A whole (small) record."""
        record = self.find(name)
        data = bytearray(record.size)
        self.read_into(record, memoryview(data))
        return bytes(data)

    def read_into(self, record: Record, memory: memoryview) -> None:
        """Fill ``memory`` with the record's bytes and check them."""
        self.file.seek(record.offset)
        fill(memory, record, self.file.readinto if hasattr(self.file, "readinto") else self._read_part)

    def _read_part(self, memory: memoryview) -> int:
        data = self.file.read(len(memory))
        memory[: len(data)] = data
        return len(data)

    def _at(self, offset: int, count: int) -> bytes:
        if not 0 <= offset <= self.length - count:
            raise Damaged(
                f"the archive points to byte {offset}, beyond its end at {self.length}: truncated or corrupted"
            )
        self.file.seek(offset)
        data = self.file.read(count)
        if len(data) != count:
            raise Damaged("the file ended while it was read")
        return data

    def _directory(self) -> list[Record]:
        count, size, start = self._end()
        data, place, entries = self._at(start, size), 0, []
        for _ in range(count):
            if place + _CENTRAL.size > size:
                raise Damaged("the archive's directory is shorter than it says: truncated or corrupted")
            fields = _CENTRAL.unpack_from(data, place)
            name_at = place + _CENTRAL.size
            extra_at = name_at + fields[10]
            place = extra_at + fields[11] + fields[12]
            if fields[0] != b"PK\1\2" or place > size:
                raise Damaged("the archive's directory is corrupted")
            entries.append(self._entry(fields, data[name_at:extra_at], data[extra_at : extra_at + fields[11]]))
        return entries

    def _end(self) -> tuple[int, int, int]:
        """The directory: how many records, its size, its place."""
        tail = self._at(max(0, self.length - 66000), min(self.length, 66000))
        found = tail.rfind(b"PK\5\6")
        if found < 0 or found + _END.size > len(tail):
            raise Damaged(
                "PytorchStreamReader failed reading zip archive: failed finding central directory. The file is "
                "truncated or corrupted: it was not saved completely, or was changed since."
            )
        _, disk, first, _, count, size, start, _ = _END.unpack_from(tail, found)
        if disk or first:
            raise Damaged("the archive says it is one of several volumes: corrupted")
        position = self.length - len(tail) + found
        if count == 0xFFFF or start == 0xFFFFFFFF or size == 0xFFFFFFFF:
            signature, _, place, _ = _LOCATOR.unpack(self._at(position - _LOCATOR.size, _LOCATOR.size))
            if signature == b"PK\6\7":
                fields = _END64.unpack(self._at(place, _END64.size))
                if fields[0] != b"PK\6\6":
                    raise Damaged("the archive's zip64 directory is corrupted")
                count, size, start, position = fields[7], fields[8], fields[9], place
        if start + size > position or count * _CENTRAL.size > size:
            raise Damaged("the archive's directory does not fit where it says it is: truncated or corrupted")
        return count, size, start

    def _entry(self, fields, name: bytes, extra: bytes) -> Record:
        flags, method, crc, packed, size, start = fields[3], fields[4], fields[7], fields[8], fields[9], fields[16]
        wanted = [value == 0xFFFFFFFF for value in (size, packed, start)]
        if any(wanted):
            long = iter(_zip64(extra, sum(wanted)))
            size, packed, start = (next(long) if w else v for w, v in zip(wanted, (size, packed, start)))
        text = _text(name)
        if self.may_be_packed(text) and method == 8:
            size, crc = packed, 0  # read as it is; the checksum is that of what it unpacks to
        elif method or size != packed:
            raise Damaged(
                f"record '{text}' is compressed; checkpoints are not: unzip it and zip it again without compression"
            )
        if flags & 1:
            raise Damaged(f"record '{text}' is encrypted: no checkpoint")
        header = _LOCAL.unpack(self._at(start, _LOCAL.size))
        if header[0] != b"PK\3\4" or header[3] != method or self._at(start + _LOCAL.size, header[9]) != name:
            raise Damaged(f"the header of record '{text}' is corrupted")
        offset = start + _LOCAL.size + header[9] + header[10]
        if offset + size > self.length:
            raise Damaged(f"record '{text}' of {size} bytes reaches beyond the end of the file: truncated or corrupted")
        if not crc and (method or not self._second_crc(header, offset + size)):
            crc = None  # whoever saved it took no checksums: zero in both places
        return Record(text, offset, size, crc)

    def _second_crc(self, header: tuple, end: int) -> int:
        """A record's checksum as it is said beside the record: before it, or, by a flag, behind it."""
        if not header[2] & _DESCRIBED:
            return header[6]
        signature, crc = _DESCRIPTOR.unpack(self._at(end, _DESCRIPTOR.size))
        return crc if signature == b"PK\7\x08" else int.from_bytes(signature, "little")

    def _checked_name(self, name: str) -> str:
        archive, slash, rest = name.partition("/")
        parts = rest.split("/")
        if (
            not slash
            or archive != self.archive
            or not archive
            or ".." in (archive, *parts)
            or "" in parts
            or "\\" in name
        ):
            raise Damaged(f"the archive has a record called {name[:100]!r}, which no checkpoint has")
        return rest


def fill(memory: memoryview, record: Record, read_into) -> None:
    """Read a record into ``memory`` part by part, and compare the checksum of what came."""
    crc, done = 0, 0
    while done < len(memory):
        part = memory[done : done + CHUNK]
        count = read_into(part)
        if not count:
            raise Damaged(f"the file ended within record '{record.name}': truncated")
        if record.crc is not None:
            crc = crc32(part[:count], crc)
        done += count
    if record.crc is not None and crc != record.crc:
        raise Damaged(
            f"the bytes of record '{record.name}' are not those that were saved (checksum): the file is corrupted"
        )


def fill_at(file, record: Record, memory: np.ndarray) -> None:
    """``fill`` from the record's place in a raw file; threads may share the file where the system has ``preadv``."""
    if not hasattr(os, "preadv"):
        file.seek(record.offset)
        fill(memory.data, record, file.readinto)
        return
    place = record.offset

    def read_into(part):
        nonlocal place
        count = os.preadv(file.fileno(), [part], place)
        place += count
        return count

    fill(memory.data, record, read_into)


def _zip64(extra: bytes, count: int) -> tuple[int, ...]:
    place = 0
    while place + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, place)
        if kind == 1 and size >= 8 * count and place + 4 + size <= len(extra):
            return struct.unpack_from(f"<{count}Q", extra, place + 4)
        place += 4 + size
    raise Damaged("a record's zip64 sizes are missing: corrupted")


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise Damaged(f"the archive has a record called {name[:100]!r}, which no checkpoint has") from None


def _check_apart(entries: list[Record]) -> None:
    """No byte of the file belongs to two records: what they hold together is no more than the file's size."""
    end = 0
    for entry in sorted(entries, key=lambda e: e.offset):
        if entry.offset < end:
            raise Damaged(f"record '{entry.name}' overlaps another: the archive is corrupted or malicious")
        end = entry.offset + entry.size
