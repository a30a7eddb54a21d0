"""Checkpoints: saving and loading a state dict of 500 MB, 125 tensors of 4 MB, here and in PyTorch.

Each library has a process of its own, which forks for every single measurement: a second load in one process would
find the memory of the first. Files lie in the page cache. ``fsync`` is part of every save of rushlight's; PyTorch's
does without, except in the row that says so. ``python bench/io.py [megabytes] [rounds]`` also prints the time of the
processor, which a busy machine changes less, and what is to be kept: PyTorch's speed, mapping at least 5 times as fast
as reading, and a peak of memory of at most 1.1 times the tensors.
"""

from __future__ import annotations

import os
import subprocess
import sys

import harness

MEGABYTES, WORKS = 500, {"save": "save {}", "synced": "save {}, with fsync", "load": "load {}", "mmap": "load {}, mmap"}

PROCESS = """
import os, sys, tempfile, time
import {library} as torch
what, megabytes = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)

def main():
    state = {{f"layers.{{i}}.weight": torch.rand(1024, 1024) for i in range(megabytes // 4)}}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        path = os.path.join(folder, "state.pt")
        torch.save(state, path)
        work = dict(save=lambda: torch.save(state, path), synced=lambda: synced(state, path),
                    load=lambda: torch.load(path), mmap=lambda: torch.load(path, mmap=True))[what]
        if what in ("load", "mmap"):
            torch.load(path, mmap=True)  # imports what it needs
            state.clear()
        for _ in sys.stdin:
            if not os.fork():
                measure(work)
            os.wait()

def synced(state, path):
    torch.save(state, path)
    if torch.__name__ == "torch":
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)

def measure(work):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts from here
    before, start, busy = peak(), time.perf_counter(), time.process_time()
    result = work()
    print(time.perf_counter() - start, time.process_time() - busy, (peak() - before) / (megabytes << 20), flush=True)
    os._exit(0)

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

main()
"""


def cases(torch, gpu=False):
    if gpu or not hasattr(os, "fork"):
        return
    for what, name in WORKS.items():
        yield name.format(f"{MEGABYTES} MB"), lambda w=what: _seconds(torch.__name__, w)


def _seconds(library: str, what: str):
    measure = _measuring(library, what, MEGABYTES)
    return lambda: harness.Seconds(measure()[0])


def _measuring(library: str, what: str, megabytes: int):
    """A function whose every call does the work once in a new process: seconds, those of the processor, and memory."""
    command = [sys.executable, "-c", PROCESS.format(library=library), what, str(megabytes)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure() -> list[float]:
        print(file=process.stdin, flush=True)
        return [float(value) for value in process.stdout.readline().split()]

    return measure


def main(megabytes: int = MEGABYTES, rounds: int = 9) -> bool:
    """Print the table; whether all that is to be kept is."""
    title = f"milliseconds, best of {rounds} (of the processor)"
    print(f"{title:44}{'rushlight':>16}{'PyTorch':>16}{'ratio':>9}")
    best = {}
    for what, name in WORKS.items():
        pair = [_measuring(library, what, megabytes) for library in ("rushlight", "torch")]
        runs = [[measure() for measure in pair] for _ in range(rounds)]  # in turn
        ours, theirs = best[what] = [[min(run[i][k] for run in runs) for k in range(3)] for i in (0, 1)]
        columns = "".join(f"{seconds * 1e3:7.1f} ({busy * 1e3:5.1f})" for seconds, busy, _ in (ours, theirs))
        print(f"{name.format(f'{megabytes} MB'):46}{columns}{theirs[0] / ours[0]:8.2f}x", flush=True)
    mapping, memory = best["load"][0][0] / best["mmap"][0][0], best["load"][0][2]
    kept = {
        "saving is at least as fast as PyTorch": best["save"][0][0] <= best["save"][1][0],
        "loading is at least as fast as PyTorch": best["load"][0][0] <= best["load"][1][0],
        f"mapping is {mapping:.0f} times as fast as reading (at least 5)": mapping >= 5,
        f"the peak of a load is {memory:.3f} times the tensors (at most 1.1)": memory <= 1.1,
    }
    for text, true in kept.items():
        print(f"{'yes' if true else 'NO':4}{text}")
    return all(kept.values())


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
