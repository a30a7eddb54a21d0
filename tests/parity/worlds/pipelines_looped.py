"""Prints losses, outputs and gradients of a model with several stages in each process, by the schedules for that."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining.schedules import get_schedule_class

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)


def show(name, *numbers):
    print(name, *[f"{float(n):.6f}" for n in numbers], flush=True)


ROUND = (ScheduleLoopedBFS, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble)
DOWN_AND_UP = (ScheduleZBVZeroBubble, ScheduleDualPipeV)
for schedule in (*ROUND, *DOWN_AND_UP):
    for rounds, parts, scaled in ((2, 4, True), (3, 2, False), (2, 3, True), (2, 6, True)):
        if (schedule in DOWN_AND_UP and rounds != 2) or (schedule is ScheduleDualPipeV and parts < 4):
            continue
        torch.manual_seed(0)
        count = rounds * size
        layers = [nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 6)) for _ in range(count)]
        mine = (rank, count - 1 - rank) if schedule in DOWN_AND_UP else range(rank, count, size)
        x, y = torch.randn(12, 6), torch.randn(12, 6)
        stages = [PipelineStage(layers[i], i, count, torch.device("cpu")) for i in mine]
        run = schedule(stages, parts, loss_fn=nn.functional.mse_loss, scale_grads=scaled)
        parameters = [p for i in mine for p in layers[i].parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            losses = []
            given = {"target": y, "losses": losses} if count - 1 in mine else {}
            output = run.step(x, **given) if rank == 0 else run.step(**given)
            name = f"{schedule.__name__} {rounds} {parts} {step}"
            show(f"{name} losses", *losses)
            show(f"{name} gradients", *[p.grad.abs().sum() for p in parameters])
            show(f"{name} output", *([] if output is None else output.flatten()[:5]))
            optimizer.step()
        show("weights", *[p.detach().abs().sum() for p in parameters])
for wrong in (
    lambda: ScheduleInterleaved1F1B(stages, 2 * size + 1),
    lambda: ScheduleInterleavedZeroBubble(stages, 2 * size + 1),
    lambda: ScheduleZBVZeroBubble(stages[:1], 4),
    lambda: ScheduleDualPipeV(stages, 3),
    lambda: get_schedule_class("none"),
):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error, flush=True)
names = ("gpipe", "1f1b", "LoopedBFS", "interleaved1F1B", "ZBVZeroBubble", "dualpipev")
print(*[get_schedule_class(name).__name__ for name in names])
dist.barrier()
dist.destroy_process_group()
