"""Transforms of colour: images and videos change; masks, boxes and points stay."""

from __future__ import annotations

from ....ops.random import rand, randint, randperm
from .. import transforms as v1
from . import functional as F
from .transform import RandomTransform, Transform, query_chw

__all__ = [
    "JPEG", "RGB", "ColorJitter", "GaussianBlur", "GaussianNoise", "Grayscale", "RandomAdjustSharpness",
    "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize", "RandomErasing", "RandomGrayscale",
    "RandomInvert", "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize",
]  # fmt: skip

_CHANGES = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)


class ColorJitter(Transform, v1.ColorJitter):
    """Brightness, contrast, saturation and hue changed by random amounts, in random order."""

    def __init__(self, brightness=None, contrast=None, saturation=None, hue=None) -> None:
        v1.ColorJitter.__init__(self, brightness or 0, contrast or 0, saturation or 0, hue or 0)

    def make_params(self, flat_inputs):
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return {"order": order.tolist(), "factors": factors}

    def transform(self, inpt, params):
        for i in params["order"]:
            if params["factors"][i] is not None:
                inpt = _CHANGES[i](inpt, params["factors"][i])
        return inpt


class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation, hue and the order of channels, each changed with probability ``p``."""

    def __init__(
        self, brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=(-0.05, 0.05), p: float = 0.5
    ) -> None:
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation = brightness, contrast, hue, saturation
        self.p = p

    def make_params(self, flat_inputs):
        channels = query_chw(flat_inputs)[0]
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        factors = [v1._uniform(*bounds) if rand(1).item() < self.p else None for bounds in ranges]
        # Contrast comes before saturation and hue, or after.
        order = (0, 1, 2, 3) if rand(()).item() < 0.5 else (0, 2, 3, 1)
        channel_order = randperm(channels).tolist() if rand(1).item() < self.p else None
        return {"order": order, "factors": factors, "channels": channel_order}

    def transform(self, inpt, params):
        inpt = ColorJitter.transform(self, inpt, params)
        return inpt if params["channels"] is None else F.permute_channels(inpt, params["channels"])


class RandomChannelPermutation(Transform):
    """The channels in a random order."""

    def make_params(self, flat_inputs):
        return {"permutation": randperm(query_chw(flat_inputs)[0]).tolist()}

    def transform(self, inpt, params):
        return F.permute_channels(inpt, params["permutation"])


class Grayscale(Transform, v1.Grayscale):
    """Shades of gray."""

    def transform(self, inpt, params):
        return F.rgb_to_grayscale(inpt, self.num_output_channels)


class RGB(Transform):
    """Three channels, also of a gray image."""

    def transform(self, inpt, params):
        return F.grayscale_to_rgb(inpt)


class RandomGrayscale(RandomTransform):
    """Shades of gray, with probability ``p``; as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs):
        return {"channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt, params):
        return F.rgb_to_grayscale(inpt, params["channels"])


class GaussianBlur(Transform, v1.GaussianBlur):
    """Blurred by a bell of random width."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)) -> None:
        v1.GaussianBlur.__init__(self, kernel_size, sigma)
        self.sigma = [float(s) for s in self.sigma]  # type: ignore[assignment]

    def make_params(self, flat_inputs):
        sigma = v1._uniform(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt, params):
        return F.gaussian_blur(inpt, self.kernel_size, params["sigma"])


class GaussianNoise(Transform):
    """Random numbers added."""

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def transform(self, inpt, params):
        return F.gaussian_noise(inpt, self.mean, self.sigma, self.clip)


class RandomInvert(RandomTransform):
    """Light and dark exchanged, with probability ``p``."""

    def transform(self, inpt, params):
        return F.invert(inpt)


class RandomAutocontrast(RandomTransform):
    """Each channel stretched from black to full, with probability ``p``."""

    def transform(self, inpt, params):
        return F.autocontrast(inpt)


class RandomEqualize(RandomTransform):
    """Values made equally frequent, with probability ``p``."""

    def transform(self, inpt, params):
        return F.equalize(inpt)


class RandomPosterize(RandomTransform):
    """``bits`` bits a channel, with probability ``p``."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt, params):
        return F.posterize(inpt, self.bits)


class RandomSolarize(RandomTransform):
    """What is as light as ``threshold`` inverted, with probability ``p``."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt, params):
        return F.solarize(inpt, self.threshold)


class RandomAdjustSharpness(RandomTransform):
    """Blurred or sharpened, with probability ``p``."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt, params):
        return F.adjust_sharpness(inpt, self.sharpness_factor)


class RandomErasing(RandomTransform):
    """A random rectangle replaced by ``value`` (a number, one per channel, or "random"), with probability ``p``."""

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0.0, inplace: bool = False) -> None:
        checked = v1.RandomErasing(p, scale, ratio, value, inplace)
        super().__init__(p)
        self.scale, self.ratio = checked.scale, checked.ratio
        # None stands for "random".
        self.value = (
            None if value == "random" else [float(v) for v in ([value] if isinstance(value, (int, float)) else value)]
        )
        self.inplace = inplace

    def make_params(self, flat_inputs):
        channels, height, width = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of inpt channels)"
            )
        return {"found": v1.RandomErasing.place(channels, height, width, self.scale, self.ratio, self.value)}

    def transform(self, inpt, params):
        return inpt if params["found"] is None else F.erase(inpt, *params["found"], inplace=self.inplace)


class JPEG(Transform):
    """What JPEG of a random quality leaves."""

    def __init__(self, quality) -> None:
        super().__init__()
        self.quality = [quality, quality] if isinstance(quality, int) else list(quality)
        if not 1 <= self.quality[0] <= self.quality[1] <= 100:
            raise ValueError(f"quality must be an integer from 1 to 100, or two of them in order, got {quality=}")

    def make_params(self, flat_inputs):
        return {"quality": randint(self.quality[0], self.quality[1] + 1, ()).item()}

    def transform(self, inpt, params):
        return F.jpeg(inpt, params["quality"])
