"""Marks in a model: here numbers become codes, here they become numbers again."""

from __future__ import annotations

from ...nn.module import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(Module):
    def __init__(self, qconfig=None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """The place where a model's input becomes codes. Until ``convert`` it only observes, then it is ``Quantize``."""


class DeQuantStub(_Stub):
    """The place where codes become numbers. Until ``convert`` it does nothing, then it is ``DeQuantize``."""


class QuantWrapper(Module):
    """A module between a ``QuantStub`` and a ``DeQuantStub``."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
