"""What CI cannot check, on a machine with a GPU: ``python tools/check_gpu.py``.

Small models train eagerly and compiled on ``cuda`` and must agree with NumPy; views, in-place writes, double backward
and autocast too. Memory that runs out must say so and leave what was there. Each line says what was checked.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import rushlight as torch
from rushlight import nn

F = nn.functional


def main() -> int:
    if not torch.cuda.is_available():
        print("no GPU here")
        return 1
    print(torch.cuda.get_device_name(), torch.cuda.get_device_capability(), flush=True)
    failures = 0
    for check in (training, views, second_gradients, autocast, memory_runs_out, allocated, events, profiles):
        start = time.perf_counter()
        try:
            lines = check()
        except Exception as error:
            lines, failures = [f"FAILED {type(error).__name__}: {error}"], failures + 1
        print(f"{check.__name__} ({time.perf_counter() - start:.1f} s)", *lines, sep="\n    ", flush=True)
    return failures


def training():
    """Five steps of each model, three ways."""
    lines = []
    for name, build in MODELS.items():
        losses = {way: _losses(build, *way) for way in (("cpu", False), ("cuda", False), ("cuda", True))}
        expected = losses["cpu", False]
        worst = max(np.abs(np.subtract(found, expected)).max() for found in losses.values())
        assert worst < 2e-4 * max(1, np.abs(expected).max()), f"{name}: {losses}"
        lines.append(f"{name}: largest difference of a loss {worst:.1e}")
    return lines


def _losses(build, device, compiled, steps=5):
    torch.manual_seed(0)
    model, x, y, criterion = build()
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    step = torch.compile(step) if compiled else step
    return [step(x, y).item() for _ in range(steps)]


class _Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0][:, -1]


def _classifier(model, *shape, classes=5):
    return lambda: (model(), torch.randn(*shape), torch.randint(0, classes, shape[:1]), nn.CrossEntropyLoss())


MODELS = {
    "MLP": _classifier(lambda: nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5)), 16, 20),
    "CNN": _classifier(
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
        ), 8, 3, 16, 16,
    ),
    "LSTM": _classifier(lambda: nn.Sequential(_Last(nn.LSTM(6, 5, batch_first=True))), 8, 12, 6),
    "GRU": _classifier(lambda: nn.Sequential(_Last(nn.GRU(6, 5, batch_first=True, bidirectional=True))), 8, 12, 6),
    "encoder": _classifier(
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(16 * 10, 5)
        ), 8, 10, 16,
    ),
}  # fmt: skip


def views():
    def program(device):
        x = torch.arange(12.0, device=device).reshape(3, 4).requires_grad_()
        y = x * 2
        y[1] += 1
        y[:, ::2].mul_(3)
        z = y.t()[1:].reshape(-1)
        z.sin().sum().backward()
        return [y, z, x.grad, y.view(-1)[5], torch.cat([y, y]).roll(1, 0), y.flip(1).contiguous().stride()]

    for ours, expected in zip(program("cuda"), program("cpu")):
        _close(ours, expected)
    return ["views, in-place writes and their gradients"]


def second_gradients():
    def program(device):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
        x = torch.linspace(-1, 1, 12).reshape(4, 3).to(device).requires_grad_()
        (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        ((g.norm(dim=1) - 1) ** 2).mean().backward()
        return [g, *(p.grad for p in net.parameters() if p.grad is not None)]

    for ours, expected in zip(program("cuda"), program("cpu")):
        _close(ours, expected)
    return ["a gradient penalty"]


def autocast():
    lines = []
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cuda", dtype=dtype):
            x = torch.randn(64, 64, device="cuda")
            y = x @ x
            loss = F.cross_entropy(y, torch.arange(64, device="cuda"))
        assert y.dtype is dtype and loss.dtype is torch.float32, (y.dtype, loss.dtype)
        lines.append(f"{dtype}: products in it, losses in float32")
    return lines


def memory_runs_out():
    """Too large a tensor; a compiled step that needs too much. What was there stays."""
    kept = torch.ones(1000, device="cuda")
    lines = [_out_of_memory(lambda: torch.empty(1 << 38, device="cuda").fill_(1.0))]
    lines.append(_out_of_memory(lambda: kept[:, None, None].expand(1000, 10_000, 10_000).contiguous() + 1))
    weight = torch.ones(1000, device="cuda", requires_grad=True)

    @torch.compile
    def step(n):
        with torch.no_grad():
            weight.mul_(2.0)
        wide = weight[:, None].expand(1000, n.shape[0])
        return (wide.sin() @ wide.cos().t() @ wide).sum()

    small = torch.zeros(10, device="cuda")
    step(small), step(small)
    before = weight.sum().item()
    large = torch.zeros(40_000_000, device="cuda")
    lines.append(_out_of_memory(lambda: step(large)))  # a new shape runs eagerly first: what it wrote stays written
    assert weight.sum().item() == 2 * before, "the weight was lost"
    assert kept.sum().item() == 1000
    return lines


def _out_of_memory(call) -> str:
    try:
        call().sum().item()  # work is started long before it is done: a failure shows where somebody waits
        raise AssertionError("there was room")
    except torch.cuda.OutOfMemoryError as error:
        return str(error)


def allocated():
    torch.cuda.empty_cache()  # what the checks before have left to the collector
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device="cuda")
    during = torch.cuda.memory_allocated()
    del x
    torch.cuda.synchronize()  # a copy that is on its way holds what it reads
    after = torch.cuda.memory_allocated()
    assert during - before == 4 << 20, (before, during)
    assert after == before, (before, after)
    return [f"memory_allocated counts 4 MiB; {torch.cuda.mem_get_info()}"]


def events():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.randn(4096, 4096, device="cuda")
    x @ x
    start.record()
    for _ in range(10):
        x @ x
    end.record()
    torch.cuda.synchronize()
    return [f"ten products of 4096 x 4096 take {start.elapsed_time(end):.2f} ms"]


def profiles():
    """What the GPU did is in the table, each operation once, and in the trace."""
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(3):
        (x @ x).sum().item()
    with torch.profiler.profile() as prof:
        start = time.perf_counter()
        for _ in range(5):
            (x @ x).sum().item()
        wall = (time.perf_counter() - start) * 1e6
    on_device = [event for event in prof.events() if event.is_on_device]
    total = sum(event.device_time_total for event in on_device)
    assert on_device and 0 < total < wall, (len(on_device), total, wall)
    table = prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=4)
    assert "Self CUDA" in table
    return [f"{len(on_device)} operations, {total:.0f} of {wall:.0f} us", *table.splitlines()]


def _close(ours, expected) -> None:
    if isinstance(ours, torch.Tensor):
        np.testing.assert_allclose(
            ours.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5, equal_nan=False
        )
    else:
        assert ours == expected, (ours, expected)


if __name__ == "__main__":
    sys.exit(main())
