"""A base class that runs training, in the style of Lightning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.optim import Optimizer
from rushlight.optim.lr_scheduler import LRScheduler, StepLR

Batch = tuple[Tensor, Tensor]


class LitModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, float] = {}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def log(self, name: str, value: Tensor | float) -> None:
        self.logged[name] = value.item() if isinstance(value, Tensor) else value

    @abstractmethod
    def training_step(self, batch: Batch, batch_idx: int) -> Tensor: ...

    @abstractmethod
    def configure_optimizers(self) -> tuple[Optimizer, LRScheduler]: ...


class Regressor(LitModule):
    def __init__(self, width: int = 8, lr: float = 0.1) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.ModuleList([nn.Linear(1, width), nn.Linear(width, 1)])
        self.activation = nn.ModuleDict({"tanh": nn.Tanh(), "relu": nn.ReLU()})

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.layers
        y: Tensor = second(self.activation["tanh"](first(x)))
        return y

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> tuple[Optimizer, LRScheduler]:
        groups = [{"params": self.layers.parameters(), "lr": self.lr}]
        optimizer = torch.optim.SGD(groups, lr=self.lr, momentum=0.9, nesterov=True)
        return optimizer, StepLR(optimizer, step_size=10, gamma=0.5)


class Trainer:
    def __init__(self, max_epochs: int) -> None:
        self.max_epochs = max_epochs

    def fit(self, model: LitModule, batches: Iterable[Batch]) -> None:
        optimizer, scheduler = model.configure_optimizers()
        for _ in range(self.max_epochs):
            for i, (x, y) in enumerate(batches):
                batch = x.to(model.device), y.to(model.device)
                optimizer.zero_grad()
                model.training_step(batch, i).backward()
                optimizer.step()
            scheduler.step()


torch.manual_seed(0)
x = torch.linspace(-1, 1, 16).unsqueeze(1)
model = Regressor()
Trainer(30).fit(model, [(x, torch.sin(3 * x))])
print(model.logged["loss"] < 0.2, model.layers[0], model.device.type)
