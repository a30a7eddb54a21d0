"""Layers whose weights are rounded on the way, as they will be when they are codes: for training."""

from __future__ import annotations

from ...compat import missing as _missing
from ...nn import functional as _functional
from ...nn.layers import conv as _conv
from ...nn.layers import linear as _linear

__all__ = ["Conv2d", "Linear"]


class _Rounded:
    """``weight_fake_quant`` rounds the weight in each forward pass."""

    def __init__(self, *args, qconfig=None, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The same layer with a rounded weight; ``mod`` has a ``qconfig``."""
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have qconfig defined")
        inner = mod if isinstance(mod, (_conv.Conv2d, _linear.Linear)) else mod[0]
        made = cls(**cls._arguments(inner), qconfig=mod.qconfig)
        made.weight, made.bias = inner.weight, inner.bias
        made.train(mod.training)
        return made

    def to_float(self):
        """The layer without the rounding."""
        made = self._FLOAT(**self._arguments(self))
        made.weight, made.bias = self.weight.detach(), self.bias
        return made


class Linear(_Rounded, _linear.Linear):
    """A linear layer with a rounded weight."""

    _FLOAT = _linear.Linear

    @staticmethod
    def _arguments(mod) -> dict:
        return {"in_features": mod.in_features, "out_features": mod.out_features, "bias": mod.bias is not None}

    def forward(self, input):
        return _functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


class Conv2d(_Rounded, _conv.Conv2d):
    """A convolution with a rounded weight."""

    _FLOAT = _conv.Conv2d

    @staticmethod
    def _arguments(mod) -> dict:
        names = "in_channels out_channels kernel_size stride padding dilation groups padding_mode"
        return {**{name: getattr(mod, name) for name in names.split()}, "bias": mod.bias is not None}

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


__getattr__ = _missing(__name__)
__path__: list[str] = []  # a package to the import system
