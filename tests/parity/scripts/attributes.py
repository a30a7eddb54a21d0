"""What assignment, reading and deleting of attributes do; registration and its errors."""

import torch
from helpers import attempt, section
from torch import nn
from torch.nn import Buffer, Module, Parameter


class Early(Module):
    """Does something before Module.__init__ ran."""

    def __init__(self, action):
        action(self)

    def __repr__(self):
        return "Early()"


section("before __init__")
attempt("parameter", Early, lambda s: setattr(s, "w", Parameter(torch.ones(1))))
attempt("module", Early, lambda s: setattr(s, "w", nn.Identity()))
attempt("buffer", Early, lambda s: setattr(s, "w", Buffer(torch.ones(1))))
attempt("tensor", Early, lambda s: setattr(s, "w", torch.ones(1)))
attempt("number", Early, lambda s: setattr(s, "w", 1))
attempt("register_buffer", Early, lambda s: s.register_buffer("w", torch.ones(1)))
attempt("register_parameter", Early, lambda s: s.register_parameter("w", None))
attempt("add_module", Early, lambda s: s.add_module("w", None))
attempt("read", Early, lambda s: s.nothing)
attempt("delete", Early, lambda s: delattr(s, "nothing"))
attempt("traverse", lambda: list(Early(lambda s: None).parameters()))
attempt("positional", lambda: Module(1))
attempt("keyword", lambda: Module(a=1))

section("names")
m = Module()
for name in ["a.b", "", 3, None, "forward", "training"]:
    attempt(f"register_parameter {name!r}", m.register_parameter, name, None)
    attempt(f"register_buffer {name!r}", m.register_buffer, name, None)
    attempt(f"add_module {name!r}", m.add_module, name, None)
    attempt(f"register_module {name!r}", m.register_module, name, None)


def tables(m):
    shown = {k: None if v is None else list(v.shape) for k, v in m._parameters.items()}
    buffers = {k: None if v is None else list(v.shape) for k, v in m._buffers.items()}
    plain = sorted(k for k in m.__dict__ if not k.startswith("_"))
    return shown, buffers, m._modules, sorted(m._non_persistent_buffers_set), plain


section("registering")
m = Module()
m.p = Parameter(torch.ones(2))
m.b = Buffer(torch.zeros(2))
m.c = nn.Identity()
m.plain = 3
m.n = None
m.loose = torch.ones(1)
m.listed = [nn.Identity(), nn.Identity()]
print(tables(m))
attempt("tensor as parameter", m.register_parameter, "q", torch.ones(1))
attempt("number as parameter", m.register_parameter, "q", 1)
attempt("computed parameter", m.register_parameter, "q", Parameter(torch.ones(1)) * 2)
attempt("number as buffer", m.register_buffer, "q", 1)
attempt("number as module", m.add_module, "q", 1)
attempt("module over plain", m.add_module, "plain", nn.Identity())
attempt("module over module", m.add_module, "c", nn.Identity())
attempt("parameter over parameter", m.register_parameter, "p", Parameter(torch.ones(3)))
attempt("parameter over plain", m.register_parameter, "plain", Parameter(torch.ones(1)))
attempt("buffer over plain", m.register_buffer, "plain", None)
attempt("buffer over parameter", m.register_buffer, "p", None)
attempt("not persistent", m.register_buffer, "np", torch.ones(1), persistent=False)
print(tables(m))
attempt("persistent again", m.register_buffer, "np", torch.ones(1))
print(tables(m))

section("assigning")
attempt("tensor to parameter", setattr, m, "p", torch.ones(1))
attempt("number to parameter", setattr, m, "p", 1)
attempt("number to buffer", setattr, m, "b", 1)
attempt("number to module", setattr, m, "c", 1)
attempt("tensor to module", setattr, m, "c", torch.ones(1))
attempt("double tensor to parameter", setattr, m, "p", torch.ones(1, dtype=torch.float64))
attempt("tensor to buffer", setattr, m, "b", torch.ones(1))
attempt("parameter to buffer", setattr, m, "b", Parameter(torch.ones(4)))
print(tables(m))
attempt("module to parameter", setattr, m, "p", nn.Identity())
attempt("buffer to module", setattr, m, "c", Buffer(torch.ones(1)))
attempt("buffer to plain", setattr, m, "plain", Buffer(torch.ones(5), persistent=False))
attempt("parameter to plain", setattr, m, "loose", Parameter(torch.ones(6)))
attempt("module to plain", setattr, m, "n", nn.Identity())
print(tables(m))
attempt("buffer to buffer", setattr, m, "plain", Buffer(torch.ones(7)))
attempt("tensor to non-persistent buffer", setattr, m, "plain", torch.ones(8))
print(tables(m))
attempt("parameter to module", setattr, m, "c", Parameter(torch.ones(1)))
for name in ["c", "p", "b", "np"]:
    attempt(f"None to {name}", setattr, m, name, None)
print(tables(m))
print([n for n, _ in m.named_parameters()], [n for n, _ in m.named_buffers()], list(m.state_dict()))
attempt("parameter back", setattr, m, "p", Parameter(torch.ones(2)))
print(tables(m))

m.kept = Buffer(torch.ones(1))
for persistent in (False, True):
    attempt(
        f"buffer over buffer, persistent={persistent}", setattr, m, "kept", Buffer(torch.ones(2), persistent=persistent)
    )
    print(tables(m))
m.kept = Buffer(torch.ones(2), persistent=False)
m.kept = torch.ones(3)
print(tables(m))

section("deleting and listing")
for name in ["p", "np", "n", "listed", "nothing"]:
    attempt(f"del {name}", delattr, m, name)
print(tables(m))
attempt("missing", lambda: m.nothing)
attempt("hasattr", lambda: (hasattr(m, "loose"), hasattr(m, "p"), getattr(m, "p", "default")))
s = nn.Sequential(nn.Identity(), nn.Identity())
s.extra = 1
s.w = Parameter(torch.ones(1))
print(
    [n for n in ("0", "1", "extra", "w", "forward", "training") if n in dir(s)],
    "0" in s.__dir__(),
    dir(s) == sorted(dir(s)),
)

section("paths")
net = Module()
net.inner = Module()
net.inner.layer = nn.Identity()
net.inner.w = Parameter(torch.ones(2))
net.inner.register_buffer("b", torch.ones(3), persistent=False)
net.plain = 3
for path in ["", "inner", "inner.layer", "nope", "inner.nope", "inner.w", "plain", "plain.x"]:
    attempt(f"get_submodule {path!r}", net.get_submodule, path)
for path in ["inner.w", "inner.b", "inner.layer", "nope", "inner.nope", "plain", "inner.w.x"]:
    attempt(f"get_parameter {path!r}", net.get_parameter, path)
    attempt(f"get_buffer {path!r}", net.get_buffer, path)
attempt("set empty", net.set_submodule, "", nn.Identity())
attempt("set through nothing", net.set_submodule, "x.y", nn.Identity())
attempt("set new", net.set_submodule, "new", nn.Identity())
attempt("set new, strict", net.set_submodule, "newer", nn.Identity(), strict=True)
attempt("set plain", net.set_submodule, "plain", nn.Identity())
attempt("set below plain", net.set_submodule, "plain.x", nn.Identity())
attempt("set tensor", net.set_submodule, "new", torch.ones(1))
attempt("set old", net.set_submodule, "inner.layer", nn.Flatten(), strict=True)
print(net)
attempt("get_extra_state", net.get_extra_state)
attempt("set_extra_state", net.set_extra_state, 1)
attempt("forward", net, 1)

section("parameters and buffers")
print(Parameter(torch.ones(2)), Parameter(torch.ones(2), requires_grad=False), Parameter())
attempt("integers", Parameter, torch.ones(2, dtype=torch.int64))
attempt("integers without gradient", Parameter, torch.ones(2, dtype=torch.int64), requires_grad=False)
attempt("list", Parameter, [1.0])
data = torch.zeros(2)
shared = Parameter(data)
data += 5
print(shared, shared.is_leaf, shared.grad, type(shared).__name__)
b = Buffer(torch.ones(1))
print(
    b,
    b.persistent,
    type(b).__name__,
    isinstance(b, Buffer),
    isinstance(torch.ones(1), Buffer),
    isinstance(shared, Buffer),
)
print(Buffer(torch.ones(1), persistent=False).persistent, Buffer())
lazy = nn.UninitializedParameter()
print(lazy, lazy.dtype, lazy.is_leaf, lazy.requires_grad, lazy.half().dtype, lazy.data, nn.UninitializedBuffer())
attempt("shape", lambda: lazy.shape)
attempt("share", lazy.share_memory_)
lazy.materialize((2, 3))
print(type(lazy).__name__, lazy.shape)
