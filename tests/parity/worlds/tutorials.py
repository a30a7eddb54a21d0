"""Scripts as people have them, in short: run by two processes, on PyTorch (gloo) and on rushlight."""

import contextlib
import os
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

warnings.simplefilter("ignore")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)


def several_batches_a_step():
    """Gradients of three batches are added up; epochs of a sampler, a schedule, clipping, mixed precision."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(50, 8), torch.randint(0, 3, (50,)))
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            last = i % 3 == 2 or i + 1 == len(loader)
            with contextlib.nullcontext() if last else model.no_sync():
                scaler.scale(nn.functional.cross_entropy(model(x), y) / 3).backward()
            if last:
                scaler.unscale_(optimizer)
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                print(epoch, i, len(x), f"{norm.item():.5f}", scaler.get_scale())
        schedule.step()
        print(schedule.get_last_lr(), f"{model.module[0].weight.sum().item():.4f}")


def uneven_inputs():
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 2))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    with Join([model, optimizer]):
        for i in range(2 + 2 * rank):
            model.zero_grad()
            model(torch.full((2, 3), float(i + rank))).square().sum().backward()
            optimizer.step()
    print([round(v, 4) for v in model.module.weight.flatten().tolist()])


def parameter_server():
    """Process 0 sends weights and adds up what the others make of them, in the order in which it comes."""
    weights = torch.zeros(4)
    for step in range(3):
        if rank:
            dist.recv(weights, src=0, tag=step)
            dist.send(weights - torch.arange(4.0) * rank, dst=0, tag=100 + step)
            continue
        for other in range(1, size):
            dist.send(weights, dst=other, tag=step)
        total = torch.zeros(4)
        for _ in range(1, size):
            gradient = torch.empty(4)
            dist.recv(gradient, tag=100 + step)
            total += gradient
        weights -= 0.1 * total / (size - 1)
        print(step, weights)


def samplers():
    for n in (1, 3, 10):
        for drop in (False, True):
            sampler = DistributedSampler(range(n), drop_last=drop, seed=1)
            sampler.set_epoch(2)
            print(n, drop, len(sampler), sampler.total_size, list(sampler))


def stages_made_by_hand():
    """Each process deletes the layers that are others'; its stage trains what is left."""
    x, y = torch.randn(8, 6, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 3
    for kind in (ScheduleGPipe, Schedule1F1B):
        torch.manual_seed(0)
        first, last = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 3))
        stage = PipelineStage(last if rank else first, rank, size, torch.device("cpu"))
        schedule = kind(stage, n_microbatches=4, loss_fn=nn.functional.cross_entropy)
        optimizer = torch.optim.Adam(stage.submod.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            losses: list = []
            output = schedule.step(target=y, losses=losses) if rank else schedule.step(x)
            optimizer.step()
            print(kind.__name__, None if output is None else tuple(output.shape), [round(v.item(), 5) for v in losses])
            print([round(p.grad.norm().item(), 5) for p in stage.submod.parameters()])


several_batches_a_step()
uneven_inputs()
parameter_server()
samplers()
stages_made_by_hand()
dist.destroy_process_group()
