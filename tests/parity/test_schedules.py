"""Schedules of learning rates and averaged weights against PyTorch: sequences, saved states, warnings, errors."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch

import rushlight

BOTH = (torch, rushlight)

SCHEDULES = {
    "LambdaLR": lambda L, o: L.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.97),
    "StepLR": lambda L, o: L.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda L, o: L.MultiStepLR(o, [3, 30, 30, 90], 0.3),
    "ConstantLR": lambda L, o: L.ConstantLR(o, 0.4, 20),
    "LinearLR": lambda L, o: L.LinearLR(o, 0.1, 0.9, 50),
    "ExponentialLR": lambda L, o: L.ExponentialLR(o, 0.98),
    "PolynomialLR": lambda L, o: L.PolynomialLR(o, 150, 2.0),
    "CosineAnnealingLR": lambda L, o: L.CosineAnnealingLR(o, 40, 0.01),
    "CosineAnnealingWarmRestarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 10, 2, 0.001),
    "CyclicLR": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 15, 25),
    "CyclicLR triangular2": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 15, mode="triangular2"),
    "CyclicLR exp_range": lambda L, o: L.CyclicLR(o, 0.01, [0.2, 0.3], 15, mode="exp_range", gamma=0.99),
    "CyclicLR scale_fn": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 15, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "OneCycleLR": lambda L, o: L.OneCycleLR(o, 0.3, 220),
    "OneCycleLR linear, three phases": lambda L, o: L.OneCycleLR(
        o, [0.3, 0.2], epochs=22, steps_per_epoch=10, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": lambda L, o: L.SequentialLR(
        o, [L.ConstantLR(o, 0.1, 10), L.ExponentialLR(o, 0.95), L.CosineAnnealingLR(o, 20)], [10, 60]
    ),
    "SequentialLR of restarts and cycles": lambda L, o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 10), L.CosineAnnealingWarmRestarts(o, 15, 2), L.CyclicLR(o, 0.01, 0.2, 7)], [10, 90]
    ),
    "SequentialLR of a chain": lambda L, o: L.SequentialLR(
        o, [L.LambdaLR(o, lambda e: 1 / (e + 1)), L.PolynomialLR(o, 50), L.MultiStepLR(o, [5, 9])], [3, 70]
    ),
    "ChainedScheduler": lambda L, o: L.ChainedScheduler(
        [L.ConstantLR(o, 0.1, 10), L.ExponentialLR(o, 0.99), L.StepLR(o, 50)]
    ),
    "SWALR": lambda L, o: swa(L).SWALR(o, [0.05, 0.01], 20),
    "SWALR linear": lambda L, o: swa(L).SWALR(o, 0.05, 20, "linear"),
}


def swa(scheduler_module):
    return torch.optim.swa_utils if scheduler_module is torch.optim.lr_scheduler else rushlight.optim.swa_utils


def two_groups(package, kind="SGD", tensor=False):
    params = [package.tensor([1.0]).requires_grad_() for _ in range(2)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    rates = [package.tensor(r, dtype=package.float64) if tensor else r for r in (0.1, 0.05)]
    groups = [{"params": p, "lr": rate} for p, rate in zip(params, rates)]
    return getattr(package.optim, kind)(groups, **options)


class Run:
    """An optimizer and its schedule in one framework, and what they said."""

    def __init__(self, package, make, kind="SGD", tensor=False):
        self.package, self.make, self.kind, self.rows = package, make, kind, []
        self.optimizer = two_groups(package, kind, tensor)
        self.scheduler = make(package.optim.lr_scheduler, self.optimizer)

    def steps(self, n, metrics=None):
        for i in range(n):
            groups = self.optimizer.param_groups
            momentum = [g["momentum"] if self.kind == "SGD" else g["betas"][0] for g in groups]
            self.rows.append([float(v) for v in [g["lr"] for g in groups] + self.scheduler.get_last_lr() + momentum])
            self.optimizer.step()
            self.scheduler.step(*(() if metrics is None else (metrics[i],)))
        return self

    def resumed(self, package):
        """The run as it goes on in ``package``, from what was saved here."""
        other = Run(package, self.make, self.kind)
        saved = copy.deepcopy((self.optimizer.state_dict(), self.scheduler.state_dict()))
        other.optimizer.load_state_dict(saved[0])
        other.scheduler.load_state_dict(saved[1])
        other.rows = list(self.rows)
        return other


def assert_same_rows(a, b):
    np.testing.assert_allclose(a.rows, b.rows, rtol=1e-9, atol=1e-12)


def assert_same_state(a, b):
    """The same names, in the same order, with the same values."""
    assert list(a) == list(b)
    for key in a:
        if isinstance(a[key], dict):
            assert_same_state(a[key], b[key])
        elif isinstance(a[key], list) and a[key] and isinstance(a[key][0], dict):
            for x, y in zip(a[key], b[key], strict=True):
                assert_same_state(x, y)
        elif isinstance(a[key], (float, list)) and not any(v is None for v in np.ravel(a[key])):
            np.testing.assert_allclose(a[key], b[key], rtol=1e-9, err_msg=key)
        else:
            assert a[key] == b[key], key


def test_every_class_is_here():
    names = {name.split()[0] for name in SCHEDULES} | {"LRScheduler", "ReduceLROnPlateau"}
    assert set(torch.optim.lr_scheduler.__all__) == set(rushlight.optim.lr_scheduler.__all__) <= names


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_two_hundred_steps_of_every_schedule(name, kind):
    """In one piece, and going from one framework to the other after 83 steps, both ways."""
    make = SCHEDULES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's about its own CyclicLR and SequentialLR; see test_warnings
        a, b = (Run(package, make, kind).steps(200) for package in BOTH)
        assert_same_rows(a, b)
        assert_same_state(a.scheduler.state_dict(), b.scheduler.state_dict())
        for here, there in (BOTH, BOTH[::-1], (rushlight, rushlight)):
            assert_same_rows(Run(here, make, kind).steps(83).resumed(there).steps(117), a)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "SWALR" not in n])
def test_rates_that_are_tensors(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = []
        for package in BOTH:
            try:
                results.append(Run(package, SCHEDULES[name], tensor=True).steps(60))
            except Exception as error:
                results.append(error)
    if isinstance(results[0], Exception):
        assert type(results[0]) is type(results[1]), results
    else:
        np.testing.assert_allclose(results[0].rows, results[1].rows, rtol=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("optimizer_first", [True, False])
def test_warnings(name, optimizer_first):
    """Of steps in the wrong order, of ``step(epoch)``, and of ``get_lr`` from outside."""

    def run(package):
        optimizer = two_groups(package)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scheduler = SCHEDULES[name](package.optim.lr_scheduler, optimizer)
            if optimizer_first:
                optimizer.step()
            scheduler.step()
            scheduler.step()
            if not hasattr(scheduler, "_schedulers"):
                scheduler.get_lr()
                scheduler.step(3)
        return [(w.category.__name__, str(w.message)) for w in caught], scheduler.get_last_lr()

    (expected, rates), (got, ours) = run(torch), run(rushlight)
    assert got == expected
    np.testing.assert_allclose(ours, rates, rtol=1e-9)


PLATEAUS = [
    {},
    {"mode": "max", "threshold_mode": "abs"},
    {"mode": "max"},
    {"threshold_mode": "abs", "threshold": 0.05},
    {"cooldown": 4, "min_lr": [0.01, 0.02]},
    {"min_lr": 0.03, "eps": 0.01, "patience": 0},
]


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
def test_plateau(options):
    def make(module, optimizer):
        return module.ReduceLROnPlateau(optimizer, **{"patience": 5, "factor": 0.5, **options})

    losses = np.random.RandomState(0).rand(200).tolist()
    a, b = (Run(package, make).steps(200, [package.tensor(x) for x in losses]) for package in BOTH)
    assert_same_rows(a, b)
    assert_same_state(a.scheduler.state_dict(), b.scheduler.state_dict())
    assert a.rows[-1] != a.rows[0]
    for here, there in (BOTH, BOTH[::-1]):
        assert_same_rows(Run(here, make).steps(60, losses).resumed(there).steps(140, losses[60:]), a)


def test_closed_forms():
    for name in (
        "StepLR",
        "MultiStepLR",
        "ConstantLR",
        "LinearLR",
        "ExponentialLR",
        "PolynomialLR",
        "CosineAnnealingLR",
        "LambdaLR",
    ):
        values = []
        for package in (torch, rushlight):
            scheduler = SCHEDULES[name](package.optim.lr_scheduler, two_groups(package))
            scheduler.optimizer.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(33)
            values.append(scheduler.get_last_lr())
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12, err_msg=name)


BAD = [
    lambda m, o: m.LambdaLR(o, [lambda e: 1] * 3),
    lambda m, o: m.MultiplicativeLR(o, [lambda e: 1] * 3),
    lambda m, o: m.StepLR("optimizer", 3),
    lambda m, o: m.StepLR(o, 3, last_epoch=4),
    lambda m, o: m.ConstantLR(o, 1.5),
    lambda m, o: m.LinearLR(o, 0.0),
    lambda m, o: m.LinearLR(o, 0.5, 2.0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, 0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, 1.5),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 3).step(-1),
    lambda m, o: m.CyclicLR(o, [0.1] * 3, 0.2),
    lambda m, o: m.CyclicLR(o, 0.1, 0.2, mode="square"),
    lambda m, o: m.CyclicLR(None, 0.1, 0.2),
    lambda m, o: m.OneCycleLR(o, 0.1),
    lambda m, o: m.OneCycleLR(o, 0.1, total_steps=-3),
    lambda m, o: m.OneCycleLR(o, 0.1, epochs=2.5, steps_per_epoch=3),
    lambda m, o: m.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0),
    lambda m, o: m.OneCycleLR(o, 0.1, 10, pct_start=2),
    lambda m, o: m.OneCycleLR(o, 0.1, 10, anneal_strategy="square"),
    lambda m, o: m.OneCycleLR(o, [0.1] * 3, 10),
    lambda m, o: [m.OneCycleLR(o, 0.1, 3).step(i) for i in range(9)],
    lambda m, o: m.ReduceLROnPlateau(o, factor=1.0),
    lambda m, o: m.ReduceLROnPlateau(o, "least"),
    lambda m, o: m.ReduceLROnPlateau(o, threshold_mode="both"),
    lambda m, o: m.ReduceLROnPlateau(o, min_lr=[0.1]),
    lambda m, o: m.ReduceLROnPlateau("optimizer"),
    lambda m, o: m.SequentialLR(o, [], []),
    lambda m, o: m.SequentialLR(o, [m.StepLR(o, 3)], [4]),
    lambda m, o: m.SequentialLR(o, [m.StepLR(o, 3), m.ReduceLROnPlateau(o)], [4]),
    lambda m, o: m.SequentialLR(o, [3, m.StepLR(o, 3)], [4]),
    lambda m, o: m.ChainedScheduler([]),
    lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]),
    lambda m, o: m.ChainedScheduler([m.StepLR(o, 3), 4]),
    lambda m, o: m.LRScheduler(o),
    lambda m, o: swa(m).SWALR(o, 0.1, anneal_strategy="square"),
    lambda m, o: swa(m).SWALR(o, 0.1, anneal_epochs=-1),
    lambda m, o: swa(m).SWALR(o, [0.1]),
    lambda m, o: swa(m).get_ema_multi_avg_fn(1.5),
    lambda m, o: swa(m).get_ema_avg_fn(-0.5),
]


@pytest.mark.parametrize("make", BAD)
def test_errors(make):
    outcomes = []
    for package in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcomes.append(str(type(make(package.optim.lr_scheduler, two_groups(package))).__name__))
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")
    assert outcomes[0] == outcomes[1]
    assert ":" in outcomes[0]


def test_momentum_cannot_be_cycled_where_there_is_none():
    for make in (lambda m, o: m.CyclicLR(o, 0.1, 0.2), lambda m, o: m.OneCycleLR(o, 0.1, 10)):
        texts = []
        for package in BOTH:
            optimizer = package.optim.Adagrad([package.ones(1).requires_grad_()])
            with pytest.raises(ValueError) as caught:
                make(package.optim.lr_scheduler, optimizer)
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


# -- averaged weights ------------------------------------------------------------------------------------------------


def network(package):
    nn = package.nn
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 3))


def averaging(package, how):
    s = package.optim.swa_utils
    return {
        "mean": {},
        "mean with buffers": {"use_buffers": True},
        "swa": {"multi_avg_fn": s.get_swa_multi_avg_fn()},
        "swa, one by one": {"avg_fn": s.get_swa_avg_fn()},
        "ema": {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
        "ema with buffers": {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        "ema, one by one": {"avg_fn": s.get_ema_avg_fn(0.8)},
        "own": {"avg_fn": lambda averaged, current, n: 0.3 * averaged + 0.7 * current},
    }[how]


def train_averaged(package, how, start):
    """24 steps, averaged from the 8th on with a rate that SWALR anneals; then the statistics of BatchNorm anew."""
    rng, F = np.random.RandomState(1), package.nn.functional
    batches = [
        (package.tensor(rng.randn(16, 6).astype(np.float32)), package.tensor(rng.randint(0, 3, 16))) for _ in "1234"
    ]
    model = network(package)
    model.load_state_dict({k: package.tensor(v) for k, v in start.items()})
    averaged = package.optim.swa_utils.AveragedModel(model, **averaging(package, how))
    optimizer = package.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scheduler = package.optim.swa_utils.SWALR(optimizer, 0.05, 6)
    losses = []
    for i in range(24):
        x, t = batches[i % 4]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        if i >= 8:
            averaged.update_parameters(model)
            scheduler.step()
        losses.append(loss.item())
    before = {k: v.numpy().copy() for k, v in averaged.state_dict().items()}
    package.optim.swa_utils.update_bn(batches, averaged)
    after = {k: v.numpy().copy() for k, v in averaged.state_dict().items()}
    assert averaged.training
    averaged.eval()
    return losses, before, after, averaged(batches[0][0]).detach().numpy(), averaged


@pytest.mark.parametrize(
    "how", ["mean", "mean with buffers", "swa", "swa, one by one", "ema", "ema with buffers", "ema, one by one", "own"]
)
def test_averaged_models(how):
    torch.manual_seed(0)
    start = {k: v.numpy().copy() for k, v in network(torch).state_dict().items()}
    theirs, ours = (train_averaged(package, how, start) for package in BOTH)
    np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-4)
    for a, b in zip(theirs[1:3], ours[1:3]):
        assert list(a) == list(b)
        for name in a:
            assert a[name].dtype == b[name].dtype
            np.testing.assert_allclose(a[name], b[name], rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(theirs[3], ours[3], rtol=1e-4, atol=1e-5)
    assert any(not np.allclose(theirs[1][k], theirs[2][k]) for k in theirs[1] if "running" in k)
    # What one saved, the other goes on with.
    ours[4].load_state_dict({k: rushlight.tensor(v.numpy()) for k, v in theirs[4].state_dict().items()})
    assert ours[4].n_averaged == 16


def test_update_bn_of_models_without_batch_norm_and_of_single_inputs():
    for package in BOTH:
        s = package.optim.swa_utils
        assert s.update_bn([], package.nn.Linear(2, 2)) is None
        model = package.nn.BatchNorm1d(2, momentum=0.3)
        s.update_bn([package.arange(8.0).reshape(4, 2)] * 3, model)
        assert model.running_mean.tolist() == [3.0, 4.0] and model.momentum == 0.3 and model.training


def test_averaged_models_know_how_many():
    for package in BOTH:
        averaged = package.optim.swa_utils.AveragedModel(package.nn.Linear(2, 2))
        assert averaged.n_averaged.item() == 0 and averaged.n_averaged.dtype is package.int64
        with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
            package.optim.swa_utils.AveragedModel(package.nn.Linear(2, 2), avg_fn=max, multi_avg_fn=max)
