"""A compiled training step interrupted anywhere: nothing is lost, everything is from before or from after that step.

``python tests/test_interruption.py COUNT`` does it COUNT times each way: on each device, by a signal, from a thread,
and at an instruction drawn from all that a step executes.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.autograd import mode
from rushlight.compiler.commit import LOCK, RUNNING, Run
from rushlight.compiler.residence import Group

# An interrupt that hits a destructor or a weak reference's callback is reported there, and the step goes on.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("either_way"),
]


LIBRARY = os.path.dirname(torch.__file__) + os.sep


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
    """{number of steps: the state after them}, from a run that nobody interrupts; ``losses`` of the steps."""

    def __init__(self, device):
        self.trainer, self.losses = Trainer(device), []

    def __missing__(self, steps):
        while len(self.losses) < steps:
            self.losses.append(self.trainer.step(self.trainer.x, self.trainer.y).item())
        self[steps] = self.trainer.state()  # it is asked for in order
        return self[steps]


class Interrupt(BaseException):
    """Comes from outside, as KeyboardInterrupt does, but does not end pytest."""


def interrupt(*_):
    raise Interrupt


def by_signal(seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return lambda: time.sleep(0.004), lambda: not any(signal.getitimer(signal.ITIMER_REAL))


def by_thread(seconds):
    thread, ready, done = threading.get_ident(), [], []

    def wait_and_raise():
        while not ready:
            time.sleep(1e-4)
        time.sleep(seconds)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupt))
        done.append(True)

    def wait():  # with lists, for an interrupt inside Thread.start or Thread.join would only test Python
        while not done:
            time.sleep(1e-4)

    threading.Thread(target=wait_and_raise, daemon=True).start()
    ready.append(True)
    return wait, lambda: bool(done)


def by_instruction(count):
    """At an instruction of the library, ``count`` of them from now: each place is as likely as any other."""
    left = [count]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= 1
            if left[0] < 0:
                sys.settrace(None)
                raise Interrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    return lambda: (sys.settrace(outer), count - left[0])[1], lambda: left[0] < 0


def drawn(how, trainer, draw):
    """When an interrupt is to come so that it may hit any part of a step: seconds, or instructions.

    After somebody has looked at the state, the next step gathers it; the steps after that only run.
    """
    first, later = [], []
    for _ in range(5):
        trainer.state()
        for cost in (first, later):
            counted, _ = (by_clock if how is not by_instruction else by_instruction)(10**9)
            trainer.step(trainer.x, trainer.y)
            cost.append(counted())
    most = min(first) + 3 * min(later)
    return lambda: draw.randrange(most) if how is by_instruction else draw.uniform(1e-5, most)


def by_clock(_):
    start = time.perf_counter()
    return lambda: time.perf_counter() - start, None


def interrupted(trainer, start, calls=4) -> bool:
    """Run some steps while ``start`` has an interrupt on its way; whether it came in one of them."""
    hit, wait, before = True, None, mode.snapshot()
    try:
        try:
            wait, came = start()
            for _ in range(calls):
                trainer.step(trainer.x, trainer.y)
                if came():  # and was swallowed by a destructor, or comes now
                    break
            hit = False
        finally:
            if wait is not None:
                wait()
            sum(range(1000))  # it arrives now at the latest
    except Interrupt:
        for lock in (LOCK, RUNNING):  # a trace function can raise where no signal comes: before the end of a ``with``
            while lock._is_owned():
                lock.release()
        mode.restore(before)
    return hit


@pytest.mark.parametrize("device", ["cpu", "xla"])
@pytest.mark.parametrize("how", [by_signal, by_thread, by_instruction])
def test_random_interruptions(device, how, thorough):
    count = 40 if thorough else 16
    assert interrupt_often(device, how, count)[0] > count // 8


def interrupt_often(device, how, count):
    """(how many of ``count`` interrupts came in a step, how many steps were made, the loss of the last)."""
    draw = random.Random(device)
    known, trainer = Known(device), Trainer(device)
    for _ in range(4):
        trainer.step(trainer.x, trainer.y)
    when = drawn(how, trainer, draw)
    outer, hits = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for i in range(count):
            hits += interrupted(trainer, lambda: how(when()), calls=2_000)  # one will be hit
            if i % 8 == 0 or how is by_instruction or i > count - 4:
                check_consistent(trainer, known)
    finally:
        signal.signal(signal.SIGALRM, outer)
    loss = trainer.step(trainer.x, trainer.y).item()
    check_consistent(trainer, known)
    np.testing.assert_allclose(loss, known.losses[-1], rtol=1e-5)
    return hits, trainer.done(), loss


@pytest.mark.parametrize("when", [0.002, 0.01, 0.05, 0.1, 0.2, 0.4])
def test_interrupted_while_it_is_traced_and_compiled(when):
    known, trainer = Known("cpu"), Trainer()
    trainer.step(trainer.x, trainer.y)
    outer = signal.signal(signal.SIGALRM, interrupt)
    try:
        interrupted(trainer, lambda: by_signal(when), calls=1)
        time.sleep(signal.getitimer(signal.ITIMER_REAL)[0] + 0.05)  # it comes now at the latest
    except Interrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, outer)
    check_consistent(trainer, known)
    for _ in range(3):
        trainer.step(trainer.x, trainer.y)
    check_consistent(trainer, known)


def test_saving_in_a_signal_handler_and_in_another_thread(thorough):
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

    save()  # imports what it needs: that is no matter of threads
    stop = threading.Event()

    def save_on():
        while not stop.is_set():
            save()

    other = threading.Thread(target=save_on)
    outer = signal.signal(signal.SIGALRM, save)
    other.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.02)
        deadline = time.monotonic() + (2 if thorough else 0.5)
        while time.monotonic() < deadline or (trainer.done() <= 3 and time.monotonic() < deadline + 60):
            trainer.step(trainer.x, trainer.y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer)
        stop.set()
        other.join()
    assert len(saved) > 1 and not failed, failed[:1]
    assert trainer.done() > 3


@pytest.mark.parametrize("device", ["cpu", "xla"])
def test_no_step_is_lost_to_who_saves(device, steps=40):
    """A signal handler, and on the CPU another thread, take all tensors out of the program's hands at any moment."""
    known, trainer, stop = Known(device), Trainer(device), threading.Event()

    def save(*_):
        torch.save([trainer.model.state_dict(), trainer.optimizer.state_dict()], io.BytesIO())

    def save_on():
        while not stop.is_set():
            save()

    save()
    for _ in range(3):  # while it is traced, other threads must keep away
        trainer.step(trainer.x, trainer.y)
    draw, other = random.Random(0), threading.Thread(target=save_on)
    outer = signal.signal(signal.SIGALRM, save)
    if device == "xla":
        stop.set()
    other.start()
    try:
        for _ in range(steps - 3):
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, 5e-3))
            trainer.step(trainer.x, trainer.y)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        stop.set()
        other.join()
        signal.signal(signal.SIGALRM, outer)
    assert trainer.done() == steps
    check_consistent(trainer, known)


def test_who_takes_a_tensor_whenever_a_step_begins_does_not_hold_it_up(monkeypatch, by_xla):
    known, trainer = Known("cpu"), Trainer()
    for _ in range(3):
        trainer.step(trainer.x, trainer.y)
    begin, began = Group.begin, []

    def disturbed(group, run):
        begin(group, run)
        began.append(run)
        trainer.model[1].weight._come_home()

    with monkeypatch.context() as patch:
        patch.setattr(Group, "begin", disturbed)
        trainer.step(trainer.x, trainer.y)
    assert began and trainer.done() == 4
    check_consistent(trainer, known)
    trainer.step(trainer.x, trainer.y)
    assert trainer.done() == 5
    check_consistent(trainer, known)


def test_a_program_that_is_collected_while_another_runs_for_the_first_time(monkeypatch, by_xla):
    """Its tensors are brought home by whoever is next: the collection is in a thread that this one waits for."""
    collected, execute = [], Run.execute

    def collecting(run, function):
        if threading.current_thread() is not threading.main_thread():
            collected.append(gc.collect())
        execute(run, function)

    old, trainer = Trainer(), Trainer()
    for _ in range(3):
        old.step(old.x, old.y)
    monkeypatch.setattr(Run, "execute", collecting)
    weight = old.model[3].weight
    before = weight.detach().clone()
    del old
    for _ in range(5):
        trainer.step(trainer.x, trainer.y)
    assert collected and weight.tolist() == before.tolist()


def main(count: int = 500) -> None:
    for device in ("cpu", "xla"):
        for how in (by_signal, by_thread, by_instruction):
            hits, steps, loss = interrupt_often(device, how, count)
            print(
                f"{device}, {how.__name__}: {hits} of {count} came in a step; {steps} steps, loss {loss:.6f}",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
