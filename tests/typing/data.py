"""Data sets and samplers of one's own."""

from collections.abc import Iterator

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, Sampler, Subset


class Squares(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, n: int) -> None:
        self.values = torch.arange(n, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, idx: int) -> tuple[torch.Tensor, int]:
        return self.values[idx] ** 2, idx


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(6)


class Backwards(Sampler[int]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.length - 1, -1, -1))


def collate(samples: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    values, labels = zip(*samples, strict=True)
    return torch.stack(list(values)), torch.tensor(labels)


squares = Squares(8)
first, label = squares[3]
loader = DataLoader(squares, batch_size=4, sampler=Backwards(len(squares)), collate_fn=collate, drop_last=True)
for batch, labels in loader:
    print(batch.sum().item(), labels.tolist())
print(first.item(), label, len(loader), len(Subset(squares, [0, 1])))
for part in DataLoader(Stream(), batch_size=3):
    print(part)
