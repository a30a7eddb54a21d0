"""watch, profiler, compile and autocast: a convolutional network on the digits that ship.

The first epoch runs eagerly, and watch.html shows what goes on inside; trace.json (open it in ui.perfetto.dev) shows
where the time of a step goes. Then the whole training step is one XLA program, with its products in bfloat16.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import profile
from torch.utils.data import DataLoader, TensorDataset
from torchvision.datasets import Digits


def pictures(train):
    data = Digits(train=train)
    return TensorDataset(data.data.float().unsqueeze(1) / 255, data.targets)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(pictures(True), batch_size=64, shuffle=True, drop_last=True)

    def step(images, targets):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        return loss

    with torch.inspect.watch(model, "watch.html", every=5) as page:
        for images, targets in loader:
            page.step(step(images, targets))
    with profile(with_modules=True) as prof:
        step(images, targets)
    prof.export_chrome_trace("trace.json")
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=8))

    @torch.compile
    def compiled(images, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return step(images, targets)

    for epoch in range(2, 5):
        for images, targets in loader:
            loss = compiled(images, targets)
        print(f"epoch {epoch}: loss {loss.item():.4f}")

    images, targets = pictures(False).tensors
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == targets).float().mean().item()
    print(f"held out: {right:.3f}; {compiled.compilations} program")


if __name__ == "__main__":
    main()
