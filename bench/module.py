"""What Module itself costs, beside PyTorch: making one, reading an attribute, calling, state_dict of 200 layers.

    python bench/module.py

Each line: ours, PyTorch's, and how many times faster ours is.
"""

from __future__ import annotations

import timeit

import torch

import rushlight


def cases(package) -> dict:
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


def microseconds(function) -> float:
    timer = timeit.Timer(function)
    number, _ = timer.autorange()
    number = max(1, number // 50)  # many short runs: the best of them met no other process
    return min(timer.repeat(60, number)) / number * 1e6


def main() -> None:
    torch.set_num_threads(1)
    theirs, ours = cases(torch), cases(rushlight)
    print(f"{'':34}{'rushlight':>12}{'PyTorch':>12}{'faster':>9}")
    for name in ours:
        a, b = microseconds(ours[name]), microseconds(theirs[name])
        print(f"{name:34}{a:9.3f} µs{b:9.3f} µs{b / a:8.2f}x")


if __name__ == "__main__":
    main()
