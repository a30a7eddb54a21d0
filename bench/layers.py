"""Basic layers, forward and backward, at the sizes of real models: losses, activations, norms, dropout, embedding."""

from __future__ import annotations


def cases(torch, gpu=False):
    device = "cuda" if gpu else "cpu"
    for name, build in _builders(torch).items():
        yield name, lambda build=build: _step(torch, build, device)


def _builders(torch) -> dict:
    """name -> function(device) that returns (inputs, function of them)."""
    nn, F = torch.nn, torch.nn.functional

    def tokens(*shape):
        return lambda device: torch.randn(*shape, device=device, requires_grad=True)

    def layer(make, *shape):
        def build(device):
            module = make().to(device)
            return [tokens(*shape)(device), *module.parameters()], lambda x, *_: module(x)

        return build

    def classes(rows, count):
        def build(device):
            target = torch.randint(0, count, (rows,), device=device)
            return [tokens(rows, count)(device)], lambda x: F.cross_entropy(x, target)

        return build

    def small_mse(device):
        target = torch.ones(1, 2, device=device)
        return [tokens(1, 2)(device)], lambda x: F.mse_loss(x, target)

    def embedding(device):
        table = nn.Embedding(10_000, 256, device=device)
        index = torch.randint(0, 10_000, (32, 128), device=device)
        return [table.weight], lambda _: table(index)

    return {
        "mse_loss (1, 2)": small_mse,
        "cross_entropy (64, 10)": classes(64, 10),
        "cross_entropy (2048, 8192)": classes(2048, 8192),
        "relu (2048, 3072)": layer(nn.ReLU, 2048, 3072),
        "gelu (2048, 3072)": layer(nn.GELU, 2048, 3072),
        "gelu tanh (2048, 3072)": layer(lambda: nn.GELU("tanh"), 2048, 3072),
        "silu (2048, 3072)": layer(nn.SiLU, 2048, 3072),
        "softmax (96, 128, 128)": layer(lambda: nn.Softmax(-1), 96, 128, 128),
        "layer_norm (2048, 768)": layer(lambda: nn.LayerNorm(768), 2048, 768),
        "rms_norm (2048, 768)": layer(lambda: nn.RMSNorm(768), 2048, 768),
        "batch_norm (64, 32, 26, 26)": layer(lambda: nn.BatchNorm2d(32), 64, 32, 26, 26),
        "batch_norm (64, 512)": layer(lambda: nn.BatchNorm1d(512), 64, 512),
        "group_norm (64, 32, 26, 26)": layer(lambda: nn.GroupNorm(8, 32), 64, 32, 26, 26),
        "dropout (2048, 768)": layer(lambda: nn.Dropout(0.1), 2048, 768),
        "embedding (10000, 256), 4096 rows": embedding,
    }


def _step(torch, build, device):
    torch.manual_seed(0)
    inputs, function = build(device)
    cotangent = torch.randn_like(function(*inputs))

    def step():
        for t in inputs:
            t.grad = None
        function(*inputs).backward(cotangent)
        return inputs[0].grad.sum()

    return step
