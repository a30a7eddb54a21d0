"""Trains a small convolutional network on 8x8 handwritten digits. Plain PyTorch code: run it by

rushlight run train_digits.py    or, where PyTorch is installed,    python train_digits.py
"""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.dropout = nn.Dropout(0.3)
        self.fc1 = nn.Linear(64 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(self.dropout(x.flatten(1))))
        return self.fc2(self.dropout(x))


def load_digits(path):
    """1,797 real digits, written by 13 people. Every fifth is held out, so that each writer is in both parts."""
    with np.load(path) as file:
        images = torch.from_numpy(file["images"]).float().unsqueeze(1) / 16  # pixels are counts from 0 to 16
        digits = torch.from_numpy(file["targets"]).long()
    held_out = torch.arange(len(digits)) % 5 == 0
    return TensorDataset(images[~held_out], digits[~held_out]), TensorDataset(images[held_out], digits[held_out])


@torch.no_grad()
def evaluate(model, loader):
    """The share of digits that the model reads right."""
    model.eval()
    right = sum((model(images).argmax(dim=1) == digits).sum().item() for images, digits in loader)
    return right / len(loader.dataset)


def watched(model):
    """On rushlight, a page about what goes on inside the model, also while it trains: open watch.html."""
    if "rushlight" not in torch.__version__:
        return nullcontext()
    from rushlight.inspect import watch

    return watch(model, "watch.html", every=5)


def train(model, train_loader, test_loader, page=None, epochs=10):
    """Returns the loss of every step and the held-out accuracy after every epoch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, epochs=epochs, steps_per_epoch=len(train_loader))
    losses, accuracies = [], []
    total = epochs * len(train_loader.dataset)
    bar = tqdm(total=total, unit=" samples", unit_scale=True, disable=None)  # None: only on a terminal
    for epoch in range(1, epochs + 1):
        model.train()
        for images, digits in train_loader:
            loss = F.cross_entropy(model(images), digits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if page is not None:
                page.step(losses[-1])
            accuracy = f"{accuracies[-1]:.2%}" if accuracies else "–"
            bar.set_postfix_str(f"loss {losses[-1]:.3f}, accuracy {accuracy}", refresh=False)
            bar.update(len(images))
        accuracies.append(evaluate(model, test_loader))
        if bar.disable:
            print(f"epoch {epoch:2}: loss {losses[-1]:.4f}, held-out accuracy {accuracies[-1]:.2%}")
    bar.close()
    return losses, accuracies


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the matrices are small: a second thread would mostly wait
    train_set, test_set = load_digits(Path(__file__).with_name("digits.npz"))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=120)
    model = Net()
    with watched(model) as page:
        losses, accuracies = train(model, train_loader, test_loader, page)
    print(f"{accuracies[-1]:.2%} of {len(test_set)} held-out digits read right")
    torch.save(model.state_dict(), "digits.pt")
