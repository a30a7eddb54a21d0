"""Replace a file only by a whole new one."""

from __future__ import annotations

import contextlib
import os
import stat

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path):
    """A raw file to write; it takes the place of ``path`` when the block ends well, and not at all otherwise.

    The bytes go into a file beside it (``.name.<process>.partial``), reach the disk, and only then get the name: a
    crash, a full disk or a killed process leaves what was there before. A killed process also leaves the partial file,
    which nobody reads and anybody may delete.
    """
    path = os.path.realpath(os.fspath(path))  # through a link, as opening it would
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb", buffering=0) as file:  # a pipe or a device: nothing to keep
            yield file
        return
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    partial = os.path.join(folder, f".{name[:200]}.{os.getpid()}.partial")
    try:
        with open(partial, "wb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(partial, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """The new name itself must reach the disk too."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
