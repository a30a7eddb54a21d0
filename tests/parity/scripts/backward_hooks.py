"""Full and deprecated backward hooks: what they see, what they may return, what is forbidden."""

import torch
from helpers import attempt, count_up, section
from torch import nn
from torch.nn import Module
from torch.nn.modules import module as machinery


def show(label):
    def hook(module, grad_input, grad_output):
        print("    ", label, grad_input, grad_output)

    return hook


def show_before(label):
    def hook(module, grad_output):
        print("    ", label, grad_output)

    return hook


class Two(Module):
    def forward(self, x, y):
        return x * 2, y * 3


class One(Module):
    def forward(self, x):
        return x * 2


class Wrapped(Module):
    def __init__(self, wrap):
        super().__init__()
        self.wrap = wrap

    def forward(self, x):
        return self.wrap(x * 2)


x = torch.ones(2, requires_grad=True)
y = torch.ones(2, requires_grad=True)


def grads(run):
    x.grad = y.grad = None
    run()
    return x.grad, y.grad


section("what they see")
m = Two()
m.register_full_backward_hook(show("hook"))
m.register_full_backward_pre_hook(show_before("pre"))
a, b = m(x, y)
print(a, b, a.grad_fn.name(), a.grad_fn is b.grad_fn, len(a.grad_fn.next_functions))
attempt("both", grads, lambda: (a.sum() + b.sum()).backward())
attempt("one unused", grads, lambda: m(x, y)[0].sum().backward())
attempt("a number in and out", grads, lambda: m(x, 3)[0].sum().backward())
attempt("one without gradient", grads, lambda: m(x, y.detach())[0].sum().backward())
attempt("no gradient", lambda: m(x.detach(), y.detach()))
with torch.no_grad():
    attempt("no_grad", lambda: m(x, y))

section("in place")
attempt("output of two", lambda: m(x, y)[0].add_(1))
attempt("output without gradient", lambda: m(x, y.detach())[1].add_(1))
o = One()
o.register_full_backward_hook(show("hook"))
attempt("only output", lambda: o(x).add_(1))
with torch.no_grad():
    attempt("in no_grad", lambda: o(x).add_(1))


class InPlace(Module):
    def forward(self, x):
        return x.add_(1)


m = InPlace()
m.register_full_backward_hook(show("hook"))
attempt("input", m, x * 1)
attempt("input without gradient", m, torch.ones(1))

section("order, prepend, global")
o = One()
for label in "ab":
    o.register_full_backward_hook(show(label))
    o.register_full_backward_pre_hook(show_before("pre " + label))
o.register_full_backward_hook(show("first"), prepend=True)
o.register_full_backward_pre_hook(show_before("pre first"), prepend=True)
handles = [
    machinery.register_module_full_backward_hook(show("global")),
    machinery.register_module_full_backward_pre_hook(show_before("pre global")),
]
attempt("all", grads, lambda: o(x).sum().backward())
for h in handles:
    h.remove()
attempt("own", grads, lambda: o(x).sum().backward())

section("return values")
for result in ["double", "two", "bare", "list", "number"]:
    o = One()
    table = {
        "double": lambda m, gi, go: (gi[0] * 2,),
        "two": lambda m, gi, go: (gi[0], gi[0]),
        "bare": lambda m, gi, go: gi[0],
        "list": lambda m, gi, go: [gi[0] * 3],
        "number": lambda m, gi, go: (3,),
    }
    o.register_full_backward_hook(table[result])
    attempt(f"hook returns {result}", grads, lambda: o(x).sum().backward())
    o = One()
    o.register_full_backward_pre_hook(lambda m, go: table[result](m, go, go))
    o.register_full_backward_hook(show("then"))
    attempt(f"pre-hook returns {result}", grads, lambda: o(x).sum().backward())

section("outputs that are no tensors")
for wrap in (lambda t: [t], lambda t: {"a": t}, lambda t: (t, [t * 3]), lambda t: (t, None)):
    m = Wrapped(wrap)
    m.register_full_backward_hook(show("hook"))
    first = lambda r: r["a"] if isinstance(r, dict) else r[0]
    attempt(type(wrap(x)).__name__, grads, lambda: first(m(x)).sum().backward())

section("no input needs gradients")
lin = count_up(nn.Linear(2, 2), torch)
lin.register_full_backward_hook(show("hook"))
attempt("linear", lambda: lin(torch.ones(1, 2)).sum().backward())
print(lin.weight.grad, lin.bias.grad)
lin.register_full_backward_hook(lambda m, gi, go: (torch.ones(1, 2),))
attempt("returns something", lambda: lin(torch.ones(1, 2)).sum().backward())

section("a network")
net = count_up(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), torch)
for name, module in net.named_modules():
    module.register_full_backward_hook(show(name or "net"))
attempt("backward", lambda: net(torch.ones(1, 2, requires_grad=True)).sum().backward())
print([p.grad for p in net.parameters()])
out = net(torch.ones(1, 2))
print(out.grad_fn.name())

section("twice")


class Cube(Module):
    def forward(self, x):
        return x * x * x


m = Cube()
m.register_full_backward_hook(lambda m, gi, go: print("    hook", [g.detach() for g in gi], go))
(g,) = torch.autograd.grad(m(x).sum(), x, create_graph=True)
print(g.detach(), torch.autograd.grad(g.sum(), x))
m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
(g,) = torch.autograd.grad(m(x).sum(), x, create_graph=True)
print(g.detach(), torch.autograd.grad(g.sum(), x))
out = m(x).sum()
attempt("retain", grads, lambda: (out.backward(retain_graph=True), out.backward()))

section("the deprecated kind")
o = One()
print(o._is_full_backward_hook)
o.register_backward_hook(show("hook"))
attempt("leaf in", grads, lambda: o(x).sum().backward())
attempt("both kinds", o.register_full_backward_hook, show("hook"))
print(o._is_full_backward_hook)
o = One()
o.register_full_backward_hook(show("hook"))
attempt("both kinds", o.register_backward_hook, show("hook"))
print(o._is_full_backward_hook, len(o._backward_hooks), len(o._backward_pre_hooks))
m = Two()
m.register_backward_hook(show("hook"))
attempt("two outputs", grads, lambda: m(x, y)[0].sum().backward())
attempt("number in", grads, lambda: m(x, 3)[0].sum().backward())
m = Wrapped(lambda t: [t])
m.register_backward_hook(show("hook"))
attempt("list", grads, lambda: m(x)[0].sum().backward())
m = Wrapped(lambda t: {"k": t})
m.register_backward_hook(show("hook"))
attempt("dict", grads, lambda: m(x)["k"].sum().backward())
m = Wrapped(lambda t: t.exp())
m.register_backward_hook(lambda module, gi, go: tuple(None if g is None else g * 0 for g in gi))
attempt("several nodes, replaced", grads, lambda: m(x).sum().backward())
handle = machinery.register_module_full_backward_hook(show("global"))
attempt("global of both kinds", machinery.register_module_backward_hook, show("x"))
handle.remove()
