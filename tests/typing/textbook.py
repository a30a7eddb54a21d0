"""A classifier as a textbook writes it."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


class Net(nn.Module):
    def __init__(self, hidden: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Sequential(nn.Linear(8 * 14 * 14, hidden), nn.ReLU(), nn.Linear(hidden, classes))
        self.scale = nn.Parameter(torch.ones(1))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(self.drop(x), start_dim=1)
        logits: torch.Tensor = self.head(x)
        return logits * self.scale


def predict(model: nn.Module, images: torch.Tensor) -> tuple[list[int], float]:
    model.eval()
    with torch.no_grad():
        logits: torch.Tensor = model(images)
    confidence, best = logits.softmax(dim=-1).max(dim=-1)
    return best.tolist(), confidence.mean().item()


@torch.no_grad()
def weight_norm(model: nn.Module) -> torch.Tensor:
    return torch.stack([p.detach().norm() for p in model.parameters()]).sum()


torch.manual_seed(0)
net = Net()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = net.to(device)
x = torch.randn(4, 1, 28, 28, device=device)
classes, sure = predict(net, x)
print(len(classes), f"{sure:.2f}", weight_norm(net).item() > 0, sum(p.numel() for p in net.parameters()))
