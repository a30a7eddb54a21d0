"""A Siamese network: one convolutional branch for both pictures of a pair, do they show the same digit?"""

import argparse

import digits
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.fc = nn.Linear(256, 32)
        self.head = nn.Linear(32, 1)
        self.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward(self, input1, input2):
        first, second = self.fc(self.branch(input1)), self.fc(self.branch(input2))
        return torch.sigmoid(self.head((first - second).abs())).squeeze(1)


class Pairs(Dataset):
    """Pairs of pictures, half of them of the same digit."""

    def __init__(self, count, seed):
        images, targets = digits.draw(count, size=16, seed=seed)
        self.images = torch.from_numpy(images).to(torch.get_default_dtype()).div(255).unsqueeze(1)
        self.by_digit = [[i for i, t in enumerate(targets) if t == digit] for digit in range(10)]
        self.targets = targets

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        digit = int(self.targets[index])
        same = index % 2 == 0
        other = digit if same else (digit + 1 + index // 2 % 9) % 10
        choices = self.by_digit[other]
        return self.images[index], self.images[choices[index * 7 % len(choices)]], float(same)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--gamma", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--double", action="store_true", help="compute in float64")
    args = parser.parse_args()
    if args.double:
        torch.set_default_dtype(torch.double)
    torch.manual_seed(args.seed)

    train_loader = DataLoader(Pairs(1000, seed=1), batch_size=50, shuffle=True)
    test_loader = DataLoader(Pairs(300, seed=2), batch_size=100)
    model = SiameseNetwork()
    optimizer = optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    criterion = nn.BCELoss()
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch, (first, second, same) in enumerate(train_loader):
            optimizer.zero_grad()
            output = model(first, second)
            loss = criterion(output, same.to(output.dtype))
            loss.backward()
            optimizer.step()
            if batch % 10 == 0:
                print(f"epoch {epoch} [{batch}/{len(train_loader)}] loss {loss.item():.4f}")
        scheduler.step()
        model.eval()
        test_loss, correct = 0.0, 0
        with torch.no_grad():
            for first, second, same in test_loader:
                output = model(first, second)
                test_loss += F.binary_cross_entropy(output, same.to(output.dtype), reduction="sum").item()
                correct += torch.where(output > 0.5, 1, 0).eq(same).sum().item()
        count = len(test_loader.dataset)
        print(f"test: average loss {test_loss / count:.4f}, accuracy {correct}/{count}")


if __name__ == "__main__":
    main()
