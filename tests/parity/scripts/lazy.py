"""Lazy modules."""

import copy

import torch
from helpers import attempt, section
from torch import nn

section("life of a LazyLinear")
attempt("made", lambda: nn.LazyLinear(3))
m = nn.LazyLinear(3)
print(m, m.has_uninitialized_params(), m.weight, list(m.state_dict()), len(m._forward_pre_hooks))
print(m.double().weight.dtype, m.float().bias.dtype, [n for n, _ in m.named_parameters()])
attempt("deepcopy", lambda: copy.deepcopy(m))
attempt("share_memory", m.share_memory)
attempt("replicate", m._replicate_for_data_parallel)
print(m(torch.ones(2, 4)).shape, m, type(m).__name__, len(m._forward_pre_hooks), len(m._load_state_dict_pre_hooks))
print(hasattr(m, "_load_hook"), hasattr(m, "_initialize_hook"))
net = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2, bias=False))
print(net(torch.ones(1, 5)).shape, net)

section("loading")
full, lazy = nn.Linear(4, 3), nn.LazyLinear(3)
attempt("full into lazy", lazy.load_state_dict, full.state_dict())
print(lazy, lazy.weight.shape, torch.equal(lazy.weight, full.weight))
print(lazy(torch.ones(1, 4)).shape, lazy)
attempt("lazy into lazy", nn.LazyLinear(3).load_state_dict, nn.LazyLinear(3).state_dict())


class Unfinished(nn.modules.lazy.LazyModuleMixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.UninitializedParameter()

    def forward(self, x):
        return x


attempt("not implemented", Unfinished(), 1)


class Never(Unfinished):
    def initialize_parameters(self, x):
        pass


attempt("not materialized", Never(), 1)
