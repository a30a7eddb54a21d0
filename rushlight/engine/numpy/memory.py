"""Where arrays lie: memory that was freed stays with the process for the next step, and arrays begin at cache lines.

A training step allocates much and frees all of it. glibc gives what is free at the end of its heap back to the system,
and to get it again costs a page fault for every 4 KiB: a fifth of the step of a small GPT. So we ask glibc to keep it.
What a user has told it in the environment holds; other C libraries are left alone.

XLA's threads allocate too, a hundred megabytes for a step. glibc gives each thread a heap of its own that cannot hold
as much, and maps the rest anew every time: a quarter of the step of a small convolutional network. So all threads share
one heap. Compiling takes a fifth longer for it, so that is not asked where compiled programs run on a GPU or a TPU.
"""

from __future__ import annotations

import ctypes
import os

from ..native import library

KEPT = 1 << 30  # bytes that may stay free at the end of the heap, or an eighth of the machine's memory if that is less
LARGE = 1 << 28  # bytes from which on an array is mapped for itself, and given back as soon as it is freed

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of <malloc.h>
_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/accel0")


def keep() -> bool:
    """Keep freed memory; False where this cannot be asked for, or the user has decided."""
    if any(name in os.environ for name in _USERS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, TypeError, ValueError):  # no glibc
        return False
    if not any(map(os.path.exists, _ACCELERATORS)):
        mallopt(_ARENA_MAX, 1)
    return bool(mallopt(_MMAP_THRESHOLD, LARGE) and mallopt(_TRIM_THRESHOLD, min(KEPT, machine // 8)))


def align() -> bool:
    """NumPy's arrays begin at cache lines from now on (``native/src/memory.c``); False if they do not."""
    return library is not None and library.align_arrays()
