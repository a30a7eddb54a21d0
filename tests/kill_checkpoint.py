"""Kill two processes that save checkpoints over and over, and look what is left: `python tests/kill_checkpoint.py 50`.

Each save has tensors of one number, cut over the processes and whole. Whatever the moment of the kill, what is in the
folder must be one whole checkpoint: the last that was reported as saved, or the one after it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from worlds import environment

import rushlight as torch
from rushlight.distributed import checkpoint as dcp

SAVING = """
import os, sys, warnings
import rushlight as torch, rushlight.distributed as dist, rushlight.distributed.checkpoint as dcp
from rushlight.distributed.tensor import DTensor, Shard, init_device_mesh
warnings.simplefilter("ignore")
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
for k in range(int(os.environ["FIRST"]), 10**6):
    cut = DTensor.from_local(torch.full((50_000,), float(k)), mesh, [Shard(0)])
    state = {"cut": cut, "whole": torch.full((30_000,), float(k)), "k": k}
    if k % 2:
        dcp.async_save(state, checkpoint_id="saved").result()
    else:
        dcp.save(state, checkpoint_id="saved")
    print(k, flush=True)
"""


def killed(folder: Path, first: int, after: float, both: bool) -> int:
    """Start saving at ``first``, kill one process or both some time after the first save; what was saved last."""
    for name in ("meeting", "meeting.lock"):
        (folder / name).unlink(missing_ok=True)
    processes = []
    for rank in range(2):
        env = environment(RANK=str(rank), WORLD_SIZE="2", MEETING=f"file://{folder}/meeting", FIRST=str(first))
        with open(folder / f"out{rank}", "w") as out, open(folder / f"err{rank}", "w") as err:
            line = [sys.executable, "-c", SAVING]
            processes.append(subprocess.Popen(line, cwd=folder, env=env, stdout=out, stderr=err))
    end = time.monotonic() + 120
    while not (folder / "out0").read_text() and time.monotonic() < end:
        time.sleep(0.005)
    time.sleep(after)
    for process in processes if both else processes[:1] if random.random() < 0.5 else processes[1:]:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("the other process hangs") from None
    said = [(folder / f"out{r}").read_text().split("\n")[:-1] for r in range(2)]
    return max([int(k) for lines in said for k in lines] + [first - 1])


def check(folder: Path, last: int) -> int:
    state = {"cut": torch.zeros(100_000), "whole": torch.zeros(30_000), "k": -1}
    dcp.load(state, checkpoint_id=folder / "saved", no_dist=True)
    k = state["k"]
    assert k in (last, last + 1), f"{k} is there, {last} was the last that was reported"
    assert (state["cut"] == k).all() and (state["whole"] == k).all(), f"parts of different saves at {k}"
    return k


def main(kills: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    random.seed(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, k, between = Path(name), -1, 0
        for i in range(kills):
            last = killed(folder, k + 1, random.random() * 0.3, both=bool(i % 2))
            left = [f for f in os.listdir(folder / "saved") if f.endswith(".distcp")]
            k = check(folder, last)
            between += len(left) > 2
            print(f"kill {i + 1}: {k} is whole, {last} was reported, {len(left)} data files", flush=True)
        print(f"{kills} kills, {between} of them in the middle of a save: a whole checkpoint each time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
