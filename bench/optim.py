"""One optimizer step, rushlight beside PyTorch: ``python bench/optim.py``.

Four tiny tensors (what a step costs by itself) and twelve tensors with 670,000 parameters (what the arithmetic costs).
Each number is the best of several repetitions, in microseconds, 2 threads each.
"""

from __future__ import annotations

import timeit

import numpy as np
import torch

import rushlight

THREADS = 2
SMALL = [(3, 2), (3,), (2, 3), (2,)]
LARGE = [
    (784, 512),
    (512,),
    (512, 256),
    (256,),
    (256, 256),
    (256,),
    (256, 200),
    (200,),
    (200, 100),
    (100,),
    (100, 10),
    (10,),
]
CONFIGURATIONS = [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {})]


def microseconds(package, name, kwargs, shapes, number):
    rng = np.random.RandomState(0)
    params = [package.tensor(rng.randn(*s).astype(np.float32)).requires_grad_() for s in shapes]
    for p in params:
        p.grad = package.tensor(rng.randn(*p.shape).astype(np.float32))
    optimizer = getattr(package.optim, name)(params, lr=1e-3, **kwargs)
    for _ in range(3):
        optimizer.step()
    return min(timeit.repeat(optimizer.step, number=number, repeat=7)) / number * 1e6


def main():
    torch.set_num_threads(THREADS)
    rushlight.set_num_threads(THREADS)
    cases = [
        (label, shapes, number, name, kwargs)
        for label, shapes, number in (("4 tiny tensors", SMALL, 1000), ("12 tensors, 670k", LARGE, 50))
        for name, kwargs in CONFIGURATIONS
    ]
    # All of one, then all of the other: PyTorch's threads go on spinning for a while after its last step.
    ours, theirs = ([microseconds(p, name, kw, s, n) for _, s, n, name, kw in cases] for p in (rushlight, torch))
    print(f"{'step':34} {'rushlight':>10} {'PyTorch':>10}   ratio")
    for (label, _, _, name, kwargs), a, b in zip(cases, ours, theirs, strict=True):
        options = " ".join(f"{k}={v}" for k, v in kwargs.items())
        print(f"{name + ' ' + options:17} {label:16} {a:10.1f} {b:10.1f}   {b / a:.2f}x")


if __name__ == "__main__":
    main()
