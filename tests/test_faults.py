"""Processes of a world that are killed or stopped: the others are told, in time, and nothing is left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from soak import soak
from worlds import LONG, Trained, run_world

import rushlight

pytest.importorskip("jax")

START = """
import datetime, os, signal, sys, time
import rushlight as torch, rushlight.distributed as dist
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor import Shard, distribute_tensor
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def join():
    "A world with a store behind a socket, which process 0 serves."
    port = dist.FileStore(os.environ["MEETING"].removeprefix("file://"))
    store = dist.TCPStore("127.0.0.1", 0 if rank == 0 else int(port.get("port")), is_master=rank == 0)
    port.set("port", str(store.port))
    limit = datetime.timedelta(seconds=120)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=limit)
    return store

def told(call):
    started = time.monotonic()
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error).partition(" failed")[0].partition(":")[0], flush=True)
    return time.monotonic() - started
"""


def world(tmp_path, size, body, **options):
    (tmp_path / "script.py").write_text(START + body)
    return run_world(tmp_path, size, tmp_path / "script.py", **options)


@pytest.mark.parametrize("size", [2, 3])
def test_process_0_is_killed(tmp_path, size):
    """It serves the runtime and the store; for the others that is an error of whatever they wait for."""
    body = """
store = join()
x = torch.ones(4)
def stepping():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step():
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return step
step, compiled = stepping(), torch.compile(stepping())
mesh = init_device_mesh("cpu", (size,))
laid = distribute_tensor(torch.arange(12.0), mesh, [Shard(0)])
doubled = torch.compile(lambda: (laid * 2).sum())
for _ in range(3):
    dist.all_reduce(x)
    step(), compiled(), doubled()
if rank == 0:
    for other in range(1, size):
        dist.send(x, other)
else:
    dist.recv(x, 0)
dist.barrier()
if rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=3))  # a survivor that has failed does not send to the other
calls = (
    lambda: dist.all_reduce(x), dist.barrier, lambda: dist.all_gather_object([None] * size, 1), lambda: dist.recv(x, 0),
    step, compiled, lambda: laid.sum().full_tensor(), doubled, lambda: store.get("never"),
)
assert sum(map(told, calls)) < 60
sys.exit(3)
"""
    found = world(tmp_path, size, body, codes=[-9] + [3] * (size - 1))
    for rank, said in enumerate(found[1:], 1):
        among = f"of rank {rank} among ranks {list(range(size))}"
        of_collectives = ["all_reduce", "barrier", "all_gather_object"]
        expected = [f"DistBackendError {name} {among}" for name in of_collectives]
        expected += [f"DistBackendError recv of rank {rank} from rank 0"] + [f"DistBackendError all_reduce {among}"] * 2
        expected += [f"DistBackendError {name} {among}" for name in ("sum of DTensors", "a compiled function")]
        assert said.splitlines()[:-1] == expected and said.splitlines()[-1].startswith("DistNetworkError the store at ")
        assert (tmp_path / f"err{rank}").read_text() == ""


@pytest.mark.parametrize("how", ["raise ValueError('bad data')", "sys.exit(1)", "os._exit(1)"])
def test_process_0_ends_before_the_others(tmp_path, how):
    """It would be the last to leave; for those who wait for it that is an error, long before their time is up."""
    body = f"""
join()
x = torch.ones(4)
dist.all_reduce(x)
if rank == 0:
    {how}
assert told(lambda: dist.all_reduce(x)) < 60
sys.exit(3)
"""
    found = world(tmp_path, 3, body, codes=[1, 3, 3])
    assert found[1:] == [f"DistBackendError all_reduce of rank {rank} among ranks [0, 1, 2]\n" for rank in (1, 2)]
    assert (tmp_path / "err1").read_text() == (tmp_path / "err2").read_text() == ""


def test_process_0_is_killed_before_a_group_is_used(tmp_path):
    """Then the others cannot find each other any more: that is an error at once, not when time is up."""
    body = """
store = join()
x, mesh = torch.ones(6), init_device_mesh("cpu", (size,))
laid = distribute_tensor(x, mesh, [Shard(0)])
store.set(f"here/{rank}", "")
if rank == 0:
    store.wait([f"here/{r}" for r in range(size)])
    time.sleep(0.5)  # until it has answered them
    os.kill(os.getpid(), signal.SIGKILL)
assert told(lambda: laid.sum() if rank == 1 else dist.all_reduce(x)) < 60
sys.exit(3)
"""
    found = world(tmp_path, 3, body, codes=[-9, 3, 3])
    whats = "sum of DTensors", "all_reduce"
    assert found[1:] == [f"DistBackendError {w} of rank {r} among ranks [0, 1, 2]\n" for r, w in enumerate(whats, 1)]


@pytest.mark.parametrize("when", ["meeting", "joining"])
def test_a_process_that_never_joins(tmp_path, when):
    """Before it has said that it comes, and after that: the others are told who is missing, or what they waited for."""
    body = f"""
limit = datetime.timedelta(seconds=2)
if rank == 1:
    if {when == "meeting"}:
        os._exit(0)
    from rushlight.engine.xla import world
    world.join = lambda *_: os._exit(0)
    limit *= 30
told(lambda: dist.init_process_group("gloo", os.environ["MEETING"], limit, size, rank))
assert not dist.is_initialized()
sys.exit(3)
"""
    found = world(tmp_path, 3, body, codes=[3, 0, 3])
    kind = "DistStoreError" if when == "meeting" else "DistBackendError"
    assert [found[0], found[2]] == [f"{kind} init_process_group of rank {rank} of 3\n" for rank in (0, 2)]
    assert (tmp_path / "err0").read_text() == (tmp_path / "err2").read_text() == ""


def test_a_message_that_does_not_come(tmp_path):
    """Who has waited for it in vain ends without waiting for its sender, too."""
    body = """
join()
x = torch.ones(4)
dist.all_reduce(x)
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))
told(lambda: dist.irecv(x, 1).wait())
sys.exit(3)
"""
    found = world(tmp_path, 2, body, codes=[3, -9], stopped=[1], seconds=40)
    assert found[0] == "DistBackendError recv of rank 0 from rank 1\n"


def test_a_process_that_is_gone_while_another_saves(tmp_path):
    """It is not waited for until the timeout, though what is saved beside training is no collective."""
    body = """
import rushlight.distributed.checkpoint as dcp
join()
dcp.async_save({"x": torch.ones(2)}, checkpoint_id="saved").result()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
told(lambda: dcp.async_save({"x": torch.zeros(2)}, checkpoint_id="saved").result())
loaded = {"x": torch.zeros(2)}
dcp.load(loaded, checkpoint_id="saved", no_dist=True)
print(loaded["x"].tolist(), flush=True)
os._exit(3)
"""
    found = world(tmp_path, 2, body, codes=[3, -9], seconds=60)
    assert found[0] == "DistBackendError a checkpoint waited for ranks [1], which are gone\n[1.0, 1.0]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_processes_are_reached_at_their_own_address(tmp_path):
    """Not at the one that the machine's name has, which is often 127.0.0.1."""
    body = """
join()
dist.all_reduce(torch.ones(1))
open_ = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
mine = {os.stat(path).st_ino for path in open_ if os.path.exists(path)}
rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
listens = [row[1].partition(":")[0] for row in rows if row[3] == "0A" and int(row[9]) in mine]
print("0200007F" in listens)
dist.destroy_process_group()
"""
    assert world(tmp_path, 2, body, RUSHLIGHT_HOST="127.0.0.2") == ["True\n"] * 2


@pytest.mark.parametrize(
    ("size", "how"),
    [(2, "SIGKILL"), (3, "SIGSTOP"), pytest.param(2, "SIGSTOP", marks=LONG), pytest.param(3, "SIGKILL", marks=LONG)],
)
def test_a_compiled_program_of_which_one_process_does_not_come(tmp_path, size, how):
    """The others have agreed to run it and are inside; who asks for what they gave to it is told that it is gone."""
    body = f"""
from rushlight.compiler.together import Vote
join()
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (size,))
weight = torch.nn.Parameter(distribute_tensor(torch.randn(12, 6), mesh, [Shard(0)]))
scale = torch.nn.Parameter(distribute_tensor(torch.ones(6), mesh, [Shard(0)]), requires_grad=False)
x = distribute_tensor(torch.randn(4, 6), mesh, [Shard(0)])
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
def loss():
    return ((x * scale) @ weight.T).square().mean()
def step():
    optimizer.zero_grad()
    value = loss()
    value.backward()
    optimizer.step()
    return value
step, forward = torch.compile(step), torch.compile(loss)
for _ in range(3):
    step()
    forward().backward()
late = forward()
dist.barrier()
if rank == 0:
    launch = Vote.launch
    def stop(self, program):
        launch(self, program)
        os.kill(os.getpid(), signal.{how})
    Vote.launch = stop
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))
assert told(step) < 30
for call in (lambda: weight.to_local(), lambda: weight.detach().to_local().sum().item(),
             lambda: optimizer.state[weight]["momentum_buffer"].to_local(), step, late.backward):
    told(call)
print(scale.to_local().sum().item(), x.to_local().shape[1], flush=True)
sys.exit(3)
"""
    codes, stopped = [-9] + [3] * (size - 1), [0] if how == "SIGSTOP" else []
    found = world(tmp_path, size, body, codes=codes, stopped=stopped)
    for rank, said in enumerate(found[1:], 1):
        lines = said.splitlines()
        among = f"of rank {rank} among ranks {list(range(size))}"
        assert lines[0] == f"DistBackendError a compiled function {among}"
        gone = "DistBackendError the values of this tensor were given to a compiled program that"
        assert lines[1:5] == [gone] * 4
        assert lines[5] == f"DistBackendError a compiled backward pass {among}"
        assert lines[6] == f"{6.0 / size} 6"
        assert (tmp_path / f"err{rank}").read_text() == ""


@pytest.mark.parametrize(
    ("meeting", "fault", "victim"),
    [
        ("tcp", "SIGKILL", 0),
        ("file", "SIGSTOP", 0),
        ("tcp", "raise", 1),
        pytest.param("tcp", "SIGSTOP", 1, marks=LONG),
        pytest.param("file", "raise", 0, marks=LONG),
    ],
)
def test_spawned_processes(tmp_path, meeting, fault, victim):
    """``multiprocessing.spawn`` raises, and the others are told or ended."""
    where = "tcp" if meeting == "tcp" else f"file://{tmp_path / 'meeting'}"
    trained = Trained(tmp_path / "training", "-m", "rushlight", "run", "train.py", fault, str(victim), where)
    other = 1 - victim
    kind, first = trained.said.split()
    assert kind == ("ProcessExitedException" if fault == "SIGKILL" else "ProcessRaisedException")
    assert int(first) == (other if fault == "SIGSTOP" else victim)
    error = f"DistBackendError all_reduce of rank {other} among ranks [0, 1]"
    assert trained.told[other].startswith(error) or (fault != "SIGSTOP" and not trained.told[other])
    assert trained.told[victim].strip() == ("ValueError bad data" if fault == "raise" else "")


def test_restarted_trainings(tmp_path):
    """``rushlight launch --max-restarts``: to the bits of a training in which nothing happens.

    With three processes: there the order of sums depends on where a bucket begins and ends, with two it does not.
    """
    launch = ["-m", "rushlight", "launch", "--standalone", "--nproc-per-node", "3", "--max-restarts", "1", "train.py"]
    expected = Trained(tmp_path / "undisturbed", *launch, "none", "-1", "env://").end
    for fault in ("SIGKILL", "SIGSTOP", "raise"):
        trained = Trained(tmp_path / fault, *launch, fault, "0", "env://")
        assert expected.keys() == trained.end.keys()
        assert all(rushlight.equal(expected[k], trained.end[k]) for k in expected)
        told = trained.told[1]
        assert told.startswith("DistBackendError all_reduce of rank 1 among ranks [0, 1, 2]") or fault != "SIGSTOP"


def test_a_training_goes_on_to_the_same_bits(tmp_path):
    """``tests/soak.py``, in short: processes are killed and stopped at random moments."""
    soak(tmp_path, 2, seed=5, kinds=("compiled",), steps=60)
