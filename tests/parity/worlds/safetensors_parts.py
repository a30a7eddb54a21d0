"""Checkpoints in Hugging Face's form, on PyTorch and on rushlight; with READ, those that the other one wrote."""

import json
import os
import struct
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files_on_every_rank
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
mesh = init_device_mesh("cpu", (SIZE,))
WRITTEN = Path(os.environ.get("READ", "."))


def header(path):
    """What a file says of itself, in no order; and how many bytes follow."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    found = json.loads(data[8 : 8 + size])
    notes = found.pop("__metadata__", {})
    parts = sorted(json.loads(notes.get("DCP_SHARDING_INFO", "{}")).items())
    kinds = sorted((name, entry["dtype"], entry["shape"]) for name, entry in found.items())
    return kinds, parts, notes.get("DCP_VERSION"), len(data) - 8 - size


def files(folder):
    for path in sorted(folder.rglob("*")) if RANK == 0 else ():
        if path.suffix == ".safetensors":
            print(path, *header(path))
        elif path.suffix == ".json":
            print(path, json.loads(path.read_text()))


def whole(t):
    return t.full_tensor() if isinstance(t, DTensor) else t


ROWS = Shard(0)


def state(lay=ROWS, kind=torch.int64):
    return {
        "plain.weight": torch.arange(12.0).view(3, 4),
        "rows": distribute_tensor(torch.arange(24.0).view(6, 4), mesh, [lay]),
        "columns": distribute_tensor(torch.arange(24).to(kind).view(4, 6), mesh, [Shard(1)]),
        "number": torch.tensor([3], dtype=torch.bfloat16),
        "uneven": distribute_tensor(torch.arange(10.0).view(5, 2), mesh, [lay]),
    }


NUMBERS = {"plain.weight": 1, "rows": 2, "columns": 2, "number": 1, "uneven": 3}
alone = {"no_dist": True}
for folder, saved, options, how in [
    ("one", {k: whole(v) for k, v in state().items()}, {}, alone),
    ("files", {k: whole(v) for k, v in state().items()}, {"fqn_to_index_mapping": NUMBERS}, alone),
    ("parts", state(), {"save_distributed": True}, {}),
    ("parts and files", state(), {"save_distributed": True, "fqn_to_index_mapping": NUMBERS}, {}),
    # PyTorch 2.13 has no way to make whole tensors of integers
    ("made whole", state(kind=torch.float64), {"save_distributed": True, "enable_consolidation": True}, {}),
]:
    if "READ" not in os.environ:
        if not how or RANK == 0:
            dcp.save(saved, storage_writer=HuggingFaceStorageWriter(folder, **options), **how)
        dist.barrier()
        files(Path(folder))
    reader = HuggingFaceStorageReader(str(WRITTEN / folder))
    for name, found in sorted(reader.read_metadata().state_dict_metadata.items()):
        chunks = sorted((tuple(c.offsets), tuple(c.sizes)) for c in found.chunks)
        print(folder, name, found.size, found.properties.dtype, chunks)
    for lay in (Shard(0), Shard(1), Replicate()):
        loaded = {k: torch.zeros_like(v) for k, v in state(lay, saved["columns"].dtype).items()}
        dcp.load(loaded, storage_reader=HuggingFaceStorageReader(str(WRITTEN / folder)))
        print(folder, lay, all(torch.equal(whole(loaded[k]), whole(v)) for k, v in state(lay).items()))
    some = {"uneven": torch.zeros(5, 2, dtype=torch.float64)}
    dcp.load(some, checkpoint_id=str(WRITTEN / folder), storage_reader=HuggingFaceStorageReader("nowhere"))
    print(folder, some["uneven"].dtype, some["uneven"].tolist())

if "READ" not in os.environ:
    numbers = {"plain.weight": 2, "rows": 1, "columns": 1, "number": 2, "uneven": 1}
    source = Path("made whole") / "sharded"
    Path("by all").mkdir(exist_ok=True)
    consolidate_safetensors_files_on_every_rank(str(source), "by all", numbers)
    dist.barrier()
    files(Path("by all"))
dist.destroy_process_group()
