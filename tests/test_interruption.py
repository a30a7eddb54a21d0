"""A compiled training step interrupted anywhere: nothing is lost, everything is from before or from after that step."""

from __future__ import annotations

import ctypes
import io
import random
import signal
import threading
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim


class Trainer:
    """A model with small and large state, buffers and momentum; ``losses`` of a run without interruption."""

    def __init__(self, device="cpu", width=64):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 160 * 64))
        self.model.to(device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.x, self.y = torch.randn(4, 8).to(device), torch.randn(4, 160 * 64).to(device)

        def step(x, y):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            return loss

        self.step = torch.compile(step)

    def done(self) -> int:
        """How many steps the model has made."""
        return int(self.model[1].num_batches_tracked)

    def state(self):
        tensors = [*self.model.state_dict().values()]
        tensors += [p.grad for p in self.model.parameters()]
        tensors += [value for s in self.optimizer.state.values() for value in s.values()]
        return [t.detach().cpu().numpy().copy() for t in tensors]


def check_consistent(trainer, known):
    """All state is that of the same step; saving works."""
    steps = trainer.done()
    for a, b in zip(trainer.state(), known[steps]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    file = io.BytesIO()
    torch.save([trainer.model.state_dict(), trainer.optimizer.state_dict()], file)
    file.seek(0)
    weights, _ = torch.load(file)
    np.testing.assert_array_equal(weights["0.weight"].cpu().numpy(), trainer.model[0].weight.detach().cpu().numpy())


class Known(dict):
    """{number of steps: the state after them}, from a run that nobody interrupts."""

    def __init__(self, device):
        self.trainer = Trainer(device)

    def __missing__(self, steps):
        while self.trainer.done() < steps:
            self.trainer.step(self.trainer.x, self.trainer.y)
            self[self.trainer.done()] = self.trainer.state()
        return self[steps]


def interrupted(trainer, interrupt, calls):
    """Run ``calls`` steps while ``interrupt`` does its work; whether it came in one of them."""
    try:
        interrupt()
        for _ in range(calls):
            trainer.step(trainer.x, trainer.y)
        time.sleep(0.01)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.parametrize("device", ["cpu", "xla"])
@pytest.mark.parametrize("how", ["signal", "thread"])
def test_random_interruptions(device, how, count=130):
    draw = random.Random(device + how)
    known, trainer = Known(device), Trainer(device)
    for _ in range(4):
        trainer.step(trainer.x, trainer.y)
    main = threading.get_ident()

    def by_signal():
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 2e-3))

    def by_thread():
        def wait_and_raise(seconds=draw.uniform(0, 1.5e-3)):
            time.sleep(seconds)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(KeyboardInterrupt))

        threading.Thread(target=wait_and_raise).start()

    def on_alarm(*_):
        raise KeyboardInterrupt

    outer, hits = signal.signal(signal.SIGALRM, on_alarm), 0
    try:
        for i in range(count):
            try:
                hits += interrupted(trainer, by_signal if how == "signal" else by_thread, 4)
                time.sleep(0.004)
            except KeyboardInterrupt:  # it came late
                pass
            if i % 8 == 0 or i > count - 4:
                check_consistent(trainer, known)
    finally:
        signal.signal(signal.SIGALRM, outer)
    check_consistent(trainer, known)
    assert hits > count // 4
    trainer.step(trainer.x, trainer.y)
    check_consistent(trainer, known)


@pytest.mark.parametrize("when", [0.002, 0.01, 0.05, 0.1, 0.2, 0.4])
def test_interrupted_while_it_is_traced_and_compiled(when):
    known, trainer = Known("cpu"), Trainer()
    trainer.step(trainer.x, trainer.y)
    outer = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        signal.setitimer(signal.ITIMER_REAL, when)
        trainer.step(trainer.x, trainer.y)
        time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, outer)
    check_consistent(trainer, known)
    for _ in range(3):
        trainer.step(trainer.x, trainer.y)
    check_consistent(trainer, known)


def test_saving_in_a_signal_handler_and_in_another_thread():
    trainer = Trainer()
    for _ in range(3):
        trainer.step(trainer.x, trainer.y)
    saved, failed = [], []

    def save(*_):
        try:
            file = io.BytesIO()
            torch.save(trainer.model.state_dict(), file)
            saved.append(1)
        except Exception as error:
            failed.append(error)

    stop = threading.Event()

    def save_on():
        while not stop.is_set():
            save()

    other = threading.Thread(target=save_on)
    outer = signal.signal(signal.SIGALRM, save)
    other.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.005)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            trainer.step(trainer.x, trainer.y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer)
        stop.set()
        other.join()
    assert saved and not failed, failed[:1]
    assert trainer.done() > 3
