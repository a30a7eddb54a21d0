"""Random images, for trying things out."""

from __future__ import annotations

from ...ops.random import randint, randn
from ...random import fork_rng, manual_seed
from .vision import VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """``size`` random PIL images and classes; sample i is always the same, seeded by ``i + random_offset``."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform=None,
        target_transform=None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __getitem__(self, index: int):
        from ..transforms.functional import to_pil_image

        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        with fork_rng():
            manual_seed(index + self.random_offset)
            image, target = randn(*self.image_size), randint(0, self.num_classes, size=(1,))[0]
        return self._transformed(to_pil_image(image), target.item())

    def __len__(self) -> int:
        return self.size
