"""How all benchmarks measure: ours and PyTorch's in turn, the best of several rounds, in one process.

A file of ``bench/`` takes part by one function, written once for both:

    def cases(torch, gpu=False):      # torch is rushlight or PyTorch
        yield "name of the case", make    # make() prepares it and returns the function to time

Rows are matched by name; a case that only rushlight yields has an empty column for PyTorch. ``torch.__name__`` tells
the two apart where they need different calls.
"""

from __future__ import annotations

import time

BLOCK = 0.05  # seconds that one timed block should take at least


class Seconds(float):
    """What a function returns that timed its work itself, in another process."""


def compare(ours, theirs, rounds: int = 7) -> tuple[float, float | None]:
    """Seconds per call of two functions (the second may be ``None``), timed in turn."""
    runners = [f for f in (ours, theirs) if f is not None]
    numbers = [calls_per_block(f) for f in runners]
    best = [float("inf")] * len(runners)
    for _ in range(rounds):
        for i, f in enumerate(runners):
            time.sleep(0.02)  # the other library's threads spin for a while after their last work
            best[i] = min(best[i], block(f, numbers[i]))
    return best[0], best[1] if theirs is not None else None


def block(f, number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        result = f()
    _finish(result)
    return result if isinstance(result, Seconds) else (time.perf_counter() - start) / number


def calls_per_block(f) -> int:
    for _ in range(3):  # warm: lazily made state, compiled programs
        _finish(result := f())
    number = 1
    if isinstance(result, Seconds):
        return number
    while (taken := block(f, number) * number) < BLOCK / 2:
        number = max(2 * number, int(number * BLOCK / max(taken, 1e-9) / 2))
    return number


def _finish(result) -> None:
    """Wait for work that was only queued: reading one number needs all before it."""
    if getattr(result, "ndim", None) == 0 and hasattr(result, "item"):
        result.item()


def header(rounds: int, width: int = 44) -> str:
    return f"{f'seconds per call, best of {rounds}':{width}}{'rushlight':>12}{'PyTorch':>12}{'ratio':>9}"


def line(row: dict, width: int = 44) -> str:
    """A row as text: ours, PyTorch's, and how many times faster ours is."""
    theirs, ratio = row["torch"], row["ratio"]
    last = f"{_time(theirs):>12}{ratio:8.2f}x" if theirs is not None else ""
    return f"{row['name']:{width}}{_time(row['rushlight']):>12}{last}".rstrip()


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    raise AssertionError
