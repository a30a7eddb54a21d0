"""What models built on other models share."""

from __future__ import annotations

from collections import OrderedDict

from ... import nn

__all__ = ["IntermediateLayerGetter"]


class IntermediateLayerGetter(nn.ModuleDict):
    """The layers of a model up to the last one asked for; ``return_layers`` names the outputs to give, and how."""

    def __init__(self, model: nn.Module, return_layers: dict[str, str]):
        children = dict(model.named_children())
        if not {*return_layers} <= {*children}:
            raise ValueError("return_layers are not present in model")
        last = max(list(children).index(name) for name in return_layers)
        super().__init__(OrderedDict(list(children.items())[: last + 1]))
        self.return_layers = {str(k): str(v) for k, v in return_layers.items()}

    def forward(self, x):
        found = OrderedDict()
        for name, layer in self.items():
            x = layer(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
