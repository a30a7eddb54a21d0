"""A class for each pixel: FCN, DeepLabV3 and LR-ASPP under torchvision's names, with its state-dict keys."""

from __future__ import annotations

from collections import OrderedDict

import rushlight as torch

from .... import nn
from .._utils import IntermediateLayerGetter
from ..mobilenetv3 import mobilenet_v3_large
from ..resnet import resnet50, resnet101
from ..weights import without_weights

__all__ = [
    "FCN",
    "LRASPP",
    "DeepLabV3",
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
    "fcn_resnet50",
    "fcn_resnet101",
    "lraspp_mobilenet_v3_large",
]


class _Segmentation(nn.Module):
    """Features, a classifier of each place in them, and its answers made as large as the image."""

    def __init__(self, backbone, classifier, aux_classifier=None):
        super().__init__()
        self.backbone, self.classifier, self.aux_classifier = backbone, classifier, aux_classifier

    def forward(self, x):
        features, size = self.backbone(x), x.shape[-2:]
        result = OrderedDict(out=_enlarged(self.classifier(features["out"]), size))
        if self.aux_classifier is not None:
            result["aux"] = _enlarged(self.aux_classifier(features["aux"]), size)
        return result


class FCN(_Segmentation):
    """Convolutions only (https://arxiv.org/abs/1411.4038)."""


class DeepLabV3(_Segmentation):
    """Convolutions with holes of several sizes (https://arxiv.org/abs/1706.05587)."""


class LRASPP(nn.Module):
    """A light head on fine and coarse features (https://arxiv.org/abs/1905.02244)."""

    def __init__(self, backbone, low_channels: int, high_channels: int, num_classes: int, inter_channels: int = 128):
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input):
        return OrderedDict(out=_enlarged(self.classifier(self.backbone(input)), input.shape[-2:]))


class LRASPPHead(nn.Module):
    def __init__(self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int):
        super().__init__()
        self.cbr = nn.Sequential(*_conv(high_channels, inter_channels, 1))
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid()
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input):
        high = self.cbr(input["high"]) * self.scale(input["high"])
        return self.low_classifier(input["low"]) + self.high_classifier(_enlarged(high, input["low"].shape[-2:]))


class FCNHead(nn.Sequential):
    def __init__(self, in_channels: int, channels: int):
        inside = in_channels // 4
        super().__init__(*_conv(in_channels, inside, 3), nn.Dropout(0.1), nn.Conv2d(inside, channels, 1))


class DeepLabHead(nn.Sequential):
    def __init__(self, in_channels: int, num_classes: int, atrous_rates=(12, 24, 36)):
        super().__init__(ASPP(in_channels, atrous_rates), *_conv(256, 256, 3), nn.Conv2d(256, num_classes, 1))


class ASPP(nn.Module):
    """Convolutions with holes of several sizes, and the mean of all, side by side."""

    def __init__(self, in_channels: int, atrous_rates, out_channels: int = 256):
        super().__init__()
        ways = [nn.Sequential(*_conv(in_channels, out_channels, 1))]
        ways += [nn.Sequential(*_conv(in_channels, out_channels, 3, rate)) for rate in atrous_rates]
        ways.append(ASPPPooling(in_channels, out_channels))
        self.convs = nn.ModuleList(ways)
        self.project = nn.Sequential(*_conv(len(ways) * out_channels, out_channels, 1), nn.Dropout(0.5))

    def forward(self, x):
        return self.project(torch.cat([way(x) for way in self.convs], dim=1))


class ASPPPooling(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(nn.AdaptiveAvgPool2d(1), *_conv(in_channels, out_channels, 1))

    def forward(self, x):
        return _enlarged(super().forward(x), x.shape[-2:])


def _conv(inp: int, oup: int, kernel: int, dilation: int = 1) -> list:
    padding = dilation if kernel == 3 else 0
    return [
        nn.Conv2d(inp, oup, kernel, padding=padding, dilation=dilation, bias=False), nn.BatchNorm2d(oup), nn.ReLU()
    ]  # fmt: skip


def _enlarged(x, size):
    return nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


# -- models ------------------------------------------------------------------------------------------------------------


def _of_resnet(kind, head, resnet, num_classes, aux_loss):
    body = resnet(replace_stride_with_dilation=[False, True, True])
    layers = {"layer4": "out", **({"layer3": "aux"} if aux_loss else {})}
    aux = FCNHead(1024, num_classes) if aux_loss else None
    return kind(IntermediateLayerGetter(body, layers), head(2048, num_classes), aux)


def _of_mobilenet():
    """The layers of MobileNetV3, and where the size halves: (layers, [(place, channels), …])."""
    body = mobilenet_v3_large(dilated=True).features
    halving = [i for i, block in enumerate(body) if getattr(block, "_is_cn", False)]
    places = [0, *halving, len(body) - 1]
    return body, [(str(i), body[i].out_channels) for i in places]


def _deeplab_mobilenet(num_classes, aux_loss):
    body, places = _of_mobilenet()
    (aux_place, aux_channels), (place, channels) = places[-4], places[-1]
    layers = {place: "out", **({aux_place: "aux"} if aux_loss else {})}
    aux = FCNHead(aux_channels, num_classes) if aux_loss else None
    return DeepLabV3(IntermediateLayerGetter(body, layers), DeepLabHead(channels, num_classes), aux)


def _lraspp(num_classes, aux_loss):
    if aux_loss:
        raise NotImplementedError("This model does not use auxiliary loss")
    body, places = _of_mobilenet()
    (low, low_channels), (high, high_channels) = places[-4], places[-1]
    return LRASPP(IntermediateLayerGetter(body, {low: "low", high: "high"}), low_channels, high_channels, num_classes)


def _model(name: str, build):
    def make(weights=None, progress: bool = True, num_classes=None, aux_loss=None, weights_backbone=None, **kwargs):
        if weights_backbone:
            weights = weights_backbone  # refused with the same words

        def whole(**rest):
            return build(21 if num_classes is None else num_classes, bool(aux_loss), **rest)

        return without_weights(whole, name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"``{name}``; in a dict, ``out`` has the classes of each pixel. Here without published weights."
    return make


fcn_resnet50 = _model("fcn_resnet50", lambda n, aux: _of_resnet(FCN, FCNHead, resnet50, n, aux))
fcn_resnet101 = _model("fcn_resnet101", lambda n, aux: _of_resnet(FCN, FCNHead, resnet101, n, aux))
deeplabv3_resnet50 = _model("deeplabv3_resnet50", lambda n, aux: _of_resnet(DeepLabV3, DeepLabHead, resnet50, n, aux))
deeplabv3_resnet101 = _model(
    "deeplabv3_resnet101", lambda n, aux: _of_resnet(DeepLabV3, DeepLabHead, resnet101, n, aux)
)
deeplabv3_mobilenet_v3_large = _model("deeplabv3_mobilenet_v3_large", _deeplab_mobilenet)
lraspp_mobilenet_v3_large = _model("lraspp_mobilenet_v3_large", _lraspp)
