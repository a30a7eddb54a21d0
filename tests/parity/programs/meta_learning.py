"""MAML, per-sample gradients, gradient penalty, hooks, averages, reshapes, error texts."""

from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, vmap

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for it in range(30):
    amp, ph = torch.rand(4) * 4 + 1, torch.rand(4) * 3
    opt.zero_grad()
    tot = 0.0
    for a, p in zip(amp, ph):
        x = torch.rand(10, 1) * 10 - 5
        y = a * torch.sin(x + p)
        params = OrderedDict(net.named_parameters())
        l = F.mse_loss(functional_call(net, params, x), y)
        g = torch.autograd.grad(l, params.values(), create_graph=True)
        fast = OrderedDict((k, w - 0.01 * gg) for (k, w), gg in zip(params.items(), g))
        x2 = torch.rand(10, 1) * 10 - 5
        tot = tot + F.mse_loss(functional_call(net, fast, (x2,)), a * torch.sin(x2 + p)) / 4
    tot.backward()
    opt.step()
    if it % 10 == 0:
        print(it, f"{tot.item():.5f}")
params = {k: v.detach() for k, v in net.named_parameters()}


def loss(p, x, y):
    return F.mse_loss(functional_call(net, p, (x.unsqueeze(0),)), y.unsqueeze(0))


per = vmap(grad(loss), in_dims=(None, 0, 0))(params, torch.linspace(-1, 1, 5).unsqueeze(1), torch.zeros(5, 1))
print({k: v.shape for k, v in per.items()}, per["2.bias"].flatten())
print(jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0])))
# gradient penalty
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
xr = torch.randn(6, 2)
xf = torch.randn(6, 2)
al = torch.rand(6, 1)
xi = (al * xr + (1 - al) * xf).requires_grad_(True)
gr = torch.autograd.grad(
    outputs=D(xi), inputs=xi, grad_outputs=torch.ones(6, 1), create_graph=True, retain_graph=True, only_inputs=True
)[0]
gp = ((gr.norm(2, dim=1) - 1) ** 2).mean()
gp.backward()
print(gp, D[0].weight.grad.sum())
feats = {}


def hook(name):
    def fn(m, i, o):
        feats[name] = o.detach()

    return fn


for n, m in net.named_modules():
    if isinstance(m, nn.Linear):
        m.register_forward_hook(hook(n))
net(torch.ones(1, 1))
print({k: v.shape for k, v in feats.items()})
ema = torch.optim.swa_utils.AveragedModel(net, avg_fn=lambda a, m, n: 0.9 * a + 0.1 * m)
ema.update_parameters(net)
print(ema.n_averaged, sum(p.abs().sum() for p in ema.parameters()))
x = torch.arange(24.0).reshape(2, 3, 4)
print(
    x.unfold(2, 2, 1).shape,
    x.flatten(1).chunk(2, 1)[0].shape,
    torch.roll(x, 1, 0)[0, 0],
    x.movedim(0, -1).shape,
    x.swapaxes(0, 1).shape,
    x.unflatten(2, (2, 2)).shape,
    torch.block_diag(x[0], x[1]).shape,
    torch.cumsum(x, 1)[1, 2],
    torch.triu_indices(3, 3),
    torch.combinations(torch.arange(3)),
)
print(
    torch.tensor([1.0, float("nan"), float("inf")]).nan_to_num(),
    torch.bucketize(torch.tensor([0.5, 2.5]), torch.tensor([0.0, 1.0, 2.0])),
    torch.searchsorted(torch.tensor([1, 3, 5]), 3),
    torch.logspace(0, 2, 3),
    torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")[0],
)
try:
    torch.ones(2, 3) + torch.ones(4)
except RuntimeError as e:
    print(e)
try:
    nn.Linear(3, 2)(torch.ones(2, 4))
except RuntimeError as e:
    print(e)
try:
    nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0, 5]))
except IndexError as e:
    print(e)
try:
    net.load_state_dict({"x": torch.ones(1)})
except RuntimeError as e:
    print(e)
try:
    torch.ones(1).backward()
except RuntimeError as e:
    print(e)
try:
    nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8))
except RuntimeError as e:
    print(e)
