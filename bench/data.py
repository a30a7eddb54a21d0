"""One pass of a DataLoader over 28x28 images in memory, batches of 64: alone, and by 2 workers with a transform."""

from __future__ import annotations

import numpy as np

IMAGES, TRANSFORMED = 60_000, 6_400


def cases(torch, gpu=False):
    if gpu:
        return
    yield "60,000 images, in order", lambda: _pass(torch, shuffle=False)
    yield "60,000 images, shuffled", lambda: _pass(torch, shuffle=True)
    yield "60,000 images, half of them by Subset", lambda: _pass(torch, shuffle=True, subset=True)
    yield "6,400 images, transform", lambda: _transformed(torch)
    yield "6,400 images, transform, 2 workers", lambda: _transformed(torch, num_workers=2, persistent_workers=True)


def _tensors(torch, n: int):
    images = np.random.RandomState(0).randint(0, 256, (n, 1, 28, 28)).astype(np.uint8)
    return torch.tensor(images), torch.arange(n) % 10


def _pass(torch, shuffle: bool, subset: bool = False):
    data = torch.utils.data
    images, labels = _tensors(torch, IMAGES)
    dataset = data.TensorDataset(images.float(), labels)
    if subset:
        dataset = data.random_split(dataset, [0.5, 0.5])[0]
    return _runner(data.DataLoader(dataset, batch_size=64, shuffle=shuffle))


def _transformed(torch, **workers):
    class Transformed(torch.utils.data.Dataset):
        """Bytes made floats, flipped at random, normalized: one sample at a time."""

        def __init__(self):
            self.images, self.labels = _tensors(torch, TRANSFORMED)

        def __len__(self):
            return TRANSFORMED

        def __getitem__(self, i):
            image = self.images[i].float() / 255
            if torch.rand(1).item() < 0.5:
                image = image.flip(-1)
            return (image - 0.1307) / 0.3081, self.labels[i]

    return _runner(torch.utils.data.DataLoader(Transformed(), batch_size=64, shuffle=True, **workers))


def _runner(loader):
    def run():
        for _ in loader:
            pass

    return run
