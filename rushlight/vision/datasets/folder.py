"""Images in folders, one folder per class."""

from __future__ import annotations

import os

from ..pillow import pil_image
from .vision import VisionDataset

__all__ = ["DatasetFolder", "ImageFolder", "default_loader", "find_classes", "make_dataset"]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class DatasetFolder(VisionDataset):
    """Files below ``root/<class>/``, read by ``loader(path)``; classes in the order of their names.

    Which files count: those with one of the ``extensions``, or those for which ``is_valid_file(path)`` is true.
    """

    def __init__(
        self,
        root,
        loader,
        extensions: tuple[str, ...] | None = None,
        transform=None,
        target_transform=None,
        is_valid_file=None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(directory, class_to_idx, extensions=None, is_valid_file=None, allow_empty: bool = False):
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory):
        return find_classes(directory)

    def __getitem__(self, index: int):
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images below ``root/<class>/``; samples are (PIL image, class index)."""

    def __init__(
        self,
        root,
        transform=None,
        target_transform=None,
        loader=None,
        is_valid_file=None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        loader = loader or default_loader
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples


def find_classes(directory) -> tuple[list[str], dict[str, int]]:
    """The folders in a directory, in order, and their numbers."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(directory, class_to_idx=None, extensions=None, is_valid_file=None, allow_empty: bool = False):
    """(path, class index) of every valid file below the class folders."""
    if class_to_idx is None:
        class_to_idx = find_classes(directory)[1]
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    endings = (extensions,) if isinstance(extensions, str) else extensions
    valid = is_valid_file or (lambda path: path.lower().endswith(tuple(endings)))
    samples = []
    for name in sorted(class_to_idx):
        samples += [(path, class_to_idx[name]) for path in _files_below(os.path.join(directory, name)) if valid(path)]
    empty = set(class_to_idx.values()) - {target for _, target in samples}
    if empty and not allow_empty:
        names = ", ".join(sorted(name for name, i in class_to_idx.items() if i in empty))
        text = f"Found no valid file for the classes {names}. "
        if endings is not None:
            text += f"Supported extensions are: {', '.join(endings)}"
        raise FileNotFoundError(text)
    return samples


def default_loader(path):
    """The image in a file, as RGB."""
    with pil_image().open(path) as image:
        return image.convert("RGB")


pil_loader = default_loader


def _files_below(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [os.path.join(place, name) for place, names in sorted(_walk(folder)) for name in sorted(names)]


def _walk(folder: str):
    """(folder, names of files) of all folders below, through links too, but round no circle of them."""
    pending = [(folder, frozenset())]
    while pending:
        place, above = pending.pop()
        identity = os.stat(place)[1:3]  # number and device
        if identity in above:
            continue
        names = []
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending.append((entry.path, above | {identity}))
                else:
                    names.append(entry.name)
        yield place, names
