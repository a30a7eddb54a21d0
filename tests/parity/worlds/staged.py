"""Stagers of checkpoints that are written in the background, and optimizers that step inside backward."""

import os
from concurrent.futures import Future

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager, DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncSaveResponse
from torch.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
print(StagingOptions(), AsyncStager._synchronize_after_execute, BlockingAsyncStager().should_synchronize_after_execute)


class Doubling(AsyncStager):
    """A stager of one's own."""

    told = 0

    def stage(self, state_dict):
        return {key: value.clone() * 2 for key, value in state_dict.items()}

    def synchronize_staging(self):
        self.told += 1


class Later(BlockingAsyncStager):
    def stage(self, state_dict):
        future = Future()
        future.set_result(super().stage(state_dict))
        return future


class Incomplete(AsyncStager):
    pass


at_once = DefaultStager(StagingOptions(False, False, False, False))
stagers = {"none": None, "blocking": BlockingAsyncStager(), "own": Doubling(), "default": at_once, "later": Later()}
for name, stager in stagers.items():
    state = {"w": torch.arange(4.0), "n": torch.tensor(7)}
    found = dcp.async_save(state, checkpoint_id=name, async_stager=stager)
    if isinstance(found, AsyncSaveResponse):
        print(name, found.staging_completion.result())
        found = found.upload_completion
    state["w"].zero_()
    found.result()
    again = {"w": torch.zeros(4), "n": torch.tensor(0)}
    dcp.load(again, checkpoint_id=name)
    print(name, again, getattr(stager, "told", None), isinstance(stager, AsyncStager))
    if stager is not None:
        stager.close()
copy = BlockingAsyncStager().stage({"a": [torch.ones(2)], "b": (1, "x"), "c": {"d": torch.zeros(1)}})
print(copy)
try:
    dcp.async_save({"w": torch.ones(1)}, checkpoint_id="never", async_stager=Incomplete())
except NotImplementedError as error:
    print("NotImplementedError", error)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
_apply_optimizer_in_backward(torch.optim.SGD, model[0].parameters(), {"lr": 0.1})
_apply_optimizer_in_backward(torch.optim.Adam, model[2].parameters(), {"lr": 0.05})
for step in range(4):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    print(step, f"{loss.item():.5f}", [p.grad for p in model.parameters()])
print([type(o).__name__ for o in _get_in_backward_optimizers(model)], [f"{p.norm():.5f}" for p in model.parameters()])
dist.destroy_process_group()
