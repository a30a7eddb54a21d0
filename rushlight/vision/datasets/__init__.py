"""Image datasets under torchvision's names, and ``Digits``, which ships with the package."""

from .cifar import CIFAR10, CIFAR100
from .digits import Digits
from .fake import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import EMNIST, KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "EMNIST",
    "KMNIST",
    "MNIST",
    "DatasetFolder",
    "Digits",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "VisionDataset",
]


def __dir__():
    return [*__all__, "cifar", "folder", "mnist", "utils", "vision"]
