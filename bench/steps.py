"""Whole training steps: the same Python (``models.py``) run eagerly and compiled, beside PyTorch.

python bench/steps.py [words]    each library in a process of its own, in turn: threads of one do not disturb the other

A compiled step of ours is one XLA program (forward, backward, optimizer). Beside it stands PyTorch eager on the CPU,
and ``torch.compile`` of the forward on a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import harness
import models

# Small rates: thousands of steps on one batch must not arrive, for numbers next to 0 take ten times as long.
CPU = {
    "tiny_mlp": {"optimizer": "SGD", "options": {"lr": 1e-6}},
    "tiny_mlp, Adam": {"optimizer": "Adam", "options": {"lr": 1e-6}},
    "mlp, SGD": {"optimizer": "SGD", "options": {"lr": 1e-6}},
    "mlp": {"optimizer": "Adam", "options": {"lr": 1e-6}},
    "cnn": {"optimizer": "Adadelta", "options": {"lr": 1e-6}},
    "residual": {"optimizer": "SGD", "options": {"lr": 1e-6, "momentum": 0.9}},
    "encoder": {"optimizer": "AdamW", "options": {"lr": 1e-6}},
    "gpt": {"optimizer": "AdamW", "options": {"lr": 1e-6}},
    "lstm": {"optimizer": "Adam", "options": {"lr": 1e-6}},
    "small_mlp, inference": {"optimizer": None},
    "residual, inference": {"optimizer": None},
}
GPU = {
    "mlp": {"optimizer": "Adam", "options": {"lr": 1e-3}},
    "gpt2": {"optimizer": "AdamW", "options": {"lr": 1e-4}, "autocast": True},
    "resnet50": {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9}, "autocast": True},
}


# What is compiled, (ours, PyTorch's): the whole step, only the forward (what torch.compile is made for), or nothing.
CPU_ROWS = {"eager": (None, None), "compiled": ("step", None)}
GPU_ROWS = {"compiled, PyTorch eager": ("step", None), "compiled, torch.compile": ("step", "forward")}


def cases(torch, gpu=False):
    ours = torch.__name__ == "rushlight"
    rows = CPU_ROWS if not gpu else GPU_ROWS
    for name, setting in (GPU if gpu else CPU).items():
        for label, (our_compile, their_compile) in rows.items():
            compile = our_compile if ours else their_compile
            settings = dict(setting, name=name.partition(",")[0], device="cuda" if gpu else "cpu", compile=compile)
            yield f"{name}, {label}", lambda settings=settings: step(torch, **settings)


def step(torch, name, device, optimizer, options=None, autocast=False, compile=None):
    """A function that runs one training step and returns its loss; without an optimizer, one that infers."""
    torch.manual_seed(0)
    model, criterion, data = getattr(models, name)(torch)
    model = model.to(device)
    data = [d.to(device) for d in data]
    if optimizer is None:
        return inference(torch, model.eval(), data[0], compile)
    made = getattr(torch.optim, optimizer)(model.parameters(), **options)

    def forward(x, y):
        if not autocast:
            return criterion(model(x), y)
        with torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16):
            return criterion(model(x), y)

    def one(x, y):
        made.zero_grad()
        loss = forward(x, y)
        loss.backward()
        made.step()
        return loss

    if compile == "forward":
        forward = torch.compile(forward)
    elif compile == "step":
        one = torch.compile(one)
    return lambda: one(*data)


def inference(torch, model, x, compile):
    if compile:
        model = torch.compile(model)

    def infer():
        with torch.no_grad():
            return model(x)

    return infer


if __name__ == "__main__":
    harness.apart(__file__, cases)
