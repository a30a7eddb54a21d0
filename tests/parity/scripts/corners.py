"""Corners: what happens between the features that the other scripts take one by one."""

import copy
import pickle
from collections import OrderedDict, namedtuple

import torch
from helpers import attempt, count_up, section
from torch import nn
from torch.nn import Buffer, Module, Parameter
from torch.nn.modules import module as machinery
from torch.utils.hooks import RemovableHandle

Pair = namedtuple("Pair", "left right")


class Net(Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.seq = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), second=nn.Identity()))

    def forward(self, x, scale=1.0):
        return self.seq(self.lin(x)) * scale


section("shapes of arguments and results")


class Pairs(Module):
    def forward(self, pair, *, extra=None):
        return Pair(pair.left * 2, pair.right * 3)


m = Pairs()
m.register_full_backward_hook(lambda m, gi, go: print("    hook", gi, go))
x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
out = m(Pair(x, y), extra=3)
print(type(out).__name__, out._fields, out.left.grad_fn.name())
attempt("backward", lambda: (out.left + out.right).sum().backward())
print(x.grad, y.grad)


class Keywords(Module):
    def forward(self, *, x):
        return x * 2


m = Keywords()
m.register_full_backward_hook(lambda m, gi, go: print("    hook", gi, go))
attempt("only keywords", lambda: m(x=x).backward())
attempt("wrong arguments", m, x)

section("hooks of a whole tree")
net = count_up(Net(), torch)
names = {module: name or "net" for name, module in net.named_modules()}
handles = [
    machinery.register_module_forward_pre_hook(lambda m, a: print("    >", names[m])),
    machinery.register_module_forward_hook(lambda m, a, o: print("    <", names[m], o.tolist())),
    machinery.register_module_full_backward_pre_hook(lambda m, go: print("    b>", names[m])),
    machinery.register_module_full_backward_hook(lambda m, gi, go: print("    b<", names[m], gi[0] is None)),
]
attempt("forward and backward", lambda: net(torch.ones(1, 2)).sum().backward())
for h in handles:
    h.remove()
handles = [m.register_forward_hook(lambda m, a, o: o + 1) for m in net.modules()]
attempt("every layer adds one", lambda: net(torch.ones(1, 2)).tolist())
for h in reversed(handles):
    h.remove()
attempt("none", lambda: net(torch.ones(1, 2)).tolist())

section("the same module twice")
lin = count_up(nn.Linear(2, 2), torch)
both = nn.Sequential(lin, lin)
lin.register_full_backward_hook(lambda m, gi, go: print("    hook", gi, go))
inputs = torch.ones(1, 2, requires_grad=True)
both(inputs).sum().backward()
print(lin.weight.grad, inputs.grad)

section("gradients in a graph")
lin = count_up(nn.Linear(1, 1), torch)
(grad,) = torch.autograd.grad(lin(torch.ones(1, 1)).pow(2).sum(), lin.weight, create_graph=True)
lin.weight.grad = grad * 1
print(lin.weight.grad.requires_grad)
grad = lin.weight.grad
attempt("zero_grad", lambda: lin.zero_grad(set_to_none=False))
print(grad is lin.weight.grad, grad, lin.weight.grad.requires_grad)

section("handles")
table = OrderedDict()
handle = RemovableHandle(table)
table[handle.id] = "hook"
print(RemovableHandle.next_id == handle.id + 1, handle.hooks_dict_ref() is table)
with handle as same:
    print(same is handle, len(table))
print(len(table))
copied = copy.deepcopy(handle)
print(copied.id == handle.id, copied.hooks_dict_ref() is None)

section("frozen parts, half of the state")
net = count_up(Net(), torch)
net.lin.requires_grad_(False)
net(torch.ones(1, 2)).sum().backward()
print([(n, p.grad is None) for n, p in net.named_parameters()])
part = {k: v for k, v in net.state_dict().items() if k.startswith("lin")}
attempt("part", Net().load_state_dict, part)
attempt("part, not strict", Net().load_state_dict, part, strict=False)
attempt("wrong prefix", net.lin.load_state_dict, part)
attempt("of another class", nn.Linear(3, 1).load_state_dict, net.lin.state_dict())
attempt("numbers", net.load_state_dict, dict.fromkeys(net.state_dict(), 0))
attempt("saved while frozen", lambda: [v.requires_grad for v in net.state_dict(keep_vars=True).values()])

section("surgery")
net.seq.second = nn.Flatten()
net.seq.third = nn.Identity()
net.head = net.seq
del net.lin
print(net, [n for n, _ in net.named_parameters()], [n for n, _ in net.named_modules(remove_duplicate=False)])
net.seq = None
print(net, list(net.state_dict()))
net.seq = nn.Identity()
print([n for n, _ in net.named_children()])
attempt("call", net, torch.ones(1, 2))

section("lazy parts")
holder = Module()
holder.p = nn.UninitializedParameter()
holder.b = nn.UninitializedBuffer()
holder.register_buffer("c", nn.UninitializedBuffer(), persistent=False)
print(holder.p, holder.b, [n for n, _ in holder.named_parameters()], [n for n, _ in holder.named_buffers()])
print(list(holder.state_dict(keep_vars=True)), holder.double().p.dtype, holder.b.dtype)
attempt("missing shape", holder.load_state_dict, {"p": torch.ones(2), "b": torch.ones(3)})
holder.p.materialize((2,))
print(holder.p.shape, type(holder.p).__name__, holder.p.dtype, holder.p.requires_grad)
print(pickle.loads(pickle.dumps(holder)).b)

section("subclasses")


class Own(Parameter):
    pass


m = Module()
m.own = Own(torch.ones(1))
print(type(m.own).__name__, type(copy.deepcopy(m).own).__name__, m.own)
m.tensor = Buffer(torch.ones(1)) * 2
print("tensor" in m._buffers, type(m.tensor).__name__)


class Overridden(Module):
    def named_parameters(self, *args, **kwargs):
        for name, p in super().named_parameters(*args, **kwargs):
            yield "own." + name, p

    def __getattr__(self, name):
        if name == "special":
            return "special"
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        print("    set", name)
        super().__setattr__(name, value)


m = Overridden()
m.w = Parameter(torch.ones(1))
m.plain = 1
print(m.special, m.w, [n for n, _ in m.named_parameters()], len(list(m.parameters())))
attempt("missing", lambda: m.nothing)


class WithProperty(Module):
    @property
    def broken(self):
        return self.does_not_exist

    @property
    def fine(self):
        return 3


attempt("property that fails", lambda: WithProperty().broken)
attempt("property", lambda: WithProperty().fine)
attempt("set property", setattr, WithProperty(), "fine", 4)


class Defaults(Module):
    bias = None
    child = None

    def __init__(self):
        super().__init__()
        self.child = nn.Identity()


attempt("class attribute over child", lambda: (Defaults().child, Defaults()._modules))
attempt("class attribute over parameter", lambda: Defaults().register_parameter("bias", None))
attempt("assigned over class attribute", lambda: setattr(Defaults(), "bias", Parameter(torch.ones(1))))
