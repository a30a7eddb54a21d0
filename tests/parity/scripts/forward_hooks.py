"""Forward hooks: order, prepend, global ones, kwargs, return values, errors and always_call, removal while running."""

import torch
from helpers import attempt, section
from torch import nn
from torch.nn.modules import module as machinery


class Double(nn.Module):
    def forward(self, x, *, plus=0):
        print("    forward", x, plus)
        if x is None:
            raise ValueError("forward says no")
        return x * 2 + plus


def before(label, result=None):
    def hook(module, args):
        print("    pre", label, args)
        return result

    return hook


def after(label, result=None):
    def hook(module, args, output):
        print("    post", label, args, output)
        return result

    return hook


section("order")
m = Double()
for label in "ab":
    m.register_forward_pre_hook(before(label))
    m.register_forward_hook(after(label))
m.register_forward_pre_hook(before("first"), prepend=True)
m.register_forward_hook(after("first"), prepend=True)
handles = [
    machinery.register_module_forward_pre_hook(before("global")),
    machinery.register_module_forward_hook(after("global")),
    machinery.register_module_forward_hook(after("global 2")),
]
attempt("call", m, 1)
attempt("call with keyword", m, 1, plus=3)
for h in handles:
    h.remove()
attempt("call without globals", m, 1)
print(len(m._forward_hooks), len(m._forward_pre_hooks), type(m._forward_hooks).__name__)

section("return values")
m = Double()
m.register_forward_pre_hook(before("one", 10))
m.register_forward_pre_hook(before("tuple", (20,)))
m.register_forward_hook(after("replace", "replaced"))
m.register_forward_hook(after("sees it"))
attempt("call", m, 1)

section("kwargs")


def with_kwargs(module, args, kwargs):
    print("    pre kw", args, kwargs)
    return (args[0] + 1,), {**kwargs, "plus": 7}


def after_kwargs(module, args, kwargs, output):
    print("    post kw", args, kwargs, output)
    return -output


m = Double()
h1 = m.register_forward_pre_hook(with_kwargs, with_kwargs=True)
h2 = m.register_forward_hook(after_kwargs, with_kwargs=True)
m.register_forward_hook(after("plain"))
print(list(m._forward_pre_hooks_with_kwargs.values()), list(m._forward_hooks_with_kwargs.values()))
attempt("call", m, 1, plus=2)
h1.remove(), h2.remove()
print(len(m._forward_pre_hooks_with_kwargs), len(m._forward_hooks_with_kwargs), len(m._forward_hooks))
for bad in (3, (3,), [(1,), {}]):
    m = Double()
    m.register_forward_pre_hook(lambda module, args, kwargs: bad, with_kwargs=True)
    attempt(f"returns {bad}", m, 1)
handle = machinery.register_module_forward_hook(after_kwargs, with_kwargs=True)
attempt("global with kwargs", Double(), 1, plus=2)
handle.remove()

section("errors")


def raising(module, args, *rest):
    print("    raising hook", args, rest)
    raise KeyError("hook says no")


m = Double()
m.register_forward_hook(after("not called"))
m.register_forward_hook(after("always", "value of always"), always_call=True)
m.register_forward_hook(after("always 2"), always_call=True)
attempt("forward raises", m, None)
attempt("forward works", m, 1)
m.register_forward_hook(raising, always_call=True, prepend=True)
attempt("hook raises too", m, None)
attempt("only the hook raises", m, 1)
m = Double()
m.register_forward_pre_hook(raising)
m.register_forward_hook(after("always"), always_call=True)
attempt("pre-hook raises", m, 1)
m = Double()
m.register_forward_hook(after("called once", 5), always_call=True)
m.register_forward_hook(raising)
m.register_forward_hook(after("always, later"), always_call=True)
attempt("a hook in the middle raises", m, 1)
m = Double()
m.register_forward_hook(after("own"), always_call=True)
handles = [
    machinery.register_module_forward_hook(after("global always"), always_call=True),
    machinery.register_module_forward_hook(after("global")),
    machinery.register_module_forward_hook(raising, always_call=True),
]
attempt("global always", m, None)
for h in handles:
    h.remove()
handle = m.register_forward_hook(lambda *a: print("    kw", a[1:]), with_kwargs=True, always_call=True)
attempt("kwargs and always", m, None, plus=4)
print(len(m._forward_hooks_always_called))
handle.remove()
print(len(m._forward_hooks_always_called))

section("removing while running")
m = Double()
handles = {}


def remover(module, args, output):
    print("    removes all")
    for h in handles.values():
        h.remove()


handles["remover"] = m.register_forward_hook(remover)
handles["later"] = m.register_forward_hook(after("later"))
attempt("first call", m, 1)
attempt("second call", m, 1)


def adder(module, args):
    print("    adds")
    module.register_forward_pre_hook(before("added"))


m = Double()
handle = m.register_forward_pre_hook(adder)
attempt("adds", m, 1)
handle.remove()
handle.remove()
attempt("added", m, 1)
with m.register_forward_hook(after("inside with")) as handle:
    attempt("with", m, 1)
attempt("after with", m, 1)

section("registration hooks")
log = lambda kind: lambda module, name, value: print("   ", kind, type(module).__name__, name, type(value).__name__)
handles = [
    machinery.register_module_parameter_registration_hook(log("parameter")),
    machinery.register_module_buffer_registration_hook(log("buffer")),
    machinery.register_module_module_registration_hook(log("module")),
]
lin = nn.Linear(2, 1, bias=False)
lin.register_buffer("b", torch.ones(1))
lin.b = torch.zeros(1)
lin.b2 = nn.Buffer(torch.zeros(1))
lin.weight = None
lin.child = nn.Identity()
lin.child = None
lin.add_module("child2", nn.Identity())
for h in handles:
    h.remove()
handle = machinery.register_module_parameter_registration_hook(lambda m, n, p: nn.Parameter(p * 3))
lin = nn.Linear(1, 1, bias=False)
lin.weight = nn.Parameter(torch.ones(1))
print(lin.weight)
handle.remove()

section("forward of an instance")
m = Double()
m.forward = lambda x: ("patched", x)
attempt("patched", m, 1)
m.register_forward_hook(after("on patched"))
attempt("patched with hook", m, 1)
attempt("call impls", lambda: (m._call_impl(2), m._wrapped_call_impl(3), m._slow_forward(4)))


class Impl(nn.Module):
    def forward(self, x):
        return x

    def _call_impl(self, *args, **kwargs):
        return "impl", super()._call_impl(*args, **kwargs)


attempt("overridden _call_impl", Impl(), 1)
