from __future__ import annotations

from functools import partial

from ... import nn
from ...ops.shape import flatten
from . import weights as all_weights

__all__ = [
    "BasicBlock", "Bottleneck", "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip


class _Block(nn.Module):
    """Adds what its layers compute to its input, which ``downsample`` fits where the sizes differ."""

    expansion = 1

    def forward(self, x):
        out = self.body(x)
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class BasicBlock(_Block):
    """Two 3x3 convolutions."""

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def body(self, x):
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))


class Bottleneck(_Block):
    """A 3x3 convolution between two 1x1 ones; it has the stride, as in ResNet v1.5."""

    expansion = 4

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def body(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        return self.bn3(self.conv3(self.relu(self.bn2(self.conv2(x)))))


class ResNet(nn.Module):
    """Four stages of residual blocks (https://arxiv.org/abs/1512.03385).

    >>> rushlight.vision.models.resnet18(num_classes=10)(rushlight.ones(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        block,
        layers,
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation=None,
        norm_layer=None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width = groups, width_per_group
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialize(zero_init_residual)

    def _make_layer(self, block, planes: int, blocks: int, stride: int = 1, dilate: bool = False):
        downsample, dilation = None, self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride), self._norm_layer(planes * block.expansion)
            )
        shape = self.groups, self.base_width
        made = [block(self.inplanes, planes, stride, downsample, *shape, dilation, self._norm_layer)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            made.append(block(self.inplanes, planes, 1, None, *shape, self.dilation, self._norm_layer))
        return nn.Sequential(*made)

    def _initialize(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, BasicBlock):
                    nn.init.constant_(module.bn2.weight, 0)
                elif isinstance(module, Bottleneck):
                    nn.init.constant_(module.bn3.weight, 0)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(flatten(self.avgpool(x), 1))


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1):
    return nn.Conv2d(
        in_planes, out_planes, 3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation
    )


def conv1x1(in_planes: int, out_planes: int, stride: int = 1):
    return nn.Conv2d(in_planes, out_planes, 1, stride=stride, bias=False)


def _builder(weights_enum, block, layers, **shape):
    name = weights_enum.__name__.removesuffix("_Weights").lower()

    def resnet(weights=None, progress: bool = True, **kwargs) -> ResNet:
        return all_weights.build(partial(ResNet, block, layers, **shape), weights_enum, weights, progress, kwargs)

    resnet.__name__ = resnet.__qualname__ = name
    resnet.__doc__ = f"A ResNet of {layers} {block.__name__}s."
    return resnet


resnet18 = _builder(all_weights.ResNet18_Weights, BasicBlock, [2, 2, 2, 2])
resnet34 = _builder(all_weights.ResNet34_Weights, BasicBlock, [3, 4, 6, 3])
resnet50 = _builder(all_weights.ResNet50_Weights, Bottleneck, [3, 4, 6, 3])
resnet101 = _builder(all_weights.ResNet101_Weights, Bottleneck, [3, 4, 23, 3])
resnet152 = _builder(all_weights.ResNet152_Weights, Bottleneck, [3, 8, 36, 3])
resnext50_32x4d = _builder(all_weights.ResNeXt50_32X4D_Weights, Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4)
resnext101_32x8d = _builder(
    all_weights.ResNeXt101_32X8D_Weights, Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8
)
wide_resnet50_2 = _builder(all_weights.Wide_ResNet50_2_Weights, Bottleneck, [3, 4, 6, 3], width_per_group=128)
wide_resnet101_2 = _builder(all_weights.Wide_ResNet101_2_Weights, Bottleneck, [3, 4, 23, 3], width_per_group=128)
