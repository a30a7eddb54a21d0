"""MNIST's files as pictures and digits."""

import pathlib

import numpy as np
import torch
from PIL import Image


class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        folder, name = pathlib.Path(root) / "MNIST" / "raw", "train" if train else "t10k"
        pixels = (folder / f"{name}-images-idx3-ubyte").read_bytes()[16:]
        self.data = np.frombuffer(pixels, np.uint8).reshape(-1, 28, 28)
        self.targets = np.frombuffer((folder / f"{name}-labels-idx1-ubyte").read_bytes()[8:], np.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.data[index])), int(self.targets[index])
