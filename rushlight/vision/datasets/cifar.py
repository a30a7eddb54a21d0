"""CIFAR-10 and CIFAR-100."""

from __future__ import annotations

import os

import numpy as np

from ..pillow import as_image
from .cifar_pickle import read_cifar_pickle
from .utils import download_and_extract_archive, missing_files
from .vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100"]


class CIFAR10(VisionDataset):
    """Colour images, 32x32, of 10 classes: 50,000 to train, 10,000 to test; ``data`` is an array (n, 32, 32, 3).

    Samples are (PIL image, int), transformed if asked. Files: ``root/cifar-10-batches-py/data_batch_1`` and so on.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [f"data_batch_{i}" for i in range(1, 6)]
    test_list = ["test_batch"]
    meta = {"filename": "batches.meta", "key": "label_names"}

    def __init__(self, root, train: bool = True, transform=None, target_transform=None, download: bool = False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise missing_files(self, self._folder(), self._files())
        batches = [self._batch(name) for name in (self.train_list if train else self.test_list)]
        images = np.concatenate([images for images, _ in batches])
        self.data = np.ascontiguousarray(images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.targets = [label for _, labels in batches for label in labels]
        self.classes = self._names()
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int):
        return self._transformed(as_image(self.data[index]), self.targets[index])

    def download(self) -> None:
        """Fetch and unpack the archive if files are missing."""
        if not self._check_exists():
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train is True else 'Test'}"

    def _folder(self) -> str:
        return os.path.join(os.fspath(self.root), self.base_folder)

    def _files(self) -> list[str]:
        return [*(self.train_list if self.train else self.test_list), self.meta["filename"]]

    def _check_exists(self) -> bool:
        return all(os.path.isfile(os.path.join(self._folder(), name)) for name in self._files())

    def _batch(self, name: str) -> tuple[np.ndarray, list[int]]:
        """Images, as rows of 3072 bytes, and labels."""
        path = os.path.join(self._folder(), name)
        content = read_cifar_pickle(path)
        images, labels = content.get("data"), content.get("labels", content.get("fine_labels"))
        if not isinstance(images, np.ndarray) or images.shape[1:] != (3072,):
            raise RuntimeError(f"{path}: no array 'data' of rows of 3072 bytes, as CIFAR's files have")
        if type(labels) is not list or any(type(n) is not int for n in labels) or len(labels) != len(images):
            raise RuntimeError(f"{path}: not one whole number for each of {len(images)} images in 'labels'")
        return images, labels

    def _names(self) -> list[str]:
        path = os.path.join(self._folder(), self.meta["filename"])
        names = read_cifar_pickle(path).get(self.meta["key"])
        if type(names) is not list or any(type(name) is not str for name in names):
            raise RuntimeError(f"{path}: no list of names '{self.meta['key']}'")
        return names


class CIFAR100(CIFAR10):
    """Colour images of 100 classes: 50,000 to train, 10,000 to test. Files: ``root/cifar-100-python/train``."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = ["train"]
    test_list = ["test"]
    meta = {"filename": "meta", "key": "fine_label_names"}
