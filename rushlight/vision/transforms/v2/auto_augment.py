"""Random changes chosen from a table: AutoAugment, RandAugment, TrivialAugment and AugMix."""

from __future__ import annotations

import enum
import functools
import math

import numpy as np

from .... import dtypes
from ....ops.creation import tensor
from ....ops.random import rand, randint
from ....tensor import Tensor
from ....utils._pytree import tree_flatten, tree_unflatten
from ...pillow import is_pil_image
from ...tv_tensors import BoundingBoxes, KeyPoints, Mask, Video
from ..functional import InterpolationMode
from . import functional as F
from .transform import Transform, by_class, check_type, is_image

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]


class _FromTable(Transform):
    """``table``: name -> (strengths for (bins, height, width) or None, whether the sign is drawn)."""

    table: dict
    interpolation: InterpolationMode
    _fill: object

    def _image(self, inputs) -> tuple[list, object, int]:
        """The parts of a sample, its form, and which part is the image."""
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        found = None
        chosen = self._concerned(flat)
        for place, part in enumerate(flat):
            if check_type(part, (BoundingBoxes, KeyPoints, Mask)):
                raise TypeError(f"Inputs of type {type(part).__name__} are not supported by {type(self).__name__}()")
            if chosen[place] and (is_image(part) or isinstance(part, Video)):
                if found is not None:
                    raise ValueError(
                        f"Auto augment transformations are only properly defined for a single image or video, "
                        f"but found {type(flat[found])} and {type(part)}."
                    )
                found = place
        if found is None:
            raise TypeError("This transform requires a tensor or PIL image in the sample; there is none")
        return flat, form, found

    def _drawn(self, names):
        return list(names)[int(randint(len(names), ()).item())]

    def _strength(self, name: str, bins: int, size, which: int, fixed: bool = False) -> float:
        """A strength of an operation: one of the first ``which`` that is drawn, or if ``fixed`` that one."""
        strengths, signed = self.table[name]
        if strengths is None:
            return 0.0
        value = float(strengths(bins, *size)[which if fixed else int(randint(which, ()).item())])
        return -value if signed and rand(()).item() <= 0.5 else value

    def _changed(self, image, name: str, strength: float):
        fill = by_class(self._fill, image)
        if name in ("ShearX", "ShearY"):
            degrees = math.degrees(math.atan(strength))
            shear = [degrees, 0.0] if name == "ShearX" else [0.0, degrees]
            return F.affine(image, 0.0, [0, 0], 1.0, shear, self.interpolation, fill, center=[0, 0])
        if name in ("TranslateX", "TranslateY"):
            move = [int(strength), 0] if name == "TranslateX" else [0, int(strength)]
            return F.affine(image, 0.0, move, 1.0, [0.0, 0.0], self.interpolation, fill)
        if name == "Rotate":
            return F.rotate(image, strength, self.interpolation, fill=fill)
        if name in _ENHANCED:
            return _ENHANCED[name](image, 1.0 + strength)
        if name == "Posterize":
            return F.posterize(image, int(strength))
        if name == "Solarize":
            bright = 1.0 if isinstance(image, Tensor) and image.is_floating_point() else 255.0
            return F.solarize(image, bright * strength)
        return _PLAIN[name](image)


_PLAIN = {"Identity": lambda x: x, "AutoContrast": F.autocontrast, "Equalize": F.equalize, "Invert": F.invert}
_ENHANCED = {
    "Brightness": F.adjust_brightness, "Color": F.adjust_saturation, "Contrast": F.adjust_contrast,
    "Sharpness": F.adjust_sharpness,
}  # fmt: skip


def _table(shear: float, translate, turn: float, enhance: float, bits: int, kept: int = 8, identity=True) -> dict:
    """The operations of a method, from the strongest of each kind; the weakest posterizing leaves ``kept`` bits."""

    def up_to(most):
        return lambda bins, h, w: np.linspace(0.0, most, bins, dtype=np.float32)

    def moved(side):
        return lambda bins, h, w: np.linspace(0.0, translate((w, h)[side]), bins, dtype=np.float32)

    table: dict = {"Identity": (None, False)} if identity else {}
    table |= {"ShearX": (up_to(shear), True), "ShearY": (up_to(shear), True)}
    table |= {"TranslateX": (moved(0), True), "TranslateY": (moved(1), True), "Rotate": (up_to(turn), True)}
    table |= {name: (up_to(enhance), True) for name in ("Brightness", "Color", "Contrast", "Sharpness")}
    table["Posterize"] = (lambda n, h, w: kept - np.round(np.arange(n) / ((n - 1) / bits)), False)
    table["Solarize"] = (lambda n, h, w: np.linspace(1.0, 0.0, n, dtype=np.float32), False)
    return table | {"AutoContrast": (None, False), "Equalize": (None, False)}


class AutoAugmentPolicy(enum.Enum):
    """The data that operations, probabilities and strengths were searched for on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Tables 7, 9 and 8 of the paper: 25 pairs of operations each, with a probability in tenths and which of ten strengths.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 4 8, Rotate 6 9; Solarize 6 5, AutoContrast 6; Equalize 8, Equalize 6; Posterize 6 7, Posterize 6 6;
        Equalize 4, Solarize 2 4; Equalize 4, Rotate 8 8; Solarize 6 3, Equalize 6; Posterize 8 5, Equalize 10;
        Rotate 2 3, Solarize 6 8; Equalize 6, Posterize 4 6; Rotate 8 8, Color 4 0; Rotate 4 9, Equalize 6;
        Equalize 0, Equalize 8; Invert 6, Equalize 10; Color 6 4, Contrast 10 8; Rotate 8 8, Color 10 2;
        Color 8 8, Solarize 8 7; Sharpness 4 7, Invert 6; ShearX 6 5, Equalize 10; Color 4 0, Equalize 6;
        Equalize 4, Solarize 2 4; Solarize 6 5, AutoContrast 6; Invert 6, Equalize 10; Color 6 4, Contrast 10 8;
        Equalize 8, Equalize 6""",
    AutoAugmentPolicy.CIFAR10: """
        Invert 1, Contrast 2 6; Rotate 7 2, TranslateX 3 9; Sharpness 8 1, Sharpness 9 3; ShearY 5 8, TranslateY 7 9;
        AutoContrast 5, Equalize 9; ShearY 2 7, Posterize 3 7; Color 4 3, Brightness 6 7; Sharpness 3 9, Brightness 7 9;
        Equalize 6, Equalize 5; Contrast 6 7, Sharpness 6 5; Color 7 7, TranslateX 5 8; Equalize 3, AutoContrast 4;
        TranslateY 4 3, Sharpness 2 6; Brightness 9 6, Color 2 8; Solarize 5 2, Invert 0; Equalize 2, AutoContrast 6;
        Equalize 2, Equalize 6; Color 9 9, Equalize 6; AutoContrast 8, Solarize 2 8; Brightness 1 3, Color 7 0;
        Solarize 4 5, AutoContrast 9; TranslateY 9 9, TranslateY 7 9; AutoContrast 9, Solarize 8 3;
        Equalize 8, Invert 1; TranslateY 7 9, AutoContrast 9""",
    AutoAugmentPolicy.SVHN: """
        ShearX 9 4, Invert 2; ShearY 9 8, Invert 7; Equalize 6, Solarize 6 6; Invert 9, Equalize 6;
        Equalize 6, Rotate 9 3; ShearX 9 4, AutoContrast 8; ShearY 9 8, Invert 4; ShearY 9 5, Solarize 2 6;
        Invert 9, AutoContrast 8; Equalize 6, Rotate 9 3; ShearX 9 4, Solarize 3 3; ShearY 8 8, Invert 7;
        Equalize 9, TranslateY 6 6; Invert 9, Equalize 6; Contrast 3 3, Rotate 8 4; Invert 8, TranslateY 0 2;
        ShearY 7 6, Solarize 4 8; Invert 6, Rotate 8 4; ShearY 3 7, TranslateX 9 3; ShearX 1 6, Invert 6;
        Solarize 7 2, TranslateY 6 7; ShearY 8 4, Invert 8; ShearX 7 9, TranslateY 8 3; ShearY 8 5, AutoContrast 7;
        ShearX 7 2, Invert 1""",
}


@functools.cache
def _policies(policy: AutoAugmentPolicy) -> list:
    """[[(operation, probability, which strength) twice] for each pair]."""

    def step(text):
        name, tenths, *which = text.split()
        return name, int(tenths) / 10, int(*which)

    return [[step(text) for text in pair.split(",")] for pair in _POLICIES[policy].split(";")]


class AutoAugment(_FromTable):
    """One of 25 pairs of operations that were found by search (https://arxiv.org/abs/1805.09501)."""

    table = {**_table(0.3, lambda side: 150.0 / 331.0 * side, 30.0, 0.9, 4), "Invert": (None, False)}

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=InterpolationMode.NEAREST, fill=None) -> None:
        super().__init__()
        self.policy, self.interpolation, self._fill = policy, interpolation, fill
        if policy not in _POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")

    def forward(self, *inputs):
        flat, form, place = self._image(inputs)
        image, size = flat[place], F.get_size(flat[place])
        pairs = _policies(self.policy)
        for name, probability, which in pairs[int(randint(len(pairs), ()).item())]:
            if rand(()).item() <= probability:
                image = self._changed(image, name, self._strength(name, 10, size, which, fixed=True))
        flat[place] = image
        return tree_unflatten(flat, form)


class RandAugment(_FromTable):
    """``num_ops`` random operations of strength ``magnitude`` (https://arxiv.org/abs/1909.13719)."""

    table = _table(0.3, lambda side: 150.0 / 331.0 * side, 30.0, 0.9, 4)

    def __init__(
        self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None
    ) -> None:
        super().__init__()
        self.interpolation, self._fill = interpolation, fill
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def forward(self, *inputs):
        flat, form, place = self._image(inputs)
        image, size = flat[place], F.get_size(flat[place])
        for _ in range(self.num_ops):
            name = self._drawn(self.table)
            image = self._changed(
                image, name, self._strength(name, self.num_magnitude_bins, size, self.magnitude, fixed=True)
            )
        flat[place] = image
        return tree_unflatten(flat, form)


class TrivialAugmentWide(_FromTable):
    """One random operation of random strength (https://arxiv.org/abs/2103.10158)."""

    table = _table(0.99, lambda side: 32.0, 135.0, 0.99, 6)

    def __init__(self, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None) -> None:
        super().__init__()
        self.interpolation, self._fill = interpolation, fill
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, *inputs):
        flat, form, place = self._image(inputs)
        name = self._drawn(self.table)
        strength = self._strength(name, self.num_magnitude_bins, F.get_size(flat[place]), self.num_magnitude_bins)
        flat[place] = self._changed(flat[place], name, strength)
        return tree_unflatten(flat, form)


class AugMix(_FromTable):
    """The image mixed with ``mixture_width`` chains of random operations (https://arxiv.org/abs/1912.02781)."""

    table = _table(0.3, lambda side: side / 3.0, 30.0, 0.9, 4, kept=4, identity=False)

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation=InterpolationMode.BILINEAR,
        fill=None,
    ) -> None:
        super().__init__()
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.interpolation, self._fill = interpolation, fill
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops
        plain = [name for name in self.table if name not in _ENHANCED]
        self._names = [*plain, *_ENHANCED] if all_ops else plain

    def forward(self, *inputs):
        from ....distributions import Dirichlet  # it stands above vision

        flat, form, place = self._image(inputs)
        original = flat[place]
        values = F.pil_to_tensor(original) if is_pil_image(original) else original
        image = F._plain(values).float()
        batch = image.reshape(1, *image.shape) if image.ndim == 3 else image
        count = len(batch)
        keep = Dirichlet(tensor([self.alpha, self.alpha])).sample((count,))
        parts = Dirichlet(tensor([self.alpha] * self.mixture_width)).sample((count,)) * keep[:, 1].reshape(count, -1)
        mixed = keep[:, 0].reshape(-1, 1, 1, 1) * batch
        for i in range(self.mixture_width):
            chain = F._plain(values).reshape(batch.shape)
            for _ in range(self.chain_depth if self.chain_depth > 0 else int(randint(1, 4, ()).item())):
                name = self._drawn(self._names)
                chain = self._changed(chain, name, self._strength(name, 10, chain.shape[-2:], self.severity))
            mixed = mixed + parts[:, i].reshape(-1, 1, 1, 1) * chain
        made = mixed.reshape(image.shape).to(values.dtype if not is_pil_image(original) else dtypes.uint8)
        flat[place] = F.to_pil_image(made) if is_pil_image(original) else F._like(made, original)
        return tree_unflatten(flat, form)
