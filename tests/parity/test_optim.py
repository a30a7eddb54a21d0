"""Optimizers against PyTorch: its own database of configurations, saved states, hooks, errors."""

from __future__ import annotations

import inspect
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
        """The parameters, then all of their state by name."""
        return [*self.params, *(sorted(self.optimizer.state.get(p, {}).items()) for p in self.params)]


def assert_same(a, b, rtol=2e-5, atol=2e-6):
    """Structures of tensors, numbers and None with the same shapes and dtypes and nearly the same numbers."""
    if isinstance(a, torch.Tensor):
        a, b = a.detach().numpy(), b.detach().numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y, rtol, atol)
    elif isinstance(a, (int, float)):
        assert b == pytest.approx(a, rel=rtol, abs=atol)
    else:
        assert a == b


def tolerance(name):
    # A number of Muon's direction now and then rounds to the neighbouring bfloat16: 2**-8 of lr = 0.001.
    return {"atol": 2e-5} if name == "Muon" else {}


@pytest.mark.parametrize(("name", "kwargs"), [c for c in CASES if c.values[0] != "LBFGS"])
def test_fifty_steps_of_every_configuration(name, kwargs):
    a, b = Side(torch, name, kwargs), Side(rushlight, name, kwargs)
    for _ in range(STEPS):
        a.step()
        b.step()
    assert_same(a.numbers(), b.numbers(), **tolerance(name))
    assert repr(a.optimizer) == repr(b.optimizer)


# With options of its own besides PyTorch's database: few iterations a step, so that the search is at work all the time.
LBFGS = [
    *(pytest.param(c.values[1], id=c.id) for c in CASES if c.values[0] == "LBFGS"),
    {"max_iter": 3},
    {"max_iter": 3, "lr": 0.01},
    {"max_iter": 4, "lr": 0.1, "history_size": 5},
    {"max_iter": 4, "max_eval": 3},
    {"max_iter": 5, "line_search_fn": "strong_wolfe"},
    {"max_iter": 2, "line_search_fn": "strong_wolfe"},
    {"max_iter": 1, "line_search_fn": "strong_wolfe", "history_size": 3},
    {"max_iter": 4, "max_eval": 3, "line_search_fn": "strong_wolfe"},
    {"max_iter": 4, "lr": 10, "line_search_fn": "strong_wolfe"},
    {"max_iter": 4, "lr": 1e-3, "line_search_fn": "strong_wolfe"},
]


class Valley:
    """A curved valley in 13 dimensions: what a line search is for."""

    def __init__(self, package, kwargs, dtype):
        self.package, rng = package, np.random.RandomState(0)
        self.params = [package.tensor(rng.randn(*shape).astype(dtype)).requires_grad_() for shape in ((7,), (2, 3))]
        self.matrix = package.tensor(rng.randn(13, 13).astype(dtype))
        self.optimizer = package.optim.LBFGS(self.params, **(kwargs if package is torch else ours(kwargs)))

    def closure(self):
        self.optimizer.zero_grad()
        z = self.package.cat([self.params[0], self.params[1].reshape(-1)])
        loss = ((z[1:] - z[:-1] ** 2) ** 2 + 0.01 * (1 - z[:-1]) ** 2).sum()
        loss = loss + 0.1 * (self.package.tanh(self.matrix @ z) ** 2).sum()
        loss.backward()
        return loss

    def step(self):
        return self.optimizer.step(self.closure).item()


@pytest.mark.parametrize("kwargs", LBFGS, ids=str)
def test_fifty_steps_of_lbfgs(kwargs):
    """In float64, where rounding is no excuse: the same evaluations, the same losses, the same state at every step."""
    # The changes of the gradient that very small steps make are differences of nearly equal numbers.
    small = kwargs.get("lr", 1) < 0.01
    wide = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    a, b = Valley(torch, wide, "float64"), Valley(rushlight, wide, "float64")
    before = a.closure().item()
    for _ in range(STEPS):
        assert a.step() == pytest.approx(b.step(), rel=1e-5 if small else 1e-9)
        mine, theirs = (o.state[o.param_groups[0]["params"][0]] for o in (b.optimizer, a.optimizer))
        assert sorted(mine) == sorted(theirs)
        assert mine["n_iter"] == theirs["n_iter"]
        # How often a line is searched depends on those differences, and so on how a processor adds.
        assert mine["func_evals"] == pytest.approx(theirs["func_evals"], rel=0.05 if small else 0)
    assert_same(a.params, b.params, rtol=1e-4 if small else 1e-8, atol=1e-5 if small else 1e-9)
    assert b.closure().item() < before
    if small:
        return
    assert_same(sorted(theirs.items()), sorted(mine.items()), rtol=1e-4, atol=1e-6)
    a, b = Valley(torch, kwargs, "float32"), Valley(rushlight, kwargs, "float32")
    for _ in range(5):
        assert a.step() == pytest.approx(b.step(), rel=1e-4)


@pytest.mark.parametrize(("ns_steps", "most"), [(1, 0.001), (2, 0.05), (5, 1.0)])
def test_muon_in_bfloat16_on_large_matrices(ns_steps, most):
    """A sum on the edge between two bfloat16 numbers may fall to the other side, and each iteration spreads that.

    So after one iteration almost all numbers are equal, and after five they are within a few of bfloat16's steps.
    """
    rng, shapes = np.random.RandomState(3), [(64, 32), (32, 64), (128, 128)]
    values, gradients = ([rng.randn(*s).astype(np.float32) for s in shapes] for _ in range(2))
    moved = []
    for package in (torch, rushlight):
        params = [package.tensor(v).requires_grad_() for v in values]
        optimizer = package.optim.Muon(params, lr=1.0, weight_decay=0.0, ns_steps=ns_steps)
        for p, g in zip(params, gradients):
            p.grad = package.tensor(g)
        optimizer.step()
        moved.append([p.detach().numpy() - v for p, v in zip(params, values)])
    for x, y in zip(*moved):
        assert (np.abs(x - y) > 1e-5 * np.abs(x).max()).mean() <= most
        assert np.abs(x - y).max() < 8 * 2**-8 * np.abs(x).max()


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
    if name == "LBFGS":  # it amplifies rounding: see above
        kwargs = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    dtype = "float64" if name == "LBFGS" else "float32"
    reference = Side(torch, name, kwargs, dtype)
    from_torch, to_torch = Side(rushlight, name, kwargs, dtype), Side(torch, name, kwargs, dtype)
    half = 10
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
            continue  # of sparse parameters: below
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


def test_sparse_parameters_are_refused_by_sparse_adam():
    outcomes = []
    for package in (torch, rushlight):
        with pytest.raises(ValueError, match="dense parameter tensors") as caught:
            package.optim.SparseAdam([package.zeros(3), package.zeros(3).to_sparse()])
        outcomes.append(str(caught.value))
    assert outcomes[0] == outcomes[1]


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


# -- the base class --------------------------------------------------------------------------------------------------


def on_both(function):
    """``function(package)`` gives the same, or raises the same, on both, with the same warnings."""
    results = []
    for package in (torch, rushlight):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function(package)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
        results.append((result, [str(w.message) for w in caught]))
    assert results[0] == results[1]
    return results[0][0]


WORDS = [n for n in INFOS if n not in ("SparseAdam", "LBFGS")]

# Every option that is checked, with values on the wrong side; each is given to every optimizer that has it.
WRONG = {
    "lr": [-0.5, -1],
    "eps": [-1e-8],
    "weight_decay": [-0.1],
    "momentum": [-0.1],
    "betas": [(1.0, 0.9), (0.9, 1.0), (-0.1, 0.9), (0.9, -0.1), (0.9,)],
    "rho": [-0.1, 1.5],
    "alpha": [-0.1],
    "lr_decay": [-0.1],
    "initial_accumulator_value": [-0.1],
    "momentum_decay": [-0.1],
    "etas": [(1.5, 1.2), (0.5, 0.9), (0.5, 1.0), (-1.0, 2.0)],
    "beta2_decay": [0.5],
    "d": [0.5, -1.0],
    "dampening": [0.1],
    "nesterov": [True],
    "adjust_lr_fn": ["other"],
    "max_iter": [-1],
    "fused": [True],
    "foreach": [True],
    "differentiable": [True],
    "capturable": [True],
}


@pytest.mark.parametrize("name", INFOS)
def test_wrong_values_of_every_option(name):
    raised = 0
    parameters = inspect.signature(getattr(torch.optim, name).__init__).parameters
    assert list(parameters) == list(inspect.signature(getattr(rushlight.optim, name).__init__).parameters)
    for option, values in WRONG.items():
        for value in values if option in parameters else ():

            def make(package, option=option, value=value):
                return type(
                    getattr(package.optim, name)([package.ones(2, 2).requires_grad_()], **{option: value})
                ).__name__

            raised += ":" in on_both(make)
    assert raised >= 1


@pytest.mark.parametrize("name", INFOS)
def test_options_that_cannot_go_together(name):
    for options in (
        {"fused": True, "foreach": True},
        {"fused": True, "differentiable": True},
        {"nesterov": True, "momentum": 0},
        {"nesterov": True, "momentum": 0.9, "dampening": 0.1},
        {"weight_decay": -1, "lr": -1},
        {"weight_decay": -1, "eps": -1},
        {"betas": (2.0, 0.9), "eps": -1},
        {"initial_accumulator_value": -1, "eps": -1},
    ):
        parameters = inspect.signature(getattr(torch.optim, name).__init__).parameters
        if set(options) <= set(parameters):
            on_both(lambda p, o=options: type(getattr(p.optim, name)([p.ones(2, 2).requires_grad_()], **o)).__name__)


BAD_GROUPS = [
    lambda p, w: p.optim.SGD(w, lr=0.1),
    lambda p, w: p.optim.SGD([], lr=0.1),
    lambda p, w: p.optim.SGD([{}], lr=0.1),
    lambda p, w: p.optim.SGD(["w"], lr=0.1),
    lambda p, w: p.optim.SGD([w, None], lr=0.1),
    lambda p, w: p.optim.SGD({w}, lr=0.1) and None,
    lambda p, w: p.optim.SGD([{"params": {w}}], lr=0.1),
    lambda p, w: p.optim.SGD([w * 2], lr=0.1),
    lambda p, w: p.optim.SGD([w, w], lr=0.1) and None,
    lambda p, w: p.optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1),
    lambda p, w: p.optim.SGD([{"params": w}, {"params": []}], lr=0.1) and None,
    lambda p, w: p.optim.SGD([("w", w), p.ones(1).requires_grad_()], lr=0.1),
    lambda p, w: p.optim.SGD([("w", w), ("w", p.ones(1).requires_grad_())], lr=0.1) and None,
    lambda p, w: p.optim.SGD([w], lr=0.1).add_param_group({"params": w}),
    lambda p, w: p.optim.SGD([w], lr=0.1).add_param_group([w]),
    lambda p, w: p.optim.SGD([w], lr=0.1).add_param_group({"params": {w}}),
    lambda p, w: p.optim.SGD([w], lr=0.1).add_param_group({"params": [w * 2]}),
    lambda p, w: p.optim.SGD([w], lr=0.1).add_param_group({"params": [("v", p.ones(1).requires_grad_())]}),
    lambda p, w: p.optim.SGD([("w", w)], lr=0.1).add_param_group({"params": [p.ones(1).requires_grad_()]}),
    lambda p, w: p.optim.LBFGS([{"params": [w]}, {"params": [p.ones(1).requires_grad_()]}]),
    lambda p, w: p.optim.Muon([p.ones(3).requires_grad_()]),
    lambda p, w: p.optim.Muon([p.ones(3, 3, 3).requires_grad_()]),
    lambda p, w: p.optim.Optimizer([w], {}).step(),
    lambda p, w: p.optim.LBFGS([w]).step(),
    lambda p, w: p.optim.SGD([w], lr=0.1).load_state_dict({"state": {}, "param_groups": []}),
    lambda p, w: p.optim.SGD([w], lr=0.1).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
    lambda p, w: p.optim.SGD([w], lr=0.1).load_state_dict({"state": {}}),
    lambda p, w: p.optim.SGD([w], lr=0.1).register_step_pre_hook(lambda o, a, k: 3) and None,
]


@pytest.mark.parametrize("make", BAD_GROUPS)
def test_bad_groups(make):
    on_both(lambda p: make(p, p.ones(2, 2).requires_grad_()))


@pytest.mark.parametrize("name", INFOS)
def test_layout_of_groups_and_states(name):
    """The names, their order and the values of options, in groups and in what is saved; named parameters; defaults."""

    def run(p):
        w, v = (p.ones(2, 2).requires_grad_() for _ in range(2))
        many = name != "LBFGS"
        optimizer = getattr(p.optim, name)([{"params": [("w", w)]}, {"params": [("v", v)], "lr": 0.5}][: 1 + many])
        if many:
            optimizer.add_param_group({"params": [("u", p.ones(2, 2).requires_grad_())], "weight_decay": 0.25})
        saved = optimizer.state_dict()
        groups = [[(k, str(v)) for k, v in g.items() if k != "params"] for g in optimizer.param_groups]
        return groups, str(saved), str(list(optimizer.defaults.items())), repr(optimizer)

    on_both(run)


def test_hooks_and_their_order():
    def run(p):
        from importlib import import_module

        base, seen = import_module(p.optim.Optimizer.__module__), []
        w = p.ones(2).requires_grad_()
        optimizer = p.optim.SGD([w], lr=0.1)

        def hook(word, result=None):
            def noted(*args):
                seen.append((word, len(args), args[0] is optimizer))
                seen.append([len(a) for a in args[1:] if isinstance(a, tuple)])
                return result

            return noted

        handles = [
            base.register_optimizer_step_pre_hook(hook("all before")),
            base.register_optimizer_step_post_hook(hook("all after")),
            optimizer.register_step_pre_hook(hook("before")),
            optimizer.register_step_pre_hook(
                hook("before, new arguments", ((optimizer, lambda: seen.append("closure")), {}))
            ),
            optimizer.register_step_post_hook(hook("after")),
            optimizer.register_state_dict_pre_hook(hook("saving")),
            optimizer.register_state_dict_pre_hook(hook("saving first"), prepend=True),
            optimizer.register_state_dict_post_hook(hook("saved")),
            optimizer.register_state_dict_post_hook(lambda o, state: {**state, "mark": 1}),
            optimizer.register_state_dict_post_hook(hook("saved first"), prepend=True),
            optimizer.register_load_state_dict_pre_hook(hook("loading")),
            optimizer.register_load_state_dict_pre_hook(hook("loading first"), prepend=True),
            optimizer.register_load_state_dict_post_hook(hook("loaded")),
            optimizer.register_load_state_dict_post_hook(hook("loaded first"), prepend=True),
        ]
        optimizer.step()
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)
        seen.append((saved, sorted(optimizer.param_groups[0])))
        for handle in handles:
            handle.remove()
        optimizer.step()
        optimizer.state_dict()
        return str(seen)

    assert "closure" in on_both(run)
    # A hook that gives back something else than (args, kwargs).
    for answer in (3, (1, 2, 3)):

        def wrong(p, answer=answer):
            optimizer = p.optim.SGD([p.ones(2).requires_grad_()], lr=0.1)
            optimizer.register_step_pre_hook(lambda *_: answer)
            try:
                optimizer.step()
            except Exception as error:
                return type(error).__name__, str(error)[-60:]

        on_both(wrong)


@pytest.mark.parametrize("name", WORDS)
def test_closures_and_zero_grad(name):
    def run(p):
        w, v = (p.ones(2, 2).requires_grad_() for _ in range(2))
        optimizer, seen = getattr(p.optim, name)([w, v]), []

        def closure():
            seen.append(p.is_grad_enabled())
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        with p.no_grad():
            loss = optimizer.step(closure)
        grad = w.grad
        optimizer.zero_grad(set_to_none=False)
        same = w.grad is grad, w.grad.tolist(), v.grad
        optimizer.zero_grad()
        none = w.grad, v.grad
        w.grad = (w * 2).detach().requires_grad_()
        optimizer.zero_grad(set_to_none=False)
        return (
            seen,
            loss.item(),
            same,
            none,
            w.grad.requires_grad,
            v.tolist(),
            len(optimizer.state[v]),
            optimizer.step(),
        )

    on_both(run)


def test_sparse_adam_wants_sparse_gradients():
    def run(p):
        w = p.ones(2).requires_grad_()
        w.grad = p.ones(2)
        p.optim.SparseAdam([w]).step()

    assert "dense gradients" in on_both(run)


@pytest.mark.parametrize("name", [n for n in WORDS if n not in ("Muon", "Adafactor")])
def test_loading_into_another_precision_and_old_files(name):
    """State follows the parameter's dtype, the count of steps does not; old files lack some options."""

    def run(p):
        a, b = p.ones(2, 2).requires_grad_(), p.ones(2, 2, dtype=p.float64).requires_grad_()
        first, second = getattr(p.optim, name)([a]), getattr(p.optim, name)([b], lr=0.5)
        a.grad = p.ones(2, 2)
        first.step()
        saved = first.state_dict()
        for group in saved["param_groups"]:
            for option in ("foreach", "maximize", "differentiable", "capturable"):
                group.pop(option, None)
        second.load_state_dict(saved)
        kinds = [(k, str(v.dtype)) for k, v in second.state[b].items() if hasattr(v, "dtype")]
        b.grad = p.ones(2, 2, dtype=p.float64)
        second.step()
        options = {k: v for k, v in second.param_groups[0].items() if k != "params"}
        return kinds, str(sorted(options.items(), key=str)), len(saved["state"])

    on_both(run)
