"""parameters, buffers, modules; train, eval, apply, requires_grad_, zero_grad; conversions; copies."""

import copy
import pickle

import torch
from helpers import attempt, count_up, section
from torch import nn
from torch.nn import Module, Parameter


class Block(Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.gone = None
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.lin(x) + self.mean


class Net(Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.b = Block()
        self.tied = self.a
        self.b.lin.weight = self.a.lin.weight
        self.own = Parameter(torch.ones(1))
        self.add_module("nothing", None)

    def forward(self, x):
        return self.b(self.a(x)) * self.own


net = count_up(Net(), torch)
section("traversal")
print([n for n, _ in net.named_parameters()], len(list(net.parameters())))
print([n for n, _ in net.named_parameters(remove_duplicate=False)])
print([n for n, _ in net.named_parameters("net", recurse=False)], [n for n, _ in net.named_parameters(prefix="net")])
print(
    [n for n, _ in net.named_buffers()],
    [n for n, _ in net.named_buffers(remove_duplicate=False)],
    len(list(net.buffers(recurse=False))),
)
print([(n, type(m).__name__) for n, m in net.named_modules()], len(list(net.modules())))
print([n for n, _ in net.named_modules(prefix="p", remove_duplicate=False)])
memo = {net.a}
print([n for n, _ in net.named_modules(memo)], len(memo))
print([n for n, _ in net.named_children()], len(list(net.children())))
lin = nn.Linear(2, 2)
twice = nn.Sequential(lin, lin)
print(
    len(list(twice.parameters())),
    len(list(twice.modules())),
    list(twice.state_dict()),
    [n for n, _ in twice.named_parameters()],
)
print(type(net.parameters()).__name__, type(net.named_modules()).__name__)


def grow():
    for _ in net.modules():
        net.add_module("grown", nn.Identity())


attempt("grow while iterating", grow)
del net.grown

section("train, apply, grad flags")
net.eval()
print([m.training for m in net.modules()])
net.a.train()
print([m.training for m in net.modules()], net.train() is net)
attempt("train(3)", net.train, 3)
attempt("train('x')", net.train, "x")


class Loud(Module):
    def train(self, mode=True):
        print("    loud train", mode)
        return super().train(mode)

    def _apply(self, fn, recurse=True):
        print("    loud _apply", recurse)
        return super()._apply(fn, recurse)

    def apply(self, fn):
        print("    loud apply")
        return super().apply(fn)

    def state_dict(self, *args, **kwargs):
        print("    loud state_dict", args, sorted(kwargs))
        return super().state_dict(*args, **kwargs)


outer = nn.Sequential(Loud(), nn.Sequential(Loud()))
outer.eval(), outer.double(), outer.apply(lambda m: print("    applied", type(m).__name__)), outer.state_dict()
net.requires_grad_(False)
print([p.requires_grad for p in net.parameters()])
net.requires_grad_()
net(torch.ones(1, 2)).sum().backward()
print([p.grad is None for p in net.parameters()])
grad = net.own.grad
net.zero_grad(set_to_none=False)
print(net.own.grad, net.own.grad is grad)
net.zero_grad()
print([p.grad for p in net.parameters()])

section("conversion")
net(torch.ones(1, 2)).sum().backward()
p, own_grad = net.own, net.own.grad
net.double()
print(
    net.own is p,
    net.own.dtype,
    net.own.grad.dtype,
    net.own.grad is own_grad,
    net.own.requires_grad,
    net.own.is_leaf,
    net.a.count.dtype,
    net.a.mean.dtype,
)
for dtype in ("half", "bfloat16", "float"):
    getattr(net, dtype)()
    print(dtype, net.own.dtype, net.own.grad.dtype, net.a.count.dtype)
print(
    net.to(torch.float64).own.dtype,
    net.to("cpu").own.dtype,
    net.to("cpu", torch.float32).own.dtype,
    net.to(torch.device("cpu"), torch.float64, True).own.dtype,
)
print(
    net.to(torch.ones(1)).own.dtype,
    net.to(dtype=torch.float16).own.dtype,
    net.to(device="cpu", dtype=torch.float32, non_blocking=True).own.dtype,
    net.to() is net,
)
print(net.type(torch.float64).a.count.dtype, net.type(torch.float32).own.dtype, net.cpu() is net)
attempt("to int", net.to, torch.int32)
attempt("memory_format", lambda: net.to(memory_format=torch.channels_last) is net)
print(net.a.lin.weight is net.b.lin.weight)
net.to_empty(device="cpu")
print(net.own.shape, net.a.count.dtype, net.own is p)
frozen = nn.Linear(1, 1).requires_grad_(False).double()
print(frozen.weight.requires_grad, frozen.weight.dtype)

section("copies")
net = count_up(Net(), torch)
net.eval()
net.plain = [1, 2]
net.own.grad = torch.ones(1)
net.own.note = "kept"
for label, copied in (
    ("deepcopy", copy.deepcopy(net)),
    ("pickle", pickle.loads(pickle.dumps(net))),
    ("copy", copy.copy(net)),
):
    print(
        label,
        copied.training,
        copied.plain,
        copied.plain is net.plain,
        copied.own is net.own,
        copied.own.grad,
        hasattr(copied.own, "note"),
    )
    print(
        "   ", copied.tied is copied.a, copied.a.lin.weight is copied.b.lin.weight, copied.a._non_persistent_buffers_set
    )
    print("   ", [n for n, _ in copied.named_parameters()], copied.own.requires_grad, copied(torch.ones(1, 2)).tolist())


def hook(module, args, output):
    print("    hook of", "copy" if module is not net else "net")


net = nn.Sequential(nn.Identity())
handle = net.register_forward_hook(hook)
net.register_load_state_dict_pre_hook(
    lambda module, *a: print("    load hook of", "copy" if module is not net else "net")
)
copied, copied_handle = copy.deepcopy((net, handle))
copied(1), copied.load_state_dict({})
copied_handle.remove()
copied(1), net(1)
print(len(net._forward_hooks), len(copied._forward_hooks))
again = nn.Sequential(nn.Identity())
again.register_forward_hook(hook, with_kwargs=False, always_call=True)
again = pickle.loads(pickle.dumps(again))
again(1)
print(len(again._forward_hooks_always_called))
handle = pickle.loads(pickle.dumps(handle))
handle.remove()
old = nn.Linear(1, 1)
newer = (
    "_non_persistent_buffers_set",
    "_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_is_full_backward_hook",
)
state = {k: v for k, v in old.__getstate__().items() if k not in newer}
revived = nn.Linear.__new__(nn.Linear)
revived.__setstate__(state)
print(revived, len(revived._forward_hooks), revived._non_persistent_buffers_set, len(revived.state_dict()))
replica = old._replicate_for_data_parallel()
print(replica._is_replica, dict(replica._parameters), replica._modules == old._modules)
attempt("zero_grad of a replica", replica.zero_grad)


class CallsSuper(Module):
    call_super_init = True


class Mixed(CallsSuper):
    pass


attempt("call_super_init", lambda: Mixed().training)
print(Module.call_super_init, Module.dump_patches, Module._version)
