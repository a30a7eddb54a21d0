"""The examples every course shows."""

import torch
from helpers import section
from torch import nn

section("y = (x + w)(w + 1)")
w = torch.tensor([1.0], requires_grad=True)
x = torch.tensor([2.0], requires_grad=True)
a, b = torch.add(w, x), torch.add(w, 1)
y = torch.mul(a, b)
y.backward()
print(w.grad, x.grad, y, w.is_leaf, a.is_leaf, y.grad_fn.name())

section("two linear layers of weight 2")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 2, bias=False)
        self.fc2 = nn.Linear(2, 1, bias=False)
        for p in self.parameters():
            nn.init.constant_(p, 2.0)

    def forward(self, x):
        return self.fc2(self.fc1(x))


net = Net()
features = {}
for name, layer in net.named_children():
    layer.register_forward_hook(lambda m, i, o, name=name: features.__setitem__(name, o.detach()))
x = torch.ones(1, 2, requires_grad=True)
out = net(x)
out.backward()
print(out, features, x.grad, net.fc1.weight.grad, net.fc2.weight.grad)

section("running mean and variance")


class Running(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))
        self.register_buffer("last", None, persistent=False)

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            self.var = 0.9 * self.var + 0.1 * x.var(0, unbiased=False)
            self.last = x.mean(0)
        return (x - self.mean) / (self.var + 1e-5).sqrt() * self.weight


m = Running(2)
m(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
print(m.mean, m.var, m.last)
print(list(m.state_dict()), [n for n, _ in m.named_buffers()])
m.eval()
m(torch.zeros(3, 2))
print(m.mean, m)

section("a forward hook that adds 10, a pre-hook that doubles")
ident = nn.Identity()
ident.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
ident.register_forward_hook(lambda m, args, out: out + 10)
print(ident(torch.tensor([1.0, 2.0])))

section("a full backward hook that doubles grad_input")
lin = nn.Linear(2, 1)
nn.init.ones_(lin.weight)
x = torch.ones(1, 2, requires_grad=True)
handle = lin.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
lin(x).sum().backward()
print(x.grad)
handle.remove()
x.grad = None
lin(x).sum().backward()
print(x.grad)

section("apply(init_weights)")


@torch.no_grad()
def init_weights(m):
    print(m)
    if type(m) is nn.Linear:
        m.weight.fill_(1.0)
        print(m.weight)


print(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).apply(init_weights))

section("add_module in a loop")


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(3):
            self.add_module(f"linear_{i}", nn.Linear(2, 2))


print(Loop(), [n for n, _ in Loop().named_parameters()])

section("printing")


class Shown(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.Identity()])
        self.named = nn.ModuleDict({"a": nn.Flatten(), "b": nn.Sequential(nn.Unflatten(1, (1, 2)))})
        self.params = nn.ParameterList([torch.ones(2, 3), torch.ones(1)])
        self.values = nn.ParameterDict({"k": nn.Parameter(torch.ones(2))})
        self.empty = nn.Sequential()
        self.nothing = None
        self.add_module("none", None)

    def extra_repr(self):
        return "one=1\ntwo=2"


print(Shown())
print(nn.Sequential(Shown(), nn.Bilinear(1, 2, 3, bias=False)))
