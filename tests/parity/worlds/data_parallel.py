"""Training with DistributedDataParallel, on PyTorch and on rushlight: the same losses, gradients and weights."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

warnings.simplefilter("ignore")
where = {}
if "MEETING" in os.environ:
    where = {"init_method": os.environ["MEETING"]}
    where.update(rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
dist.init_process_group("gloo", **where)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def digest(tensors):
    return [n for t in tensors for n in (f"{t.double().sum().item():.6f}", f"{t.double().abs().max().item():.6f}")]


def train(label, model, steps=4, **options):
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,)))
    sampler = DistributedSampler(data, shuffle=True, seed=3)
    ddp = DDP(model, **options)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(DataLoader(data, batch_size=24 // SIZE, sampler=sampler)):
            if i == steps:
                break
            optimizer.zero_grad()
            loss = F.cross_entropy(ddp(x), y)
            loss.backward()
            optimizer.step()
            total = loss.detach().clone()
            dist.all_reduce(total)
            print(label, epoch, i, f"{total.item() / SIZE:.5f}")
    print(label, *digest(model.parameters()), *digest(p.grad for p in model.parameters()))
    return ddp


def mlp(seed=0, norm=False):
    torch.manual_seed(seed + RANK)  # process 0's weights are everybody's
    middle = [nn.BatchNorm1d(16)] if norm else []
    return nn.Sequential(nn.Linear(6, 16), *middle, nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))


class Halves(nn.Module):
    """Uses one of two branches; which, depends on the process and the turn."""

    def __init__(self, by_rank):
        super().__init__()
        self.first, self.second, self.never = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(2, 2)
        self.by_rank, self.turn = by_rank, 0

    def forward(self, x):
        self.turn += 1
        return {"out": [self.first(x) if (self.turn + self.by_rank * RANK) % 2 else self.second(x)]}["out"][0]


def main():
    ddp = train("plain", mlp())
    print(ddp, list(ddp.state_dict()), ddp.module is not ddp)
    if os.environ.get("SHORT"):
        return
    train("small buckets", mlp(1), bucket_cap_mb=0.0005)
    train("bucket views", mlp(2), gradient_as_bucket_view=True)
    train("static", mlp(3), static_graph=True)
    normed = mlp(4, norm=True)
    train("buffers", normed)
    dist.barrier()
    print("running", *digest(b for b in normed.buffers() if b.dim()) if RANK == 0 else "-")
    torch.manual_seed(0)
    halves = Halves(1)
    ddp = DDP(halves, find_unused_parameters=True)
    for turn in range(3):
        ddp.zero_grad()
        ddp(torch.ones(2, 6) * (RANK + turn + 1)).sum().backward()
        print("unused", turn, *["-" if p.grad is None else f"{p.grad.sum().item():.5f}" for p in halves.parameters()])
    model = mlp(5)
    ddp = DDP(model)
    with ddp.no_sync():
        ddp(torch.ones(2, 6) * (RANK + 1)).sum().backward()
    own = [p.grad.clone() for p in model.parameters()]
    print("no_sync", *digest(own))
    ddp(torch.ones(2, 6)).sum().backward()
    print("synced", *digest(p.grad for p in model.parameters()))
    ddp.eval()
    with torch.no_grad():
        print("eval", *digest([ddp(torch.ones(2, 6))]))

    def halved(state, bucket):
        state.append((bucket.index(), bucket.is_last(), len(bucket.gradients()), bucket.buffer().numel()))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] / (2 * SIZE))

    seen = []
    model = mlp(6)
    ddp = DDP(model)
    ddp.register_comm_hook(seen, halved)
    for turn in range(2):
        ddp.zero_grad()
        ddp(torch.ones(2, 6) * (RANK + 1 + turn)).sum().backward()
        print("hook", *digest(p.grad for p in model.parameters()))
    print("seen", seen)

    for name in ("allreduce_hook", "fp16_compress_hook"):  # gloo has no hook for bfloat16
        model = nn.Linear(6, 3)  # its gradients are whole numbers, and so is their mean: half precision is exact
        ddp = DDP(model, bucket_cap_mb=0.0001)
        ddp.register_comm_hook(None, getattr(default_hooks, name))
        for turn in range(2):
            ddp.zero_grad()
            (ddp(torch.ones(2, 6) * (RANK + 1 + turn)).sum() * SIZE).backward()
            print(name, *digest(p.grad for p in model.parameters()))

    for options in (
        {"matrix_approximation_rank": 2},
        {"use_error_feedback": False, "orthogonalization_epsilon": 1e-8},
        {"warm_start": False, "min_compression_rate": 1.2},
    ):
        model = mlp(16)
        ddp = DDP(model)
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **options)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for turn in range(5):
            torch.manual_seed(100 * RANK + turn)
            ddp.zero_grad()
            ddp(torch.randn(4, 6)).pow(2).sum().backward()
            print("PowerSGD", turn, *digest(p.grad for p in model.parameters()))
        print("PowerSGD", *state.compression_stats(), state.iter, torch.rand(1).item())

    for label, by_initial in (("join", True), ("join by those left", False)):
        model = mlp(8, norm=True)
        ddp = DDP(model)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        with ddp.join(divide_by_initial_world_size=by_initial):
            for turn in range(2 + RANK):
                torch.manual_seed(100 * RANK + turn)
                optimizer.zero_grad()
                ddp(torch.randn(4, 6)).pow(2).mean().backward()
                optimizer.step()
        print(label, *digest(model.parameters()), *digest(b for b in model.buffers() if b.dim()))

    def attempt(label, call):
        try:
            call()
        except Exception as error:
            print(label, type(error).__name__, str(error)[:90].splitlines()[0])

    attempt("no parameters", lambda: DDP(nn.ReLU()))
    attempt("device ids", lambda: DDP(nn.Linear(2, 2), device_ids=[0]))
    attempt("hook", lambda: ddp.register_comm_hook(None, 3))
    ddp = DDP(Halves(0))
    ddp(torch.ones(2, 6)).sum().backward()
    attempt("unfinished", lambda: ddp(torch.ones(2, 6)))


main()
dist.barrier()
dist.destroy_process_group()
