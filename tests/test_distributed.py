"""Several processes: stores, joining and leaving, faults, and what a group of one does without JAX."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rushlight
import rushlight.distributed as dist
from rushlight.distributed.rendezvous import by_scheduler
from rushlight.distributed.work import Lane, several

sys.path.insert(0, str(Path(__file__).parent))

from worlds import environment, run_world

SECOND = datetime.timedelta(seconds=1)
LONG = datetime.timedelta(seconds=120)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "file":
        made = dist.FileStore(str(tmp_path / "store"), 1)
    elif request.param == "tcp":
        made = dist.TCPStore("127.0.0.1", 0, 1, True, LONG)
    else:
        made = dist.HashStore()
    yield dist.PrefixStore("some/where", made) if request.param == "prefix" else made
    if hasattr(made, "close"):
        made.close()


def test_a_store(store):
    before = store.num_keys()
    store.set("a", "1")
    assert store.get("a") == b"1" and store.check(["a"]) and not store.check(["a", "b"])
    assert (store.add("n", 2), store.add("n", 3), store.get("n")) == (2, 5, b"5")
    assert store.compare_set("c", "", "x") == b"x" and store.compare_set("c", "y", "z") == b"x"
    assert store.compare_set("c", "x", "z") == b"z" and store.compare_set("none", "x", "z") == b"x"
    store.append("a", b"\x00\xff")
    assert store.get("a") == b"1\x00\xff"
    store.multi_set(["x", "y"], ["", "v"])
    assert store.multi_get(["x", "y"]) == [b"", b"v"]
    assert store.num_keys() == before + 5 and set(store.list_keys()) >= {"a", "n", "c", "x", "y"}
    assert store.delete_key("x") and not store.delete_key("x") and not store.check(["x"])
    with pytest.raises(dist.DistStoreError):
        store.wait(["x"], datetime.timedelta(seconds=0.05))


def test_a_store_lets_its_readers_wait(store):
    other = store
    if isinstance(store, dist.TCPStore):  # a connection serves one caller at a time
        other = dist.TCPStore("127.0.0.1", store.port, None, False, LONG)
    late = threading.Timer(0.2, other.set, ("late", "here"))
    late.start()
    store.set_timeout(LONG)
    assert store.get("late") == b"here"
    late.join()


def test_queues_of_a_store(store):
    if isinstance(store, dist.FileStore):
        with pytest.raises(NotImplementedError, match="queue support"):
            store.queue_push("q", "one")
        return
    store.set_timeout(SECOND / 10)
    store.queue_push("q", "one")
    other = store.clone()
    other.queue_push("q", b"two")
    assert (
        store.queue_len("q") == 2 and store.queue_len("none") == 0 and other.check(["q"]) and not store.list_keys()[1:]
    )
    store.wait(["q"], SECOND)
    assert store.queue_pop("q") == b"one" and other.queue_pop("q", block=False) == b"two"
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", block=False)
    with pytest.raises(dist.DistStoreError, match="timeout"):
        store.queue_pop("q")
    store.set_timeout(LONG)
    found = []
    waiting = threading.Thread(target=lambda: found.append(store.queue_pop("q")))
    waiting.start()
    other.queue_push("q", "three")
    waiting.join(60)
    assert found == [b"three"] and not store.check(["q"])


def test_processes_meet_at_a_store(store):
    meet = lambda: store.clone().barrier("here", 2, LONG)
    first = threading.Thread(target=meet)
    first.start()
    meet()
    first.join(60)
    assert not first.is_alive()
    with pytest.raises(RuntimeError, match="imeout"):
        store.barrier("nobody else", 2, SECOND / 10)


def test_a_store_that_somebody_was_interrupted_at():
    """The answer to a question that nobody waits for any more is not taken for the next one's, and takes no value."""
    served = dist.TCPStore("127.0.0.1", 0, None, True, LONG)
    asked = served.clone()

    def stop(number, frame):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, stop)
    for question in (asked.get, asked.queue_pop):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises((InterruptedError, dist.DistNetworkError)):
            question("late")
    signal.signal(signal.SIGALRM, before)
    served.queue_push("late", "for somebody else")
    assert served.queue_pop("late", block=False) == b"for somebody else"
    served.set("late", "late")
    served.set("other", "other")
    assert (asked.get("other"), asked.add("n", 2), asked.get("late")) == (b"other", 2, b"late")
    served.close()
    with pytest.raises(dist.DistNetworkError, match="does not answer"):
        asked.get("other")


def test_a_store_of_another_world_is_not_joined():
    server = dist.TCPStore("127.0.0.1", 0, None, True, LONG, token="one")
    with pytest.raises(dist.DistNetworkError, match="timed out"):
        dist.TCPStore("127.0.0.1", server.port, None, False, datetime.timedelta(seconds=0.2), token="other")
    server.close()


def test_outside_a_world():
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(rushlight.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")
    with pytest.raises(AssertionError, match="Unknown backend"):
        dist.init_process_group("carrier pigeon", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for http://"):
        dist.init_process_group("gloo", init_method="http://x", rank=0, world_size=1)


def test_a_mesh_without_jax():
    code = "import sys; sys.modules['jax'] = None; from rushlight.distributed import init_device_mesh as mesh"
    command = [sys.executable, "-c", f"{code}; mesh('cpu', (1,))"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert "ModuleNotFoundError: a mesh needs JAX: pip install 'rushlight[xla]'" in done.stderr


def test_a_world_of_one():
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
        x = rushlight.arange(4.0)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        found = [rushlight.zeros(4)]
        work = dist.all_gather(found, x, async_op=True)
        assert work.wait() and work.is_completed() and found[0].tolist() == x.tolist()
        objects = [None]
        dist.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}]
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_a_world_that_slurm_started(monkeypatch):
    """What JAX finds out about a scheduler's job stands in the place of a launcher's variables."""
    job = {"JOB_ID": "7", "STEP_NODELIST": "localhost", "NTASKS": "3", "PROCID": "2", "LOCALID": "1"}
    for name, value in job.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    found = by_scheduler()
    assert (found["RANK"], found["WORLD_SIZE"], found["MASTER_ADDR"]) == ("2", "3", "localhost")
    assert dist.get_node_local_rank() == 1
    for name, value in (("SLURM_NTASKS", "1"), ("SLURM_PROCID", "0"), ("MASTER_PORT", "0")):
        monkeypatch.setenv(name, value)
    dist.init_process_group("gloo")
    try:
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    finally:
        dist.destroy_process_group()
    monkeypatch.setenv("RANK", "0")  # a launcher inside the job knows better
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        dist.init_process_group("gloo")


def test_futures():
    future = rushlight.futures.Future()
    after = future.then(lambda f: f.value() + 1)
    with pytest.raises(RuntimeError, match="has completed"):
        future.value()
    future.set_result(1)
    assert after.wait() == 2 and rushlight.futures.wait_all([future, after]) == [1, 2]
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(2)
    failed = rushlight.futures.Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(RuntimeError, match="ValueError: no"):
        failed.then(lambda f: f.value()).wait()


def test_futures_of_collectives_under_way():
    """Whoever is interrupted may wait again; asking whether several are done does not wait for them."""
    lane, go = Lane(), threading.Event()
    works = [lane.start("sum", go.wait, lambda found: None, [i], 10.0) for i in range(2)]
    future, both = works[0].get_future(), several(works).get_future()
    assert not both.done()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        future.wait()
    assert not future.done()
    go.set()
    assert future.wait() == [0] and both.wait() == [0, 1]
    lane.close()


# -- several processes -------------------------------------------------------------------------------------------------

JOIN = """
import datetime, os, signal, sys, time
import rushlight as torch, rushlight.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def join(name="", **more):
    dist.init_process_group("gloo", init_method=os.environ["MEETING"] + name, rank=rank, world_size=size, **more)
"""


def world(tmp_path, size, body, **options):
    pytest.importorskip("jax")
    script = tmp_path / "script.py"
    script.write_text(JOIN + body)
    return run_world(tmp_path, size, script, **options)


def test_views_and_devices(tmp_path):
    """A view that is not contiguous, XLA's device, and JAX used before the world is joined."""
    body = """
before = torch.arange(3.0, device="xla")
join()
base = torch.zeros(3, 3)
base.t()[1].fill_(rank + 1.0)
dist.all_reduce(base.t()[1])
x = torch.full((2, 2), rank + 1.0, device="xla")
view = x[0]
dist.all_reduce(view)
parts = [torch.zeros(2, device="xla") for _ in range(size)]
dist.all_gather(parts, torch.full((2,), float(rank), device="xla"))
dist.broadcast(before, 0)
print(base.tolist(), x.tolist(), torch.stack(parts).tolist(), x.device, (before + 1).tolist())
if rank == 0:
    dist.send(x, 1)
else:
    dist.recv(x, 0)
    print(x.tolist())
dist.destroy_process_group()
x = torch.ones(2, device="xla") + 1
print(x.tolist(), x.device)
"""
    first, second = world(tmp_path, 2, body)
    line = "[[0.0, 3.0, 0.0], [0.0, 3.0, 0.0], [0.0, 3.0, 0.0]] [[3.0, 3.0], [%s, %s]] [[0.0, 0.0], [1.0, 1.0]] xla:0 "
    last = "[2.0, 2.0] xla:0"
    assert first.splitlines() == [line % ("1.0", "1.0") + "[1.0, 2.0, 3.0]", last]
    assert second.splitlines() == [line % ("2.0", "2.0") + "[1.0, 2.0, 3.0]", "[[3.0, 3.0], [1.0, 1.0]]", last]


def test_sums_of_two_processes_are_written_in_place(tmp_path):
    """In several pieces, at any alignment, counted as one write; a view with gaps and booleans go through a copy."""
    body = """
join()
for n in (1, 5, (5 << 20) // 4 + 3):
    for dtype in (torch.float32, torch.float64, torch.int32, torch.float16, torch.bfloat16):
        whole = torch.arange(n + 1).remainder(100).to(dtype)
        x, was = whole[1:], whole._version
        expected = (x.double() * 3).to(dtype)
        address = x.mul_(rank + 1).data_ptr()
        dist.all_reduce(x)
        work = dist.all_reduce(y := whole[1:].clone(), async_op=True)
        work.wait()
        assert torch.equal(x, expected) and torch.equal(y, expected * 2), (n, dtype)
        assert x.data_ptr() == address and whole._version == was + 2 and whole[0] == 0
gaps = torch.ones(4, 6)
dist.all_reduce(gaps[:, ::2])
truths = torch.tensor([rank == 0, False])
dist.all_reduce(truths)
mean = torch.tensor([1.0 + rank])
dist.all_reduce(mean, dist.ReduceOp.AVG)
print(gaps.sum().item(), truths.tolist(), mean.item())
"""
    assert world(tmp_path, 2, body) == ["36.0 [True, False] 1.5\n"] * 2


def test_a_second_world_and_more_dtypes(tmp_path):
    """Leaving and joining again; reductions and dtypes that gloo of PyTorch lacks."""
    body = """
for turn in range(2):
    join(str(turn))
    for dtype in (torch.int16, torch.uint16, torch.float8_e4m3fn):
        x = torch.tensor([1.0, 2.0]).to(dtype)
        dist.broadcast(x, 1)
        parts = [torch.zeros(2).to(dtype) for _ in range(size)]
        dist.all_gather(parts, x)
        print(turn, dtype, [p.float().tolist() for p in parts])
    x = torch.tensor([1, rank], dtype=torch.int16)
    dist.all_reduce(x)
    y = torch.ones(1)
    dist.all_reduce(y, dist._make_nccl_premul_sum(3.0))
    print(x.tolist(), y.tolist())
    dist.destroy_process_group()
"""
    for out in world(tmp_path, 2, body):
        lines = out.splitlines()
        assert len(lines) == 8 and lines[0] == "0 torch.int16 [[1.0, 2.0], [1.0, 2.0]]"
        assert lines[3] == lines[7] == "[2, 1] [6.0]"


def test_groups_that_only_some_processes_make(tmp_path):
    """``split_group``, of parts of parts too, and members' own groups: later groups have the same names everywhere."""
    body = """
join(timeout=datetime.timedelta(seconds=77))
def total(group):
    x = torch.tensor([10.0 ** rank])
    dist.all_reduce(x, group=group)
    return [int(x), group.rank(), group.group_desc, group.timeout.seconds]
def refused(*args, **named):
    try:
        dist.split_group(*args, **named)
    except Exception as error:
        return type(error).__name__
options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
options.config.min_ctas = 4
pair = dist.split_group(split_ranks=[[1, 0]], pg_options=options)
if rank < 2:
    alone = dist.split_group(pair, [[0], [1]], datetime.timedelta(seconds=5), group_desc="alone", backend="gloo")
    local = dist.new_group([0, 1], use_local_synchronization=True)
    print(total(pair), total(alone), total(local))
else:
    print(pair)
parts = dist.split_group(split_ranks=[[2, 0], [1]])
print(total(parts), dist.get_process_group_ranks(parts))
late = dist.new_group()
dist.monitored_barrier(late)
print(late.group_name, len({g.group_name for g in (late, parts, dist.group.WORLD)}))
print(refused(split_ranks=[[0, 1], [1]]), refused(split_ranks=[[0, 3]]), refused(split_ranks=[[]]), refused(),
      refused(split_ranks=[[0]], timeout=3), refused(split_ranks=[[0]], backend="cuda:nccl"), refused(-100, [[0]]))
"""
    first, second, third = world(tmp_path, 3, body)
    named = "[11, {0}, 'default_pg:split:1', 77] [{1}, 0, 'alone', 5] [11, {0}, 'undefined', 1800]"
    parts = "[%s, %s, 'default_pg:split:2', 77] %s"
    last = ["1 3", "ValueError ValueError ValueError ValueError TypeError ValueError ValueError"]
    assert first.splitlines() == [named.format(0, 1), parts % (101, 0, [0, 2]), *last]
    assert second.splitlines() == [named.format(1, 10), parts % (10, 0, [1]), *last]
    assert third.splitlines() == ["None", parts % (101, 1, [0, 2]), *last]


def test_options_of_backends():
    with pytest.warns(UserWarning, match="the argument `timeout` counts"):
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = SECOND
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, pg_options=options)
    try:
        assert dist.group.WORLD.timeout == dist.default_pg_timeout and options.backend == "nccl"
        assert dist.ProcessGroupGloo.Options("gloo", SECOND)._timeout == SECOND
        with pytest.raises(NotImplementedError, match="new_group"):
            dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
        with pytest.raises(TypeError, match="split_group"):
            dist.shrink_group([0])
        model = rushlight.nn.Linear(2, 2)
        with pytest.raises(NotImplementedError, match="autocast"):
            rushlight.nn.parallel.DistributedDataParallel(model, mixed_precision=object())
    finally:
        dist.destroy_process_group()


def test_delayed_gradients(tmp_path):
    """They are the same means as without delay."""
    body = """
join()
def trained(*delayed):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    named = dict(model.named_parameters())
    last = named["0.weight"] if delayed else None
    delayed = [(name, named[name]) for name in delayed] or None
    ddp = torch.nn.parallel.DistributedDataParallel(
        model, delay_all_reduce_named_params=delayed, param_to_hook_all_reduce=last)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(3):
        optimizer.zero_grad()
        ddp(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])
print(torch.allclose(trained("2.weight", "2.bias"), trained(), atol=1e-7))
"""
    assert world(tmp_path, 2, body) == ["True\n"] * 2


def test_delayed_gradients_that_come_too_late_are_an_error():
    """PyTorch would leave such a gradient to each process as it is."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        first, last = rushlight.nn.Linear(3, 3), rushlight.nn.Linear(3, 3)
        model = rushlight.nn.parallel.DistributedDataParallel(
            rushlight.nn.Sequential(first, last),
            delay_all_reduce_named_params=[("0.weight", first.weight)],
            param_to_hook_all_reduce=last.weight,
        )
        with pytest.raises(RuntimeError, match=r"'0.weight' came after that of param_to_hook_all_reduce"):
            model(rushlight.ones(2, 3)).sum().backward()
    finally:
        dist.destroy_process_group()


def test_a_killed_process_is_an_error(tmp_path):
    body = """
join()
x = torch.ones(4)
dist.all_reduce(x)
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    for _ in range(1000):
        dist.all_reduce(x)
except RuntimeError as error:
    print(type(error).__name__, str(error)[:44], "Connection closed by peer" in str(error))
    sys.exit(3)
"""
    out = world(tmp_path, 3, body, codes=[3, 3, -9])
    for rank in (0, 1):
        assert out[rank] == f"DistBackendError all_reduce of rank {rank} among ranks [0, 1, 2] f True\n"


def test_a_barrier_with_a_timeout_of_its_own(tmp_path):
    body = """
join()
dist.barrier(timeout=datetime.timedelta(seconds=100))
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    start = time.monotonic()
    try:
        dist.barrier(timeout=datetime.timedelta(seconds=1))
    except RuntimeError as error:
        print(str(error).partition(".")[0], time.monotonic() - start < 20, flush=True)
    store.set("done", b"")
    time.sleep(2)  # it serves the runtime: the other leaves first
else:
    store.get("done")
os._exit(0)
"""
    first, _ = world(tmp_path, 2, body)
    assert first == "barrier of rank 0 among ranks [0, 1]: timed out after 1000ms True\n"


def test_a_stopped_process_is_an_error_in_time(tmp_path):
    body = """
join()
group = dist.new_group()
x = torch.ones(4)
dist.all_reduce(x, group=group)
group._set_default_timeout(datetime.timedelta(seconds=2))
others = [None] * size
dist.all_gather_object(others, os.getpid())
def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
if rank == 0:
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
    except RuntimeError as error:
        print(error, flush=True)
    for _ in range(600):
        if gone(others[1]):
            break
        time.sleep(0.1)
    os._exit(5)
try:
    dist.all_reduce(x, group=group)
except RuntimeError as error:
    print(str(error)[:56])
    sys.exit(3)
"""
    out = world(tmp_path, 2, body, codes=[5, 3])
    assert out[0] == "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 1000 ms\n"
    assert out[1] == "all_reduce of rank 1 among ranks [0, 1]: timed out after\n"


@pytest.mark.parametrize(("size", "stopped"), [(3, 1), (2, 0)])
def test_a_stopped_process_is_an_error_of_programs_over_dtensors(tmp_path, size, stopped):
    """Survivors are told in time, start nothing after that, and can end: also if who serves the world is stopped."""
    body = f"""
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor import Shard, distribute_tensor
meet = {{"init_method": os.environ["MEETING"]}}
if size == 2:  # a store behind a socket, which a stopped process does not answer at
    port = dist.FileStore(os.environ["MEETING"].removeprefix("file://") + "port")
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True)
        port.set("port", str(store.port))
    else:
        store = dist.TCPStore("127.0.0.1", int(port.get("port")))
    meet = {{"store": store}}
dist.init_process_group("gloo", rank=rank, world_size=size, timeout=datetime.timedelta(seconds=120), **meet)
x = distribute_tensor(torch.arange(12.0), init_device_mesh("cpu", (size,)), [Shard(0)])
print((x * 2).sum().full_tensor().item(), flush=True)
dist.barrier()
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))
if rank == {stopped}:
    os.kill(os.getpid(), signal.SIGSTOP)
started = time.monotonic()
try:
    (x * 2).sum().full_tensor()
except dist.DistBackendError as error:
    print(str(error).partition(".")[0], 1.9 < time.monotonic() - started < 15)
started = time.monotonic()
try:
    x.sum()
except dist.DistBackendError as error:
    print(str(error).partition(", because")[0], time.monotonic() - started < 1.5)
sys.exit(3)
"""
    codes = [-9 if rank == stopped else 3 for rank in range(size)]
    out = world(tmp_path, size, body, codes=codes, stopped=[stopped])
    assert out[stopped] == "132.0\n"
    for rank in {*range(size)} - {stopped}:
        what = f"sum of DTensors of rank {rank} among ranks {list(range(size))}"
        expected = f"132.0\n{what}: timed out after 2000ms True\n{what}: not started True\n"
        assert out[rank] == expected


def test_an_error_of_one_process_ends_all(tmp_path):
    body = """
join()
dist.barrier()
if rank == 1:
    raise ValueError("of my own")
dist.barrier()
"""
    world(tmp_path, 2, body, codes=[1, 1])
    assert "of my own" in (tmp_path / "err1").read_text() and "barrier of rank 0" in (tmp_path / "err0").read_text()


def test_what_is_printed_while_a_group_connects(tmp_path):
    """XLA's own lines are left out; the program's come through."""
    body = """
join()
if rank == 1:
    time.sleep(1)
work = dist.all_reduce(torch.ones(1), async_op=True)
time.sleep(0.3)
os.write(1, b"of another thread\\n")
work.wait()
print("after", flush=True)
"""
    assert world(tmp_path, 2, body) == ["of another thread\nafter\n"] * 2


def test_lines_of_gloo_that_come_mixed_are_left_out():
    """Several devices of a process connect at once, and each writes its line in pieces."""
    from rushlight.engine.xla import world as joined

    end = b" is connected to 3 peer ranks. Expected number of connected peer ranks is : 3"
    mixed = (
        b"[Gloo] Rank [Gloo] Rank 1"
        + end
        + b"\nmine 1\n2"
        + end
        + b"\n[Gloo] Rank 0[Gloo] Rank 3"
        + end
        + end
        + b"\n\n"
    )
    (source, sink), (found, kept) = os.pipe(), os.pipe()
    os.write(sink, mixed + b"\n4\n" + b"[Gloo] Rank 5" + end + b"\nlast\n")
    os.close(sink)
    joined._pump(source, kept)
    with open(found, "rb") as read:
        assert read.read() == b"mine 1\n\n4\nlast\n"


def test_nothing_of_ours_is_printed(tmp_path):
    body = """
join()
dist.all_reduce(torch.ones(1))
dist.all_reduce(torch.ones(1), group=dist.new_group([0, 1]))
"""
    assert world(tmp_path, 2, body) == ["", ""]
    assert [(tmp_path / f"err{r}").read_text() for r in (0, 1)] == ["", ""]
    assert not os.path.exists(tmp_path / "meeting")


def test_sync_batch_norm(tmp_path):
    """Parts of a batch in several processes are normalized as the whole batch is in one."""
    body = """
join()
torch.manual_seed(0)
whole, upstream = torch.randn(9, 3, 4, dtype=torch.float64), torch.randn(9, 3, 4, dtype=torch.float64)
cuts = [0, 2, 9]  # uneven
plain = torch.nn.BatchNorm1d(3, dtype=torch.float64)
layer = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(3, dtype=torch.float64)))
assert type(layer[0]) is torch.nn.SyncBatchNorm
for turn in range(2):
    x = whole.clone().requires_grad_()
    y = plain(x)
    (y * upstream).sum().backward()
    mine = slice(cuts[rank], cuts[rank + 1])
    part = whole[mine].clone().requires_grad_()
    out = layer(part)
    (out * upstream[mine]).sum().backward()
    dist.all_reduce(layer[0].weight.grad)
    for a, b in [(out, y[mine]), (part.grad, x.grad[mine]), (layer[0].weight.grad, plain.weight.grad),
                 (layer[0].running_mean, plain.running_mean), (layer[0].running_var, plain.running_var)]:
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    layer.zero_grad(), plain.zero_grad()
layer.eval(), plain.eval()
torch.testing.assert_close(layer(whole), plain(whole))
print(layer[0].num_batches_tracked.item())
"""
    assert world(tmp_path, 2, body) == ["2\n", "2\n"]


def test_compiled_steps(tmp_path):
    """A compiled DDP model, and a compiled step with one in it, train as they do uncompiled."""
    body = """
import warnings
join()
def train(compiled):
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    called = torch.compile(model) if compiled == "model" else model
    def step(x):
        optimizer.zero_grad()
        loss = called(x).square().mean()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean
    step = torch.compile(step) if compiled == "step" else step
    data = torch.Generator().manual_seed(rank)
    return [f"{step(torch.randn(4, 8, generator=data)).item():.4f}" for _ in range(4)]
expected = train("")
for what in ("model", "step"):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = train(what)
    print(what, found == expected, [str(w.message) for w in told])
"""
    for said in world(tmp_path, 2, body):
        assert said.splitlines() == ["model True []", "step True []"]


def test_groups_and_optimizers_of_two_processes(tmp_path):
    """What groups do by their own methods, an optimizer whose state is shared out, and how gradients are cut."""
    body = """
from rushlight import nn
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.optim import ZeroRedundancyOptimizer
from rushlight.distributed.tensor import DTensor, Replicate, Shard
from rushlight.nn.parallel import DistributedDataParallel as DDP
join()
group, mesh = dist.new_group(), init_device_mesh("cpu", (2,))

def refused(kind, function, *args, **options):
    try:
        function(*args, **options)
    except kind as error:
        return str(error)
    raise AssertionError("no error")

# methods of a group
x = torch.arange(2.0) + 10 * rank
most = dist.AllreduceOptions()
most.reduceOp = dist.ReduceOp.MAX
first, second = x.clone(), x.clone()
works = [group.allreduce([first]), group.allreduce(second, dist.ReduceOp.MAX), group.broadcast(x, root=1)]
assert all(work.wait() and work.is_completed() for work in works)
assert (first.tolist(), second.tolist(), x.tolist()) == ([10, 12], [10, 11], [10, 11])
out = torch.empty(4)
group._allgather_base(out, x + rank).wait()
assert out.tolist() == [10, 11, 11, 12]
outs = [torch.empty(1), torch.empty(2)]
work = group.reduce_scatter_tensor_coalesced(outs, [torch.ones(2), torch.arange(4.0)])
assert [t.tolist() for t in work.get_future().wait()] == [[2], [[0, 2], [4, 6]][rank]] and work.is_success()
assert (group.send([x + 5], 1, 3) if rank == 0 else group.recv([x], 0, 3)).wait()
assert x.tolist() == ([10, 11] if rank == 0 else [15, 16])
late = group.barrier(timeout=datetime.timedelta(seconds=33))
assert late._timeout == 33 and late.wait()
assert "missing argument 'root'" in refused(TypeError, group.broadcast, x)
assert "unexpected argument 'fast'" in refused(TypeError, group.allreduce, x, fast=True)
assert "one device" in refused(ValueError, group.allreduce, [x, x])

# an optimizer whose state is shared out trains as one that is not
def network():
    torch.manual_seed(1)
    return DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)))
def train(model, optimizer, steps=3):
    losses = []
    for i in range(steps):
        optimizer.zero_grad()
        data = torch.Generator().manual_seed(10 * i + rank)
        loss = model(torch.randn(3, 4, generator=data)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
momentum = {"lr": 0.1, "momentum": 0.9}
for kind, options, views in ((torch.optim.AdamW, {"lr": 0.01}, False), (torch.optim.SGD, momentum, True)):
    plain, shared = network(), network()
    whole = kind(plain.parameters(), **options)
    zero = ZeroRedundancyOptimizer(shared.parameters(), kind, parameters_as_bucket_view=views, **options)
    assert train(plain, whole) == train(shared, zero)
    for a, b in zip(plain.parameters(), shared.parameters()):
        assert torch.equal(a, b)
    mine = [p for g in zero._partition_parameters()[rank] for p in g["params"]]
    assert 0 < len(zero.optim.state) == len(mine) < 6
    zero.consolidate_state_dict(to=1)
    if rank == 0:
        assert "consolidate_state_dict(to=0)" in refused(RuntimeError, zero.state_dict)
    else:
        found, expected = zero.state_dict(), whole.state_dict()
        assert found["param_groups"] == expected["param_groups"] and list(found["state"]) == list(range(6))
        for i, values in expected["state"].items():
            for name, value in values.items():
                assert torch.equal(value, found["state"][i][name]), (i, name)
    again = ZeroRedundancyOptimizer(shared.parameters(), kind, **options)
    again.load_state_dict(whole.state_dict())
    assert train(plain, whole) == train(shared, again) and len(again.optim.state) == len(mine)
both = {"overlap_with_ddp": True, "lr": 0.1}
assert "overlap_with_ddp" in refused(NotImplementedError, ZeroRedundancyOptimizer, [torch.ones(1)], kind, **both)

# gradients that travel as bytes: the mean, but for the size of a step
from rushlight.distributed.algorithms.ddp_comm_hooks import quantization_hooks
for hook in (quantization_hooks.quantization_pertensor_hook, quantization_hooks.quantization_perchannel_hook):
    exact, rough = network(), network()
    rough.register_comm_hook(None, hook)
    for model in (exact, rough):
        model(torch.ones(3, 4) + rank).square().sum().backward()
    differences = [(p.grad - q.grad).abs().max().item() for p, q in zip(exact.parameters(), rough.parameters())]
    assert 0 < max(differences) < max(p.grad.abs().max().item() for p in exact.parameters()) / 50, differences

# gradients of parts, and of gathered parameters
part = torch.ones(2, requires_grad=True)
laid = DTensor.from_local(part, mesh, [Replicate()], grad_placements=[Replicate()])
(laid.to_local() * 3).sum().backward()
assert part.grad.tolist() == [3, 3]
assert "fast" in refused(TypeError, DeviceMesh, "cpu", [0, 1], fast=True)
assert "same length" in refused(ValueError, DeviceMesh, "cpu", [0, 1], backend_override=())

from rushlight.distributed.tensor.experimental import implicit_replication, local_map
double = local_map(lambda t, n: (t * n, n), ([Shard(0)], None), ([Shard(0)], None), redistribute_inputs=True)
whole = DTensor.from_local(torch.arange(4.0), mesh, [Replicate()])
found, n = double(whole, 2)
assert found.placements == (Shard(0),) and found.full_tensor().tolist() == [0, 2, 4, 6] and n == 2
strict = local_map(lambda t: t, [Shard(0)], ([Shard(0)],))
assert "redistribute_inputs" in refused(ValueError, strict, whole)
assert "mixed" in refused(RuntimeError, lambda: whole + torch.ones(4))
with implicit_replication():
    assert (found + torch.ones(4)).full_tensor().tolist() == [1, 3, 5, 7]

def cut(change):
    torch.manual_seed(0)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.never = nn.Linear(4, 2, bias=False), nn.Linear(2, 2, bias=False)
        def forward(self, x):
            return self.used(x)
    net = fully_shard(Net())
    change(net)
    net(torch.ones(1, 4) * (rank + 1)).sum().backward()
    return [None if p.grad is None else p.grad.to_local().tolist() for p in net.parameters()]
mean = [[1.5] * 4]
assert cut(lambda m: None) == [mean, None]
assert cut(lambda m: m.set_gradient_divide_factor(1.0)) == [[[3.0] * 4], None]
assert cut(lambda m: m.set_all_reduce_hook(lambda g: g.mul_(2))) == [[[3.0] * 4], None]
assert cut(lambda m: m.set_reduce_scatter_unused_params(True)) == [mean, [[0.0, 0.0]]]
assert "set_all_reduce_hook" in refused(NotImplementedError, cut, lambda m: m.set_custom_reduce_scatter(None))
print("as it should be")
"""
    assert world(tmp_path, 2, body) == ["as it should be\n"] * 2


def test_attention_whose_keys_go_round(tmp_path):
    """Values and gradients as in one process; what is sent is never more than one process's keys and values."""
    body = """
join()
import rushlight.nn.functional as F
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor.debug import CommDebugMode
from rushlight.distributed.tensor.experimental import _attention as inner
mesh = init_device_mesh("cpu", (size,))
sent = []
def permuted(block, *args, sends=inner.permuted):
    sent.append(block.numel())
    return sends(block, *args)
inner.permuted = permuted
def attend(q, k, v, **options):
    q, k, v = (t.clone().requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, **options)
    out.square().sum().backward()
    return [out.detach(), q.grad, k.grad, v.grad]
torch.manual_seed(3)
q, k, v = torch.randn(2, 4, 4 * size, 6), torch.randn(2, 2, 4 * size, 6), torch.randn(2, 2, 4 * size, 5)
inner.set_rotate_method("alltoall")
for balanced, causal in ((True, True), (False, True), (False, False)):
    inner._cp_options.enable_load_balance = balanced
    whole = attend(q, k, v, is_causal=causal, enable_gqa=True)
    mine = [t.clone() for t in (q, k, v)]
    sent.clear()
    with inner.context_parallel(mesh, buffers=mine, buffer_seq_dims=[2] * 3):
        held = mine[1].numel() + mine[2].numel()
        with CommDebugMode() as mode:
            parts = attend(*mine, is_causal=causal, enable_gqa=True)
    counts = {str(op): n for op, n in mode.get_comm_counts().items()}
    assert sum(counts.values()) == 2 * size - 1 and all("alltoall" in op for op in counts), counts
    assert sent == [held] * (size - 1) + [2 * held] * size, sent
    balancer = inner._HeadTailLoadBalancer(4 * size, size, "cpu") if balanced else None
    expected = inner._context_parallel_shard(mesh, whole, [2] * 4, balancer)
    for part, other in zip(parts, expected):
        torch.testing.assert_close(part, other)
inner._cp_options.enable_load_balance = True
mine, ways = [t.double() for t in (q, k, v)], [torch.randn(t.shape, dtype=torch.double) for t in (q, k, v)]
with inner.context_parallel(mesh, buffers=[*mine, *ways], buffer_seq_dims=[2] * 6):
    def loss(step):
        torch.manual_seed(rank)  # the same places are dropped
        moved = [(t + step * way).requires_grad_() for t, way in zip(mine, ways)]
        out = F.scaled_dot_product_attention(*moved, is_causal=True, enable_gqa=True, dropout_p=0.5)
        assert (out == 0).any() or rank
        return moved, out.square().sum()
    moved, here = loss(0.0)
    here.backward()
    slope = sum((t.grad * way).sum() for t, way in zip(moved, ways))
    sums = torch.stack([slope, (loss(1e-5)[1] - loss(-1e-5)[1]).detach() / 2e-5])
    dist.all_reduce(sums)
    assert sums[0].abs() > 0.1 and sums[0].isclose(sums[1]), sums
print("as one")
dist.destroy_process_group()
"""
    assert world(tmp_path, 3, body) == ["as one\n"] * 3


def test_modules_that_compute_again():
    """A wrapped module has the numbers, the names and the files of what it wraps."""
    from rushlight import nn
    from rushlight.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    def network():
        rushlight.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    x = rushlight.arange(6.0).reshape(2, 3)
    plain = network()
    plain(x).square().sum().backward()
    runs = []
    for wrapper in (wrappers.checkpoint_wrapper, wrappers.offload_wrapper):
        model = network()
        model[0].register_forward_pre_hook(lambda *_: runs.append(1))
        wrappers.apply_activation_checkpointing(model, wrapper, check_fn=lambda m: isinstance(m, nn.Linear))
        model(x).square().sum().backward()
        assert [isinstance(m, wrappers.ActivationWrapper) for m in model] == [True, False, True]
        assert all(rushlight.equal(p.grad, q.grad) for p, q in zip(plain.parameters(), model.parameters()))
        assert list(model.state_dict()) == list(plain.state_dict()) and model[0].in_features == 3
        assert [name for name, _ in model[2].named_parameters()] == ["weight", "bias"]
        network().load_state_dict(model.state_dict())
        model.load_state_dict(plain.state_dict())
    assert len(runs) == 3  # twice where it is computed again
    with pytest.raises(ValueError, match="wrap policy"):
        wrappers.apply_activation_checkpointing(network(), auto_wrap_policy=3)


def test_why_a_process_failed_is_written_down(tmp_path, monkeypatch):
    import json

    from rushlight.distributed.elastic.multiprocessing.errors import record

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error"))

    @record
    def main(code):
        if code is None:
            raise ValueError("of my own")
        sys.exit(code)

    with pytest.raises(ValueError, match="of my own"):
        main(None)
    told = json.loads((tmp_path / "error").read_text())["message"]
    assert told["message"] == "ValueError: of my own" and "in main" in told["extraInfo"]["py_callstack"]
    assert main(0) is None
    with pytest.raises(SystemExit):
        main(3)


CROSSING = """
import os
import sys
import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed.tensor import Shard, distribute_tensor

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
other, pair = dist.new_group(), dist.new_group([0, 1])
mesh = dist.init_device_mesh("cpu", (size,))
parts = distribute_tensor(torch.arange(6.0), mesh, [Shard(0)])
for turn in range(50):
    values = [torch.full((4,), (10.0**i) * (rank + 1)) for i in range(4)]
    works = [dist.all_reduce(values[0], async_op=True), dist.all_reduce(values[1], group=other, async_op=True)]
    if rank < 2:
        works.append(dist.all_reduce(values[2], group=pair, async_op=True))
    total = (parts * (turn + 1)).sum().item()
    dist.all_reduce(values[3], group=other)
    for work in works:
        work.wait()
    found = [int(v[0].item()) for v in values]
    of_all, of_two = size * (size + 1) // 2, 3 if rank < 2 else rank + 1
    assert found == [of_all, 10 * of_all, 100 * of_two, 1000 * of_all], (turn, found)
    assert total == 15 * (turn + 1)
in_turn = [None, other] if rank else [other, None]
works = [dist.all_reduce(torch.ones(4), group=group, async_op=True) for group in in_turn]
try:
    for work in works:
        work.wait()
except dist.DistBackendError as error:
    print("same order" in str(error))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("size", [2, 3])
def test_groups_of_the_same_processes_do_not_mix(tmp_path, size):
    """Collectives of several groups and programs over a mesh, started before one is waited for; and in two orders."""
    script = tmp_path / "crossing.py"
    script.write_text(CROSSING)
    assert run_world(tmp_path / "world", size, script) == ["True\n"] * size


MANY = """
import datetime, os, time
import rushlight as torch
import rushlight.distributed as dist

rank, port = int(os.environ["RANK"]), "port"
if rank == 0:
    store = dist.TCPStore("127.0.0.1", 0, None, True)
    open("new", "w").write(str(store.port))
    os.rename("new", port)
else:
    while not os.path.exists(port):
        time.sleep(0.01)
    store = dist.TCPStore("127.0.0.1", int(open(port).read()), None, False)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=datetime.timedelta(seconds=20))
message = torch.zeros(1)
if rank == 0:
    work = dist.irecv(message, 1)
    time.sleep(0.2)
dist.monitored_barrier()  # by the store, where process 1's address will be
if rank == 0:
    work.wait()
    print(message.item())
else:
    dist.send(message + 3, 0)
values = [torch.ones(2) for _ in range(1500)]
works = [dist.all_reduce(t, async_op=True) for t in values]
works[-1].wait()
print(sum(t.sum().item() for t in values))
dist.destroy_process_group()
"""


def test_whoever_waits_for_the_last_has_all_before_it(tmp_path):
    """However many: they are not finished one inside the other. A message that is waited for holds up no store."""
    script = tmp_path / "many.py"
    script.write_text(MANY)
    assert run_world(tmp_path / "world", 2, script) == ["3.0\n6000.0\n", "6000.0\n"]
