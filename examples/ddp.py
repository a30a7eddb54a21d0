"""Data parallel: every process trains on its part of the pictures, and the gradients are averaged while backward runs.

Alone it starts its processes itself; ``rushlight launch --standalone --nproc-per-node 2 examples/ddp.py`` (or torchrun)
starts it on one machine or many.
"""

import argparse
import os
import tempfile

import digits
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(F.relu(self.conv2(F.relu(self.conv1(x)))).flatten(1))


def dataset(count, seed):
    images, targets = digits.draw(count, size=16, seed=seed)
    return TensorDataset(torch.from_numpy(images).float().div(255).unsqueeze(1), torch.from_numpy(targets))


def train(args):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    data = dataset(1200, seed=1)
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, batch_size=args.batch_size // size, sampler=sampler)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)  # another order, the same for all
        total = torch.zeros(())
        for images, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / len(loader) / size:.4f}", flush=True)
    return model


@torch.no_grad()
def test(model):
    """Each process looks at its part; what they saw is added up."""
    rank, size = dist.get_rank(), dist.get_world_size()
    images, targets = (t[rank::size] for t in dataset(400, seed=2).tensors)
    right = (model(images).argmax(1) == targets).sum()
    seen = torch.tensor([right.item(), len(targets)])
    dist.all_reduce(seen)
    weights = [torch.empty_like(model.module.head.weight) for _ in range(size)]
    dist.all_gather(weights, model.module.head.weight)
    same = all(torch.equal(weights[0], other) for other in weights)
    if rank == 0:
        right, count = seen.tolist()
        print(f"accuracy {right}/{count}; {size} processes, the same weights in all: {same}", flush=True)


def run(rank, args, meeting):
    if meeting is None:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=args.num_processes)
    test(train(args))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=60, help="of all processes together")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-processes", type=int, default=2, help="where no launcher started this")
    args = parser.parse_args()

    if "RANK" in os.environ:  # a launcher did
        run(int(os.environ["RANK"]), args, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, (args, f"file://{folder}/meeting"), nprocs=args.num_processes)


if __name__ == "__main__":
    main()
