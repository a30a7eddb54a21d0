"""Weights that torchvision publishes, fetched when asked for: ``resnet18(weights=ResNet18_Weights.DEFAULT)``."""

from __future__ import annotations

import enum
from typing import Any

from ... import hub
from ...dtypes import float32
from ...nn.module import Module
from ...tensor import Tensor
from ..transforms import InterpolationMode, functional

__all__ = ["ImageClassification", "WeightsEnum"]

_PLACE = "https://download.pytorch.org/models/"


class WeightsEnum(enum.Enum):
    """The weights there are for a model; a value is (file, size to which images are brought before they are cut)."""

    @property
    def url(self) -> str:
        return _PLACE + self.value[0]

    def transforms(self) -> ImageClassification:
        """What makes images into inputs of the model."""
        return ImageClassification(crop_size=224, resize_size=self.value[1])

    def get_state_dict(self, progress: bool = True, check_hash: bool = True):
        """Fetched once, into ``hub.get_dir()``."""
        return hub.load_state_dict_from_url(self.url, progress=progress, check_hash=check_hash, weights_only=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class ImageClassification(Module):
    """Resize, cut out the middle, scale to [0, 1], normalize by ImageNet's mean and spread."""

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        interpolation=InterpolationMode.BILINEAR,
        antialias: bool = True,
    ) -> None:
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, image) -> Tensor:
        image = functional.resize(image, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)
        image = functional.center_crop(image, self.crop_size)
        if not isinstance(image, Tensor):
            image = functional.pil_to_tensor(image)
        return functional.normalize(functional.convert_image_dtype(image, float32), mean=self.mean, std=self.std)


def build(make, weights_enum, weights, progress: bool, kwargs: dict):
    """``make(**kwargs)``, with the weights asked for: one of ``weights_enum``, its name, or True (``pretrained``)."""
    chosen = _chosen(weights_enum, weights if weights is not None else kwargs.pop("pretrained", None))
    kwargs.pop("pretrained", None)
    if chosen is None:
        return make(**kwargs)
    if kwargs.setdefault("num_classes", 1000) != 1000:
        raise ValueError(f"The parameter 'num_classes' expected value 1000 but got {kwargs['num_classes']} instead.")
    model = make(**kwargs)
    model.load_state_dict(chosen.get_state_dict(progress=progress))
    return model


def without_weights(make, name: str, weights, kwargs: dict):
    """``make(**kwargs)``, of a model whose published weights are not known here."""
    if weights or kwargs.pop("pretrained", None):
        raise ValueError(
            f"{name}(weights={weights!r}): the address of these weights is not known here; make the model without them "
            "and give torchvision's file to load_state_dict, the keys are the same"
        )
    return make(**kwargs)


def _chosen(weights_enum, weights):
    if weights is None or weights is False or isinstance(weights, weights_enum):
        return weights or None
    if weights is True:  # what `pretrained=True` meant
        return weights_enum["IMAGENET1K_V1"]
    name = str(weights).rpartition(".")[2]
    if not isinstance(weights, str) or name not in weights_enum.__members__:
        names = ", ".join(weights_enum.__members__)
        raise ValueError(f"weights={weights!r}: {weights_enum.__name__} has {names}")
    return weights_enum[name]


def _weights(name: str, first: str, second: str | None = None):
    """The enum of a model: files of its first and, if there are any, second weights, which are the better ones."""
    members = {"IMAGENET1K_V1": (first, 256)}
    if second is not None:
        members["IMAGENET1K_V2"] = (second, 232)
    subclass: Any = WeightsEnum  # called with names: type checkers know only the call that looks a value up
    made = subclass(f"{name}_Weights", {**members, "DEFAULT": members[list(members)[-1]]}, module=__name__)
    made.__doc__ = f"The weights that torchvision publishes for {name}."
    __all__.append(made.__name__)
    return made


AlexNet_Weights = _weights("AlexNet", "alexnet-owt-7be5be79.pth")
MobileNet_V2_Weights = _weights("MobileNet_V2", "mobilenet_v2-b0353104.pth", "mobilenet_v2-7ebf99e0.pth")
ResNet18_Weights = _weights("ResNet18", "resnet18-f37072fd.pth")
ResNet34_Weights = _weights("ResNet34", "resnet34-b627a593.pth")
ResNet50_Weights = _weights("ResNet50", "resnet50-0676ba61.pth", "resnet50-11ad3fa6.pth")
ResNet101_Weights = _weights("ResNet101", "resnet101-63fe2227.pth", "resnet101-cd907fc2.pth")
ResNet152_Weights = _weights("ResNet152", "resnet152-394f9c45.pth", "resnet152-f82ba261.pth")
ResNeXt50_32X4D_Weights = _weights("ResNeXt50_32X4D", "resnext50_32x4d-7cdf4587.pth", "resnext50_32x4d-1a0047aa.pth")
ResNeXt101_32X8D_Weights = _weights(
    "ResNeXt101_32X8D", "resnext101_32x8d-8ba56ff5.pth", "resnext101_32x8d-110c445d.pth"
)
SqueezeNet1_0_Weights = _weights("SqueezeNet1_0", "squeezenet1_0-b66bff10.pth")
SqueezeNet1_1_Weights = _weights("SqueezeNet1_1", "squeezenet1_1-b8a52dc0.pth")
VGG11_Weights = _weights("VGG11", "vgg11-8a719046.pth")
VGG11_BN_Weights = _weights("VGG11_BN", "vgg11_bn-6002323d.pth")
VGG13_Weights = _weights("VGG13", "vgg13-19584684.pth")
VGG13_BN_Weights = _weights("VGG13_BN", "vgg13_bn-abd245e5.pth")
VGG16_Weights = _weights("VGG16", "vgg16-397923af.pth")
VGG16_BN_Weights = _weights("VGG16_BN", "vgg16_bn-6c64b313.pth")
VGG19_Weights = _weights("VGG19", "vgg19-dcbb9e9d.pth")
VGG19_BN_Weights = _weights("VGG19_BN", "vgg19_bn-c79401a0.pth")
Wide_ResNet50_2_Weights = _weights("Wide_ResNet50_2", "wide_resnet50_2-95faca4d.pth", "wide_resnet50_2-9ba9bcbe.pth")
Wide_ResNet101_2_Weights = _weights(
    "Wide_ResNet101_2", "wide_resnet101_2-32ee1156.pth", "wide_resnet101_2-d733dc28.pth"
)
