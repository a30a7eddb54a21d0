"""Whole training steps, ours beside PyTorch's: ``python bench/gpu.py [--gpu] [--json FILE] [name ...]``.

Each is the same Python (``bench/models.py``) run on PyTorch eager, on ``torch.compile``, on rushlight eager (NumPy;
small models) and on a step compiled by rushlight. Runs alternate, the best of several counts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from steps import step

CPU = {
    "tiny_mlp": dict(optimizer="SGD", options=dict(lr=0.1), repeat=2000),
    "mlp": dict(optimizer="Adam", options=dict(lr=1e-3), repeat=50),
    "cnn": dict(optimizer="Adam", options=dict(lr=1e-3), repeat=5),
    "encoder": dict(optimizer="AdamW", options=dict(lr=1e-3), repeat=3),
}
GPU = {
    "mlp": dict(optimizer="Adam", options=dict(lr=1e-3), repeat=100),
    "gpt2": dict(optimizer="AdamW", options=dict(lr=1e-4), repeat=10, autocast=True),
    "resnet50": dict(optimizer="SGD", options=dict(lr=0.1, momentum=0.9), repeat=10, autocast=True),
}


def measure(runners: dict, repeat: int, rounds: int, synchronize) -> dict:
    """Seconds per step of each runner: alternating, best of ``rounds``."""
    best = {}
    for _ in range(rounds):
        for label, run in runners.items():
            start = time.perf_counter()
            for _ in range(repeat):
                result = run()
            synchronize[label](result)
            taken = (time.perf_counter() - start) / repeat
            best[label] = min(taken, best.get(label, taken))
    return best


def row(name, setting, device, rounds, with_torch, torch_compile, eager):
    import rushlight

    runners, wait, losses = {}, {}, {}

    def add(label, torch, **kwargs):
        start = time.perf_counter()
        run = step(torch, name, device, **{k: v for k, v in setting.items() if k != "repeat"}, **kwargs)
        losses[label] = [float(run().item()) for _ in range(4)]
        runners[label] = run
        wait[label] = lambda loss: loss.item()
        print(f"  {label}: ready in {time.perf_counter() - start:.1f} s, losses {losses[label]}", file=sys.stderr)

    if with_torch:
        torch = importlib.import_module("torch")
        torch.set_num_threads(2)
        add("torch", torch)
        if torch_compile:
            add("torch.compile", torch, compile="forward")
    if eager:
        add("rushlight", rushlight)
    add("rushlight.compile", rushlight, compile="step")
    return measure(runners, setting["repeat"], rounds, wait), losses


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args(argv)
    settings, device = (GPU, "cuda") if args.gpu else (CPU, "cpu")
    table = {}
    for name, setting in settings.items():
        if args.names and name not in args.names:
            continue
        print(f"{name} on {device}", file=sys.stderr)
        times, losses = row(
            name, setting, device, args.rounds, not args.no_torch, not args.no_torch_compile, eager=not args.gpu
        )
        table[name] = {"seconds": times, "losses": losses}
        ours = times["rushlight.compile"]
        for label, seconds in times.items():
            print(
                f"{name:10} {device:5} {label:18} {seconds * 1e3:10.3f} ms   {seconds / ours:6.2f}x ours compiled",
                flush=True,
            )
    if args.json:
        Path(args.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
