"""Shared memory: a process that was given a module sees and changes its weights."""

import os
import signal
import sys
import time

import pytest

import rushlight as torch
import rushlight.multiprocessing as mp
from rushlight import nn


def add_one(model):
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)


def add_index(index, model, t):
    with torch.no_grad():
        model.weight.add_(index + 1)
        t += 10


def fail(index):
    if index == 1:
        raise ValueError("no")


def send_back(queue, done):
    t = torch.zeros(2, 3)
    queue.put(t[1])
    done.wait(60)


def zeros() -> nn.Linear:
    model = nn.Linear(2, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.skipif(sys.platform == "win32", reason="needs file descriptors that can be handed on")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_child_changes_the_weights_of_a_shared_module(method):
    model = zeros().share_memory()
    assert all(p.is_shared() for p in model.parameters())
    process = mp.get_context(method).Process(target=add_one, args=(model,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert model.weight.tolist() == [[1.0, 1.0]]
    assert model.bias.tolist() == [1.0]
    assert model.weight.requires_grad


def test_spawn_shares_what_it_is_given():
    model, t = zeros(), torch.zeros(3)[1:]
    mp.spawn(add_index, (model, t), nprocs=2)
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert t.tolist() == [20.0, 20.0]


def test_spawn_raises_what_a_process_raised():
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: no") as caught:
        mp.spawn(fail, nprocs=2)
    assert caught.value.error_index == 1


def test_queue_hands_memory_over():
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=send_back, args=(queue, done))
    process.start()
    t = queue.get(timeout=60)
    done.set()
    process.join(60)
    assert t.tolist() == [0.0, 0.0, 0.0]
    assert t.is_shared()


def test_shared_memory_keeps_identity_gradient_and_dtype():
    model = zeros()
    model.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    weight = model.weight
    weight.grad = torch.ones(1, 2)
    model.share_memory()
    assert model.weight is weight
    assert weight.grad.tolist() == [[1.0, 1.0]]
    assert weight.is_shared()
    assert model.count.dtype == torch.int64
    model.weight.data.fill_(3)
    assert weight.tolist() == [[3.0, 3.0]]


def test_computed_tensors_are_refused():
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        mp.reduction.ForkingPickler.dumps(zeros().weight * 2)


def leaves(index, code):
    os._exit(code if index else 0)


def test_a_process_that_exits_without_an_exception():
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit code 3") as found:
        mp.spawn(leaves, args=(3,), nprocs=2)
    assert (found.value.error_index, found.value.exit_code) == (1, 3)


def stops(index):
    os.kill(os.getpid(), signal.SIGSTOP) if index else time.sleep(0.5)
    raise ValueError("at the end")


def test_a_stopped_process_is_ended_with_the_others():
    started = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException, match="at the end"):
        mp.spawn(stops, nprocs=2)
    assert time.monotonic() - started < mp._PATIENCE
    assert not mp.active_children()


def heeds_nothing(index, path):
    if index:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(path, "w").close()
        time.sleep(60)
    while not os.path.exists(path):
        time.sleep(0.01)
    raise ValueError("at the end")


def test_a_process_that_does_not_end_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr(mp, "_PATIENCE", 0.5)
    with pytest.raises(mp.ProcessRaisedException, match="at the end"):
        mp.spawn(heeds_nothing, args=(str(tmp_path / "ready"),), nprocs=2)
    assert not mp.active_children()


def ends_late(index, folder):
    while index and not os.path.exists(os.path.join(folder, "0")):
        time.sleep(0.01)
    time.sleep(0.5 * index)
    open(os.path.join(folder, str(index)), "w").close()
    sys.exit(1)


def test_processes_may_have_time_to_end_by_themselves(tmp_path):
    context = mp.spawn(ends_late, args=(str(tmp_path),), nprocs=2, join=False)
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 1"):
        context.join(grace_period=60)
    assert (tmp_path / "1").exists()
