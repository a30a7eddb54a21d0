"""``FullyShardedDataParallel`` by its strategies, on PyTorch and on rushlight."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy, StateDictType
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)


def train(label, group=None, use_orig_params=True, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        options = {"use_orig_params": use_orig_params, "device_id": torch.device("cpu"), **options}
        model = FSDP(model, process_group=group, **options)
    print(label, sorted({str(w.message) for w in told if w.category is FutureWarning}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    torch.manual_seed(10 + RANK)
    for step in range(4):
        x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
        loss = nn.functional.cross_entropy(model(x), y)
        if step == 2:
            with model.no_sync():
                loss.backward()
            continue
        loss.backward()
        norm = model.clip_grad_norm_(0.5)
        optimizer.step()
        optimizer.zero_grad()
        print(label, step, f"{loss.item():.5f} {norm.item():.5f}")
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        for name, value in sorted(model.state_dict().items()):
            print(label, name, tuple(value.shape), f"{value.double().norm():.5f}")
    with FSDP.summon_full_params(model):
        print(label, f"{model[0].weight.detach().double().sum():.5f}")


train("full", sharding_strategy=ShardingStrategy.FULL_SHARD)
train("flat", use_orig_params=False)
train("none", sharding_strategy=ShardingStrategy.NO_SHARD)
torch.manual_seed(0)
model = FSDP(nn.Linear(6, 3), use_orig_params=True, device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = ShardedGradScaler(device="cpu", init_scale=16.0, growth_interval=2)
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 6)).square().sum() * (float("inf") if step == 1 and RANK == 0 else 1.0)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    with FSDP.summon_full_params(model):
        print("scaled", step, scaler.get_scale(), f"{model.weight.detach().double().sum():.5f}")
half = dist.new_group(list(range(SIZE - 1)))
if RANK < SIZE - 1:
    train("some", half, sharding_strategy=ShardingStrategy.NO_SHARD)
dist.destroy_process_group()
