"""Peak memory of a training step, eager, here and in PyTorch: ``python bench/memory.py``.

Each model trains in a process of its own. What counts is the highest resident memory during five steps, less what the
process had with the library imported: parameters, gradients, optimizer state, activations and scratch memory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
MODELS = ("mlp", "cnn", "residual", "encoder", "gpt", "lstm")

PROCESS = """
import sys
sys.path.insert(0, {bench!r})
import {library} as torch
import steps

def memory(line):
    with open("/proc/self/status") as file:
        return next(int(text.split()[1]) / 1024 for text in file if text.startswith(line))

torch.set_num_threads(2)
torch.ones(64, 64).matmul(torch.ones(64, 64))  # threads and their buffers are there
before = memory("VmRSS")
name = sys.argv[1]
step = steps.step(torch, name, "cpu", **steps.CPU[name])
for _ in range(5):
    step()
print(memory("VmHWM") - before)
"""


def peak(library: str, name: str, rounds: int = 3) -> float:
    """Megabytes; the least of several runs, for an allocator may keep what it need not."""
    command = [sys.executable, "-c", PROCESS.format(library=library, bench=str(BENCH)), name]
    return min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(rounds))


def main() -> None:
    print(f"{'peak of a training step, MB':34}{'rushlight':>10}{'PyTorch':>10}{'ratio':>8}")
    for name in MODELS:
        ours, theirs = peak("rushlight", name), peak("torch", name)
        print(f"{name:34}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
