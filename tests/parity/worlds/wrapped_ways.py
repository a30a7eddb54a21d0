"""``FullyShardedDataParallel`` of models that go other ways in each process, or begin without values, on both."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
CPU = torch.device("cpu")


class Ways(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, both):
        x = self.first(x)
        return self.second(x) if both else x


def show(label, *values):
    print(label, *values)


def told(label, function):
    try:
        function()
    except Exception as error:
        show(label, type(error).__name__, str(error).split("\n")[0])


def digest(values):
    return [f"{name} {tuple(t.shape)} {t.double().norm():.5f}" for name, t in values]


def state_of(model):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        return model.state_dict()


def without_values():
    torch.manual_seed(0)
    with torch.device("meta"):
        return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)), nn.BatchNorm1d(2))


def constant(module):
    show("init", type(module).__name__, [p.is_meta for p in module.parameters()])
    module.to_empty(device="cpu", recurse=False)
    for p in module.parameters(recurse=False):
        nn.init.constant_(p, 0.25)
    for b in module.buffers(recurse=False):
        nn.init.constant_(b, 2)


class Silent(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2, device="meta"))


for keeps in (False, True):
    torch.manual_seed(0)
    model = FSDP(Ways(), device_id=CPU, use_orig_params=keeps)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    for both in (RANK == 0, RANK == 1, False):
        model(torch.ones(2, 3) * (RANK + 1), both).square().sum().backward()
        show("ways", f"{model.clip_grad_norm_(1e9):.5f}")
        optimizer.step()
        optimizer.zero_grad()
    show("ways", *digest(state_of(model).items()))

    policy = ModuleWrapPolicy({nn.Sequential})
    for options in ({}, {"param_init_fn": constant}, {"auto_wrap_policy": policy},
                    {"auto_wrap_policy": policy, "param_init_fn": constant}):  # fmt: skip
        model = FSDP(without_values(), device_id=CPU, use_orig_params=keeps, **options)
        show("without values", *digest(state_of(model).items()))
    told("without values", lambda: FSDP(Silent(), device_id=CPU, use_orig_params=keeps))  # noqa: B023  # called here
dist.destroy_process_group()
