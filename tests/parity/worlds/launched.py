"""Functions that ``elastic_launch`` runs in processes, on PyTorch and on rushlight. Starts them itself."""

import json
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def config(restarts=0):
    return LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=2, run_id="x", rdzv_backend="c10d", rdzv_endpoint="localhost:0",
        max_restarts=restarts, monitor_interval=0.1,
    )  # fmt: skip


def work(a, b):
    dist.init_process_group("gloo")
    t = torch.tensor([float(dist.get_rank() + a)])
    dist.all_reduce(t)
    dist.destroy_process_group()
    told = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID"
    return b, t.item(), [os.environ[name] for name in told.split()]


def at_second(folder):
    mark = Path(folder) / os.environ["RANK"]
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "0":
        mark.touch()
        raise RuntimeError("first time")
    return os.environ["TORCHELASTIC_RESTART_COUNT"], (Path(folder) / "0").exists() if mark.name == "0" else None


def bad(word):
    if os.environ["RANK"] == "1":
        raise ValueError(word)
    time.sleep(60)


@record
def main():
    elastic_launch(config(), bad)("no good")


if __name__ == "__main__":
    print(sorted(elastic_launch(config(), work)(3, "b").items()))
    with tempfile.TemporaryDirectory() as folder:
        print(sorted(elastic_launch(config(2), at_second)(folder).items()))
        os.environ["TORCHELASTIC_ERROR_FILE"] = f"{folder}/error.json"
        try:
            main()
        except ChildFailedError as error:
            rank, first = error.get_first_failure()
            print(error.name, sorted(error.failures), rank, first.local_rank, first.exitcode, first.signal_name())
            print(first.message["message"], first.message["extraInfo"]["py_callstack"].splitlines()[-1])
            handed_on = json.loads(Path(f"{folder}/error.json").read_text())
            print(Path(first.error_file).name, handed_on["message"]["message"])
            text = [line for line in str(error).splitlines() if ":" not in line]
            print([line.strip() for line in text if "File" not in line and "^" not in line and "(" not in line])
        written = f"{folder}/error.json"
        for f in (ProcessFailure(1, 997, -9, "nowhere"), ProcessFailure(0, 998, 1, "nowhere")):
            print(f.local_rank, f.exitcode, f.message, f.signal_name(), f.error_file, f.error_file_data)
        print(ProcessFailure(0, 999, 1, written).message["message"])
