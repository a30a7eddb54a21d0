"""Where a compiled GPU step spends its time: variants of the GPT-2 and MLP steps, one line each."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models

import rushlight as torch


def timed(label, run, repeat=10, rounds=3):
    start = time.perf_counter()
    for _ in range(3):
        loss = run()
    loss.item()
    ready = time.perf_counter() - start
    best = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeat):
            loss = run()
        sent = time.perf_counter() - start
        loss.item()
        best = min(best, (time.perf_counter() - start) / repeat)
    print(
        f"{label:40} {best * 1e3:9.3f} ms  dispatch {sent / repeat * 1e3:7.3f} ms  ready in {ready:.1f} s", flush=True
    )


def step_of(name, optimizer, autocast, keep_grads=True, train=True, loss_of=None):
    torch.manual_seed(0)
    model, criterion, data = getattr(models, name)(torch)
    model, data = model.to("cuda"), [d.to("cuda") for d in data]
    criterion = loss_of or criterion
    made = optimizer(model.parameters()) if optimizer else None

    def step(x, y):
        model.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = criterion(model(x), y)
        if train:
            loss.backward()
        if made:
            made.step()
        if not keep_grads:
            model.zero_grad()
        return loss

    step = torch.compile(step)
    return lambda: step(*data)


def main():
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-4)
    which = sys.argv[1:] or ["mlp", "gpt2"]
    if "mlp" in which:
        adam = lambda p: torch.optim.Adam(p, lr=1e-3)
        timed("mlp adam", step_of("mlp", adam, False), 200)
        timed("mlp sgd", step_of("mlp", lambda p: torch.optim.SGD(p, lr=1e-3), False), 200)
        timed("mlp no optimizer", step_of("mlp", None, False), 200)
    if "gpt2" in which:
        timed("gpt2 adamw", step_of("gpt2", adamw, True))
        timed("gpt2 adamw, no grads kept", step_of("gpt2", adamw, True, keep_grads=False))
        timed("gpt2 sgd", step_of("gpt2", lambda p: torch.optim.SGD(p, lr=1e-4), True))
        timed("gpt2 no optimizer", step_of("gpt2", None, True))
        timed("gpt2 forward", step_of("gpt2", None, True, train=False))
        timed(
            "gpt2 no optimizer, mean loss", step_of("gpt2", None, True, loss_of=lambda logits, y: logits.float().mean())
        )


if __name__ == "__main__":
    main()
