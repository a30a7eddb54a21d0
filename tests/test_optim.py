"""Optimizers without an oracle: one formula on every engine, hooks, states, what compile relies on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight
from rushlight import optim
from rushlight.engine import native
from rushlight.optim import fused
from rushlight.optim import optimizer as base
from rushlight.tensor import wrap

ALL = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"weight_decay": 0.1, "maximize": True},
        {"maximize": True},
        {"maximize": True, "momentum": 0.9},
    ],
    "Adam": [{}, {"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True}, {"maximize": True, "weight_decay": 0.1}],
    "AdamW": [{}, {"weight_decay": 0.1, "maximize": True}],
    "NAdam": [{}],
    "RAdam": [{}],
    "Adamax": [{}],
    "Adagrad": [{"lr_decay": 0.1}],
    "Adadelta": [{}],
    "RMSprop": [{"centered": True, "momentum": 0.9}],
    "Rprop": [{}],
    "ASGD": [{"t0": 3}],
    "Adafactor": [{}],
    "Muon": [{}],
}
CASES = [(name, kwargs) for name, many in ALL.items() for kwargs in many]


def make(name, kwargs, array=np.asarray, shapes=((4, 3), (2, 5)), dtype=np.float32):
    rng = np.random.RandomState(0)
    params = [wrap(array(np.asarray(rng.randn(*s), dtype))).requires_grad_() for s in shapes]
    return params, getattr(optim, name)(params, **kwargs)


def run(params, optimizer, steps=6, array=np.asarray, seed=1):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        for p in params:
            p.grad = wrap(array(np.asarray(rng.randn(*p.shape), np.asarray(p._array).dtype)))
        optimizer.step()
    state = [optimizer.state.get(p, {}) for p in params]
    tensors = [v for s in state for v in s.values() if isinstance(v, rushlight.Tensor)]
    return [np.asarray(t._array) for t in [*params, *tensors]]


def assert_close(a, b, **tolerance):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, **{"rtol": 1e-5, "atol": 1e-6, **tolerance})


@pytest.mark.parametrize("size", [(), (4, 3), (1, fused.SMALL + 5), (1, fused.ONE_PASS), (1, 3 * fused.BLOCK + 5)])
@pytest.mark.parametrize(("name", "kwargs"), [c for c in CASES if c[0] in ("SGD", "Adam", "AdamW")])
def test_fused_bodies_equal_the_pure_formula(name, kwargs, size, monkeypatch):
    a = run(*make(name, kwargs, shapes=(size,)))
    monkeypatch.setattr(getattr(optim, name), "fused", staticmethod(lambda option: None))
    b = run(*make(name, kwargs, shapes=(size,)))
    assert_close(a, b)


FORMULAS = [c for c in CASES if c[0] not in ("SGD", "AdamW", "Adagrad", "Adadelta", "Adafactor", "Muon")]
FORMULAS += [
    (name, {"weight_decay": 0.1, "maximize": True}) for name in ("NAdam", "RAdam", "Adamax", "ASGD", "RMSprop")
]
FORMULAS += [(name, {"weight_decay": 0.1, "decoupled_weight_decay": True}) for name in ("NAdam", "RAdam")]
FORMULAS = [c for c in FORMULAS if c[0] != "Adam" or "amsgrad" in c[1]]


@pytest.mark.skipif(native.library is None, reason="the kernels in C are not there")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("name", "kwargs"), FORMULAS)
def test_updates_that_are_followed_equal_the_pure_formula(name, kwargs, threads, dtype, monkeypatch):
    shapes = [(4, 3), (0, 5), (1,), (1, fused.SMALL + 5), (300, 311), *[(7,)] * fused.FEW]
    before = rushlight.get_num_threads()
    optimizer = getattr(optim, name)
    monkeypatch.setattr(optimizer, "_update", lambda *args: pytest.fail("not followed"))
    rushlight.set_num_threads(threads)
    try:
        a = run(*make(name, kwargs, shapes=shapes, dtype=dtype))
        rushlight.set_num_threads(1)
        alone = run(*make(name, kwargs, shapes=shapes, dtype=dtype))
    finally:
        rushlight.set_num_threads(before)
    for x, y in zip(a, alone):
        np.testing.assert_array_equal(x, y)
    monkeypatch.undo()
    monkeypatch.setattr(optimizer, "fused", staticmethod(lambda option: None))
    b = run(*make(name, kwargs, shapes=shapes, dtype=dtype))
    assert [x.dtype for x in a] == [x.dtype for x in b]
    assert_close(a, b, **({"rtol": 1e-12, "atol": 1e-13} if dtype == np.float64 else {"rtol": 2e-6, "atol": 2e-7}))


def test_parameters_that_have_made_other_steps_are_followed_apart(monkeypatch):
    """The numbers of a formula depend on the count of steps, which a parameter without a gradient does not make."""

    def train():
        params, optimizer = make("NAdam", {}, shapes=[(5,)] * 8)
        run(params[:5], optimizer)
        run(params, optimizer)
        return [np.array(p._array) for p in params], [optimizer.state[p]["step"].item() for p in params]

    found, steps = train()
    assert steps == [12] * 5 + [6] * 3
    monkeypatch.setattr(optim.NAdam, "fused", staticmethod(lambda option: None))
    assert_close(found, train()[0])


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adadelta", "Adamax"])
@pytest.mark.parametrize("size", [300, 2 * fused.SMALL])
def test_state_of_another_shape_is_refused(name, size):
    """A kernel that took it would read and write memory of others."""
    params, optimizer = make(name, {"momentum": 0.9} if name == "SGD" else {}, shapes=((size,),))
    run(params, optimizer, steps=1)
    state = optimizer.state[params[0]]
    for part in [part for part, value in state.items() if value.ndim]:
        state[part] = rushlight.zeros(3)
    with pytest.raises(RuntimeError, match="was the state made for another model"):
        run(params, optimizer, steps=1)


@pytest.mark.parametrize(("name", "kwargs"), CASES)
def test_one_formula_on_both_engines(name, kwargs):
    jnp = pytest.importorskip("jax.numpy")
    a = run(*make(name, kwargs))
    b = run(*make(name, kwargs, jnp.asarray), array=jnp.asarray)
    assert_close(a, b, **({"rtol": 2e-2, "atol": 1e-2} if name == "Muon" else {}))


@pytest.mark.parametrize(("name", "kwargs"), CASES)
def test_updates_can_be_traced_with_options_as_inputs(name, kwargs):
    """What compile does: options and state are inputs, and nothing in the formula looks at their values."""
    jax = pytest.importorskip("jax")
    from rushlight.engine.xla import namespace as xla

    params, optimizer = make(name, kwargs, jax.numpy.asarray)
    run(params, optimizer, steps=1, array=jax.numpy.asarray)
    p, group = params[0], optimizer.param_groups[0]
    raw = lambda t: jax.numpy.asarray(np.asarray(t._array))
    state = {k: raw(v) for k, v in optimizer.state.get(p, {}).items()}

    def update(array, g, state, values):
        optimizer._traced_hyper = values
        try:
            return optimizer.update(rushlight.engine.namespace_of(array), array, g, state, optimizer._hyper(group))
        finally:
            optimizer._traced_hyper = None

    arguments = raw(p), jax.numpy.ones_like(raw(p)), state
    values = [np.float64(v) for v in optimizer._hyper_values()]
    traced = jax.tree.leaves(jax.jit(update)(*arguments, values))
    plain = jax.tree.leaves(optimizer.update(xla, *arguments, group))
    assert [t.dtype for t in traced] == [t.dtype for t in plain]
    assert_close([np.asarray(t) for t in traced], [np.asarray(t) for t in plain], rtol=1e-4)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_a_differentiable_step_lets_gradients_through(name):
    rate = rushlight.tensor(0.5, dtype=rushlight.float64, requires_grad=True)

    def after(rate):
        p = rushlight.tensor([1.0, 2.0], dtype=rushlight.float64, requires_grad=True).clone()
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True)
        p.grad = rate * p.detach().clone()
        optimizer.step()
        p.grad = rate * p.clone()
        optimizer.step()
        return p

    assert rushlight.autograd.gradcheck(after, rate)


def test_optimizers_survive_pickle_and_deepcopy():
    params, optimizer = make("Adam", {})
    run(params, optimizer)
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        theirs = other.param_groups[0]["params"]
        assert repr(other) == repr(optimizer) and theirs[0] is not params[0]
        other.load_state_dict(optimizer.state_dict())
        p, q = copy.deepcopy(params), theirs
        assert (p[0] == q[0]).all() and other.state[q[0]]["step"] == 6


def test_loading_copies_and_keeps_the_count_in_float32():
    params, optimizer = make("Adam", {}, dtype=np.float64)
    run(params, optimizer)
    others, fresh = make("Adam", {}, dtype=np.float64)
    fresh.load_state_dict(optimizer.state_dict())
    mine, theirs = optimizer.state[params[0]], fresh.state[others[0]]
    assert theirs["step"].dtype is rushlight.float32 and theirs["exp_avg"].dtype is rushlight.float64
    run(others, fresh)
    assert mine["step"] == 6 and theirs["step"] == 12


def test_hooks_of_steps_and_states():
    _, optimizer = make("SGD", {})
    seen = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post")),
        base.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("global pre")),
        base.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("global post")),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving")),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "mark": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append("loading")),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert seen == ["global pre", "pre", "post", "global post", "saving", "loading", "loaded"] and state["mark"] == 1
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 7


def test_an_optimizer_written_by_hand_has_hooks_too():
    class Mine(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self, closure=None):
            return "stepped"

    params, seen = [rushlight.ones(1, requires_grad=True)], []
    optimizer = Mine(params)
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    assert optimizer.step() == "stepped" and seen == [1]


def test_a_closure_runs_with_gradients_on():
    w = rushlight.ones(1, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with rushlight.no_grad():
        assert optimizer.step(closure).item() == 1
    assert w.item() == pytest.approx(0.8)


def test_an_interrupted_search_forgets_what_it_was_going_by():
    """The memory of an L-BFGS step that did not end would pair one step with another's change of the gradient."""

    def problem():
        point = rushlight.tensor([3.0, -2.0], requires_grad=True)
        return point, optim.LBFGS([point], lr=0.1, max_iter=4)

    def closure(point, optimizer, left):
        def evaluate():
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            optimizer.zero_grad()
            loss = (point**4).sum() + point.prod()
            loss.backward()
            return loss

        return evaluate

    point, optimizer = problem()
    optimizer.step(closure(point, optimizer, [0]))
    with pytest.raises(KeyboardInterrupt):
        optimizer.step(closure(point, optimizer, [3]))
    again, fresh = problem()
    again.data.copy_(point.data)
    for where, by in [(point, optimizer), (again, fresh)]:
        by.step(closure(where, by, [0]))
    assert rushlight.equal(point, again)


def test_a_step_counts_as_a_write():
    w = rushlight.ones(2, requires_grad=True)
    y = (w * w).sum()
    w.grad = rushlight.ones(2)
    optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_parameters_that_are_views_reach_their_base():
    base_tensor = rushlight.zeros(4)
    w = base_tensor[:2].requires_grad_()
    w.grad = rushlight.ones(2)
    optim.Adam([w], lr=0.1).step()
    assert base_tensor[0] != 0 and base_tensor[3] == 0


def test_tensor_rates_are_followed_by_schedules():
    w = rushlight.ones(1, requires_grad=True)
    rate = rushlight.tensor(0.1)
    optimizer = optim.SGD([w], lr=rate)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    w.grad = rushlight.ones(1)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == pytest.approx(0.05)
    optimizer.step()
    assert w.item() == pytest.approx(0.85)


def test_low_precision_parameters():
    for dtype in (rushlight.float16, rushlight.bfloat16):
        w = rushlight.ones(3, dtype=dtype).requires_grad_()
        for optimizer in (optim.SGD([w], lr=0.1, momentum=0.9), optim.AdamW([w], lr=0.1)):
            w.grad = rushlight.ones(3, dtype=dtype)
            optimizer.step()
            optimizer.step()
        assert w.dtype is dtype and (w < 1).all()


def test_autocast_and_scaler_train():
    w = rushlight.ones(2, 2).requires_grad_()
    optimizer, scaler = optim.SGD([w], lr=0.1), rushlight.amp.GradScaler("cpu", init_scale=8.0)
    with rushlight.autocast("cpu"):
        y = rushlight.ones(2, 2) @ w
        with rushlight.autocast("cpu", enabled=False):
            assert (rushlight.ones(2, 2) @ w).dtype is rushlight.float32
    assert y.dtype is rushlight.bfloat16 and (rushlight.ones(2, 2) @ w).dtype is rushlight.float32
    scaler.scale(y.float().sum()).backward()
    assert w.grad.dtype is rushlight.float32 and (w.grad == 16).all()
    scaler.step(optimizer)
    scaler.update()
    assert rushlight.allclose(w, rushlight.full((2, 2), 0.8))
    w.grad = rushlight.full((2, 2), float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0 and rushlight.allclose(w, rushlight.full((2, 2), 0.8))


def test_parameters_that_a_program_holds_are_updated_in_place(monkeypatch):
    """A compiled forward in an eager loop: the optimizer fetches what the program has, and takes its fast way."""
    pytest.importorskip("jax")
    slow = []
    monkeypatch.setattr(base.PureOptimizer, "_update_checked", lambda self, *args: slow.append(args))
    losses = []
    for compiled in (False, True):
        rushlight.manual_seed(0)
        model = rushlight.nn.Sequential(rushlight.nn.Linear(4, 8), rushlight.nn.Tanh(), rushlight.nn.Linear(8, 1))
        run = rushlight.compile(model) if compiled else model
        optimizer = rushlight.optim.AdamW(model.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            loss = (run(rushlight.ones(3, 4)) - 3).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[:5] == pytest.approx(losses[5:], rel=1e-5) and losses[4] < losses[0] and not slow


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta"])
@pytest.mark.parametrize("size", [3, 50_000])
def test_state_that_was_looked_for_before_the_first_step(name, size):
    """To read ``optimizer.state[p]`` makes an empty entry; the optimizer begins there, and remembers."""
    found = []
    for looks in (False, True):
        p = rushlight.nn.Parameter(rushlight.ones(size))
        optimizer = getattr(optim, name)([p], lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
        assert not looks or not optimizer.state[p].get("step")
        for i in range(3):
            p.grad = rushlight.full((size,), i + 1.0)
            optimizer.step()
        found.append((p.detach(), sorted(optimizer.state[p])))
    assert rushlight.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1] != []
