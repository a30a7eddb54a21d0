"""MNIST and the datasets that share its format: IDX files, gzipped or not, in ``root/<name>/raw``."""

from __future__ import annotations

import gzip
import math
import os
import string

import numpy as np

from ...io.unpack import Budget
from ...tensor import Tensor, wrap
from ..pillow import as_image
from .utils import download_and_extract_archive, download_url, extract_archive, missing_files
from .vision import VisionDataset

__all__ = ["EMNIST", "KMNIST", "MNIST", "FashionMNIST", "read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class MNIST(VisionDataset):
    """Handwritten digits, 28x28: 60,000 to train, 10,000 to test. ``data`` (uint8) and ``targets`` are tensors.

    Samples are (PIL image, int), transformed if asked. Files: ``root/MNIST/raw/train-images-idx3-ubyte`` and so on,
    or the same with ``.gz``.
    """

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    _names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    classes = [f"{i} - {name}" for i, name in enumerate(_names)]

    def __init__(self, root=None, train: bool = True, transform=None, target_transform=None, download: bool = False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise missing_files(self, self.raw_folder, (f"{name}[.gz]" for name in self._files()))
        images, labels = (self._read(name) for name in self._files())
        if len(images) != len(labels):
            raise RuntimeError(f"{self.raw_folder}: {len(images)} images, but {len(labels)} labels")
        self.data, self.targets = images, labels.long()

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int):
        image = as_image(self.data._array[index])
        return self._transformed(image, int(self.targets._array[index]))

    @property
    def raw_folder(self) -> str:
        return os.path.join(os.fspath(self.root or "."), type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.classes)}

    def download(self) -> None:
        """Fetch the files that are missing."""
        if self._check_exists():
            return
        for name, md5 in self.resources:
            self._download_from_mirrors(name, md5)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train is True else 'Test'}"

    def _files(self) -> tuple[str, str]:
        part = "train" if self.train else "t10k"
        return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"

    def _check_exists(self) -> bool:
        return all(self._path(name) is not None for name in self._files())

    def _path(self, name: str) -> str | None:
        paths = (os.path.join(self.raw_folder, name + ending) for ending in ("", ".gz"))
        return next((path for path in paths if os.path.isfile(path)), None)

    def _read(self, name: str) -> Tensor:
        return wrap(read_idx(self._path(name)))

    def _download_from_mirrors(self, name: str, md5: str) -> None:
        for mirror in self.mirrors:
            try:
                return download_url(mirror + name, self.raw_folder, name, md5)
            except RuntimeError as e:
                error = e
        raise error


class FashionMNIST(MNIST):
    """Clothes, 28x28: 60,000 to train, 10,000 to test, in MNIST's format."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
    classes += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Cursive Japanese characters, 28x28: 60,000 to train, 10,000 to test, in MNIST's format."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """Handwritten letters and digits in MNIST's format; ``split`` is one of ``EMNIST.splits``."""

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _merged = set("cijklmopsuvwxyz")  # whose small and capital letters are one class in two of the splits
    _all = sorted(string.digits + string.ascii_letters)
    classes_split_dict = {
        "byclass": _all,
        "bymerge": sorted(set(_all) - _merged),
        "balanced": sorted(set(_all) - _merged),
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root, split: str, **kwargs):
        if split not in self.splits:
            raise ValueError(f"Unknown value '{split}' for argument split. Valid values are {self.splits}.")
        self.split, self.classes = split, self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def download(self) -> None:
        if self._check_exists():
            return
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5)
        inside = os.path.join(self.raw_folder, "gzip")
        for name in os.listdir(inside):
            if name.endswith(".gz"):
                extract_archive(os.path.join(inside, name), self.raw_folder)

    def _files(self) -> tuple[str, str]:
        stem = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"


def read_idx(path) -> np.ndarray:
    """The array in an IDX file, plain or gzipped: two zero bytes, type, number of dimensions, sizes, values."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    budget = Budget(path)
    with gzip.open(path) if zipped else open(path, "rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES:
            raise RuntimeError(f"{path}: not an IDX file (it begins with {head.hex(' ')})")
        kind, dims = np.dtype(_TYPES[head[2]]), head[3]
        shape = np.frombuffer(_exactly(file, 4 * dims, path), ">u4").tolist()
        size = kind.itemsize * math.prod(shape)
        budget.spend(size)  # before so much is asked for
        content = _exactly(file, size, path, f"of shape {shape} ")
        if file.read(1):
            raise RuntimeError(f"{path}: more bytes than an IDX file of shape {shape} has")
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="))


def _exactly(file, count: int, path, what: str = "") -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise RuntimeError(f"{path}: {len(content)} bytes where an IDX file {what}has {count}")
    return content
