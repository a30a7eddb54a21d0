"""The little of torchvision that the examples use, on PyTorch: torchvision itself is not needed for the tests."""

from . import datasets, transforms
