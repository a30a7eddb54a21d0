"""What Module itself costs, beside PyTorch: making one, reading an attribute, calling, state_dict of 200 layers."""

from __future__ import annotations


def cases(torch, gpu=False):
    if gpu:
        return
    for name, function in _functions(torch).items():
        yield name, lambda function=function: function


def _functions(package) -> dict:
    nn = package.nn

    class Empty(nn.Module):
        def forward(self, x):
            return x

    module, layer = Empty(), nn.Linear(2, 2)
    hooked = Empty()
    hooked.register_forward_hook(lambda module, args, output: None)
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(200)])
    parameter = nn.Parameter(package.ones(2))

    def assign():
        module.plain = 1

    def register():
        module.weight = parameter

    return {
        "Module()": nn.Module,
        "self.weight": lambda: layer.weight,
        "self.in_features": lambda: layer.in_features,
        "self.plain = 1": assign,
        "self.weight = parameter": register,
        "call": lambda: module(1),
        "call with a forward hook": lambda: hooked(1),
        "Sequential of 200 (one child)": lambda: model[100],
        "state_dict() of 200 layers": model.state_dict,
        "list(parameters()) of 200 layers": lambda: list(model.parameters()),
        "train() of 200 layers": model.train,
        "Linear(2, 2)": lambda: nn.Linear(2, 2),
    }
