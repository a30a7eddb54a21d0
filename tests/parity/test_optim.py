"""Optimizers and schedules against PyTorch: its own database of configurations, lr sequences, saved states."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import rushlight

STEPS = 50
INFOS = {info.optim_cls.__name__: info for info in optim_db}
CASES = [
    pytest.param(name, given.kwargs, id=f"{name}-{given.desc}".replace(" ", "_"))
    for name, info in INFOS.items()
    if name != "SparseAdam"
    for given in info.optim_inputs_func(device="cpu")
]


def ours(value):
    """PyTorch's tensors in a structure as rushlight's."""
    if isinstance(value, torch.Tensor):
        return rushlight.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    return type(value)(ours(v) for v in value) if isinstance(value, (list, tuple)) else value


def theirs(value):
    if isinstance(value, rushlight.Tensor):
        return torch.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: theirs(v) for k, v in value.items()}
    return type(value)(theirs(v) for v in value) if isinstance(value, (list, tuple)) else value


def normal(rng, shape, dtype):
    values = rng.standard_normal(tuple(shape))
    return np.asarray(values + 1j * values[..., ::-1] if np.dtype(dtype).kind == "c" and values.ndim else values, dtype)


class Side:
    """One framework's run: the same parameters, the same gradients."""

    def __init__(self, package, name, kwargs, dtype="float32", seed=0):
        self.package, self.name, rng = package, name, np.random.RandomState(seed)
        shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (5,), (2, 3, 2), ()]
        self.targets = [normal(rng, s, dtype) for s in shapes]
        self.params = [package.tensor(normal(rng, s, dtype)).requires_grad_() for s in shapes]
        kwargs = kwargs if package is torch else ours(kwargs)
        self.optimizer = getattr(package.optim, name)(self.params, **kwargs)
        self.rng = np.random.RandomState(seed + 1)

    def closure(self):
        self.optimizer.zero_grad()
        loss = 0
        for p, t in zip(self.params, self.targets):
            d = p - self.package.tensor(t)
            loss = loss + (d * d).sum() + 0.1 * (d * d * d * d).sum()
        loss.backward()
        return loss

    def step(self):
        if self.name == "LBFGS":
            self.optimizer.step(self.closure)
            return
        for p in self.params:
            p.grad = self.package.tensor(normal(self.rng, p.shape, p.detach().numpy().dtype))
        self.optimizer.step()

    def numbers(self):
        values = [p.detach().numpy() for p in self.params]
        for p in self.params:
            for _, value in sorted(self.optimizer.state.get(p, {}).items()):
                if hasattr(value, "numpy"):
                    values.append(value.detach().numpy())
        return values


def assert_same(a, b, rtol=2e-5, atol=2e-6):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def tolerance(name):
    # Muon's direction is computed in bfloat16 on both sides; LBFGS amplifies rounding from step to step.
    return {"Muon": {"rtol": 1e-2, "atol": 5e-3}, "LBFGS": {"rtol": 1e-3, "atol": 1e-4}}.get(name, {})


@pytest.mark.parametrize(("name", "kwargs"), CASES)
def test_fifty_steps_of_every_configuration(name, kwargs):
    a, b = Side(torch, name, kwargs), Side(rushlight, name, kwargs)
    for _ in range(STEPS if name != "LBFGS" else 3):
        a.step()
        b.step()
    assert_same(a.numbers(), b.numbers(), **tolerance(name))
    assert [sorted(a.optimizer.state.get(p, {})) for p in a.params] == [
        sorted(b.optimizer.state.get(p, {})) for p in b.params
    ]
    assert repr(a.optimizer) == repr(b.optimizer)


@pytest.mark.parametrize("name", [n for n in INFOS if n not in ("SparseAdam", "LBFGS", "Muon")])
def test_float64_and_complex(name):
    a, b = Side(torch, name, {}, "float64"), Side(rushlight, name, {}, "float64")
    for _ in range(10):
        a.step()
        b.step()
    assert_same(a.numbers(), b.numbers(), rtol=1e-6, atol=1e-7)
    if name == "Adafactor":
        return
    a, b = Side(torch, name, {}, "complex64"), Side(rushlight, name, {}, "complex64")
    for _ in range(10):
        a.step()
        b.step()
    assert_same(a.numbers(), b.numbers())


@pytest.mark.parametrize(("name", "kwargs"), CASES)
def test_state_goes_both_ways_in_the_middle_of_a_run(name, kwargs):
    reference = Side(torch, name, kwargs)
    from_torch, to_torch = Side(rushlight, name, kwargs, seed=0), Side(torch, name, kwargs, seed=0)
    half = 10 if name != "LBFGS" else 1
    for _ in range(half):
        reference.step()
        from_torch.rng.set_state(reference.rng.get_state())
    from_torch.optimizer.load_state_dict(ours(reference.optimizer.state_dict()))
    for p, q in zip(from_torch.params, reference.params):
        p.data = rushlight.tensor(q.detach().numpy().copy())
    for _ in range(half):
        reference.step()
        from_torch.step()
    assert_same(reference.numbers(), from_torch.numbers(), **tolerance(name))
    to_torch.optimizer.load_state_dict(theirs(from_torch.optimizer.state_dict()))
    for p, q in zip(to_torch.params, from_torch.params):
        p.data = torch.tensor(q.detach().numpy().copy())
    to_torch.rng.set_state(from_torch.rng.get_state())
    for _ in range(half):
        from_torch.step()
        to_torch.step()
    assert_same(to_torch.numbers(), from_torch.numbers(), **tolerance(name))


@pytest.mark.parametrize("name", INFOS)
def test_bad_options_raise_the_same_errors(name):
    checked = 0
    for error in INFOS[name].optim_error_inputs_func(device="cpu", dtype=torch.float32):
        given = error.optimizer_error_input
        if error.error_on is not OptimizerErrorEnum.CONSTRUCTION_ERROR or "dense" in given.desc:
            continue  # rushlight has no sparse tensors
        params = given.params if given.params is not None else [torch.randn(1, 1)]
        outcomes = []
        for package, convert in ((torch, lambda v: v), (rushlight, ours_sharing())):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    getattr(package.optim, name)(convert(params), **convert(given.kwargs))
                    outcomes.append("fine")
                except Exception as e:
                    outcomes.append(f"{type(e).__name__}: {e}")
        assert outcomes[0] == outcomes[1], given.desc
        checked += 1
    assert checked >= 5


def ours_sharing():
    """Like ``ours``, one tensor for one tensor: duplicates stay duplicates."""
    made = {}

    def convert(value):
        if isinstance(value, torch.Tensor):
            if id(value) not in made:
                made[id(value)] = ours(value)
            return made[id(value)]
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        return type(value)(convert(v) for v in value) if isinstance(value, (list, tuple)) else value

    return convert


# -- schedules -------------------------------------------------------------------------------------------------------

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
    "ChainedScheduler": lambda L, o: L.ChainedScheduler(
        [L.ConstantLR(o, 0.1, 10), L.ExponentialLR(o, 0.99), L.StepLR(o, 50)]
    ),
    "SWALR": lambda L, o: swa(L).SWALR(o, [0.05, 0.01], 20),
    "SWALR linear": lambda L, o: swa(L).SWALR(o, 0.05, 20, "linear"),
}


def swa(scheduler_module):
    return torch.optim.swa_utils if scheduler_module is torch.optim.lr_scheduler else rushlight.optim.swa_utils


def two_groups(package, kind="SGD"):
    params = [package.tensor([1.0]).requires_grad_() for _ in range(2)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": params[0], "lr": 0.1}, {"params": params[1], "lr": 0.05}]
    return getattr(package.optim, kind)(groups, **options)


def sequence(package, make, kind, steps=200, resume_at=None):
    optimizer = two_groups(package, kind)
    scheduler = make(package.optim.lr_scheduler, optimizer)
    rows = []
    for i in range(steps):
        momentum = [g["momentum"] if kind == "SGD" else g["betas"][0] for g in optimizer.param_groups]
        rows.append([g["lr"] for g in optimizer.param_groups] + scheduler.get_last_lr() + momentum)
        optimizer.step()
        scheduler.step()
        if i == resume_at:
            saved, saved_optimizer = scheduler.state_dict(), optimizer.state_dict()
            optimizer = two_groups(package, kind)
            scheduler = make(package.optim.lr_scheduler, optimizer)
            optimizer.load_state_dict(saved_optimizer)
            scheduler.load_state_dict(saved)
    return rows, scheduler.state_dict()


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_two_hundred_steps_of_every_schedule(name, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (a, a_state), (b, b_state) = (sequence(p, SCHEDULES[name], kind) for p in (torch, rushlight))
        c, _ = sequence(rushlight, SCHEDULES[name], kind, resume_at=83)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(b, c, rtol=1e-12, atol=0)
    assert set(a_state) == set(b_state)


@pytest.mark.parametrize(
    "options", [{}, {"mode": "max", "threshold_mode": "abs"}, {"cooldown": 4, "min_lr": [0.01, 0.02]}]
)
def test_plateau(options):
    losses = np.random.RandomState(0).rand(200).tolist()
    rows = []
    for package in (torch, rushlight):
        optimizer = two_groups(package)
        scheduler = package.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=5, factor=0.5, **options)
        got = []
        for loss in losses:
            scheduler.step(package.tensor(loss))
            got.append(scheduler.get_last_lr())
        rows.append((got, {k: v for k, v in scheduler.state_dict().items() if k != "best"}))
    assert rows[0] == rows[1]


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
