"""utils.data against PyTorch: the order of samples, seeds of workers, batches, error messages."""

from __future__ import annotations

import collections
import collections.abc
import os
import random
import re
import signal
import time
import warnings

import numpy as np
import pytest
import torch

import rushlight

BOTH = (torch, rushlight)
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*", "ignore:This DataLoader will create")


def on_both(function):
    """What ``function(framework)`` returns or raises, with warnings, on each; must be the same."""
    results = []
    for framework in BOTH:
        framework.manual_seed(7)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = plain(function(framework))
            except Exception as e:
                result = (type(e).__name__, str(e))
        results.append((result, [str(w.message) for w in caught if "fork" not in str(w.message)]))
    assert results[0] == results[1]
    return results[0][0]


def plain(value):
    """Tensors as lists with their dtype, containers by the name of their type."""
    if isinstance(value, BOTH[0].Tensor | BOTH[1].Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.stride(), value.tolist())
    if isinstance(value, collections.abc.Mapping):
        return (type(value).__name__, [(key, plain(v)) for key, v in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(v) for v in value])
    return value


class Numbers:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i


# -- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "batch_size": 3, "drop_last": True}, {}])
def test_order_over_epochs(seeded, workers, options):
    def epochs(framework):
        generator = framework.Generator().manual_seed(3) if seeded else None
        data = framework.utils.data.TensorDataset(framework.arange(10), framework.rand(10, 2))
        loader = framework.utils.data.DataLoader(data, generator=generator, **{"batch_size": 4, **options}, **workers)
        return [list(loader) for _ in range(3)], framework.rand(2)

    on_both(epochs)


@pytest.mark.parametrize(
    "make",
    [
        lambda d, g: d.RandomSampler(range(50), generator=g),
        lambda d, g: d.RandomSampler(range(10), num_samples=25, generator=g),
        lambda d, g: d.RandomSampler(range(10), num_samples=20, generator=g),
        lambda d, g: d.RandomSampler(range(10), num_samples=3, generator=g),
        lambda d, g: d.RandomSampler(range(10), True, 70, generator=g),
        lambda d, g: d.RandomSampler(range(10), True, 64, generator=g),
        lambda d, g: d.SubsetRandomSampler([5, 3, 9, 1], generator=g),
        lambda d, g: d.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7], 12, generator=g),
        lambda d, g: d.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7], 3, replacement=False, generator=g),
        lambda d, g: d.BatchSampler(d.RandomSampler(range(10), generator=g), 4, False),
        lambda d, g: d.DistributedSampler(range(11), 3, 1, seed=4),
        lambda d, g: d.DistributedSampler(range(11), 3, 2, drop_last=True),
        lambda d, g: d.DistributedSampler(range(2), 5, 4, shuffle=False),
    ],
)
@pytest.mark.parametrize("seeded", [False, True])
def test_samplers(make, seeded):
    def passes(framework):
        generator = framework.Generator().manual_seed(5) if seeded else None
        sampler = make(framework.utils.data, generator)
        return [list(sampler), len(sampler), list(sampler), framework.rand(1), framework.rand(1, generator=generator)]

    on_both(passes)


@pytest.mark.parametrize("lengths", [[3, 7], [0.5, 0.3, 0.2], [0.33, 0.33, 0.34], [0.99, 0.01], [10]])
def test_random_split(lengths):
    on_both(lambda f: [list(part.indices) for part in f.utils.data.random_split(Numbers(10), lengths)])
    on_both(
        lambda f: [
            list(part.indices)
            for part in f.utils.data.random_split(Numbers(10), lengths, generator=f.Generator().manual_seed(1))
        ]
    )


def draws(framework):
    class Draws(framework.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            info = framework.utils.data.get_worker_info()
            values = [framework.rand(1).item(), random.random(), np.random.rand(), framework.initial_seed()]
            return [*values, info.id, info.seed, info.num_workers, framework.get_num_threads()]

    return Draws()


def test_randomness_inside_workers():
    on_both(lambda f: list(f.utils.data.DataLoader(draws(f), num_workers=2, batch_size=2)))


# -- batches ---------------------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "samples",
    [
        [1, 2],
        [1.5, 2],
        [True, False],
        ["a", "b"],
        [b"a", b"b"],
        [(1, 2.0), (3, 4.0)],
        [[1, 2.0], [3, 4.0]],
        [{"a": 1, "b": [2]}, {"a": 3, "b": [4]}],
        [Point(1, (2, 3)), Point(4, (5, 6))],
        [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
        [np.float32(1), np.float32(2)],
        [np.int8(1), np.int8(2)],
        [np.bool_(True), np.bool_(False)],
        [np.arange(3), np.arange(3)],
        [np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)],
        [np.array("a"), np.array("b")],
        [np.array(1.0), np.array(2.0)],
        [object()],
        [None],
        [],
        [(1,), (1, 2)],
        [{"a": 1}, {"b": 1}],
        [range(2), range(2)],
        [(), ()],
        [1 + 2j],
    ],
)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_collating(samples, function):
    on_both(lambda f: getattr(f.utils.data, function)(samples))


def test_collating_tensors():
    on_both(lambda f: f.utils.data.default_collate([f.ones(2), f.zeros(2)]))
    on_both(lambda f: f.utils.data.default_collate([f.ones(2), f.zeros(3)]))
    on_both(lambda f: f.utils.data.default_collate([f.ones(2, 3).t(), f.zeros(2, 3).t()]))
    on_both(lambda f: f.utils.data.default_collate([f.ones(2, requires_grad=True) * 2, f.zeros(2)]).requires_grad)
    on_both(lambda f: f.utils.data.default_convert((f.ones(2), "x", {"a": np.ones(1)})))


def test_collate_with_own_types():
    def run(f):
        from importlib import import_module

        module = import_module(f"{f.__name__}.utils.data._utils.collate")
        table = {
            Numbers: lambda batch, *, collate_fn_map=None: sum(x.n for x in batch),
            **module.default_collate_fn_map,
        }
        return module.collate([(Numbers(1), 2), (Numbers(3), 4)], collate_fn_map=table)

    on_both(run)


def streams(framework, reported=None):
    class Stream(framework.utils.data.IterableDataset):
        def __iter__(self):
            info = framework.utils.data.get_worker_info()
            return iter(range(7)) if info is None else iter(range(info.id * 10, info.id * 10 + 3 + 4 * info.id))

    if reported is not None:
        Stream.__len__ = lambda self: reported
        Stream.__repr__ = lambda self: "stream"
    return Stream()


@pytest.mark.parametrize("options", [{}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("workers", [0, 2])
def test_streams(options, workers):
    on_both(lambda f: list(f.utils.data.DataLoader(streams(f), num_workers=workers, **options)))

    def with_length(f):
        loader = f.utils.data.DataLoader(streams(f, reported=3), num_workers=workers, **options)
        return len(loader), list(loader)

    on_both(with_length)


# -- errors ----------------------------------------------------------------------------------------------------------

BAD_OPTIONS = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -1},
    {"persistent_workers": True},
    {"shuffle": True, "sampler": [1]},
    {"batch_sampler": [[1]], "batch_size": 2},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_sampler": [[1]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": 2.5},
    {"batch_size": True},
    {"drop_last": 3},
    {"multiprocessing_context": "fork"},
    {"num_workers": 1, "multiprocessing_context": "thread"},
    {"num_workers": 1, "multiprocessing_context": 3},
    {"num_workers": "a"},
    {"num_workers": 4000},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_bad_options(options):
    result = on_both(lambda f: f.utils.data.DataLoader(Numbers(10), **options) and None)
    assert result is not None or "num_workers" in options


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"shuffle": False}])
def test_bad_options_of_streams(options):
    on_both(lambda f: f.utils.data.DataLoader(streams(f), **options) and None)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.RandomSampler(range(3), replacement=1),
        lambda d: d.RandomSampler(range(3), num_samples=0),
        lambda d: d.RandomSampler([]),
        lambda d: d.WeightedRandomSampler([1, 2], 0),
        lambda d: d.WeightedRandomSampler([1, 2], 2, 3),
        lambda d: d.WeightedRandomSampler([[1, 2]], 2),
        lambda d: d.DistributedSampler(range(4), 2, 5),
        lambda d: d.random_split(Numbers(10), [3, 3]),
        lambda d: d.random_split(Numbers(10), [0.5, 0.6]),
        lambda d: d.random_split(Numbers(10), [-0.5, 1.5]),
        lambda d: d.StackDataset(),
        lambda d: d.StackDataset([1], a=[1]),
        lambda d: d.StackDataset([1], [1, 2]),
        lambda d: d.ConcatDataset([]),
        lambda d: d.ConcatDataset([[1, 2]])[-3],
        lambda d: d.ConcatDataset([[1, 2]])[3],
        lambda d: list(d.ChainDataset([[1]])),
        lambda d: d.Dataset()[0],
        lambda d: len(d.Dataset()),
        lambda d: d.IterableDataset(),
        lambda d: list(d.Sampler()),
        lambda d: setattr(d.DataLoader([1]), "batch_size", 2),
        lambda d: list(d.DataLoader(Numbers(3), sampler=[5])),
    ],
)
def test_errors(make):
    assert on_both(lambda f: make(f.utils.data)) is not None


# -- workers that fail -------------------------------------------------------------------------------------------------


def failing(framework, how):
    class Failing(framework.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i == 5:
                how()
            return i

    return Failing()


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raising(error):
    def how():
        raise error

    return how


def report(error):
    """An error as the user sees it, without what differs between two runs: files, lines, processes."""
    lines = [line for line in str(error).splitlines() if not line.startswith(("  File", "    "))]
    return type(error).__name__, [re.sub(r"\d{3,}", "N", line) for line in lines]


@pytest.fixture
def impatient(monkeypatch):
    """Neither library waits five seconds for a worker that does not end."""
    monkeypatch.setattr(rushlight.utils.data.dataloader, "_JOIN", 1.0)
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 1.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "error",
    [ValueError("no sample"), KeyError("a\nb"), OSError(5, "input"), TwoArguments(1, 2), StopIteration(3)],
    ids=repr,
)
@pytest.mark.parametrize("place", ["dataset", "collate", "init"])
def test_exceptions_of_workers(error, place):
    """The same type with the same text, the worker's traceback in it; then loading goes on, or ends, alike."""

    def run(f):
        how = raising(error)
        options = {"collate_fn": lambda batch: how()} if place == "collate" else {}
        options |= {"worker_init_fn": lambda i: how()} if place == "init" else {}
        data = failing(f, how) if place == "dataset" else range(8)
        iterator, seen = iter(f.utils.data.DataLoader(data, batch_size=2, num_workers=1, **options)), []
        for _ in range(1 if place == "init" else 3):
            try:
                seen.append(next(iterator))
            except StopIteration as e:
                seen.append(report(e))
            except Exception as e:
                seen.append(report(e))
        return seen

    on_both(run)


def _gone(f, how, timeout):
    iterator = iter(f.utils.data.DataLoader(failing(f, how), num_workers=1, timeout=timeout))
    try:
        list(iterator)
        return None
    except RuntimeError as error:
        return report(error), error.__cause__ and report(error.__cause__)


@pytest.mark.usefixtures("impatient")
def test_workers_that_hang():
    assert "RuntimeError" in str(on_both(lambda f: _gone(f, lambda: time.sleep(60), timeout=1)))


def test_workers_that_are_killed(monkeypatch):
    """What PyTorch says when all goes well. By chance it says other things, also later, so it is not run here."""
    monkeypatch.setattr(rushlight.utils.data.dataloader, "_JOIN", 0.1)
    ours = _gone(rushlight, lambda: os.kill(os.getpid(), signal.SIGKILL), timeout=0)
    killed = ("RuntimeError", ["DataLoader worker (pid N) is killed by signal: Killed. "])
    assert ours == (("RuntimeError", ["DataLoader worker (pid(s) N) exited unexpectedly"]), killed)


def test_nothing_is_left_in_shared_memory():
    def files():
        return set(os.listdir("/dev/shm"))

    before = files()
    data = rushlight.utils.data.TensorDataset(rushlight.zeros(20, 50_000))
    for how in ("all of it", "one batch", "killed"):
        iterator = iter(rushlight.utils.data.DataLoader(data, batch_size=2, num_workers=2))
        kept = list(iterator) if how == "all of it" else next(iterator)
        if how == "killed":
            os.kill(iterator._workers[0].process.pid, signal.SIGKILL)
        del iterator, kept
    assert {name for name in files() - before if "rushlight" in name or name.startswith(("psm", "torch"))} == set()


# -- options that change no batch --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"pin_memory": True},
        {"pin_memory": True, "num_workers": 1},
        {"num_workers": 2, "prefetch_factor": 1},
        {"num_workers": 2, "prefetch_factor": 7},
        {"num_workers": 3, "batch_size": 5, "in_order": True},
        {"timeout": 0},
        {"generator": None},
        {"multiprocessing_context": None, "num_workers": 1},
        {"num_workers": 1, "multiprocessing_context": "fork"},
    ],
    ids=str,
)
def test_options_accepted(options):
    def run(f):
        loader = f.utils.data.DataLoader(Numbers(23), shuffle=True, **{"batch_size": 4, **options})
        names = "batch_size drop_last num_workers pin_memory prefetch_factor timeout persistent_workers in_order"
        # Nothing is pinned here, but nothing is lost by that either: XLA copies from any memory.
        warnings.filterwarnings("ignore", "'pin_memory' argument is set")
        return [b.tolist() for b in loader], len(loader), [getattr(loader, n) for n in names.split()]

    on_both(run)


def test_how_far_workers_read_ahead():
    """``prefetch_factor`` batches for each worker are asked for before the first is taken."""

    def run(f):
        asked = []

        class Noted:
            def __iter__(self):
                for i in range(40):
                    asked.append(i)
                    yield i

        counts = []
        for factor in (1, 2, 3):
            asked.clear()
            loader = f.utils.data.DataLoader(Numbers(40), sampler=Noted(), num_workers=2, prefetch_factor=factor)
            iterator = iter(loader)
            counts.append(len(asked))
            next(iterator)
            counts.append(len(asked))
            del iterator
        return counts

    on_both(run)


def test_two_passes_at_once_and_reuse():
    def run(f):
        loader = f.utils.data.DataLoader(Numbers(6), shuffle=True, batch_size=2)
        pairs = [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)]
        iterator = iter(loader)
        next(iterator)
        return pairs, [b.tolist() for b in iterator], [b.tolist() for b in loader], iter(iterator) is iterator

    on_both(run)


class Wrapped(dict):
    pass


class Pairs(tuple):
    __slots__ = ()


@pytest.mark.parametrize(
    "samples",
    [
        [Wrapped(a=1), Wrapped(a=2)],
        [Pairs((1, 2)), Pairs((3, 4))],
        [collections.UserDict(a=1), collections.UserDict(a=2)],
        [{"a": {"b": (1, [2.0, "x"])}}, {"a": {"b": (3, [4.0, "y"])}}],
        [[[1], [2, 3]], [[4], [5, 6]]],
        [[[1], [2, 3]], [[4], [5]]],
        [(np.ones(2), "a", 1.5), (np.zeros(2), "b", 2.5)],
        [np.ones(2), np.ones(3)],
        [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
        [1, 2.5, True],
        [np.datetime64("2020-01-01")],
        [{1, 2}, {3, 4}],
    ],
    ids=str,
)
def test_collating_nested_and_unusual_samples(samples):
    on_both(lambda f: f.utils.data.default_collate(samples))


# -- vision: no torchvision here, but its documented draws can be made with PyTorch -----------------------------------


def torch_uniform(low, high):
    return torch.empty(1).uniform_(low, high).item()


def torch_area(total, scale, ratio):
    low, high = torch.log(torch.tensor(ratio))
    return total * torch_uniform(*scale), torch.exp(torch.empty(1).uniform_(low, high)).item()


def test_draws_of_random_crops():
    from rushlight.vision import transforms

    image = rushlight.zeros(3, 40, 50)
    for seed in range(5):
        torch.manual_seed(seed), rushlight.manual_seed(seed)
        expected = [torch.randint(0, 40 - 32 + 1, (1,)).item(), torch.randint(0, 50 - 30 + 1, (1,)).item(), 32, 30]
        assert list(transforms.RandomCrop.get_params(image, (32, 30))) == expected
        area, aspect = torch_area(2000, (0.08, 0.3), (3 / 4, 4 / 3))
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        expected = [torch.randint(0, 40 - h + 1, (1,)).item(), torch.randint(0, 50 - w + 1, (1,)).item(), h, w]
        assert list(transforms.RandomResizedCrop.get_params(image, (0.08, 0.3), (3 / 4, 4 / 3))) == expected


def test_draws_of_other_transforms():
    from rushlight.vision import transforms

    for seed in range(5):
        torch.manual_seed(seed), rushlight.manual_seed(seed)
        flipped = transforms.RandomHorizontalFlip()(rushlight.arange(2).reshape(1, 1, 2))
        assert (flipped[0, 0, 0].item() == 1) == (torch.rand(1) < 0.5).item()
        assert transforms.RandomRotation.get_params([-30, 30]) == torch_uniform(-30.0, 30.0)
        order, *factors = transforms.ColorJitter.get_params((0.5, 1.5), None, (0.2, 1.8), (-0.1, 0.1))
        assert order.tolist() == torch.randperm(4).tolist()
        assert factors == [torch_uniform(0.5, 1.5), None, torch_uniform(0.2, 1.8), torch_uniform(-0.1, 0.1)]
        top, left, h, w, filling = transforms.RandomErasing.get_params(
            rushlight.zeros(3, 40, 50), (0.02, 0.3), (0.3, 3.3)
        )
        area, aspect = torch_area(2000, (0.02, 0.3), (0.3, 3.3))
        assert (h, w) == (round((area * aspect) ** 0.5), round((area / aspect) ** 0.5))
        np.testing.assert_allclose(filling.numpy(), torch.empty(3, h, w).normal_().numpy(), rtol=1e-5, atol=1e-6)
        assert [top, left] == [torch.randint(0, 40 - h + 1, (1,)).item(), torch.randint(0, 50 - w + 1, (1,)).item()]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_resize_of_tensors(mode):
    from rushlight.vision.transforms import functional

    array = np.random.default_rng(0).random((2, 3, 20, 30), dtype=np.float32)
    options = {} if mode == "nearest" else {"antialias": True}
    expected = torch.nn.functional.interpolate(torch.from_numpy(array), (11, 40), mode=mode, **options)
    made = functional.resize(rushlight.from_numpy(array), [11, 40], functional.InterpolationMode(mode))
    np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_fake_images():
    from rushlight.vision import datasets, transforms

    image, target = datasets.FakeData(image_size=(3, 5, 6), transform=transforms.PILToTensor())[4]
    torch.manual_seed(4)
    expected = torch.randn(3, 5, 6).mul(255).to(torch.int64) % 256
    assert (image.long() - rushlight.tensor(expected.tolist())).abs().max().item() <= 1
    assert target == torch.randint(0, 10, (1,)).item()
