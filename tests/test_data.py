"""Datasets, samplers, collating, and a DataLoader whose workers fail in every way they can."""

from __future__ import annotations

import collections
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from rushlight.utils.data.dataset import gather

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning", "ignore:This DataLoader will create"
)
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


class Images(Dataset):
    def __init__(self, n=24):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((3, 32, 32), float(i)), i, {"name": str(i), "array": np.full(2000, i)}


class Stream(IterableDataset):
    """A stream per worker, of different lengths."""

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(5))
        return iter(range(info.id * 100, info.id * 100 + [3, 7][info.id]))


class Failing(Dataset):
    """Sample 5 does what it was told; others are their index."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return self.how(i) if i == 5 else i


def raise_value_error(i):
    raise ValueError(f"no sample {i}")


def raise_key_error(i):
    raise KeyError("nothing\nhere")


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raise_odd(i):
    raise Odd(1, 2)


def die(i):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(i):
    os._exit(3)


def hang(i):
    time.sleep(600)


def unpicklable(i):
    return lambda: i


def worker_of(i):
    info = get_worker_info()
    return [info.id, info.num_workers, info.seed, torch.initial_seed(), random.random(), float(np.random.rand())]


class Mapped(Dataset):
    def __init__(self, function, n=4):
        self.function, self.n = function, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.function(i)


def first_of_batch(batch):
    return batch[0]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def alive(pids) -> list[int]:
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def pids_of(iterator) -> list[int]:
    return [worker.process.pid for worker in iterator._workers]


# -- datasets --------------------------------------------------------------------------------------------------------


def test_combined_datasets():
    a, b = TensorDataset(torch.arange(3)), TensorDataset(torch.arange(10, 12))
    both = a + b
    assert isinstance(both, ConcatDataset)
    assert [int(both[i][0]) for i in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    assert len(StackDataset(a, [7, 8, 9])) == 3
    assert StackDataset(a, [7, 8, 9]).__getitems__([2])[0][1] == 9
    assert [int(x[0]) for x in Subset(both, [4, 0])] == [11, 0]
    assert list(ChainDataset([Stream(), Stream()])) == [0, 1, 2, 3, 4] * 2
    assert isinstance(Stream() + Stream(), ChainDataset)


def test_random_split_covers_everything_once():
    parts = random_split(range(10), [0.3, 0.3, 0.4])
    assert [len(p) for p in parts] == [3, 3, 4]
    assert sorted(x for p in parts for x in p) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(range(10), [3, 3])


def test_whole_batches_equal_collated_samples():
    x = torch.randn(20, 3, 4)
    tensors = TensorDataset(x, torch.arange(20), x.transpose(1, 2), torch.randn(20).bfloat16())
    datasets = [tensors, Subset(tensors, range(5, 15)), StackDataset(a=tensors, b=Subset(tensors, list(range(20))))]
    for dataset in datasets:
        for indices in ([3, 1, 2], [-1, 0], [7]):
            whole, collated = gather(dataset, indices), default_collate([dataset[i] for i in indices])
            check_same(whole, collated)


def check_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            check_same(x, y)
    else:
        assert a.dtype == b.dtype
        assert a.stride() == b.stride()
        assert a.equal(b)


def test_whole_batches_only_where_samples_are_the_tensors_rows():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            return tuple(2 * x for x in super().__getitem__(i))

    assert gather(Doubled(torch.arange(3)), [0]) is None
    assert next(iter(DataLoader(Doubled(torch.arange(3)), batch_size=3)))[0].tolist() == [0, 2, 4]
    leaf = torch.ones(3, requires_grad=True)
    batch = next(iter(DataLoader(TensorDataset(leaf), batch_size=2)))[0]
    assert batch.requires_grad
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        next(iter(DataLoader(TensorDataset(torch.ones(3)), sampler=[3])))


def test_batches_do_not_share_memory_with_the_dataset():
    data = torch.zeros(4)
    next(iter(DataLoader(TensorDataset(data), batch_size=4)))[0].fill_(1)
    assert data.tolist() == [0, 0, 0, 0]


# -- samplers --------------------------------------------------------------------------------------------------------


def test_samplers():
    assert sorted(RandomSampler(range(7))) == list(range(7))
    assert len(list(RandomSampler(range(7), num_samples=17))) == 17
    assert len(list(RandomSampler(range(7), True, num_samples=70))) == 70
    assert sorted(SubsetRandomSampler([4, 2, 9])) == [2, 4, 9]
    assert list(WeightedRandomSampler([0, 0, 1], 4)) == [2, 2, 2, 2]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2, False)) == 3


def test_distributed_parts_are_disjoint_and_even():
    samplers = [DistributedSampler(range(10), num_replicas=3, rank=r) for r in range(3)]
    parts = [list(s) for s in samplers]
    assert [len(p) for p in parts] == [4, 4, 4] == [len(s) for s in samplers]
    assert {i for part in parts for i in part} == set(range(10))
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != parts[0]
    exact = [list(DistributedSampler(range(10), 3, r, drop_last=True)) for r in range(3)]
    assert len({i for part in exact for i in part}) == 9


# -- collating -------------------------------------------------------------------------------------------------------


def test_default_collate_keeps_structure():
    Point = collections.namedtuple("Point", "x y")
    batch = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(batch, Point)
    assert batch.x.tolist() == [1, 3]
    assert batch.y.dtype == torch.float64
    ordered = default_collate([collections.OrderedDict(a=np.float32(1)), collections.OrderedDict(a=np.float32(2))])
    assert isinstance(ordered, collections.OrderedDict)
    assert ordered["a"].dtype == torch.float32
    assert default_collate([("a", b"b"), ("c", b"d")]) == [("a", "c"), (b"b", b"d")]
    assert default_collate([True, False]).dtype == torch.bool
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        default_collate([object()])


def test_default_convert():
    data = default_convert({"a": np.ones(2), "b": (np.int32(1), "x"), "c": np.array(["s"])})
    assert data["a"].tolist() == [1, 1]
    assert isinstance(data["b"], list)
    assert data["b"][0].dtype == torch.int32
    assert isinstance(data["c"], np.ndarray)


# -- loading in this process -----------------------------------------------------------------------------------------


def test_loader_without_workers():
    loader = DataLoader(range(10), batch_size=4, drop_last=True)
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(loader) == 2
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    assert [b.tolist() for b in DataLoader(range(9), batch_sampler=[[8, 0], [3]])] == [[8, 0], [3]]
    assert list(DataLoader(["a", "b"], batch_size=None)) == ["a", "b"]
    assert list(DataLoader(range(3), collate_fn=first_of_batch)) == [0, 1, 2]


def test_attributes_that_are_fixed():
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 2


def test_stream_longer_than_it_said():
    class Liar(Stream):
        def __len__(self):
            return 2

    loader = DataLoader(Liar(), batch_size=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)


# -- loading by workers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_give_the_same_batches(method):
    alone = list(DataLoader(Images(), batch_size=5))
    loader = DataLoader(Images(), batch_size=5, num_workers=2, multiprocessing_context=method)
    batches = list(loader)
    assert len(batches) == len(alone)
    for a, b in zip(alone, batches):
        check_same(a[0], b[0])
        check_same(a[1], b[1])
        assert a[2]["name"] == b[2]["name"]
        check_same(a[2]["array"], b[2]["array"])
    assert batches[0][0].is_shared()
    batches[0][0].zero_()  # the memory is the receiver's own


def test_streams_are_interleaved():
    batches = [b.tolist() for b in DataLoader(Stream(), batch_size=2, num_workers=2)]
    assert batches == [[0, 1], [100, 101], [2], [102, 103], [104, 105], [106]]


def test_worker_knows_who_it_is():
    batches = list(DataLoader(Mapped(worker_of), num_workers=2, batch_size=None))
    assert [b[0] for b in batches] == [0, 1, 0, 1]
    assert all(b[1] == 2 and b[2] == b[3] for b in batches)
    assert batches[1][2] == batches[0][2] + 1
    assert len({b[4] for b in batches}) == len({b[5] for b in batches}) == 4
    assert get_worker_info() is None


def test_out_of_order_gives_every_batch():
    loader = DataLoader(range(40), batch_size=3, num_workers=3, in_order=False)
    assert sorted(x for b in loader for x in b.tolist()) == list(range(40))


@needs_linux
def test_persistent_workers_stay():
    loader = DataLoader(range(12), batch_size=2, num_workers=2, persistent_workers=True, shuffle=True)
    pids = pids_of(iter(loader))
    for _ in range(3):
        assert sorted(x for b in loader for x in b.tolist()) == list(range(12))
        next(iter(loader))  # an abandoned pass does not leak into the next one
        assert pids_of(loader._iterator) == pids
    del loader
    gc.collect()
    assert alive(pids) == []


@needs_linux
def test_an_abandoned_pass_ends_its_workers():
    files = open_files()
    iterator = iter(DataLoader(Images(), num_workers=2))
    pids = pids_of(iterator)
    next(iterator)
    assert alive(pids) == pids
    del iterator
    assert alive(pids) == []
    assert open_files() == files


@needs_linux
def test_kept_batches_do_not_use_up_descriptors(monkeypatch):
    from rushlight.utils.data._utils import worker

    most = 2 * open_files() + 20
    monkeypatch.setattr(worker, "_most_files", lambda: most)
    batches = list(DataLoader(Images(60), num_workers=1))
    assert [int(b[1]) for b in batches] == list(range(60))
    assert [float(b[0].mean()) for b in batches] == list(range(60))
    assert not batches[-1][0].is_shared()


# -- workers that fail -----------------------------------------------------------------------------------------------


def collect(iterator) -> list:
    """Batches, and exceptions in their places."""
    seen = []
    while True:
        try:
            seen.append(next(iterator).item())
        except StopIteration:
            return seen
        except Exception as e:
            seen.append(e.with_traceback(None))


@needs_linux
@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (raise_value_error, ValueError, "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback"),
        (raise_key_error, KeyError, "Caught KeyError in DataLoader worker process 1.\nOriginal Traceback"),
        (raise_odd, RuntimeError, "Caught Odd in DataLoader worker process 1.\nOriginal Traceback"),
    ],
)
def test_exception_reaches_the_user_and_loading_goes_on(how, kind, text):
    iterator = iter(DataLoader(Failing(how), num_workers=2))
    pids = pids_of(iterator)
    seen = collect(iterator)
    assert [x for x in seen if not isinstance(x, Exception)] == [i for i in range(12) if i != 5]
    assert type(seen[5]) is kind
    assert str(seen[5]).startswith(text)
    assert f"in {how.__name__}" in str(seen[5])
    del iterator
    assert alive(pids) == []


@needs_linux
def test_exception_leaves_no_process():
    loader = DataLoader(Failing(raise_value_error), num_workers=2)
    with pytest.raises(ValueError, match="no sample 5"):
        for _ in loader:
            pass
    assert multiprocessing.active_children() == []


def test_failing_worker_init():
    iterator = iter(DataLoader(range(4), num_workers=1, worker_init_fn=raise_value_error))
    for _ in range(4):  # a worker that was not set up as asked gives no batch at all
        with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
            next(iterator)


def test_batch_that_cannot_be_sent():
    loader = DataLoader(Failing(unpicklable), num_workers=1, collate_fn=first_of_batch)
    with pytest.raises(Exception, match=r"(?s)in DataLoader worker process 0.*[Cc]an't pickle"):
        list(loader)


@needs_linux
@pytest.mark.parametrize(("how", "cause"), [(die, "is killed by signal: Killed"), (leave, None)])
def test_killed_worker(how, cause):
    files = open_files()
    iterator = iter(DataLoader(Failing(how), num_workers=2))
    pids = pids_of(iterator)
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) {pids[1]}\) exited unexpectedly") as caught:
        list(iterator)
    if cause:
        assert cause in str(caught.value.__cause__)
    assert alive(pids) == []
    assert list(iterator) == []
    del iterator, caught
    gc.collect()
    assert open_files() == files


@needs_linux
def test_worker_killed_while_idle():
    iterator = iter(DataLoader(Images(40), num_workers=2, prefetch_factor=1))
    next(iterator)
    pids = pids_of(iterator)
    time.sleep(0.1)
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    assert alive(pids) == []


@needs_linux
def test_hanging_worker_times_out_and_is_ended(monkeypatch):
    from rushlight.utils.data import dataloader

    monkeypatch.setattr(dataloader, "_JOIN", 0.1)
    iterator = iter(DataLoader(Failing(hang), num_workers=2, timeout=0.5))
    pids = pids_of(iterator)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.5 seconds"):
        list(iterator)
    del iterator
    gc.collect()
    assert alive(pids) == []


def test_killed_persistent_workers_are_replaced():
    loader = DataLoader(range(6), num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    os.kill(pids_of(iterator)[0], signal.SIGKILL)
    del iterator
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        for _ in range(3):
            list(loader)
    assert [int(b) for b in loader] == list(range(6))


PROGRAM = """
    import os, sys, time
    from rushlight.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self): return 1000
        def __getitem__(self, i):
            time.sleep(0.05)
            return i

    iterator = iter(DataLoader(Slow(), num_workers=2))
    next(iterator)
    print(*(worker.process.pid for worker in iterator._workers), flush=True)
    for _ in iterator:
        pass
"""


@needs_linux
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_survives_the_program(kind):
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pids = [int(word) for word in program.stdout.readline().split()]
        assert len(pids) == 2
        if kind is signal.SIGINT:
            os.killpg(program.pid, kind)  # as Ctrl-C does: all processes of the group
        else:
            program.send_signal(kind)
        errors = program.communicate(timeout=30)[1]
        assert program.returncode == -kind
        assert errors.count("Traceback") == (kind is signal.SIGINT)
        for _ in range(100):
            if not alive(pids):
                break
            time.sleep(0.1)
        assert alive(pids) == []
    finally:
        program.kill()
        program.communicate()
