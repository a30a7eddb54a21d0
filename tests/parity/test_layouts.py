"""How results and gradients lie in memory, beside PyTorch; ``layouts.py`` has the table and more shapes."""

from __future__ import annotations

import warnings

import layouts
import pytest
import torch

import rushlight


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 4, 5)])
def test_strides_of_results_and_gradients(shape):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in layouts.rows([shape]):
            found = layouts.compare(row)
            if found and not layouts.kept(row):
                wrong.append(f"{row}\n    torch     {found[0]}\n    rushlight {found[1]}")
    assert not wrong, "\n".join(wrong)


VOLUMES = [
    "x", "x + 1", "x * x.sum(1, keepdim=True)", "F.relu(x)", "F.max_pool3d(x, 2)", "F.avg_pool3d(x, 2)",
    "F.conv3d(x, torch.ones(2, 3, 1, 1, 1))", "F.batch_norm(x, None, None, training=True)", "torch.empty_like(x)",
    "x.clone()", "x.double()", "torch.cat([x, x], 1)", "F.interpolate(x, scale_factor=2)", "x.contiguous()",
    "F.dropout(x, 0.5)", "x.to(memory_format=torch.contiguous_format)", "F.group_norm(x, 3)",
]  # fmt: skip


@pytest.mark.parametrize("text", VOLUMES)
def test_channels_last_of_volumes(text):
    found = []
    for library in (torch, rushlight):
        library.manual_seed(0)
        x = library.rand(2, 3, 4, 4, 2).to(memory_format=library.channels_last_3d).requires_grad_()
        result = eval(text, dict(torch=library, F=library.nn.functional, x=x))
        if result is not x and result.requires_grad:
            result.sum().backward()
        grad = None if x.grad is None else x.grad.stride()
        found.append((result.stride(), result.is_contiguous(memory_format=library.channels_last_3d), grad))
    assert found[0] == found[1]


def test_a_model_in_channels_last():
    """Weights, activations and gradients of a small network lie as PyTorch's do."""
    found = []
    for library in (torch, rushlight):
        nn = library.nn
        library.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1),
            nn.GroupNorm(2, 4), nn.SiLU(), nn.AdaptiveAvgPool2d(2),
        )  # fmt: skip
        net = net.to(memory_format=library.channels_last)
        x = library.rand(2, 3, 8, 8).to(memory_format=library.channels_last)
        lines = [p.stride() for p in net.parameters()]
        for layer in net:
            x = layer(x)
            lines.append((x.stride(), x.is_contiguous(memory_format=library.channels_last)))
        x.sum().backward()
        lines += [p.grad.stride() for p in net.parameters()]
        found.append(lines)
    assert found[0] == found[1]
