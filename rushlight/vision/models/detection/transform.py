"""Images of any size as one batch, and boxes back in the sizes that came."""

from __future__ import annotations

import math

import rushlight as torch

from .... import nn
from ....nn import functional as F

__all__ = ["GeneralizedRCNNTransform", "ImageList"]


class ImageList:
    """Images padded to one size, and the size of each."""

    def __init__(self, tensors, image_sizes) -> None:
        self.tensors, self.image_sizes = tensors, image_sizes

    def to(self, device) -> ImageList:
        return ImageList(self.tensors.to(device), self.image_sizes)


class GeneralizedRCNNTransform(nn.Module):
    """Normalized, resized to a shorter side of ``min_size`` and a longer of at most ``max_size``, and padded."""

    def __init__(
        self, min_size, max_size: int, image_mean, image_std, size_divisible: int = 32, fixed_size=None
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_size = min_size if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size, self.image_mean, self.image_std = max_size, image_mean, image_std
        self.size_divisible, self.fixed_size = size_divisible, fixed_size

    def forward(self, images, targets=None):
        targets = [None] * len(images) if targets is None else targets
        made = [self._one(image, target) for image, target in zip(images, targets)]
        sizes = [tuple(image.shape[-2:]) for image, _ in made]
        found = [target for _, target in made]
        return ImageList(self.batch_images([image for image, _ in made]), sizes), found if found[0] else None

    def _one(self, image, target):
        if image.ndim != 3:
            raise ValueError(f"images is expected to be a list of 3d tensors of shape [C, H, W], got {image.shape}")
        return self.resize(self.normalize(image), target)

    def normalize(self, image):
        if not image.is_floating_point():
            raise TypeError(
                f"Expected input images to be of floating type (in range [0, 1]), but found type {image.dtype} instead"
            )
        mean, std = (
            torch.as_tensor(v, dtype=image.dtype, device=image.device) for v in (self.image_mean, self.image_std)
        )
        return (image - mean[:, None, None]) / std[:, None, None]

    def resize(self, image, target=None):
        """The image and its target; while training the shorter side is one of ``min_size``, drawn."""
        before = image.shape[-2:]
        shorter = self.min_size[-1]
        if self.training:
            shorter = self.min_size[int(torch.empty(1).uniform_(0.0, float(len(self.min_size))).item())]
        options: dict = {"size": self.fixed_size[::-1]} if self.fixed_size is not None else {}
        if not options:
            scale = min(shorter / min(before), self.max_size / max(before))
            options = {"scale_factor": scale, "recompute_scale_factor": True}
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **options)[0]
        if target is None:
            return image, None
        return image, {**target, "boxes": resized_boxes(target["boxes"], before, image.shape[-2:])}

    def batch_images(self, images):
        """The images in the upper left corners of a batch whose sides are whole multiples."""
        stride = self.size_divisible
        height, width = (math.ceil(max(i.shape[d] for i in images) / stride) * stride for d in (1, 2))
        batch = images[0].new_full((len(images), images[0].shape[0], height, width), 0)
        for place, image in zip(batch, images):
            place[:, : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(self, result, image_shapes, original_image_sizes):
        """Boxes in the sizes that came."""
        if not self.training:
            for found, now, before in zip(result, image_shapes, original_image_sizes):
                found["boxes"] = resized_boxes(found["boxes"], now, before)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})\n"
            f"    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )


def resized_boxes(boxes, before, after):
    """Boxes of an image that was resized."""
    down, across = (
        torch.tensor(float(n), dtype=torch.float32) / torch.tensor(float(o), dtype=torch.float32)
        for n, o in zip(after, before)
    )
    return boxes * torch.stack([across, down, across, down]).to(boxes)
