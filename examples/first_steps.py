"""The smallest whole program: a network learns to tell the two arms of a spiral apart."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.middle = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.tanh(self.hidden(x))
        x = torch.tanh(self.middle(x))
        return self.out(x).squeeze(1)


def spiral(count):
    """Points on two arms that wind around each other, and which arm each is on."""
    turn = torch.linspace(0.25, 1.5, count) * 2 * torch.pi
    arm = torch.stack([turn * torch.cos(turn), turn * torch.sin(turn)], dim=1) / 10
    points = torch.cat([arm, -arm])
    labels = torch.cat([torch.zeros(count), torch.ones(count)])
    return points + 0.02 * torch.randn_like(points), labels


torch.manual_seed(0)
points, labels = spiral(100)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.BCEWithLogitsLoss()

for step in range(1, 401):
    optimizer.zero_grad()
    loss = criterion(model(points), labels)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.4f}")

right = ((model(points) > 0) == (labels > 0.5)).float().mean().item()
print(f"accuracy {right:.3f}")
if right < 0.97:
    raise SystemExit("the network did not learn the spiral")
