"""Function transforms: gradients of each example, Jacobians, Hessians, ensembles.

python bench/transforms.py [words]    each library in a process of its own, in turn
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import harness


def cases(torch, gpu=False):
    if gpu:
        return
    func, vmap = torch.func, torch.func.vmap
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5)
    )
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    rows, labels = torch.randn(256, 20), torch.randint(0, 5, (256,))
    for p in net.parameters():
        p.requires_grad_(False)

    def loss(parameters, x, label):
        return torch.nn.functional.cross_entropy(func.functional_call(net, parameters, (x,)), label)

    each = vmap(func.grad(loss), (None, 0, 0))
    yield "gradients of 256 examples, MLP", lambda: lambda: each(parameters, rows, labels)
    yield "gradients of 16 examples, CNN", lambda: _images(torch)
    yield "jacrev, MLP 20 to 5", lambda: lambda: func.jacrev(net)(rows[0])
    yield "jacfwd, MLP 20 to 5", lambda: lambda: func.jacfwd(net)(rows[0])
    yield "vmap of jacrev, 256 rows", lambda: lambda: vmap(func.jacrev(net))(rows)
    yield "vmap of jacfwd, 256 rows", lambda: lambda: vmap(func.jacfwd(net))(rows)
    yield "jvp, MLP", lambda: lambda: func.jvp(net, (rows[0],), (rows[1],))
    yield "hessian, MLP", lambda: lambda: func.hessian(lambda x: net(x).sum())(rows[0])
    yield "ensemble of 10 MLPs, a batch of 64", lambda: _ensemble(torch)
    yield "gradients of an ensemble of 10 MLPs", lambda: _ensemble(torch, gradients=True)
    weight, bias = torch.randn(16, 16), torch.randn(16)
    layer = lambda x: torch.nn.functional.linear(x, weight, bias).tanh()
    many = torch.randn(64, 16)
    yield "jacrev, one layer of 16", lambda: lambda: func.jacrev(layer)(many[0])
    yield "jacfwd, one layer of 16", lambda: lambda: func.jacfwd(layer)(many[0])
    yield "hessian, one layer of 16", lambda: lambda: func.hessian(layer)(many[0])
    yield "hessians of 64 rows, one layer of 16", lambda: lambda: vmap(func.hessian(layer))(many)


def _images(torch):
    func, nn = torch.func, torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    images, labels = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))

    def loss(parameters, image, label):
        out = func.functional_call(net, parameters, (image.unsqueeze(0),))
        return nn.functional.cross_entropy(out, label.unsqueeze(0))

    each = func.vmap(func.grad(loss), (None, 0, 0))
    return lambda: each(parameters, images, labels)


def _ensemble(torch, gradients=False):
    func, nn = torch.func, torch.nn
    models = [nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
              for _ in range(10)]  # fmt: skip
    parameters, buffers = func.stack_module_state(models)
    parameters = {name: p.detach() for name, p in parameters.items()}
    images, labels = torch.randn(64, 784), torch.randint(0, 10, (64,))

    def call(parameters, buffers):
        return func.functional_call(models[0], (parameters, buffers), (images,))

    def loss(parameters, buffers):
        return nn.functional.cross_entropy(call(parameters, buffers), labels)

    each = func.vmap(func.grad(loss) if gradients else call)
    return lambda: each(parameters, buffers)


if __name__ == "__main__":
    harness.apart(__file__, cases)
