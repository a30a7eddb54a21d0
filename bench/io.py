"""Checkpoints: saving and loading a large state dict, here and in PyTorch (``python bench/io.py [megabytes]``).

Each measurement is one call in a process of its own (a second load would find the memory of the first); files lie in
the page cache. ``memory`` is the peak of a plain load over the bytes of the tensors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

WORK = """
import resource, sys, time
import {library} as torch
path, what, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
if what == "save":
    state = {{f"layers.{{i}}.weight": torch.rand(1024, 1024) for i in range(megabytes // 4)}}
    torch.save(state, path)
    run = lambda: torch.save(state, path)
elif what == "load":
    run = lambda: torch.load(path)
else:
    run = lambda: torch.load(path, mmap=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
result = run()
print(time.perf_counter() - start)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (megabytes << 20))
"""


def measure(library: str, path: str, what: str, megabytes: int) -> tuple[float, float]:
    code = WORK.format(library=library)
    arguments = [sys.executable, "-c", code, path, what, str(megabytes)]
    runs = []
    for _ in range(5):
        output = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        runs.append(tuple(map(float, output.split())))
    return sorted(runs)[len(runs) // 2]


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"a state dict of {megabytes} MB, seconds (median of 5; fsync is part of rushlight's save)")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        paths = {library: os.path.join(folder, f"{library}.pt") for library in ("rushlight", "torch")}
        for what in ("save", "load", "mmap"):
            ours, theirs = (measure(library, paths[library], what, megabytes) for library in paths)
            memory = f"   memory {ours[1]:.2f} vs {theirs[1]:.2f}" if what == "load" else ""
            print(
                f"{what:5} rushlight {ours[0]:.4f}   pytorch {theirs[0]:.4f}   ratio {theirs[0] / ours[0]:.2f}{memory}"
            )


if __name__ == "__main__":
    main()
