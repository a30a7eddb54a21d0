"""Load and length: each command runs for as long as it is told, checks itself, and prints one line of numbers.

python tools/endurance.py threads --seconds 600     8 threads train 8 models, 8 threads serve one: as one thread would
python tools/endurance.py steps --count 1000000     training steps: memory and time at the end as at the beginning
python tools/endurance.py compiled --count 200000   the same for calls of a compiled step
python tools/endurance.py loaders --count 200       DataLoader workers killed, hung and raising: nothing is left
python tools/endurance.py saves --count 10000       saves killed at random moments, limited, read-only, several writers
python tools/endurance.py resume --count 50         training stopped at random points and resumed: bit by bit the same
python tools/endurance.py counts                    results by number of threads
"""

from __future__ import annotations

import argparse
import copy
import functools
import io
import multiprocessing
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader, TensorDataset


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4)
    )


def step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


def batches(seed: int, count: int = 8):
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(32, 16, generator=generator), torch.randint(0, 4, (32,), generator=generator))
        for _ in range(count)
    ]


def memory() -> int:
    """Bytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


# -- threads ---------------------------------------------------------------------------------------------------------


def threads(arguments) -> str:
    rounds = served = 0
    start = time.monotonic()
    while time.monotonic() - start < arguments.seconds:
        rounds += 1
        alone, together = ([model(i) for i in range(8)] for _ in range(2))
        for i in range(8):
            _train(alone[i], rounds * 8 + i)
        _in_threads([functools.partial(_train, together[i], rounds * 8 + i) for i in range(8)])
        for a, b in zip(alone, together):
            _assert_equal(a.state_dict(), b.state_dict())
        net = alone[0].eval()
        inputs = [x for x, _ in batches(rounds)]
        expected = [net(x).detach() for x in inputs]
        answers: list[list] = [[] for _ in range(8)]
        _in_threads([functools.partial(_serve, net, inputs, answers[i]) for i in range(8)])
        for answer in answers:
            assert len(answer) == 20 * len(inputs)
            assert all(torch.equal(a, expected[i % len(inputs)]) for i, a in enumerate(answer))
            served += len(answer)
    return (
        f"{rounds} rounds: {rounds * 8} models of 80 steps trained, {served} answers served, all equal to one thread's"
    )


def _train(net, seed: int) -> None:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(10):
        for x, y in batches(seed):
            step(net, optimizer, x, y)


def _serve(net, inputs, answers) -> None:
    for _ in range(20):
        with torch.no_grad():
            answers.extend(net(x) for x in inputs)


def _in_threads(calls) -> None:
    errors: list = []

    def run(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def _assert_equal(a, b) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


# -- length ----------------------------------------------------------------------------------------------------------


def steps(arguments) -> str:
    net, data = model(), batches(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    return _long(lambda i: step(net, optimizer, *data[i % len(data)]), arguments.count)


def compiled(arguments) -> str:
    net, data = model(), batches(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    quick = torch.compile(lambda x, y: step(net, optimizer, x, y))
    return _long(lambda i: quick(*data[i % len(data)]), arguments.count)


def _long(work, count: int) -> str:
    """Run ``work`` so often; memory and time of the last tenth against those of the second."""
    part = max(count // 10, 1)
    taken, held = [], []
    for tenth in range(10):
        start = time.perf_counter()
        for i in range(part):
            work(tenth * part + i)
        taken.append((time.perf_counter() - start) / part)
        held.append(memory())
    growth = held[-1] / held[1] - 1
    assert growth < 0.01, f"memory grew by {growth:.1%}"
    times = " ".join(f"{t * 1e6:.0f}" for t in taken)
    return f"{part * 10} steps: memory {held[1] / 2**20:.1f} MB, then {growth:+.2%}; µs a step by tenths: {times}"


# -- workers ---------------------------------------------------------------------------------------------------------


class _Unruly(TensorDataset):
    """Sample 40 makes its worker do what it is told."""

    def __init__(self, how: str):
        super().__init__(torch.arange(64))
        self.how = how

    def __getitem__(self, index):
        if index == 40:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "hang":
                time.sleep(1000)
            raise ValueError("unruly")
        return super().__getitem__(index)

    def _gather(self, indices):
        return None


def loaders(arguments) -> str:
    before = len(os.listdir("/proc/self/fd"))
    shared = len(os.listdir("/dev/shm"))
    seen = {"kill": 0, "hang": 0, "raise": 0}
    for i in range(arguments.count):
        how = ("kill", "raise", "hang")[i % 3]
        try:
            for _ in DataLoader(_Unruly(how), 4, num_workers=2, timeout=0.3 if how == "hang" else 0):
                pass
        except (RuntimeError, ValueError):
            seen[how] += 1
    deadline = time.monotonic() + 30
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    left = len(multiprocessing.active_children())
    files = len(os.listdir("/proc/self/fd")) - before
    assert sum(seen.values()) == arguments.count and not left and files <= 1, (seen, left, files)
    assert len(os.listdir("/dev/shm")) <= shared
    return f"{seen}: all noticed; {left} processes, {files} descriptors, no shared memory left"


# -- saves -----------------------------------------------------------------------------------------------------------

_SAVER = """
import sys, rushlight as torch
from rushlight.io import safetensors, save_sharded
folder, seed = sys.argv[1], int(sys.argv[2])
torch.save(1, folder + "/ready" + sys.argv[2])
for turn in range(seed * 1000, seed * 1000 + 1000):
    state = {str(i): torch.full((64, 64), float(turn)) for i in range(8)}
    torch.save(state, folder + "/a.pt")
    safetensors.save_file(state, folder + "/a.safetensors")
    save_sharded(state, folder + "/shards", "40KB")
"""


def saves(arguments) -> str:
    """Processes save without end, two at a time, and are killed at random moments; every load finds one checkpoint."""
    chance, killed, loaded = random.Random(arguments.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        seed = 0
        while loaded < arguments.count:
            savers = []
            for _ in range(2):
                seed += 1
                command = [sys.executable, "-c", _SAVER, folder, str(seed)]
                savers.append(
                    subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])})
                )
            while not all(os.path.exists(f"{folder}/ready{seed - i}") for i in range(2)):
                time.sleep(0.01)
            until = time.monotonic() + chance.uniform(0.05, 1.0)
            while time.monotonic() < until:
                loaded += _load_all(folder)
            for saver in savers:
                saver.kill()
                saver.wait()
                killed += 1
            loaded += _load_all(folder)
        left = _settled(folder)
    return (
        f"{loaded} loads, {killed} killed writers: each load one whole checkpoint; {left} files left by them in the end"
    )


def _load_all(folder: str) -> int:
    from rushlight.io import load_sharded, safetensors

    done = 0
    for path, load in (("a.pt", torch.load), ("a.safetensors", safetensors.load_file), ("shards", load_sharded)):
        place = f"{folder}/{path}"
        if os.path.exists(place) and (path != "shards" or os.path.exists(place + "/model.safetensors.index.json")):
            values = {float(v) for t in load(place).values() for v in (t.min(), t.max())}
            assert len(values) == 1, f"{path} mixes {sorted(values)}"
            done += 1
    return done


def _settled(folder: str) -> int:
    """One more save of everything deletes what the killed ones left; how much is there beyond that?"""
    from rushlight.io import safetensors, save_sharded

    state = {str(i): torch.zeros(64, 64) for i in range(8)}
    torch.save(state, f"{folder}/a.pt")
    safetensors.save_file(state, f"{folder}/a.safetensors")
    save_sharded(state, f"{folder}/shards", "40KB")
    before = pathlib.Path(folder, "a.pt").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        torch.save(state, f"{folder}/a.pt")
        raise AssertionError("a full disk went unnoticed")
    except OSError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert pathlib.Path(folder, "a.pt").read_bytes() == before
    files = [p for p in pathlib.Path(folder).rglob("*") if p.is_file() and not p.name.startswith("ready")]
    named = {"a.pt", "a.safetensors", "model.safetensors.index.json"}
    index = pathlib.Path(folder, "shards", "model.safetensors.index.json").read_text()
    return sum(p.name not in named and p.name not in index for p in files)


# -- resuming --------------------------------------------------------------------------------------------------------

_STEPS = 30


class _Run:
    """A training with everything that has a state: dropout, shuffled loader, schedule, scaler, averages."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 1e-2, total_steps=_STEPS + 1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4)
        self.average = torch.optim.swa_utils.AveragedModel(self.net)
        self.order = torch.Generator().manual_seed(seed)
        data = torch.Generator().manual_seed(99)
        samples = TensorDataset(torch.randn(24, 8, generator=data), torch.randint(0, 3, (24,), generator=data))
        self.loader = DataLoader(samples, 8, shuffle=True, generator=self.order)
        self.done = 0

    def epoch(self) -> None:
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.schedule.step()
            self.average.update_parameters(self.net)
            self.done += 1

    def state(self) -> dict:
        parts = ("net", "optimizer", "schedule", "scaler", "average")
        state = {name: getattr(self, name).state_dict() for name in parts}
        return {**state, "rng": torch.get_rng_state(), "order": self.order.get_state(), "done": self.done}

    def load(self, state: dict) -> None:
        for name in ("net", "optimizer", "schedule", "scaler", "average"):
            getattr(self, name).load_state_dict(state[name])
        torch.set_rng_state(state["rng"])
        self.order.set_state(state["order"])
        self.done = state["done"]


def resume(arguments) -> str:
    chance = random.Random(arguments.seed)
    for turn in range(arguments.count):
        whole = _Run(turn)
        stop = chance.randrange(1, _STEPS // 3)
        saved = None
        for epoch in range(_STEPS // 3):
            if epoch == stop:
                saved = io.BytesIO()
                torch.save(whole.state(), saved)
            whole.epoch()
        expected = copy.deepcopy(whole.state())
        torch.manual_seed(chance.randrange(1 << 30))  # whatever happened in between
        again = _Run(turn + 1000)
        again.load(torch.load(io.BytesIO(saved.getvalue())))
        while again.done < whole.done:
            again.epoch()
        _assert_same(expected, again.state(), "")
    return (
        f"{arguments.count} trainings resumed: weights, optimizer, schedule, scaler, averages, random states bit by bit"
    )


def _assert_same(a, b, where: str) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            _assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            _assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b), where
    elif not callable(a):
        assert a == b, (where, a, b)


# -- numbers of threads ----------------------------------------------------------------------------------------------


def counts(arguments) -> str:
    """Which results change in the last bits with the number of threads."""
    torch.manual_seed(0)
    x, image, words = torch.randn(512, 512), torch.randn(8, 16, 32, 32), torch.randn(64, 8, 64)
    layers = {
        "matmul": lambda: x @ x,
        "conv2d": lambda: nn.functional.conv2d(image, kernel, padding=1),
        "conv2d's gradient": lambda: torch.autograd.grad(
            nn.functional.conv2d(image, weight, padding=1).square().sum(), weight
        )[0],
        "sum": lambda: x.sum(),
        "mean over a dimension": lambda: x.mean(0),
        "softmax": lambda: x.softmax(-1),
        "layer_norm": lambda: nn.functional.layer_norm(x, (512,)),
        "batch_norm": lambda: nn.functional.batch_norm(image, None, None, training=True),
        "attention": lambda: nn.functional.scaled_dot_product_attention(words, words, words),
        "Adam": lambda: _updated(x),
    }
    kernel = torch.randn(16, 16, 3, 3)
    weight = kernel.clone().requires_grad_()
    before, changing = torch.get_num_threads(), []
    try:
        for name, work in layers.items():
            results = []
            for n in (1, 2, 4):
                torch.set_num_threads(n)
                results.append(work().detach().clone())
            if not all(torch.equal(results[0], r) for r in results):
                worst = max((r - results[0]).abs().max().item() for r in results)
                changing.append(f"{name} ({worst:.1e})")
    finally:
        torch.set_num_threads(before)
    return f"{len(layers) - len(changing)} of {len(layers)} kinds of work equal on 1, 2 and 4 threads; " + (
        "others: " + ", ".join(changing) if changing else "no others"
    )


def _updated(x):
    p = nn.Parameter(x.clone())
    optimizer = torch.optim.Adam([p])
    p.grad = x * 2
    optimizer.step()
    return p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {f.__name__: f for f in (threads, steps, compiled, loaders, saves, resume, counts)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.monotonic()
    line = commands[given.command](given)
    print(f"{given.command}: {line} ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
