"""Archives that anybody may have made: what they hold is written below one folder, and in proportion to their size.

Members are files and folders; links, devices and names that lead elsewhere are refused before anything is written.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile

from .atomic import replacing

__all__ = ["Budget", "extract_gzip", "extract_tar", "extract_zip"]

RATIO = 64  # bytes that one byte of an archive may become: data sets are packed 2 to 10 times, bombs 1000 times
_CHUNK = 1 << 20


class Budget:
    """How many bytes may still come out of a packed file of ``size`` bytes; asking for more raises."""

    def __init__(self, path, size: int | None = None):
        self.path, self.left = path, RATIO * (os.path.getsize(path) if size is None else size) + _CHUNK

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise RuntimeError(
                f"{self.path}: unpacks to more than {RATIO} times its size, as no data does: corrupted or malicious"
            )

    def copy(self, source, target) -> None:
        """All of one file into another, part by part."""
        while chunk := source.read(_CHUNK):
            self.spend(len(chunk))
            rest = memoryview(chunk)
            while rest:  # a raw file may take only a part at a time
                rest = rest[target.write(rest) :]


def extract_tar(path: str, folder: str) -> None:
    with tarfile.open(path) as archive:
        members = []
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise RuntimeError(f"{path}: {_quoted(member.name)} is a link or a device, which no data set has")
            members.append((member.name, None if member.isdir() else member))
        _extract(path, folder, members, archive.extractfile)


def extract_zip(path: str, folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, None if info.is_dir() else info) for info in archive.infolist()]
        _extract(path, folder, members, archive.open)


def extract_gzip(path: str, target: str) -> None:
    with gzip.open(path) as source, replacing(target) as file:
        Budget(path).copy(source, file)


def _extract(path: str, folder: str, members, opened) -> None:
    """Write ``(name, what to open or None for a folder)`` of all members below ``folder``."""
    places = [(_below(path, folder, name), member) for name, member in members]
    budget = Budget(path)
    for place, member in places:
        os.makedirs(place if member is None else os.path.dirname(place), exist_ok=True)
        if member is not None:
            with opened(member) as source, replacing(place) as file:
                budget.copy(source, file)


def _below(path: str, folder: str, name: str) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    place = os.path.join(folder, *parts)
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or any(":" in part for part in parts[:1]):
        raise RuntimeError(f"{path}: {_quoted(name)} lies outside the folder it is unpacked into; nothing was written")
    if not os.path.realpath(place).startswith(os.path.join(os.path.realpath(folder), "")) and parts:
        raise RuntimeError(f"{path}: {_quoted(name)} leads out of {folder} through a link that is there")
    return place


def _quoted(name: str) -> str:
    return repr(name[:100])
