"""Prints losses, outputs and gradients of a model in stages, one in each process, by two schedules."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)


class Double(nn.Module):
    """Two inputs, two outputs, of which one needs no gradient."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x, mask=None):
        mask = (x > 0) if mask is None else mask
        return self.inner(x).tanh(), mask


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x, mask):
        return self.head(x * mask)


def plain():
    return [nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)) for _ in range(size - 1)] + [nn.Linear(6, 3)]


def masked():
    return [Double() for _ in range(size - 1)] + [Last()]


def show(name, *numbers):
    print(name, *[f"{float(n):.6f}" for n in numbers], flush=True)


for make in (plain, masked):
    for schedule in (ScheduleGPipe, Schedule1F1B):
        for parts, scaled in ((size, True), (4, False)):
            torch.manual_seed(0)
            module = make()[rank]
            x, y = torch.randn(12, 6), torch.randn(12, 3)
            stage = PipelineStage(module, rank, size, torch.device("cpu"))
            run = schedule(stage, parts, loss_fn=nn.functional.mse_loss, scale_grads=scaled)
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                losses = []
                given = {"target": y, "losses": losses} if rank == size - 1 else {}
                output = run.step(x, **given) if rank == 0 else run.step(**given)
                name = f"{make.__name__} {schedule.__name__} {parts} {step}"
                show(f"{name} losses", *losses)
                show(f"{name} gradients", *[p.grad.abs().sum() for p in module.parameters()])
                show(f"{name} output", *([] if output is None else output.flatten()[:5]))
                optimizer.step()
            show("weights", *[p.detach().abs().sum() for p in module.parameters()])
forward = ScheduleGPipe(PipelineStage(module, rank, size, torch.device("cpu")), 2)
with torch.no_grad():
    output = forward.step(x) if rank == 0 else forward.step()
    show("forward only", *([] if output is None else output.flatten()[:5]))
for wrong in (
    lambda: PipelineStage(module, size, size, torch.device("cpu")),
    lambda: Schedule1F1B(stage, 1),
):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error, flush=True)
dist.barrier()
dist.destroy_process_group()
