"""``cuda.nvtx``: named ranges, shown by JAX's profiler."""

from __future__ import annotations

import contextlib

__all__ = ["mark", "range", "range_pop", "range_push"]

_open: list = []


def __dir__():
    return __all__


def range_push(msg: str) -> int:
    """Open a range; how many were open."""
    import jax

    annotation = jax.profiler.TraceAnnotation(msg)
    annotation.__enter__()
    _open.append(annotation)
    return len(_open) - 1


def range_pop() -> int:
    """Close the range opened last; how many are still open."""
    _open.pop().__exit__(None, None, None)
    return len(_open)


@contextlib.contextmanager
def range(msg: str, *args, **kwargs):
    """A range around a block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


def mark(msg: str) -> None:
    """A moment: a range that is empty."""
    range_push(msg)
    range_pop()
