"""One optimizer step: four tiny tensors (what a step costs by itself), twelve with 670,000 parameters (arithmetic)."""

from __future__ import annotations

import numpy as np

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


def cases(torch, gpu=False):
    if gpu:
        return
    for label, shapes in (("4 tiny tensors", SMALL), ("12 tensors, 670k", LARGE)):
        for name, options in CONFIGURATIONS:
            title = " ".join([name, *(f"{k}={v}" for k, v in options.items())])
            yield f"{title}, {label}", lambda a=(name, options, shapes): _step(torch, *a)


def _step(torch, name, options, shapes):
    rng = np.random.RandomState(0)
    params = [torch.tensor(rng.randn(*s).astype(np.float32)).requires_grad_() for s in shapes]
    for p in params:
        p.grad = torch.tensor(rng.randn(*p.shape).astype(np.float32))
    return getattr(torch.optim, name)(params, lr=1e-3, **options).step
