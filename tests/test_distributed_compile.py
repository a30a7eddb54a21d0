"""Compiled functions that exchange something with other processes: programs, and collectives between them.

Small programs are played; each test runs once more with all of them XLA's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from worlds import run_world

from rushlight.engine.native import library, reason

pytest.importorskip("jax")

START = """
import contextlib, datetime, os, signal, threading, time, warnings
import rushlight as torch, rushlight.distributed as dist
from rushlight.compiler import score
from rushlight.nn.parallel import DistributedDataParallel as DDP
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
seconds = datetime.timedelta(seconds=60)
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size, timeout=seconds)
nn, F = torch.nn, torch.nn.functional
score.MOST = score.MOST if os.environ["WAY"] == "Played" else 0
warnings.simplefilter("error")

def network():
    torch.manual_seed(0)
    layers = nn.Linear(8, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 4)
    return nn.Sequential(*layers).double()

def batches(n, length=4):
    data = torch.Generator().manual_seed(rank)
    inputs = [torch.randn(length, 8, generator=data, dtype=torch.float64) for _ in range(n)]
    return [(x, torch.randint(0, 4, (length,), generator=data)) for x in inputs]

def trained(step, model, data, between=lambda i: None):
    told = []
    for i, (x, y) in enumerate(data):
        told.append(step(x, y).item())
        between(i)
    return told, [t.clone() for t in [*model.state_dict().values(), *(p.grad for p in model.parameters())]]

def same(a, b):
    torch.testing.assert_close(a[0], b[0], rtol=1e-9, atol=1e-10)
    for x, y in zip(a[1], b[1]):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-10)

def stepping(**options):
    model = DDP(network(), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step, model
"""


@pytest.fixture(params=["Played", "Program"])
def way(request):
    if request.param == "Played" and library is None:
        pytest.skip(f"there are no kernels: {reason}")
    return request.param


@pytest.fixture
def world(tmp_path, way):
    def run(size, body, **options):
        script = tmp_path / "script.py"
        script.write_text(START + body)
        return run_world(tmp_path, size, script, WAY=way, **options)

    return run


@pytest.mark.parametrize("size", [2, 3])
def test_a_step_with_a_ddp_model(world, way, size):
    """One program up to each bucket, one after the exchange; numbers, gradients and buffers are the eager step's."""
    body = """
plain, model = stepping(bucket_cap_mb=0.007)
expected = trained(plain, model, batches(6))
plain, model = stepping(bucket_cap_mb=0.007)
step = torch.compile(plain)
same(trained(step, model, batches(6)), expected)
(entry,) = [e for entries in step._entries.values() for e in entries]
parts = entry.program._exchanges.parts
names = type(entry.program).__name__, *[p.params["what"] for p in parts]
print(step.compilations, len(parts), len(model.reducer.buckets), *names)
"""
    summed = "swap swap" if size == 2 else "all_reduce all_reduce"
    expected = f"1 4 2 {way} broadcast broadcast {summed}\n"
    assert world(size, body) == [expected] * size


def test_processes_that_compile_and_that_do_not(world):
    """Programs exchange the same, in the same order, as eager code does."""
    body = """
def between(i):
    if rank == 0 and i % 3 == 2:  # this process's world is another now
        model.module[2].note = i
plain, model = stepping(bucket_cap_mb=0.007)
expected = trained(plain, model, batches(9))
plain, model = stepping(bucket_cap_mb=0.007)
same(trained(torch.compile(plain) if rank else plain, model, batches(9)), expected)
plain, model = stepping(bucket_cap_mb=0.007)
same(trained(torch.compile(plain), model, batches(9), between), expected)
print("the same")
"""
    assert world(2, body) == ["the same\n"] * 2


def test_evaluation_between_steps(world):
    """A forward pass without gradients changes whether buffers are sent at the next one: another program, no cut."""
    body = """
def evaluated(model):
    def between(i):
        if i % 2:
            with torch.no_grad():
                model(torch.ones(2, 8).double())
    return between
plain, model = stepping()
expected = trained(plain, model, batches(12), evaluated(model))
plain, model = stepping()
step = torch.compile(plain)
same(trained(step, model, batches(12), evaluated(model)), expected)
print(step.compilations)
"""
    assert world(2, body) == ["2\n"] * 2


def test_steps_without_exchange(world):
    """``no_sync`` inside a compiled step and around it."""
    body = """
def accumulating(compiled):
    model = DDP(network(), forward_sync_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def add(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss
    def both(x, y):
        with model.no_sync():
            add(x[:2], y[:2])
        loss = add(x[2:], y[2:])
        optimizer.step()
        optimizer.zero_grad()
        return loss
    add, both = (torch.compile(add), torch.compile(both)) if compiled else (add, both)
    losses = [both(x, y).item() for x, y in batches(5)]
    for x, y in batches(4):
        with model.no_sync():
            add(x, y)
        losses.append(add(x, y).item())
        optimizer.step()
        optimizer.zero_grad()
    return losses, list(model.state_dict().values())
same(accumulating(True), accumulating(False))
print("the same")
"""
    assert world(2, body) == ["the same\n"] * 2


def test_any_collective(world):
    """Each of them, blocking or not, in one compiled function: what comes is used, and tensors are written."""
    body = """
total = torch.zeros(3)
def function(x):
    total.add_(x)
    dist.all_reduce(total)
    rows = [torch.empty_like(x) for _ in range(size)]
    work = dist.all_gather(rows, x * 2, async_op=True)
    work.wait()
    mean = x.clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    first = x + rank
    dist.broadcast(first, 1)
    part = torch.empty(3)
    dist.reduce_scatter_tensor(part, torch.cat([x, x + 1]))
    swapped = torch.empty(2)
    dist.all_to_all_single(swapped, x[:2] * (rank + 1))
    yes = x > 1
    dist.all_reduce(yes, dist.ReduceOp.MAX)
    dist.barrier()
    return [total.clone(), *rows, mean, first, part, swapped, yes]
warnings.simplefilter("ignore", FutureWarning)
compiled = torch.compile(function, fullgraph=True)
for i in range(4):
    x = torch.arange(3.0) + rank + i
    before = total.clone()
    expected = function(x)
    total.copy_(before)
    for a, b in zip(compiled(x), expected, strict=True):
        torch.testing.assert_close(a, b)
print(compiled.compilations)
"""
    assert world(2, body) == ["1\n"] * 2


def test_what_is_not_one_program(world):
    """Hooks, unused parameters, gradients in buckets, objects and messages: cut, and the numbers are the eager ones."""
    body = """
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
warnings.simplefilter("ignore")
kinds = ({"find_unused_parameters": True}, None), ({"gradient_as_bucket_view": True}, None), ({}, allreduce_hook)
for options, hook in kinds:
    found = []
    for compiled in (False, True):
        step, model = stepping(**options)
        if hook is not None:
            model.register_comm_hook(None, hook)
        step = torch.compile(step) if compiled else step
        found.append(trained(step, model, batches(4)))
    same(*found)
    print(step._cut is not None)

def objects(x):
    every = [None] * size
    dist.all_gather_object(every, rank)
    return x * sum(every)
def message(x):
    (dist.send if rank else dist.recv)(x, 1 - rank)
    return x * 2
def group(x):
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x
def checked(x):
    dist.all_reduce(x)
    return F.embedding(x.long(), torch.eye(4))
def branch(x):
    dist.all_reduce(x)
    return x + 1 if x.sum() > 3 else x - 1
for function in (objects, message, group, checked, branch):
    compiled = torch.compile(function)
    print(function.__name__, *[compiled(torch.ones(1)).sum().item() for _ in range(3)], compiled._cut is not None)
"""
    lines = ["True"] * 3 + ["objects 1.0 1.0 1.0 True", "message 2.0 2.0 2.0 True", "group 2.0 2.0 2.0 True"]
    lines += ["checked 1.0 1.0 1.0 True", "branch 1.0 1.0 1.0 True"]
    assert [said.splitlines() for said in world(2, body)] == [lines] * 2


def test_values_are_looked_at_before_the_exchange(world):
    """A target out of range is an error at its line, and so is a branch that turns: nothing was exchanged before."""
    body = """
model = DDP(nn.Linear(8, 4).double())
def step(x, y, many):
    model.zero_grad()
    loss = F.cross_entropy(model(x), y)
    if many.sum() > 1:
        loss = loss * 2
    loss.backward()
    return loss
compiled = torch.compile(step)
for i in range(12):
    many, (x, y) = torch.tensor([i % 3 == 2, True]), batches(1)[0]
    a, ga = compiled(x, y, many).item(), model.module.weight.grad.clone()
    b, gb = step(x, y, many).item(), model.module.weight.grad.clone()
    torch.testing.assert_close((a, ga), (b, gb))
print(compiled.compilations)
try:
    compiled(x, y + 9, many)
except IndexError:
    print("out of bounds")
"""
    assert world(2, body) == ["2\nout of bounds\n"] * 2


def test_a_killed_process_is_an_error_and_nothing_has_changed(world):
    body = """
plain, model = stepping()
step = torch.compile(plain)
data = batches(6)
for i, (x, y) in enumerate(data):
    if i == 4:
        before = [t.clone() for t in model.state_dict().values()]
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            step(x, y)
        except dist.DistBackendError as error:
            print("rank 0" in str(error) and "ended" in str(error))
            print(all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values())), flush=True)
            os._exit(0)
    step(x, y)
"""
    assert world(2, body, codes=[0, -9])[0] == "True\nTrue\n"


def test_interrupted_steps(world):
    """A handler that saves and writes tensors while a step exchanges: no step is lost, and none is exchanged twice."""
    body = """
plain, model = stepping()
expected = trained(plain, model, batches(40))
plain, model = stepping()
step = torch.compile(plain)
seen = [0]
def handler(*_):
    seen[0] += 1
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.0)
signal.signal(signal.SIGALRM, handler)
def between(i):
    if i == 4:  # it is compiled
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.004 + rank / 300)
    elif i == 35:
        signal.setitimer(signal.ITIMER_REAL, 0)
found = trained(step, model, batches(40), between)
same(found, expected)
print(seen[0] > 3)
"""
    assert world(2, body) == ["True\n"] * 2


def test_an_interrupted_exchange_is_left_alone(tmp_path, world, way):
    """Ctrl-C while another process is late: what is still to be sent is not what the next call sends."""
    body = """
def function(x):
    y = x * 2
    dist.all_reduce(y)
    count.add_(1)
    return y
count = torch.zeros(1)
compiled = torch.compile(function)
for _ in range(3):
    compiled(torch.ones(1 << 20))
print(type(next(iter(compiled._entries.values()))[0].program).__name__, count.item())
if rank == 0:
    def interrupt(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        compiled(torch.ones(1 << 20))
    except KeyboardInterrupt:
        print(count.item())
    open(os.environ["FLAG"], "w").close()
    print(compiled(torch.full((1 << 20,), 5.0)).unique().tolist())
else:
    while not os.path.exists(os.environ["FLAG"]):
        time.sleep(0.01)
    time.sleep(0.2)  # the other one is in its next call
    for _ in range(2):
        late = torch.zeros(1 << 20)
        dist.all_reduce(late)
        print(late.unique().tolist())
"""
    said = world(2, body, FLAG=str(tmp_path / "flag"))
    assert said == [f"{way} 3.0\n3.0\n[10.0]\n", f"{way} 3.0\n[2.0]\n[10.0]\n"]
