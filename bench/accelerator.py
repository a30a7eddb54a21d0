"""Training code as people write it, on an accelerator: rushlight beside PyTorch eager and ``torch.compile``.

    python bench/accelerator.py [work …] [--device cuda] [--no-torch]

Each measurement runs in a process of its own. Printed are the seconds to the end of the first and of the second step,
the time of a step after that (best of several rounds, waiting for the device once a round), and the peak of memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import works

STEPS, ROUNDS = 20, 5


def measure(side: str, work: str, mode: str, device: str) -> dict:
    """One work on one side, in this process."""
    torch = importlib.import_module("rushlight" if side == "rushlight" else "torch")
    torch.manual_seed(0)
    begun = time.perf_counter()
    step = getattr(works, work)(torch, device, mode)
    built = time.perf_counter() - begun
    ends, value = [], 0.0
    for _ in range(2):
        start = time.perf_counter()
        value = step().item()
        ends.append(time.perf_counter() - start)
    step().item()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(STEPS):
            loss = step()
        value = loss.item()
        best = min(best, (time.perf_counter() - start) / STEPS)
    result = {"built": built, "first": ends[0], "second": ends[1], "step": best, "value": value}
    if device == "cuda":
        result["peak"] = torch.cuda.max_memory_allocated() / 2**30
    if side == "rushlight":
        from rushlight.engine.deferred import report

        result["programs"] = len(report.compilations)
    return result


def separately(side, work, mode, device) -> dict:
    command = [sys.executable, __file__, "--measure", side, work, mode, "--device", device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(work: str, label: str, result: dict) -> None:
    if "error" in result:
        print(f"{work:14} {label:20} {result['error'][:200]}", flush=True)
        return
    peak = f"{result['peak']:6.2f} GiB" if "peak" in result else ""
    programs = f"{result['programs']} programs" if "programs" in result else ""
    print(
        f"{work:14} {label:20} step {1e3 * result['step']:9.3f} ms   first {result['first']:6.2f} s   second "
        f"{result['second']:6.2f} s   {peak} {programs}   last value {result['value']:.5f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", nargs="*", default=[])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--measure", nargs=3, metavar=("SIDE", "WORK", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure, options.device)))
        return
    for work in options.work or works.ALL:
        modes = works.MODES.get(work, ("eager",))
        for mode in modes:
            ours = separately("rushlight", work, mode, options.device)
            show(work, f"rushlight {mode}", ours)
            if options.no_torch:
                continue
            for theirs in dict.fromkeys((mode, *(("compiled",) if mode == "eager" and len(modes) == 1 else ()))):
                result = separately("torch", work, theirs, options.device)
                show(work, f"PyTorch {theirs}", result)
                if "step" in ours and "step" in result:
                    print(f"{'':14} {result['step'] / ours['step']:.2f}x PyTorch {theirs}", flush=True)


if __name__ == "__main__":
    main()
