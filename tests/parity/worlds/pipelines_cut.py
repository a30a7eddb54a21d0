"""Prints what ``pipeline`` makes of models: their stages, and losses, outputs and gradients of schedules."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    Schedule1F1B,
    ScheduleGPipe,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
CPU = torch.device("cpu")


def show(name, *numbers):
    print(name, *[f"{float(n):.6f}" for n in numbers], flush=True)


class Block(nn.Module):
    def __init__(self, cut):
        super().__init__()
        self.first, self.second, self.cut = nn.Linear(6, 6), nn.Linear(6, 6), cut

    def forward(self, x):
        y = torch.tanh(self.first(x))
        if self.cut:
            pipe_split()
        return self.second(y) + x


class Marked(nn.Module):
    """Cut inside of its blocks; the first block's input is used by the second stage too."""

    def __init__(self):
        super().__init__()
        self.start, self.blocks = nn.Linear(4, 6), nn.Sequential(Block(True), Block(False), Block(True))
        self.end = nn.Linear(6, 2)

    def forward(self, x):
        return self.end(self.blocks(self.start(x)))


class Plain(nn.Module):
    """Cut from outside; with a parameter and a buffer of its own, and a size that crosses a cut."""

    def __init__(self):
        super().__init__()
        self.start, self.end = nn.Linear(4, 6), nn.Linear(6, 2)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(4))
        self.scale = nn.Parameter(torch.full((6,), 1.5))
        self.register_buffer("shift", torch.linspace(0, 1, 6))

    def forward(self, x):
        count = x.shape[0]
        x = self.start(x)
        for layer in self.layers:
            x = layer(x)
        return self.end((x * self.scale + self.shift).view(count, 6))


def describe(pipe, x):
    print(pipe.num_stages, pipe.info().num_stages, pipe.info().has_loss_and_backward)
    for i in range(pipe.num_stages):
        print(
            i, sorted(pipe.get_stage_module(i).state_dict()), [n for n, _ in pipe.get_stage_module(i).named_buffers()]
        )
    outputs = pipe(x)
    print(type(outputs).__name__, len(outputs))
    show("together", *outputs[0].flatten())


SPLITS = {"layers.1": SplitPoint.BEGINNING, "layers.2": SplitPoint.END}
for kind, spec in ((Marked, None), (Plain, SPLITS)):
    for schedule in (ScheduleGPipe, Schedule1F1B):
        torch.manual_seed(0)
        model = kind()
        x, y = torch.randn(12, 4), torch.randn(12, 2)
        pipe = pipeline(model, (x[:3],), split_spec=spec)
        if schedule is ScheduleGPipe:
            describe(pipe, x[:3])
        module = pipe.get_stage_module(rank)
        stage = pipe.build_stage(rank, CPU) if spec else build_stage(module, rank, pipe.info(), CPU)
        print(stage.stage_index, stage.num_stages, stage.is_first, stage.is_last)
        run = schedule(stage, 4, loss_fn=nn.functional.mse_loss)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            losses = []
            given = {"target": y, "losses": losses} if rank == size - 1 else {}
            output = run.step(x, **given) if rank == 0 else run.step(**given)
            show(f"{schedule.__name__} {step} losses", *losses)
            for name, p in sorted(module.named_parameters()):
                show(name, p.grad.abs().sum())
            show("output", *([] if output is None else output.flatten()[:5]))
            optimizer.step()
for wrong in (
    lambda: pipeline(Plain(), (x,), split_spec={"none": SplitPoint.BEGINNING}),
    lambda: pipeline(Plain(), (x,), split_spec=SPLITS, split_policy=lambda graph: graph),
    lambda: pipe.get_stage_module(3),
):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error, flush=True)


class Several(nn.Module):
    """Two outputs, which are taken apart after the cut; a weight that two stages have; arguments by their names."""

    def __init__(self):
        super().__init__()
        self.rnn, self.end = nn.GRU(4, 4, batch_first=True), nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x, *, weight=None, shift=None):
        y, last = self.rnn(x * self.scale)
        y = y + last.sum(0)[:, None]
        if weight is not None:
            y = y * weight
        y = self.end(y) * self.scale
        return y, last, y + shift if shift is not None else x


def stages(pipe):
    for k in range(pipe.num_stages):
        yield sorted(n for n, _ in pipe.get_stage_module(k).named_parameters())


for where in ({"rnn": SplitPoint.END}, {"end": SplitPoint.BEGINNING}, {"rnn": SplitPoint.END, "end": SplitPoint.END}):
    for names in ({}, {"shift": torch.ones(2, 3, 4)}, {"shift": torch.ones(1), "weight": torch.arange(4.0)}):
        torch.manual_seed(3)
        x = torch.randn(2, 3, 4)
        cut = pipeline(Several(), (x,), names, where)
        print(cut.num_stages, *stages(cut), flush=True)
        show("several", *[t.sum() for t in cut(x, **names)])
deep = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)])
cut = pipeline(deep, (torch.ones(2, 4),), split_spec={"1.1": SplitPoint.BEGINNING, "2": SplitPoint.END})
print(cut.num_stages, *stages(cut), flush=True)  # nothing comes after the last: no stage of its own

print(pipe_split(), [(point.name, point.value) for point in SplitPoint])
dist.barrier()
dist.destroy_process_group()
