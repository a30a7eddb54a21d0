"""A training loop: loader, loss, optimizer, schedule, clipping, mixed precision, checkpoints."""

import io
from collections.abc import Callable

import rushlight as torch
from rushlight import nn, optim
from rushlight.optim.lr_scheduler import CosineAnnealingLR
from rushlight.utils.data import DataLoader, TensorDataset, random_split


def accuracy(logits: torch.Tensor, target: torch.Tensor) -> float:
    return (logits.argmax(dim=1) == target).float().mean().item()


def train(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]], epochs: int = 2) -> list[float]:
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    losses: list[float] = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for inputs, target in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
                loss: torch.Tensor = criterion(model(inputs), target)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * inputs.size(0)
        scheduler.step()
        losses.append(total)
    return losses


def compiled(model: nn.Module, optimizer: optim.Optimizer) -> Callable[[torch.Tensor], torch.Tensor]:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    @torch.compile(fallback=True)
    def look(x: torch.Tensor) -> float:
        return step(x).item()

    print(torch.compile(model).training, look)
    return step


torch.manual_seed(0)
inputs, target = torch.randn(64, 5), torch.randint(0, 3, (64,))
training, held_out = random_split(TensorDataset(inputs, target), [48, 16])
model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 3))
losses = train(model, DataLoader(training, batch_size=16, shuffle=True, num_workers=0))
file = io.BytesIO()
torch.save({"model": model.state_dict(), "epoch": len(losses)}, file)
file.seek(0)
checkpoint = torch.load(file, weights_only=True)
model.load_state_dict(checkpoint["model"])
print(losses[-1] < losses[0], len(held_out), 0 <= accuracy(model(inputs), target) <= 1)
