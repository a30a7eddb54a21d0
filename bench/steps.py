"""Whole training steps: the same Python (``models.py``) run eagerly and compiled, beside PyTorch.

A compiled step of ours is one XLA program (forward, backward, optimizer). Beside it stands PyTorch eager on the CPU,
and ``torch.compile`` of the forward on a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models

CPU = {
    "tiny_mlp": {"optimizer": "SGD", "options": {"lr": 0.1}},
    "mlp": {"optimizer": "Adam", "options": {"lr": 1e-3}},
    "cnn": {"optimizer": "Adam", "options": {"lr": 1e-3}},
    "encoder": {"optimizer": "AdamW", "options": {"lr": 1e-3}},
}
GPU = {
    "mlp": {"optimizer": "Adam", "options": {"lr": 1e-3}},
    "gpt2": {"optimizer": "AdamW", "options": {"lr": 1e-4}, "autocast": True},
    "resnet50": {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9}, "autocast": True},
}


def cases(torch, gpu=False):
    fastest = "step" if torch.__name__ == "rushlight" else "forward" if gpu else None
    for name, setting in (GPU if gpu else CPU).items():
        for label, compile in (("eager", None), ("compiled", fastest)):
            if label == "compiled" or not gpu:
                settings = dict(setting, name=name, device="cuda" if gpu else "cpu", compile=compile)
                yield f"{name}, {label}", lambda settings=settings: step(torch, **settings)


def step(torch, name, device, optimizer, options, autocast=False, compile=None):
    """A function that runs one training step and returns its loss."""
    torch.manual_seed(0)
    model, criterion, data = getattr(models, name)(torch)
    model = model.to(device)
    data = [d.to(device) for d in data]
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
