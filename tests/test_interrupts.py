"""Ctrl-C at any moment: the program goes on, nothing half-written stays, no process and no file is left behind.

``python tests/test_interrupts.py COUNT SEED`` interrupts each kind of work COUNT times; the tests a few dozen times.
"""

from __future__ import annotations

import collections
import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import pytest

import rushlight as torch
from rushlight import inspect, nn
from rushlight.autograd import overriding
from rushlight.io import load_sharded, safetensors, save_sharded
from rushlight.utils.data import DataLoader, TensorDataset

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timer"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of Python's own, interrupted too
]


SPARSE = torch.eye(2).to_sparse()  # works by ``__torch_function__``, which backward leaves out for its own length


def interrupted(work, seconds: float) -> bool:
    """Run ``work`` and raise KeyboardInterrupt in it after ``seconds``; was it early enough?"""

    armed = True

    def ring(*_):
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        work()
        armed = False
        return False
    except KeyboardInterrupt:
        armed = False
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def often(work, check, count: int, seed: int) -> collections.Counter:
    """Interrupt ``work`` at ``count`` random moments, and ``check()`` after each."""
    generator, tally = random.Random(seed), collections.Counter()
    work()
    start = time.perf_counter()
    work()
    length = time.perf_counter() - start
    for _ in range(count):
        hit = interrupted(work, generator.uniform(0, length))
        length *= 1.05 if hit else 0.8  # about as long as the work takes on this machine, now
        tally[hit] += 1
        assert SPARSE.to_dense().tolist() == [[1, 0], [0, 1]]
        check()
    return tally


def model():
    return nn.Sequential(
        nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 16), nn.Dropout(0.1),
        nn.LayerNorm(16), nn.Linear(16, 2),
    )  # fmt: skip


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "LBFGS": lambda p: torch.optim.LBFGS(p, lr=0.01, max_iter=3),
}


def train(name: str, count: int, seed: int):
    net, x, y = model(), torch.randn(8, 1, 8), torch.randint(0, 2, (8,))
    optimizer = OPTIMIZERS[name](net.parameters())

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss

    def check():
        assert torch.is_grad_enabled()
        loss = optimizer.step(closure)
        assert loss.isfinite() and all(p.grad.shape == p.shape for p in net.parameters())
        optimizer.load_state_dict(optimizer.state_dict())

    return often(lambda: optimizer.step(closure), check, count, seed)


def second_order(count: int, seed: int):
    x = torch.randn(5, requires_grad=True)

    def work():
        (first,) = torch.autograd.grad((x**3).sin().sum(), x, create_graph=True)
        first.sum().backward()

    def check():
        x.grad = None
        (x * x).sum().backward()
        assert torch.equal(x.grad, 2 * x.detach())

    return often(work, check, count, seed)


def save(folder, count: int, seed: int):
    """Files are the old ones or the new ones, and nothing lies beside them."""
    folder, turn = pathlib.Path(folder), [0]
    names = ["a.pt", "a.safetensors", "page.html", "shards"]

    def work():
        turn[0] += 1
        state = {str(i): torch.full((50, 50), float(turn[0])) for i in range(3)}
        torch.save(state, folder / "a.pt")
        safetensors.save_file(state, folder / "a.safetensors")
        save_sharded(state, folder / "shards", "20KB")
        watch.save(folder / "page.html")

    def check():
        loads = [torch.load(folder / "a.pt"), safetensors.load_file(folder / "a.safetensors")]
        for state in [*loads, load_sharded(folder / "shards")]:
            assert len({float(value) for t in state.values() for value in t.unique()}) == 1
        assert (folder / "page.html").read_text().endswith("</html>\n")
        assert sorted(os.listdir(folder)) == sorted(names)
        assert not [name for name in os.listdir(folder / "shards") if name.endswith(".partial")]

    net = nn.Linear(2, 2)
    with inspect.watch(net, None) as watch:
        net(torch.ones(1, 2)).sum().backward()
        watch.step(loss=1.0)
        return often(work, check, count, seed)


def load_data(count: int, seed: int):
    """Workers end, descriptors are closed, and the next pass has all samples."""
    data = TensorDataset(torch.arange(64))
    loader = DataLoader(data, 4, num_workers=2)
    descriptors = []

    def work():
        for _ in loader:
            time.sleep(0.0005)

    def check():
        gc.collect()
        assert sorted(value for (batch,) in loader for value in batch.tolist()) == list(range(64))
        deadline = time.monotonic() + 60
        while children() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not children()
        descriptors.append(len(channels()))
        assert descriptors[-1] <= descriptors[0] + 2

    return often(work, check, count, seed)


def channels() -> list[str]:
    """What loaders open: pipes, sockets and shared memory. Other libraries of the process may open files meanwhile."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the listing's own
        if target.startswith(("pipe:", "socket:", "/dev/shm")):
            found.append(target)
    return found


def children() -> list[int]:
    """Processes started from here that still run."""
    import multiprocessing

    return [process.pid for process in multiprocessing.active_children()]


def watch(count: int, seed: int):
    net, x = model(), torch.randn(8, 1, 8)

    def work():
        with inspect.watch(net, None) as watch:
            net(x).sum().backward()
            watch.step(loss=1.0)

    def check():
        """The model runs, and who watches it next sees what there is to see."""
        net.zero_grad()
        with inspect.watch(net, None) as watch:
            net(x).sum().backward()
            watch.step(loss=1.0)
        assert watch.steps == [0]
        assert all(p.grad is not None for p in net.parameters())

    return often(work, check, count, seed)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on(name):
    assert train(name, 60, 0)[True] > 10


@pytest.mark.parametrize("dispatched", [False, True])
def test_gradients_of_gradients(monkeypatch, dispatched):
    monkeypatch.setattr(overriding, "begun", dispatched)  # as after the first ``__torch_dispatch__``
    assert second_order(400, 0)[True] > 10


def test_saves(tmp_path):
    assert save(tmp_path, 40, 0)[True] > 5


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="open files are counted in /proc")
def test_loaders():
    """In a process of its own: in one that has JAX's threads, an interrupted pass may keep its pipes for a while."""
    program = "import test_interrupts as t; assert t.load_data(12, 0)[True] > 3"
    here = str(pathlib.Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_worker_is_forgotten(monkeypatch):
    """Ctrl-C just when the system has told that a worker ended: its end is known all the same."""
    waitpid = os.waitpid

    def interrupted_waitpid(pid, options):
        found = waitpid(pid, options)
        if found[0]:
            monkeypatch.setattr(os, "waitpid", waitpid)
            signal.raise_signal(signal.SIGINT)
        return found

    before = children()
    with pytest.raises(KeyboardInterrupt):
        for _ in (passing := iter(DataLoader(TensorDataset(torch.arange(8)), 4, num_workers=1))):
            monkeypatch.setattr(os, "waitpid", interrupted_waitpid)
    del passing
    assert children() == before


def test_a_lost_moment_leaves_signals_alone(monkeypatch):
    """Ctrl-C just before signals are put off is raised, and the next one comes too."""
    mask = signal.pthread_sigmask

    def late(how, signals):
        found = mask(how, signals)
        if signals and how == signal.SIG_BLOCK:
            monkeypatch.setattr(signal, "pthread_sigmask", mask)
            raise KeyboardInterrupt  # as Python does when a handler is due
        return found

    monkeypatch.setattr(signal, "pthread_sigmask", late)
    before = mask(signal.SIG_BLOCK, ())
    with pytest.raises(KeyboardInterrupt):
        list(DataLoader(TensorDataset(torch.arange(8)), 4, num_workers=1))
    assert mask(signal.SIG_BLOCK, ()) == before


def test_watch():
    assert watch(40, 0)[True] > 5


def main(count: int = 300, seed: int = 0) -> None:
    warnings.simplefilter("ignore")
    kinds = {f"training, {name}": lambda name=name: train(name, count, seed) for name in OPTIMIZERS}
    kinds |= {"second order": lambda: second_order(count, seed), "watch": lambda: watch(count, seed)}
    kinds |= {"DataLoader": lambda: load_data(count // 5, seed)}
    with tempfile.TemporaryDirectory() as folder:
        kinds |= {"save": lambda: save(folder, count, seed)}
        for name, run in kinds.items():
            tally = run()
            print(f"{name}: {tally[True]} of {tally.total()} interrupted, all went on", flush=True)
    assert threading.active_count() == 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
