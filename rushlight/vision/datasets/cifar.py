"""CIFAR-10 and CIFAR-100: pickles of NumPy arrays, read by an unpickler that builds arrays and nothing else."""

from __future__ import annotations

import os
import pickle

import numpy as np

from ..pillow import as_image
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
        batches = [self._read(name) for name in (self.train_list if train else self.test_list)]
        images = np.concatenate([batch["data"] for batch in batches])
        self.data = np.ascontiguousarray(images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.targets = [label for batch in batches for label in batch["labels" if "labels" in batch else "fine_labels"]]
        self.classes = self._read(self.meta["filename"])[self.meta["key"]]
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

    def _read(self, name: str) -> dict:
        path = os.path.join(self._folder(), name)
        with open(path, "rb") as file:
            content = ArrayUnpickler(file, encoding="latin1").load()
        if not isinstance(content, dict):
            raise RuntimeError(f"{path}: a {type(content).__name__} where CIFAR's files have a dict")
        return content


class CIFAR100(CIFAR10):
    """Colour images of 100 classes: 50,000 to train, 10,000 to test. Files: ``root/cifar-100-python/train``."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = ["train"]
    test_list = ["test"]
    meta = {"filename": "meta", "key": "fine_label_names"}


class ArrayUnpickler(pickle.Unpickler):
    """Reads numbers, text, containers and NumPy arrays. A file that asks for anything else is refused."""

    def find_class(self, module: str, name: str):
        module = module.replace("numpy.core", "numpy._core")  # its name before NumPy 2
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"the file asks for {module}.{name}, which CIFAR's files have no use for; it was not read"
            )
        return super().find_class(module, name)


_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("_codecs", "encode"),
}
