"""Fine-tuning: a network that knows the digits 0 to 4 learns all ten from a few pictures of each.

The first part trains it and saves a checkpoint. The second loads it, puts a new head on, trains only that, and then all
of it with a tenth of the learning rate. Any checkpoint that PyTorch wrote can be loaded in the same way.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.datasets import Digits


def network(classes):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, classes),
    )  # fmt: skip


def pictures(train, keep):
    data = Digits(train=train)
    chosen = keep(data.targets)
    return TensorDataset(data.data[chosen].float().unsqueeze(1) / 255, data.targets[chosen])


def few(targets, each=12):
    """The first ``each`` of every digit."""
    return torch.cat([(targets == digit).nonzero().flatten()[:each] for digit in range(10)])


def train(model, data, epochs, lr):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=lr)
    model.train()
    for _ in range(epochs):
        for images, targets in DataLoader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(images), targets).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    images, targets = data.tensors
    return (model(images).argmax(dim=1) == targets).float().mean().item()


def main():
    torch.manual_seed(0)
    base = network(5)
    train(base, pictures(True, lambda targets: targets < 5), epochs=6, lr=2e-3)
    print(f"0 to 4, held out: {accuracy(base, pictures(False, lambda targets: targets < 5)):.3f}")
    torch.save(base.state_dict(), "base.pt")

    model, data, held_out = network(10), pictures(True, few), pictures(False, lambda targets: targets >= 0)
    scratch = network(10)
    train(scratch, data, epochs=20, lr=2e-3)
    print(f"all ten from {len(data)} pictures, from scratch: {accuracy(scratch, held_out):.3f}")

    weights = {name: w for name, w in torch.load("base.pt").items() if not name.startswith("8.")}
    print("new:", ", ".join(model.load_state_dict(weights, strict=False).missing_keys))
    for layer in model[:8]:
        layer.requires_grad_(False)
    train(model, data, epochs=10, lr=5e-3)
    model.requires_grad_(True)
    train(model, data, epochs=10, lr=1e-3)
    print(f"all ten from {len(data)} pictures, fine-tuned: {accuracy(model, held_out):.3f}")


if __name__ == "__main__":
    main()
