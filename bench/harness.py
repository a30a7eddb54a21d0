"""How all benchmarks measure: ours and PyTorch's in turn, the best of several rounds, in one process.

A file of ``bench/`` takes part by one function, written once for both:

    def cases(torch, gpu=False):      # torch is rushlight or PyTorch
        yield "name of the case", make    # make() prepares it and returns the function to time

Rows are matched by name; a case that only rushlight yields has an empty column for PyTorch. ``torch.__name__`` tells
the two apart where they need different calls.

``apart`` measures the same way with each library in a process of its own: ``python bench/steps.py [words]``.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
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


# -- each library in a process of its own: threads of one do not disturb the other -------------------------------------


def apart(file: str, cases, rounds: int = 7) -> None:
    """What ``file`` does when it is run as a script; as ``file --serve NAME`` it is one of the two processes."""
    if sys.argv[1:2] == ["--serve"]:
        _serve(sys.argv[2], cases)
        return
    sides = {name: _start(file, name) for name in ("rushlight", "torch")}
    known = _ask(sides["rushlight"], "names")
    names = [name for name in known if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    width = max([44, *(len(name) + 2 for name in names)])
    print(header(rounds, width))
    for name in names:
        for side in sides.values():
            _ask(side, ["prepare", name])
        best = {side: float("inf") for side in sides}
        for _ in range(rounds):
            for side, process in sides.items():
                time.sleep(0.1)  # the other process's threads spin for a while after their last work
                best[side] = min(best[side], _ask(process, ["time"]))
        print(line({"name": name, **best, "ratio": best["torch"] / best["rushlight"]}, width), flush=True)


def _start(file, name):
    command = [sys.executable, file, "--serve", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def _ask(process, question):
    process.stdin.write(json.dumps(question) + "\n")
    return json.loads(process.stdout.readline())


def _serve(name, cases) -> None:
    """Answer questions, a line each: the names of the cases, prepare one, time what was prepared."""
    torch = importlib.import_module(name)
    torch.set_num_threads(2)
    known, function, number = dict(cases(torch)), None, 1
    answers, sys.stdout = sys.stdout, sys.stderr
    for question in map(json.loads, sys.stdin):
        answer = None
        if question == "names":
            answer = list(known)
        elif question[0] == "prepare":
            function = known[question[1]]()
            number = calls_per_block(function)
        else:
            answer = block(function, number)
        print(json.dumps(answer), file=answers, flush=True)
