"""Convolution and pooling, forward and backward, and a training step of a small CNN (batch 64, images 28 by 28)."""

from __future__ import annotations

import numpy as np

CONVOLUTIONS = {
    "conv 3x3, (64,32,26,26) to 64": ((64, 32, 26, 26), (64, 32, 3, 3), {}),
    "conv 3x3, (64,1,28,28) to 32": ((64, 1, 28, 28), (32, 1, 3, 3), {}),
    "conv 1x1, (32,64,28,28) to 128": ((32, 64, 28, 28), (128, 64, 1, 1), {}),
    "conv 3x3, stride 2, (32,64,28,28) to 128": ((32, 64, 28, 28), (128, 64, 3, 3), {"stride": 2, "padding": 1}),
    "conv 3x3, depthwise, (32,64,28,28)": ((32, 64, 28, 28), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
    "conv 5, (32,64,256) to 64": ((32, 64, 256), (64, 64, 5), {"padding": 2}),
}


def cases(torch, gpu=False):
    if gpu:
        return
    for name, arguments in CONVOLUTIONS.items():
        yield name, lambda a=arguments: _convolution(torch, *a)
    yield "max_pool 2x2, (64,64,24,24)", lambda: _pooling(torch, torch.nn.MaxPool2d(2))
    yield "avg_pool 2x2, (64,64,24,24)", lambda: _pooling(torch, torch.nn.AvgPool2d(2))
    yield (
        "bilinear to twice the size, (64,64,24,24)",
        lambda: _pooling(torch, torch.nn.Upsample(scale_factor=2, mode="bilinear")),
    )
    yield "CNN step: conv32 conv64 pool dense128", lambda: _training(torch)


def _tensor(torch, *shape):
    return torch.tensor(np.random.RandomState(0).randn(*shape).astype(np.float32))


def _convolution(torch, x_shape, w_shape, options):
    conv = torch.nn.functional.conv1d if len(x_shape) == 3 else torch.nn.functional.conv2d
    x, w = (_tensor(torch, *shape).requires_grad_() for shape in (x_shape, w_shape))
    b = _tensor(torch, w_shape[0]).requires_grad_()
    g = torch.ones_like(conv(x, w, b, **options))

    def run():
        x.grad = w.grad = b.grad = None
        conv(x, w, b, **options).backward(g)

    return run


def _pooling(torch, layer):
    x = _tensor(torch, 64, 64, 24, 24).requires_grad_()
    g = torch.ones_like(layer(x))

    def run():
        x.grad = None
        layer(x).backward(g)

    return run


def _training(torch):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = _tensor(torch, 64, 1, 28, 28), torch.tensor(np.arange(64) % 10)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step
