"""Replace a file only by a whole new one."""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import stat
import threading

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone", "replacing"]

_BLOCK = 4 << 20  # bytes that are handed to the disk at a time
_LARGE = 16 << 20  # bytes of a file that is freed in the background


@contextlib.contextmanager
def replacing(path):
    """A raw file to write; it takes the place of ``path`` when the block ends well, and not at all otherwise.

    The bytes go into a file beside it (``.name.<random>.partial``), reach the disk, and only then get the name: a
    crash, a full disk or a killed process leaves what was there before. What a killed process leaves of its partial
    file is deleted by the next that saves to the same path; the one that is being written is locked against that.
    """
    path = os.path.realpath(os.fspath(path))  # through a link, as opening it would
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb", buffering=0) as file:  # a pipe or a device: nothing to keep
            yield file
        return
    if os.path.exists(path) and not os.access(path, os.W_OK):  # renaming would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    stem = os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:200])}.")  # names have at most 255 bytes
    _delete_abandoned(stem)
    partial = f"{stem}{os.urandom(4).hex()}.partial"  # known before it exists: an interrupt may come as it is opened
    try:
        with _opened(partial) as file:
            yield file
            _finish(file, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    _sync_folder(folder)


@contextlib.contextmanager
def alone(folder):
    """Whoever else asks for the same folder waits until the block ends. Gives whether that is sure."""
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield _lock(descriptor, wait=True)
    finally:
        os.close(descriptor)


class Partial(io.FileIO):
    """A file whose bytes start for the disk as they are written, so that little is left to wait for in the end."""

    def write(self, data) -> int:
        start, count = self.tell(), super().write(memoryview(data)[:_BLOCK])
        if hasattr(os, "posix_fadvise") and count == _BLOCK:
            os.posix_fadvise(self.fileno(), start, count, os.POSIX_FADV_DONTNEED)  # Linux begins to write them
        return count


def _opened(partial: str) -> Partial:
    while True:
        file = Partial(partial, "xb")
        _lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:  # else another deleted it before it was locked
            return file
        file.close()


def _finish(file: Partial, path: str) -> None:
    os.fsync(file.fileno())
    if os.path.exists(path):
        os.chmod(file.name, stat.S_IMODE(os.stat(path).st_mode))
    if fcntl is None:
        file.close()  # Windows does not rename what is open
        os.replace(file.name, path)
        return
    with _freed_later(path):
        os.replace(file.name, path)


@contextlib.contextmanager
def _freed_later(path: str):
    """What loses its name in the block is freed by another thread: for a large file that takes a while."""
    held = None
    with contextlib.suppress(OSError):
        held = os.open(path, os.O_RDONLY) if os.path.getsize(path) > _LARGE else None
    try:
        yield
    finally:
        if held is not None:
            threading.Thread(target=os.close, args=(held,)).start()


def _delete_abandoned(stem: str) -> None:
    """Partial files that nobody holds locked: who wrote them was killed."""
    for partial in glob.glob(f"{glob.escape(stem)}{'[0-9a-f]' * 8}.partial"):
        with contextlib.suppress(OSError), open(partial, "r+b", buffering=0) as file:
            if fcntl is None:
                file.close()  # Windows does not delete what is open, here or elsewhere
                os.unlink(partial)
            elif _lock(file, wait=False) and os.fstat(file.fileno()).st_nlink:  # else the name is a new file's by now
                os.unlink(partial)


def _lock(file, wait: bool) -> bool:
    """Whether the file could be locked, until it is closed or the process ends; some file systems have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _sync_folder(folder: str) -> None:
    """The new name itself must reach the disk too."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
