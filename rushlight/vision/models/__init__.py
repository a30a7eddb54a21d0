"""Image classifiers under torchvision's names, with its state-dict keys and, for one seed, its initial weights.

``resnet18(weights="DEFAULT")`` fetches torchvision's published weights, once.
"""

from .alexnet import AlexNet, alexnet
from .mobilenetv2 import MobileNetV2, mobilenet_v2
from .resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn
from .weights import *
from .weights import __all__ as _weights

__all__ = [
    "VGG", "AlexNet", "MobileNetV2", "ResNet", "SqueezeNet", "alexnet", "mobilenet_v2", "resnet18", "resnet34",
    "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d", "squeezenet1_0", "squeezenet1_1",
    "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "wide_resnet50_2",
    "wide_resnet101_2", *_weights,
]  # fmt: skip
