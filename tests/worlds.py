"""Several processes of one script, for tests: each with its rank, all of them gone when the test is over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONG = pytest.mark.skipif(
    os.environ.get("RUSHLIGHT_PARITY") != "all", reason="it takes long: RUSHLIGHT_PARITY=all runs it as well"
)


def environment(**more) -> dict[str, str]:
    """What a process of a world needs: this package, one thread, and none of a launcher's variables of our own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHELASTIC", "RUSHLIGHT_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    return {**env, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", **more}


def run_world(folder: Path, size: int, *command, seconds: float = 240, codes=None, stopped=(), **env) -> list[str]:
    """What each of ``size`` processes of ``python command`` prints; they meet in a file, so no port is needed.

    ``codes``: the exit status that each is to have; by default 0. ``stopped``: ranks that stop themselves, and are
    ended when the others are through.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes: list[subprocess.Popen] = []
    try:
        for rank in range(size):
            whole = environment(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
            whole["MEETING"] = f"file://{folder / 'meeting'}"
            with open(folder / f"out{rank}", "w") as out, open(folder / f"err{rank}", "w") as err:
                line = [sys.executable, *map(str, command)]
                started = subprocess.Popen(
                    line, cwd=folder, env={**whole, **env}, stdout=out, stderr=err, start_new_session=True
                )
            processes.append(started)
        end = time.monotonic() + seconds
        for process in [p for rank, p in enumerate(processes) if rank not in stopped]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.1))
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = [((folder / f"out{r}").read_text(), (folder / f"err{r}").read_text()) for r in range(size)]
    ended = [p.returncode for p in processes]
    assert ended == (codes or [0] * size), f"exit status {ended}\n" + "\n".join(e[-3000:] for _, e in said)
    return [out for out, _ in said]


TRAIN = """
import datetime, os, signal, socket, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
fault, victim, meeting, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(os.environ.get("WORLD_SIZE", 2))

def train(rank, meeting):
    try:
        dist.init_process_group("gloo", meeting, datetime.timedelta(seconds=4), size, rank)
        steps(rank)
    except Exception as error:
        with open(f"told{rank}", "a") as told:
            told.write(f"{type(error).__name__} {error}"[:70] + os.linesep)
        raise
    dist.destroy_process_group()

def steps(rank):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    state = torch.load("checkpoint") if os.path.exists("checkpoint") else {"steps": 0}
    if state["steps"]:
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    model = torch.nn.parallel.DistributedDataParallel(net)
    for step in range(state["steps"], 9):
        if step == 5 and rank == victim and not os.path.exists("made"):
            open("made", "w").close()
            if fault == "raise":
                raise ValueError("bad data")
            os.kill(os.getpid(), getattr(signal, fault))
        optimizer.zero_grad()
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step + rank))
        model(x).square().mean().backward()
        optimizer.step()
        if rank == 0 and step % 3 == 2:
            state = {"steps": step + 1, "net": net.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, "checkpoint.new")
            os.replace("checkpoint.new", "checkpoint")
    if rank == 0:
        torch.save(net.state_dict(), "end")

if __name__ == "__main__":
    if meeting == "env://":
        train(int(os.environ["RANK"]), meeting)
    else:
        if meeting == "tcp":
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                meeting = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        try:
            mp.spawn(train, (meeting,), size)
        except Exception as error:
            print(type(error).__name__, error.error_index)
"""


class Trained:
    """What a training with one fault has left: what it printed, what each survivor was told, the weights."""

    def __init__(self, folder: Path, *command, tmp: str | None = None):
        (folder / "tmp").mkdir(parents=True)
        (folder / "train.py").write_text(TRAIN)
        name = uuid.uuid4().hex
        env = environment(SOAK=name, TMPDIR=tmp or str(folder / "tmp"))
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        self.said = done.stdout
        self.told = [p.read_text() if p.exists() else "" for p in (folder / "told0", folder / "told1")]
        import rushlight

        self.end = rushlight.load(folder / "end") if (folder / "end").exists() else None
        left = what_is_left(name, folder / "tmp")
        assert not left, left


def what_is_left(name: str, tmp: Path) -> list[str]:
    """Processes with ``SOAK=name`` in their environment that do not end, and files in ``tmp``: there should be none."""
    end = time.monotonic() + 5
    while left := [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and _is_of(name, p)]:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return [*(f"process {pid}" for pid in left), *(str(p) for p in tmp.rglob("*"))]


def _is_of(name: str, process: Path) -> bool:
    try:
        return f"SOAK={name}".encode() in (process / "environ").read_bytes()
    except OSError:
        return False
