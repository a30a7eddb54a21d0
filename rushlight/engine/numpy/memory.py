"""Memory that was freed stays with the process for the next step.

A training step allocates much and frees all of it. glibc gives what is free at the end of its heap back to the system,
and to get it again costs a page fault for every 4 KiB: a fifth of the step of a small GPT. So we ask glibc to keep it.
What a user has told it in the environment holds; other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import os

KEPT = 1 << 30  # bytes that may stay free at the end of the heap, or an eighth of the machine's memory if that is less
LARGE = 1 << 26  # bytes from which on an array is mapped for itself, and given back as soon as it is freed

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of <malloc.h>
_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep() -> bool:
    """Keep freed memory; False where this cannot be asked for, or the user has decided."""
    if any(name in os.environ for name in _USERS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, TypeError, ValueError):  # no glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGE) and mallopt(_TRIM_THRESHOLD, min(KEPT, machine // 8)))
