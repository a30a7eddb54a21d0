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


# Under create_graph PyTorch computes these from other operators.
_OTHERWISE_RECORDED = {"F.group_norm(x, 3)", "F.group_norm(x, 1, torch.ones(3), torch.zeros(3))"}


@pytest.mark.parametrize("create_graph", [False, True])
def test_strides_of_what_grad_returns(create_graph):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in layouts.gradient_rows((2, 3, 4, 5)):
            if create_graph and row[0] in _OTHERWISE_RECORDED:
                continue
            theirs = layouts.gradients(torch, *row, create_graph)
            if theirs and not isinstance(theirs, str):
                ours = layouts.gradients(rushlight, *row, create_graph)
                if theirs != ours:
                    wrong.append(f"{row}\n    torch     {theirs}\n    rushlight {ours}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["x.mean(0)", "x.mean()", "x.flip(1)", "F.pad(x, (1, 1))", "x.cumsum(0)", "x.rot90()"])
def test_gradients_have_memory_of_their_own(text):
    """They can be written, by hooks too, and what they came from does not change."""
    seen = []
    for library in (torch, rushlight):
        x = library.ones(2, 3, requires_grad=True)
        result = eval(text, dict(F=library.nn.functional, x=x))
        given = library.ones_like(result)
        (found,) = library.autograd.grad(result, x, given, retain_graph=True)
        x.register_hook(lambda g: g.mul_(2))
        result.backward(given)
        seen.append((found.mul_(2).tolist(), found.stride(), given.tolist(), x.grad.tolist()))
    assert seen[0] == seen[1]


VOLUMES = [
    "x", "x + 1", "x * x.sum(1, keepdim=True)", "F.relu(x)", "F.max_pool3d(x, 2)", "F.avg_pool3d(x, 2)",
    "F.conv3d(x, torch.ones(2, 3, 1, 1, 1))", "F.batch_norm(x, None, None, training=True)", "torch.empty_like(x)",
    "x.clone()", "x.double()", "torch.cat([x, x], 1)", "F.interpolate(x, scale_factor=2)", "x.contiguous()",
    "F.dropout(x, 0.5)", "x.to(memory_format=torch.contiguous_format)", "F.group_norm(x, 3)",
    "F.conv3d(x, w, padding=1)", "F.conv3d(x, w.contiguous(memory_format=torch.channels_last_3d))",
    "F.conv_transpose3d(x, w.transpose(0, 1))", "F.adaptive_avg_pool3d(x, 2)",
    "F.adaptive_max_pool3d(x, 2)", "F.lp_pool3d(x, 2, 2)", "F.max_pool3d(x, 2, return_indices=True)[0]",
    "F.batch_norm(x, torch.zeros(3), torch.ones(3))", "F.instance_norm(x)", "F.layer_norm(x, x.shape[1:])",
    "F.interpolate(x, scale_factor=2, mode='trilinear')", "F.interpolate(x, scale_factor=2, mode='nearest-exact')",
    "F.interpolate(x, size=2, mode='area')", "torch.stack([x, x])", "torch.cat([x, x])", "x.softmax(1)",
    "x.log_softmax(-1)", "x.sum(1, keepdim=True)", "x.mean((2, 3, 4), keepdim=True)", "x.amax(1, keepdim=True)",
    "x.var((0, 2, 3, 4), keepdim=True)", "F.pad(x, (1, 1))", "F.pad(x, (1, 1, 1, 1, 1, 1), mode='replicate')",
    "F.pad(x, (1, 1, 1, 1, 1, 1), mode='reflect')", "F.pad(x, (1, 1, 1, 1, 1, 1), mode='circular')",
    "x * x.detach()", "x / 2", "x.sigmoid()", "F.gelu(x)", "F.silu(x)", "F.leaky_relu(x)", "F.elu(x)", "x.tanh()",
    "torch.where(x > 0.5, x, 0.)", "x.clamp(0.2, 0.8)", "torch.maximum(x, x.detach())", "x.pow(2)", "x.half()",
    "F.dropout3d(x, 0.5)", "F.local_response_norm(x, 2)", "x.permute(0, 2, 3, 4, 1)", "x.flatten(1)", "x[:, 1:]",
    "x.flip(1)", "x.cumsum(1)", "x.roll(1, 1)", "x.index_select(1, torch.tensor([0]))", "x.masked_fill(x > 0.5, 0.)",
    "F.grid_sample(x, torch.zeros(2, 2, 2, 2, 3), align_corners=False)", "F.prelu(x, torch.full((1,), 0.25))",
]  # fmt: skip


@pytest.mark.parametrize("text", VOLUMES)
def test_channels_last_of_volumes(text):
    """Strides of the result, of the leaves' gradients, and of what ``grad`` returns for them."""
    found = []
    for library in (torch, rushlight):
        library.manual_seed(0)
        x = library.rand(2, 3, 4, 4, 2).to(memory_format=library.channels_last_3d).requires_grad_()
        w = library.rand(2, 3, 2, 2, 2).requires_grad_()
        result = eval(text, dict(torch=library, F=library.nn.functional, x=x, w=w))
        seen = [result.stride(), result.is_contiguous(memory_format=library.channels_last_3d)]
        if result is not x and result.requires_grad:
            for form in (library.contiguous_format, library.channels_last_3d)[: 1 + (result.ndim == 5)]:
                g = library.ones(result.shape, dtype=result.dtype).to(memory_format=form)
                grads = library.autograd.grad(result, (x, w), g, retain_graph=True, allow_unused=True)
                seen += [None if t is None else layouts.steps(t) for t in grads]
            result.sum().backward()
            seen += [None if t.grad is None else t.grad.stride() for t in (x, w)]
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("batch", [2, 16])
def test_volumes_under_a_kernel_of_one_pixel(count, batch):
    """PyTorch takes another way for them by several threads, or for a large batch."""
    found = []
    for library in (torch, rushlight):
        before = library.get_num_threads()
        library.set_num_threads(count)
        x = library.rand(batch, 3, 4, 4, 2).to(memory_format=library.channels_last_3d)
        found.append(library.nn.functional.conv3d(x, library.ones(2, 3, 1, 1, 1)).stride())
        library.set_num_threads(before)
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
