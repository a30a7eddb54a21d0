"""What the scripts here share: sections that return numbers, and their comparison with recorded ones."""

from __future__ import annotations

import json
import math
import random
import sys
import time
import traceback

SECTIONS: list = []


def section(function):
    """A part of a package's script: called with fresh seeds, it returns numbers, texts, tensors, or lists of them."""
    SECTIONS.append(function)
    return function


def train(optimizer, loss, steps: int) -> list[float]:
    """What ``loss()`` was in each of some steps."""
    losses = []
    for _ in range(steps):
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def main() -> None:
    """Run all sections and write what they returned, or how they failed, to the file named on the command line."""
    import numpy
    import torch

    torch.set_num_threads(1)
    results = {}
    for function in SECTIONS:
        for seed in (random.seed, numpy.random.seed, torch.manual_seed):
            seed(0)
        started = time.perf_counter()
        try:
            results[function.__name__] = {"value": plain(function())}
        except Exception:
            results[function.__name__] = {"error": traceback.format_exc()}
        results[function.__name__]["seconds"] = round(time.perf_counter() - started, 2)
    with open(sys.argv[1], "w") as file:
        json.dump(results, file)


def plain(value):
    """Nested lists of numbers and texts."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "detach"):
        return plain(value.detach().float().tolist() if value.is_floating_point() else value.tolist())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return round(value, 9) if isinstance(value, float) else value


def difference(ours, recorded, rtol: float = 2e-4, atol: float = 2e-5) -> str | None:
    """Where two results differ first, or None."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        if ours.keys() != recorded.keys():
            return f"{sorted(ours)} instead of {sorted(recorded)}"
        pairs = [(key, ours[key], recorded[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(ours, list):
        if len(ours) != len(recorded):
            return f"{len(ours)} values instead of {len(recorded)}"
        pairs = list(zip(range(len(ours)), ours, recorded))
    else:
        return None if _same(ours, recorded, rtol, atol) else f"{ours!r} instead of {recorded!r}"
    for key, a, b in pairs:
        found = difference(a, b, rtol, atol)
        if found:
            return f"{key}: {found}"
    return None


def _same(a, b, rtol, atol) -> bool:
    if isinstance(a, bool) or isinstance(b, bool) or not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
        return a == b
    return math.isclose(a, b, rel_tol=rtol, abs_tol=atol) or (math.isnan(a) and math.isnan(b))
