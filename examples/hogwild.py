"""Hogwild: several processes train one model in shared memory, without locks."""

import argparse

import digits
import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(256, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)


def dataset(count, seed):
    images, targets = digits.draw(count, size=16, seed=seed)
    return TensorDataset(torch.from_numpy(images).float().div(255), torch.from_numpy(targets))


def train(rank, args, model):
    torch.manual_seed(args.seed + rank)
    torch.set_num_threads(1)
    loader = DataLoader(dataset(600, seed=rank), batch_size=args.batch_size, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def test(model):
    model.eval()
    data, target = dataset(400, seed=1000).tensors
    output = model(data)
    correct = (output.argmax(1) == target).float().mean().item()
    print(f"test loss {F.nll_loss(output, target).item():.4f}, accuracy {correct:.4f}")
    return correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-processes", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    mp.set_start_method("spawn", force=True)
    model = Net()
    model.share_memory()  # the processes' gradients are applied to these weights
    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
        if p.exitcode:
            raise SystemExit(f"a process failed with {p.exitcode}")
    test(model)


if __name__ == "__main__":
    main()
