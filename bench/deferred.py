"""What it costs to record one call for an accelerator; on XLA's CPU device, beside PyTorch running it on its CPU."""

from __future__ import annotations


def cases(torch, gpu=False):
    ours = torch.__name__ == "rushlight"
    device = "cuda" if gpu else "xla" if ours else "cpu"
    x = torch.ones(4, 4, device=device)
    w = torch.ones(4, 4, device=device, requires_grad=True)
    b = torch.ones(4, device=device, requires_grad=True)
    functional = torch.nn.functional
    yield "record a * b", lambda: lambda: w * x
    yield "a * b, no gradient", lambda: lambda: x * x
    yield "relu", lambda: lambda: torch.relu(x)
    yield "linear", lambda: lambda: functional.linear(x, w, b)
    yield "layer_norm", lambda: lambda: functional.layer_norm(x, (4,))
