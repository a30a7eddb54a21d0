"""Trainings of three processes, of which some are killed or stopped at random moments: ``python tests/soak.py 20``.

Each is started by ``rushlight launch --max-restarts``, goes on from its last checkpoint, and must end with the bits of
an undisturbed one. Survivors must be told what happened by PyTorch's kinds of exception, in time; and nothing may be
left: no process, no file, no shared memory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from worlds import environment, what_is_left

SIZE, LIMIT = 3, 4  # processes; seconds that a collective may take

TRAIN = f"""
import datetime, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's: first there is something to be told
STARTED = time.monotonic()
import rushlight as torch, rushlight.distributed as dist
from rushlight.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from rushlight.distributed.fsdp import fully_shard
rank, kind, steps = int(os.environ["RANK"]), sys.argv[1], int(sys.argv[2])
turn = os.environ["RUSHLIGHT_STORE"].rpartition("/")[2]

def note(name, text):
    with open(f"{{name}}.{{turn}}.{{rank}}.new", "w") as file:
        file.write(text)
    os.rename(file.name, file.name.removesuffix(".new"))

def stepping():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    model = fully_shard(net) if kind == "sharded" else torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    return model, optimizer, torch.compile(step) if kind != "plain" else step

def warmed_up(model, optimizer, step):
    # The first call of a compiled function is eager, and has other last bits: it is no step of the training.
    weights = [p.detach().clone() for p in model.parameters()]
    moments = [optimizer.state[p].get("momentum_buffer") for p in model.parameters()]
    moments = [torch.zeros_like(p) if m is None else m.detach().clone() for p, m in zip(weights, moments)]
    for i in range(3):
        step(torch.full((4, 8), float(i + rank)))
    with torch.no_grad():
        for p, weight, moment in zip(model.parameters(), weights, moments):
            p.copy_(weight)
            optimizer.state[p]["momentum_buffer"].copy_(moment)

WHOLE = StateDictOptions(full_state_dict=True)
def train():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    model, optimizer, step = stepping()
    done = 0
    if os.path.exists("checkpoint"):
        done, weights, moments = torch.load("checkpoint", weights_only=False)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments, options=WHOLE)
    if kind != "plain":
        warmed_up(model, optimizer, step)
    dist.barrier()
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds={LIMIT}))
    note("running", "")
    while done < steps:
        if done % 10 == 0:
            state = get_state_dict(model, optimizer, options=WHOLE)
            if rank == 0:
                torch.save((done, *state), "checkpoint.new")
                os.replace("checkpoint.new", "checkpoint")
        global STARTED
        STARTED = time.monotonic()
        step(torch.randn(4, 8, generator=torch.Generator().manual_seed(1000 * done + rank)))
        done += 1
        time.sleep(0.01)
    state = get_state_dict(model, optimizer, options=WHOLE)
    if rank == 0:
        torch.save(state, "end")
    dist.destroy_process_group()

note("pid", str(os.getpid()))
try:
    train()
except Exception as error:
    note("error", f"{{type(error).__name__}} {{time.monotonic() - STARTED:.1f}} {{error}}")
    sys.exit(3)
"""


class Training:
    """One run of the script, with faults."""

    def __init__(self, folder: Path, kind: str, steps: int, faults: int, dice: random.Random):
        folder.mkdir(parents=True)
        (folder / "train.py").write_text(TRAIN)
        (folder / "tmp").mkdir()
        self.folder, self.dice, self.name = folder, dice, uuid.uuid4().hex
        self.made = self.told = 0
        command = [sys.executable, "-m", "rushlight", "launch", "--standalone", "--nproc-per-node", str(SIZE)]
        command += ["--max-restarts", str(faults), "--shutdown-timeout", str(2 * LIMIT), "train.py", kind, str(steps)]
        env = environment(SOAK=self.name, TMPDIR=str(folder / "tmp"), RUSHLIGHT_CACHE=str(folder.parent / "cache"))
        with open(folder / "said", "w") as said:
            self._launcher = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said)
        try:
            for turn in range(faults):
                if not self._fault(turn):
                    break
            code = self._launcher.wait(300)
        finally:
            self._launcher.kill()
            self._launcher.wait()
        assert code == 0, (folder / "said").read_text()
        self._look_around()

    def _fault(self, turn: int) -> bool:
        """Have something happen to one process of a round; False if the training has ended before."""
        pids = [self._read(f"pid.{turn}.{rank}") for rank in range(SIZE)]
        if self.dice.random() < 0.7:  # otherwise it is still joining
            self._read(f"running.{turn}.0")
        time.sleep(4 * self.dice.random() ** 2)
        if self._launcher.poll() is not None or not all(pids):
            return False
        rank = self.dice.randrange(SIZE)
        how = self.dice.choice([signal.SIGKILL, signal.SIGSTOP])
        try:
            os.kill(int(pids[rank]), how)
        except ProcessLookupError:  # it was through
            return False
        self.made += 1
        for other in {*range(SIZE)} - {rank}:
            told = self._read(f"error.{turn}.{other}", f"pid.{turn + 1}.{other}")
            print(f"{self.folder.name} {turn}: rank {rank} {how.name}, rank {other}: {told[:150]}", flush=True)
            if told:  # otherwise the launcher was quicker, or it was still importing
                kind, seconds, _ = told.split(" ", 2)
                assert kind in ("DistBackendError", "DistNetworkError", "DistStoreError"), told
                assert float(seconds) < 60, told
                self.told += 1
        return True

    def _read(self, name: str, instead: str = "") -> str:
        """What a process has written; nothing if the run, or the file ``instead``, comes first."""
        while not (self.folder / name).exists():
            if self._launcher.poll() is not None or (instead and (self.folder / instead).exists()):
                break
            time.sleep(0.02)
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_text()
        return ""

    def _look_around(self) -> None:
        """Is anything left?"""
        left = what_is_left(self.name, self.folder / "tmp")
        assert not left, left
        files = sorted(p.name for p in self.folder.iterdir() if not p.name.startswith(("pid.", "running.", "error.")))
        assert files == ["checkpoint", "end", "said", "tmp", "train.py"], files


def soak(folder: Path, faults: int, seed: int, kinds=("plain", "compiled", "sharded"), steps: int = 200) -> None:
    """Train until so many faults have happened; raises if a training ends otherwise than an undisturbed one."""
    import rushlight

    dice, expected = random.Random(seed), {}
    made = told = number = 0
    while made < faults:
        kind = kinds[number % len(kinds)]
        if kind not in expected:
            Training(folder / f"undisturbed-{kind}", kind, steps, 0, dice)
            expected[kind] = rushlight.load(folder / f"undisturbed-{kind}" / "end", weights_only=False)
        training = Training(folder / f"{number}-{kind}", kind, steps, min(dice.randint(2, 5), faults - made), dice)
        found = rushlight.load(training.folder / "end", weights_only=False)
        same(found, expected[kind])
        made, told, number = made + training.made, told + training.told, number + 1
    print(
        f"{made} faults in {number} trainings, {told} errors of survivors; all ended with the bits of undisturbed ones"
    )


def same(a, b) -> None:
    import rushlight

    if isinstance(a, dict):
        assert a.keys() == b.keys()
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, rushlight.Tensor):
        assert rushlight.equal(a, b)
    else:
        assert a == b


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to leave what the trainings wrote")
    given = parser.parse_args()
    shared = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory() as name:
        soak(given.folder or Path(name), given.faults, given.seed)
    left = set(os.listdir("/dev/shm")) - shared
    assert not left, f"shared memory {left} is left, if it is not somebody else's"
