from __future__ import annotations

import functools

from ... import nn
from .mobilenetv2 import _divisible
from .weights import without_weights

__all__ = ["MNASNet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"]

_WIDTHS = (32, 16, 24, 40, 80, 96, 192, 320)
_STAGES = [(3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1)]  # kernel stride expand n
_norm = functools.partial(nn.BatchNorm2d, momentum=1 - 0.9997)


class InvertedResidual(nn.Module):
    """Widens, filters each channel, narrows."""

    def __init__(self, inp: int, oup: int, kernel: int, stride: int, expand: int):
        super().__init__()
        inside = inp * expand
        self.apply_residual = inp == oup and stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(inp, inside, 1, bias=False), _norm(inside), nn.ReLU(inplace=True),
            nn.Conv2d(inside, inside, kernel, padding=kernel // 2, stride=stride, groups=inside, bias=False),
            _norm(inside), nn.ReLU(inplace=True), nn.Conv2d(inside, oup, 1, bias=False), _norm(oup),
        )  # fmt: skip

    def forward(self, input):
        return self.layers(input) + input if self.apply_residual else self.layers(input)


class MNASNet(nn.Module):
    """A network found by search (https://arxiv.org/abs/1807.11626)."""

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2):
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        widths = [_divisible(width * alpha, 8) for width in _WIDTHS]
        layers: list[nn.Module] = [
            nn.Conv2d(3, widths[0], 3, padding=1, stride=2, bias=False), _norm(widths[0]), nn.ReLU(inplace=True),
            nn.Conv2d(widths[0], widths[0], 3, padding=1, groups=widths[0], bias=False), _norm(widths[0]),
            nn.ReLU(inplace=True), nn.Conv2d(widths[0], widths[1], 1, bias=False), _norm(widths[1]),
        ]  # fmt: skip
        for inp, oup, (kernel, stride, expand, count) in zip(widths[1:], widths[2:], _STAGES):
            first = InvertedResidual(inp, oup, kernel, stride, expand)
            rest = [InvertedResidual(oup, oup, kernel, 1, expand) for _ in range(count - 1)]
            layers.append(nn.Sequential(first, *rest))
        layers += [nn.Conv2d(widths[-1], 1280, 1, bias=False), _norm(1280), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_uniform_(module.weight, mode="fan_out", nonlinearity="sigmoid")
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.layers(x).mean([2, 3]))


def _model(name: str, alpha: float):
    def make(weights=None, progress: bool = True, **kwargs) -> MNASNet:
        return without_weights(functools.partial(MNASNet, alpha), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"MNASNet with widths times {alpha}."
    return make


mnasnet0_5 = _model("mnasnet0_5", 0.5)
mnasnet0_75 = _model("mnasnet0_75", 0.75)
mnasnet1_0 = _model("mnasnet1_0", 1.0)
mnasnet1_3 = _model("mnasnet1_3", 1.3)
