"""1,797 real handwritten digits of 8x8 pixels that ship with the package: no download, no Pillow."""

from __future__ import annotations

import pathlib

import numpy as np

from ...tensor import wrap
from ...utils.data.dataset import row_indices, rows_of
from ..pillow import as_image
from .vision import VisionDataset

__all__ = ["Digits"]

FILE = pathlib.Path(__file__).parent.parent / "data" / "digits.npz"


class Digits(VisionDataset):
    """Handwritten digits of 13 people, 8x8 grey pixels: ``train`` 1,437 of them, else the 360 held out, None for all.

    Every fifth digit is held out, so that each writer is in both parts. A sample is a float image (1, 8, 8) between 0
    and 1 and its digit; with a ``transform`` that is given a PIL image, as in the other datasets. ``data`` has the
    images as uint8 from 0 to 255, ``targets`` the digits. Source and licence: ``vision/data/README.md``.

    >>> image, digit = rushlight.vision.datasets.Digits(train=True)[0]
    >>> image.shape, digit
    (torch.Size([1, 8, 8]), 1)
    """

    classes = [str(digit) for digit in range(10)]

    def __init__(self, root=None, train: bool | None = True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        images, targets = _read()
        if train is not None:
            held_out = np.arange(len(images)) % 5 == 0
            chosen = ~held_out if train else held_out
            images, targets = images[chosen], targets[chosen]
        self.data, self.targets = wrap(images), wrap(targets)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int):
        array, target = self.data._array[index], int(self.targets._array[index])
        if self.transform is None:
            return self._transformed(wrap(_scaled(array[None])), target)
        return self._transformed(as_image(array), target)

    def extra_repr(self) -> str:
        return f"Split: {'All' if self.train is None else 'Train' if self.train else 'Test'}"

    def _gather(self, indices):
        rows = row_indices(indices)
        if rows is None or self.transform is not None or self.target_transform is not None:
            return None
        columns = rows_of((self.data, self.targets), rows)
        return columns and [wrap(_scaled(columns[0]._array[:, None])), columns[1]]


def _read() -> tuple[np.ndarray, np.ndarray]:
    with np.load(FILE) as file:
        counts, targets = file["images"], file["targets"]  # counts of dark pixels, 0 to 16
    return (counts.astype(np.uint16) * 255 // 16).astype(np.uint8), targets.astype(np.int64)


def _scaled(images: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) / np.float32(255)
