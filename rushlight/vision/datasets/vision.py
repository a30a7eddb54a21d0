"""What image datasets share: a folder, transforms, a printed form."""

from __future__ import annotations

import os
from typing import Any

from ...utils.data.dataset import Dataset

__all__ = ["StandardTransform", "VisionDataset"]


class VisionDataset(Dataset):
    """Base class: ``root``, and either ``transforms(image, target)`` or one transform for each."""

    _repr_indent = 4

    def __init__(self, root=None, transforms=None, transform=None, target_transform=None) -> None:
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform, self.target_transform = transform, target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *(" " * self._repr_indent + line for line in body)])

    def _transformed(self, image, target):
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class StandardTransform:
    """One transform for the image, one for the target."""

    def __init__(self, transform=None, target_transform=None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, image, target):
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __repr__(self) -> str:
        body = ["StandardTransform"]
        for title, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                first, *rest = repr(transform).splitlines()
                body += [title + first, *(" " * len(title) + line for line in rest)]
        return "\n".join(body)
