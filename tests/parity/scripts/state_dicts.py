"""state_dict and load_state_dict: keys, metadata, hooks, reports, assign, extra state, version upgrades."""

from collections import OrderedDict

import torch
from helpers import attempt, count_up, section
from torch import nn
from torch.nn import Module, Parameter


class Net(Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.none = None
        self.inner = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Identity())
        self.shared = self.inner[0]
        self.scale = Parameter(torch.ones(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(2), persistent=False)
        self.register_buffer("empty", None)
        self.register_parameter("absent", None)


def fresh():
    return count_up(Net(), torch)


section("state_dict")
net = fresh()
state = net.state_dict()
print(type(state).__name__, {k: v.tolist() for k, v in state.items()})
print(dict(state._metadata))
print([(v.requires_grad, type(v).__name__) for v in state.values()])
print([type(v).__name__ for v in net.state_dict(keep_vars=True).values()])
state["scale"].fill_(9)
print(net.scale)
print(list(net.state_dict(prefix="net.")), list(net.state_dict(prefix="net.")._metadata))
mine = {}
attempt("destination", lambda: (net.state_dict(destination=mine) is mine, list(mine)))
attempt("positional", lambda: list(net.state_dict({}, "x.", True)))

section("load")
attempt("not a dict", net.load_state_dict, [1])
attempt("matching", net.load_state_dict, fresh().state_dict())
print(net.scale)
broken = fresh().state_dict()
del broken["first.bias"], broken["steps"]
broken["extra"] = torch.ones(1)
broken["inner.5.weight"] = torch.ones(1)
broken["first.nothing"] = torch.ones(1)
broken["first.weight"] = torch.ones(3, 2)
broken["scale"] = 3
attempt("strict", net.load_state_dict, broken)
attempt("not strict", net.load_state_dict, broken, strict=False)
del broken["first.weight"], broken["scale"]
attempt("not strict, right sizes", net.load_state_dict, broken, strict=False)
report = net.load_state_dict(broken, strict=False)
print(report.missing_keys, report.unexpected_keys, report)
attempt("empty", Module().load_state_dict, {})
attempt("old scalar", net.load_state_dict, {**fresh().state_dict(), "scale": torch.full((1,), 4.0)})
print(net.scale)
attempt("other dtype", net.load_state_dict, {k: v.double() for k, v in fresh().state_dict().items()})
print(net.scale.dtype, net.steps.dtype)
attempt("wrong shape of a scalar", net.load_state_dict, {**fresh().state_dict(), "scale": torch.ones(2, 2)})

section("assign")
net, other = fresh(), fresh()
state = other.state_dict()
before = net.first.weight
attempt("assign", net.load_state_dict, {k: v.double() for k, v in state.items()}, assign=True)
print(
    net.first.weight is before,
    type(net.first.weight).__name__,
    net.first.weight.dtype,
    net.steps.dtype,
    net.first.weight.requires_grad,
)
net = fresh().requires_grad_(False)
attempt("assign to frozen", net.load_state_dict, state, assign=True)
print(net.first.weight.requires_grad, net.steps is state["steps"])
net = fresh()
kept = other.state_dict(keep_vars=True)
attempt("assign parameters", net.load_state_dict, kept, assign=True)
print(net.first.weight is other.first.weight)
state["scale"] = torch.ones(2)
attempt("assign another size", net.load_state_dict, state, assign=True)

section("hooks")
net = fresh()


def pre(module, prefix, keep_vars):
    print("    state_dict pre", type(module).__name__, repr(prefix), keep_vars)


def post(module, state_dict, prefix, metadata):
    print("    state_dict post", type(module).__name__, repr(prefix), metadata, len(state_dict))


def replacing(module, state_dict, prefix, metadata):
    return OrderedDict((k.upper(), v) for k, v in state_dict.items())


def load_pre(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
    print(
        "    load pre",
        type(module).__name__,
        repr(prefix),
        metadata,
        strict,
        list(state_dict),
        missing,
        unexpected,
        errors,
    )


def load_post(module, keys):
    print("    load post", type(module).__name__, keys)
    keys.missing_keys.clear()


net.register_state_dict_pre_hook(pre)
net.first.register_state_dict_pre_hook(pre)
net.register_state_dict_post_hook(post)
net.first.register_state_dict_post_hook(post)
net.register_load_state_dict_pre_hook(load_pre)
net.first.register_load_state_dict_pre_hook(load_pre)
net.first._register_load_state_dict_pre_hook(lambda *a: print("    private load pre", a[1:4]))
net.first.register_load_state_dict_post_hook(load_post)
net.register_load_state_dict_post_hook(load_post)
state = net.state_dict()
attempt("load", net.load_state_dict, state)
del state["first.bias"]
attempt("load, keys cleared by hook", net.load_state_dict, state)
handle = net._register_state_dict_hook(replacing)
print(list(net.state_dict()))
handle.remove()
print(list(net.state_dict())[:2])
bad = nn.Identity()
bad.register_state_dict_post_hook(lambda m, s, p, d: s)
attempt("post returns", bad.state_dict)
attempt("registered both ways", bad._register_state_dict_hook, post)
bad.register_load_state_dict_post_hook(lambda m, k: 3)
attempt("load post returns", bad.load_state_dict, {})


class Renamed(Module):
    def __init__(self):
        super().__init__()
        self.new = Parameter(torch.zeros(1))
        self._register_load_state_dict_pre_hook(self.rename)

    def rename(self, state_dict, prefix, *rest):
        if prefix + "old" in state_dict:
            state_dict[prefix + "new"] = state_dict.pop(prefix + "old")


m = nn.Sequential(Renamed())
state = {"0.old": torch.ones(1)}
attempt("renamed by hook", m.load_state_dict, state)
print(m[0].new, list(state))

section("extra state")


class Extra(Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def get_extra_state(self):
        return {"value": self.value}

    def set_extra_state(self, state):
        self.value = state["value"]


m = nn.Sequential(Extra(1), nn.Identity())
print(m.state_dict())
other = nn.Sequential(Extra(2), nn.Identity())
attempt("load", m.load_state_dict, other.state_dict())
print(m[0].value)
attempt("missing", m.load_state_dict, {})
attempt("unexpected", nn.Sequential(nn.Identity()).load_state_dict, other.state_dict())


class OnlyGet(Module):
    def get_extra_state(self):
        return 5


attempt("only get", lambda: OnlyGet().load_state_dict(OnlyGet().state_dict()))

section("versions")


class Versioned(Module):
    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = Parameter(torch.zeros(2))

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        version = metadata.get("version")
        print("    version", version, metadata)
        if version is None or version < 2:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel") * 10
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)


m = nn.Sequential(Versioned())
print(dict(m.state_dict()._metadata))
attempt("same version", m.load_state_dict, m.state_dict())
old = OrderedDict({"0.kernel": torch.ones(2)})
attempt("no metadata", m.load_state_dict, old)
print(m[0].weight, list(old))
old._metadata = {"0": {"version": 1}}
attempt("version 1", m.load_state_dict, old)
attempt("version 1, assigned", m.load_state_dict, old, assign=True)
