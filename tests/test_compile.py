"""compile: whole training steps as one program, equal to eager code, with state found and put back."""

from __future__ import annotations

import gc
import io
import threading
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compiler import CompileError
from rushlight.compiler.residence import Group

pytestmark = pytest.mark.usefixtures("either_way")

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
}


def problem(make_optimizer, device="cpu", width=8):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 3)).to(device)
    x, y = torch.randn(5, 4).to(device), torch.randn(5, 3).to(device)
    optimizer = make_optimizer(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        error = torch.tanh(model(x)) - y
        loss = (error * error).mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step, x, y


def values(model):
    return [p.detach().cpu().numpy().copy() for p in model.parameters()]


@pytest.mark.parametrize("device", ["cpu", "xla"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_step_equals_eager(name, device):
    eager_model, _, eager, x, y = problem(OPTIMIZERS[name])
    expected = [eager(x, y).item() for _ in range(20)]
    model, _, step, x, y = problem(OPTIMIZERS[name], device)
    compiled = torch.compile(step)
    got = [compiled(x, y).item() for _ in range(20)]
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    for a, b in zip(values(model), values(eager_model)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for p in model.parameters():
        assert p.grad is not None and p.grad.shape == p.shape
    assert compiled.compilations == 1


def test_a_change_elsewhere_is_no_reason_to_compile_again():
    _, _, step, x, y = problem(OPTIMIZERS["adam"])
    compiled = torch.compile(step, fullgraph=True)
    for _ in range(6):
        torch.zeros(2).requires_grad_()  # has all functions look again, at gradients that are other tensors by now
        compiled(x, y)
    assert compiled.compilations == 1


def test_changed_lr_does_not_compile_again():
    _, optimizer, eager, x, y = problem(OPTIMIZERS["adam"])
    expected = []
    for i in range(12):
        optimizer.param_groups[0]["lr"] = 0.01 / (i + 1)
        expected.append(eager(x, y).item())
    _, optimizer, step, x, y = problem(OPTIMIZERS["adam"])
    compiled, got = torch.compile(step), []
    for i in range(12):
        optimizer.param_groups[0]["lr"] = 0.01 / (i + 1)
        got.append(compiled(x, y).item())
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert compiled.compilations == 1


def test_changed_option_that_is_no_number_in_the_formula_compiles_again():
    results = []
    for wrap in (lambda f: f, torch.compile):
        model, optimizer, step, x, y = problem(OPTIMIZERS["sgd"])
        step = wrap(step)
        for i in range(6):
            optimizer.param_groups[0]["nesterov"] = i >= 3
            step(x, y)
        results.append(values(model))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_new_shape_compiles_once_more():
    _, _, step, x, y = problem(OPTIMIZERS["sgd"])
    compiled = torch.compile(step)
    for n in (5, 5, 3, 3, 5, 3):
        compiled(x[:n].clone(), y[:n].clone())
    assert compiled.compilations == 2


def test_eager_code_sees_and_changes_compiled_state():
    results = []
    for wrap in (lambda f: f, torch.compile):
        model, _, step, x, y = problem(OPTIMIZERS["adam"])
        step = wrap(step)
        for i in range(6):
            step(x, y)
            with torch.no_grad():
                model[0].weight.mul_(0.9)
                model[1].bias.data[0] = float(i)
            if i == 3:
                model[1].weight.detach().numpy()[0, 0] = 0.5
        results.append(values(model))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_views_and_detached_tensors_follow():
    model, _, step, x, y = problem(OPTIMIZERS["sgd"])
    step = torch.compile(step)
    alias, row = model[0].weight.detach(), model[0].weight.detach()[1]
    for _ in range(4):
        step(x, y)
    np.testing.assert_array_equal(alias.numpy(), model[0].weight.detach().numpy())
    np.testing.assert_array_equal(row.numpy(), model[0].weight.detach().numpy()[1])


def test_train_and_eval_are_different_programs():
    torch.manual_seed(0)

    class Switch(nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x * 3

    model = Switch()
    run = torch.compile(lambda x: model(x))
    x = torch.ones(2)
    for flag, expected in [(True, 2), (True, 2), (False, 3), (False, 3), (True, 2), (False, 3)]:
        model.train(flag)
        assert run(x).tolist() == [expected] * 2


def test_hooks_are_traced_and_their_change_noticed():
    model, x = nn.Linear(2, 2), torch.ones(1, 2)
    run = torch.compile(lambda x: model(x))
    plain = [run(x).detach().numpy() for _ in range(2)][1]
    handle = model.register_forward_hook(lambda module, args, output: output + 10)
    np.testing.assert_allclose([run(x).detach().numpy() for _ in range(3)][2], plain + 10, rtol=1e-6)
    handle.remove()
    np.testing.assert_allclose(run(x).detach().numpy(), plain, rtol=1e-6)


def test_backward_outside_a_compiled_module():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    compiled = torch.compile(model)
    x = torch.randn(5, 3, requires_grad=True)
    gradients = []
    for run in (model, compiled, compiled, compiled):
        model.zero_grad()
        x.grad = None
        torch.tanh(run(x)).sum().backward()
        gradients.append([x.grad.numpy().copy(), *(p.grad.numpy().copy() for p in model.parameters())])
    for others in gradients[1:]:
        for a, b in zip(others, gradients[0]):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert list(compiled.state_dict()) == ["_orig_mod." + k for k in model.state_dict()]


def test_argument_written_in_place():
    @torch.compile
    def increment(x):
        x.add_(1)

    x = torch.zeros(3)
    for _ in range(4):
        increment(x)
    assert x.tolist() == [4.0] * 3


def test_an_input_returned_is_that_input():
    weight = torch.ones(3, requires_grad=True)
    run = torch.compile(lambda x: (x, weight, x * 2))
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        a, b, c = run(x)
        assert a is x and b is weight
    (a + b + c).sum().backward()
    assert x.grad.tolist() == [3.0] * 3 and weight.grad.tolist() == [1.0] * 3


def test_arguments_that_are_views():
    weight = torch.ones(3, requires_grad=True)

    @torch.compile
    def product(x, y):
        return (x * y * weight).sum()

    tokens = torch.arange(8.0).reshape(2, 4)
    for _ in range(3):
        assert product(tokens[:, :-1], tokens[:, 1:]).item() == (0 + 2 + 6) + (20 + 30 + 42)
        tokens = tokens.clone()
    assert product.compilations == 1


def test_buffers_are_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total += x
            return self.total * 1

    model = Counter()
    run = torch.compile(lambda x: model(x))
    got = [run(torch.ones(2)).tolist()[0] for _ in range(5)]
    assert got == [1, 2, 3, 4, 5] and model.total.tolist() == [5, 5]


def test_value_needed_raises_and_changes_nothing():
    model, _, _, x, _ = problem(OPTIMIZERS["sgd"])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    calls = []

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        calls.append(1)
        if len(calls) > 1 and loss.item() > 0:  # the line in the message
            return loss * 2
        return loss

    compiled = torch.compile(step, fullgraph=True)
    compiled(x)
    before, gradients = values(model), [p.grad.numpy().copy() for p in model.parameters()]
    with pytest.raises(CompileError, match=r"the line in the message"):
        compiled(x)
    for a, b in zip(values(model), before):
        np.testing.assert_array_equal(a, b)
    for p, g in zip(model.parameters(), gradients):
        np.testing.assert_array_equal(p.grad.numpy(), g)


def test_fallback_runs_eagerly_with_one_warning():
    @torch.compile(fallback=True)
    def sign(x):
        return x if x.sum() > 0 else -x

    x = torch.tensor([-1.0, -2.0])
    sign(x)
    with pytest.warns(UserWarning, match="eagerly"):
        assert sign(x).tolist() == [1.0, 2.0]
    assert sign(-x).tolist() == [1.0, 2.0]


def test_random_numbers_differ_between_calls_and_follow_the_seed():
    run = torch.compile(lambda x: x + torch.rand(3).to(x.device))
    x = torch.zeros(3)
    run(x)
    first, second = run(x).tolist(), run(x).tolist()
    assert first != second
    torch.manual_seed(1)
    a = run(x).tolist()
    torch.manual_seed(1)
    assert run(x).tolist() == a


def test_inside_and_around_autocast():
    weight, x = torch.ones(2, 2), torch.ones(2, 2)
    product = torch.compile(lambda x: x @ weight)
    for _ in range(3):
        with torch.autocast("cpu"):
            assert product(x).dtype is torch.bfloat16
        assert product(x).dtype is torch.float32
    assert product.compilations == 2


@pytest.mark.parametrize("device", ["cpu", "xla"])
def test_large_state_and_gradients_in_half_precision(device):
    """Large tensors have buffers of their own; their gradients stay bfloat16 inside until somebody looks."""
    results = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128)).to(device)
        optimizer, x = optim.AdamW(model.parameters(), lr=1e-3), torch.randn(4, 128).to(device)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(x).float().square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step = wrap(step)
        losses = [step(x).item() for _ in range(4)]
        gradients = [p.grad for p in model.parameters()]
        assert all(g.dtype is torch.float32 and g.device.type == device for g in gradients)
        with torch.no_grad():
            gradients[0].mul_(2)
        losses.append(step(x).item())
        results.append((losses, values(model), [p.grad.cpu().numpy() for p in model.parameters()]))
    (a, b, c), (d, e, f) = results
    np.testing.assert_allclose(a, d, rtol=2e-2)
    for left, right in zip([*b, *c], [*e, *f]):
        np.testing.assert_allclose(left, right, rtol=5e-2, atol=2e-3)


def test_steps_out_of_lockstep():
    results = []
    for wrap in (lambda f: f, torch.compile):
        model, optimizer, step, x, y = problem(OPTIMIZERS["adam"])
        step = wrap(step)
        for i in range(6):
            if i == 3:
                optimizer.state[model[0].weight]["step"].add_(100)
            step(x, y)
        results.append(values(model))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_two_threads():
    model, _, step, x, y = problem(OPTIMIZERS["sgd"])
    compiled = torch.compile(step)
    compiled(x, y)
    threads = [threading.Thread(target=lambda: [compiled(x, y) for _ in range(10)]) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    eager_model, _, eager, x, y = problem(OPTIMIZERS["sgd"])
    for _ in range(21):
        eager(x, y)
    for a, b in zip(values(model), values(eager_model)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_deleting_frees_state():
    model, optimizer, step, x, y = problem(OPTIMIZERS["adam"])
    compiled = torch.compile(step)
    for _ in range(3):
        compiled(x, y)
    gone = weakref.ref(model[0].weight)
    del model, optimizer, step, compiled
    gc.collect()
    assert gone() is None


def test_loaded_optimizer_state_is_used():
    model, optimizer, step, x, y = problem(OPTIMIZERS["adam"])
    compiled = torch.compile(step)
    for _ in range(3):
        compiled(x, y)
    weights, saved = {k: v.clone() for k, v in model.state_dict().items()}, optimizer.state_dict()
    import copy

    saved = copy.deepcopy(saved)
    expected = [compiled(x, y).item() for _ in range(3)]
    model.load_state_dict(weights)
    optimizer.load_state_dict(saved)
    np.testing.assert_allclose([compiled(x, y).item() for _ in range(3)], expected, rtol=1e-5)


def test_import_does_not_bring_jax():
    import subprocess
    import sys

    code = "import rushlight, sys; assert not {'jax', 'torch', 'scipy', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- what cannot be traced -------------------------------------------------------------------------------------------

UNTRACEABLE = {
    "item": lambda x: x.sum().item(),  # marked: item
    "print": lambda x: print(x),  # marked: print
    "float": lambda x: float(x.sum()),  # marked: float
    "branch": lambda x: x if x.sum() > 0 else -x,  # marked: branch
    "range": lambda x: list(range(x.sum().int())),  # marked: range
    "numpy": lambda x: x.numpy(),  # marked: numpy
    "asarray": lambda x: np.asarray(x),  # marked: asarray
    "tolist": lambda x: x.tolist(),  # marked: tolist
    "format": lambda x: f"{x.sum():.3f}",  # marked: format
    "nonzero": lambda x: x.nonzero(),  # marked: nonzero
    "mask": lambda x: x[x > 0],  # marked: mask
    "unique": lambda x: torch.unique(x),  # marked: unique
    "pickle": lambda x: torch.save(x, io.BytesIO()),  # marked: pickle
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_needs_values_names_the_users_line(name, capsys):
    function, x = UNTRACEABLE[name], torch.tensor([1.0, 2.0, 0.0])
    compiled = torch.compile(function, fullgraph=True)
    compiled(x)
    with pytest.raises(CompileError, match=rf"test_compile\.py.*marked: {name}\n"):
        compiled(x)
    expected = function(x)
    fallen_back = torch.compile(function, fallback=True)
    fallen_back(x)
    with pytest.warns(UserWarning, match="eagerly") as warned:
        results = [fallen_back(x) for _ in range(3)]
    assert len(warned) == 1
    assert all(repr(r) == repr(expected) for r in results)


def test_a_function_that_keeps_what_it_makes_runs_eagerly_with_a_warning():
    kept = []

    @torch.compile
    def step(x):
        kept.append(x * 2)
        return x

    with pytest.warns(UserWarning, match="changes the length of a list"):
        for i in range(6):
            step(torch.full((2,), float(i)))
    assert [t.tolist() for t in kept] == [[2.0 * i] * 2 for i in range(6)]


def everything(model, optimizer):
    """All that a training step may change: values, gradients, optimizer state, versions, flags, the generator."""
    tensors = [*model.parameters(), *model.buffers()]
    for p in model.parameters():
        tensors += [p.grad, *(v for v in optimizer.state[p].values() if isinstance(v, torch.Tensor))]
    facts = [(id(t), t._version, t.requires_grad, t.grad_fn, t.detach().numpy().tobytes()) for t in tensors]
    return facts, optimizer.param_groups[0]["lr"], torch.get_rng_state().tolist()


@pytest.mark.parametrize("calls_before", [1, 4])
@pytest.mark.parametrize("failure", ["value", "exception"])
def test_a_failed_trace_changes_nothing(failure, calls_before):
    """Whether it is the first trace or, for a new shape, one of state that already lives with a compiled program."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    wrong = []

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if wrong and failure == "exception":
            raise ArithmeticError("the user's own")
        return loss.item() if wrong else loss

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(calls_before):
        compiled(torch.randn(5, 4))
    compiled(torch.randn(6, 4))
    before = everything(model, optimizer)
    wrong.append(True)
    with pytest.raises(CompileError if failure == "value" else ArithmeticError):
        compiled(torch.ones(6, 4))
    assert everything(model, optimizer) == before
    wrong.clear()
    compiled(torch.ones(6, 4))
    assert everything(model, optimizer) != before


# -- hyperparameters -------------------------------------------------------------------------------------------------

NUMBERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3, "dampening": 0.1},
    "Adam": {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 1e-3},
    "RMSprop": {"lr": 0.01, "alpha": 0.9, "eps": 1e-6, "weight_decay": 1e-3, "momentum": 0.5},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-6, "weight_decay": 1e-3},
}


@pytest.mark.parametrize("name", NUMBERS)
def test_no_hyperparameter_compiles_again(name):
    results = []
    for wrap in (lambda f: f, torch.compile):
        options = NUMBERS[name]
        model, optimizer, step, x, y = problem(lambda p, o=options: getattr(optim, name)(p, **o))
        step = wrap(step)
        for _ in range(2):
            step(x, y)
        for option, value in options.items():
            smaller = tuple(v * 0.9 for v in value) if isinstance(value, tuple) else value * 0.9
            optimizer.param_groups[0][option] = smaller
            step(x, y)
        results.append(values(model))
    assert step.compilations == 1
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_momentum_switched_off_and_on_is_another_program_and_a_schedule_of_it_is_not():
    results = []
    for wrap in (lambda f: f, torch.compile):
        model, optimizer, step, x, y = problem(OPTIMIZERS["sgd"])
        step = wrap(step)
        schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)  # of lr and momentum
        for i in range(10):
            step(x, y)
            schedule.step()
            if i in (5, 6):
                optimizer.param_groups[0]["momentum"] = 0.0
        results.append(values(model))
    assert step.compilations == 2
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


# -- threads, memory -------------------------------------------------------------------------------------------------


def test_functions_that_share_a_model_run_in_threads_from_the_first_call_on():
    model, _, step, x, y = problem(OPTIMIZERS["adam"])
    train, evaluate, errors = torch.compile(step), torch.compile(lambda x: model(x).sum()), []

    def repeat(f, *args):
        try:
            for _ in range(25):
                f(*args)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=a) for a in ((train, x, y), (evaluate, x), (train, x, y))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert (train.compilations, evaluate.compilations) == (1, 1)
    eager_model, _, eager, x, y = problem(OPTIMIZERS["adam"])
    for _ in range(50):
        eager(x, y)
    for a, b in zip(values(model), values(eager_model)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_eager_random_numbers_of_another_thread_while_tracing():
    """The keys of a trace are its own thread's."""
    inside, outside = threading.Event(), threading.Event()

    def function(x):
        if torch.compiler.is_compiling():
            inside.set()
            outside.wait(60)
        return x + torch.rand(2).to(x.device)

    compiled = torch.compile(function)
    compiled(torch.ones(2))
    thread = threading.Thread(target=compiled, args=(torch.ones(2),))
    thread.start()
    assert inside.wait(60)
    try:
        assert not torch.compiler.is_compiling()
        assert torch.rand(3, device="xla").sum().item() > 0
    finally:
        outside.set()
        thread.join()


def test_deleting_frees_device_memory():
    import jax

    def bytes_alive():
        gc.collect()
        return sum(a.nbytes for a in jax.live_arrays())

    before = bytes_alive()
    model, optimizer, step, x, y = problem(OPTIMIZERS["adam"], width=4096)
    compiled = torch.compile(step)
    for _ in range(3):
        loss = compiled(x, y)
    weights = 4096 * 4 * 4 + 3 * 4096 * 4
    assert bytes_alive() - before > 3 * weights  # the weights and Adam's two moments of them
    del compiled, loss, step, optimizer
    assert bytes_alive() - before < 3 * weights
    del model
    assert bytes_alive() == before


@pytest.mark.usefixtures("by_xla")
def test_out_of_memory_while_running_a_program(monkeypatch):
    import jax

    model, _, step, x, y = problem(OPTIMIZERS["adam"])
    compiled = torch.compile(step)
    for _ in range(3):
        compiled(x, y)
    before = values(model)
    ((entry,),) = compiled._entries.values()

    def exhausted(*args):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 123456789 bytes.\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(entry.program, "_execute", exhausted)
        with pytest.raises(torch.OutOfMemoryError) as caught:
            compiled(x, y)
    message = str(caught.value)
    assert isinstance(caught.value, RuntimeError) and torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert "Tried to allocate 117.7 MiB" in message and "in use" in message and "own state takes" in message
    for a, b in zip(values(model), before):
        np.testing.assert_array_equal(a, b)
    compiled(x, y)


def test_a_program_too_large_for_the_device_is_not_started(monkeypatch):
    from rushlight.compiler import program
    from rushlight.engine.xla import devices

    def device_has(in_use, limit):
        for module in (program, devices):
            monkeypatch.setattr(module, "memory", lambda place: (in_use, limit))

    model, _, step, x, y = problem(OPTIMIZERS["adam"], width=4096)
    compiled = torch.compile(step)
    compiled(x, y)
    before = values(model)
    device_has(2**22 - 100, 2**22)
    with pytest.raises(torch.OutOfMemoryError, match=r"allocate \d+\.\d KiB.*4.0 MiB of 4.0 MiB in use.*own state"):
        compiled(x, y)
    for a, b in zip(values(model), before):
        np.testing.assert_array_equal(a, b)
    device_has(3 * 2**20, 2**22)
    for _ in range(3):
        loss = compiled(x, y)
    _, _, eager, x, y = problem(OPTIMIZERS["adam"], width=4096)
    for _ in range(4):
        expected = eager(x, y)
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-5)
    assert compiled.compilations == 1


@pytest.mark.usefixtures("by_xla")
def test_other_errors_of_the_runtime_stay_what_they_are(monkeypatch):
    import jax

    run = torch.compile(lambda x: x * 2)
    for _ in range(3):
        run(torch.ones(2))
    ((entry,),) = run._entries.values()

    def broken(*args):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(entry.program, "_execute", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        run(torch.ones(2))


# -- gradients of gradients ------------------------------------------------------------------------------------------


def test_gradient_penalty_through_a_compiled_module():
    torch.manual_seed(0)
    critic, encoder = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(3, 3)
    x, found = torch.randn(5, 3), []
    compiled = torch.compile(critic)
    for run in (critic, compiled, compiled, compiled):
        critic.zero_grad()
        encoder.zero_grad()
        h = encoder(x)
        (slope,) = torch.autograd.grad(run(h).sum(), h, create_graph=True)
        (slope.norm(2, 1) - 1).square().mean().backward()
        found.append(
            [p.grad.numpy().copy() for p in [*critic.parameters(), *encoder.parameters()] if p.grad is not None]
        )
    for others in found[1:]:
        assert len(others) == len(found[0]) == 5
        for a, b in zip(others, found[0]):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_any_order_with_hooks_and_detached_parts():
    results = []
    for wrap in (torch.compile, lambda f: f):
        x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
        w.register_hook(lambda g: g * 10)
        function = wrap(lambda x, w=w: x**3 * w * x.detach())
        for _ in range(3):
            first = torch.autograd.grad(function(x), (x, w), create_graph=True)
            second = torch.autograd.grad(sum(first), (x, w), create_graph=True)
            third = torch.autograd.grad(sum(second), (x, w))
        results.append([t.item() for t in (*first, *second, *third)])
    assert results[0] == results[1]


def test_gradients_of_gradients_are_refused_where_the_function_would_not_do_the_same_again():
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), torch.randn(2, 3, requires_grad=True)
    compiled = torch.compile(model)
    for _ in range(2):
        y = compiled(x)
    with pytest.raises(RuntimeError, match="draws random numbers"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    compiled = torch.compile(model.eval())
    for _ in range(3):
        y = compiled(x)
    with torch.no_grad():
        model[0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


# -- memory and tensors that somebody else has -----------------------------------------------------------------------


def both(program, *args):
    return program(torch.compile, *args), program(lambda f: f, *args)


def written_outside(wrap, size):
    memory = np.zeros(size, np.float32)
    t, seen = torch.from_numpy(memory), []
    function = wrap(lambda x: t.add_(x) * 1)
    for _ in range(5):
        function(torch.ones(size))
        seen.append(memory[-1].item())
        memory *= 2
    return seen


def read_outside(wrap, size):
    memory, seen = np.ones(size, np.float32), []
    t = torch.from_numpy(memory)
    function = wrap(lambda x: (x * t).sum())
    for _ in range(5):
        seen.append(function(torch.ones(size)).item())
        memory += 1
    return seen


@pytest.mark.parametrize("begin", [0, 1])
@pytest.mark.parametrize("size", [10, 30_000, 50_000, 100_000])
def test_arguments_that_are_overwritten_after_the_call(size, begin):
    """Some are copied, some lie where XLA takes them as they are: none is read when the call is over."""
    memory, seen = np.ones(size + 1, np.float32)[begin : size + begin], []
    t = torch.from_numpy(memory)
    function = torch.compile(lambda x: x * 2)
    for i in range(6):
        memory[:] = i
        seen.append(function(t))
        memory[:] = -1
    for i, y in enumerate(seen):
        np.testing.assert_array_equal(y.numpy(), np.full(size, 2 * i, np.float32))


def buffer_outside(wrap, size):
    """Memory that is not NumPy's: nobody can see who has it."""
    data, total, seen = bytearray(4 * size), torch.zeros(size), []
    t = torch.frombuffer(data, dtype=torch.float32)
    function = wrap(lambda x: total.add_(x * t).sum())
    for i in range(5):
        seen.append(function(torch.ones(size)).item())
        data[:4] = np.float32(i).tobytes()
    return seen


def parameter_outside(wrap, size):
    torch.manual_seed(0)
    model = nn.Linear(size, 2)
    optimizer, memory, seen = optim.SGD(model.parameters(), lr=0.1), model.weight.detach().numpy(), []

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    step = wrap(step)
    for i in range(5):
        step(torch.ones(1, size))
        seen.append(memory[0, 0].item())
        memory[0, 0] = i
    return [*seen, model.weight[0, 0].item()]


def kept_gradients(wrap, size):
    torch.manual_seed(0)
    model = nn.Linear(size, 2)
    optimizer, kept = optim.SGD(model.parameters(), lr=1e-9), []

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    step = wrap(step)
    for i in range(5):
        step(torch.full((1, size), float(i)))
        kept.append(model.weight.grad)
        if i == 3:
            model.bias.grad.numpy()  # takes it out of the program's hands
    return [t[0, 0].item() for t in kept]


@pytest.mark.parametrize("size", [3, 20_000])
@pytest.mark.parametrize("program", [written_outside, read_outside, buffer_outside, parameter_outside, kept_gradients])
def test_what_somebody_outside_holds(program, size):
    np.testing.assert_allclose(*both(program, size), rtol=1e-4)


@pytest.mark.usefixtures("by_xla")
def test_memory_that_nobody_holds_any_more_is_the_programs_again():
    model, _, step, x, y = problem(OPTIMIZERS["sgd"])
    compiled = torch.compile(step)
    for _ in range(3):
        compiled(x, y)
        [p.detach().numpy().sum() for p in model.parameters()]
    (entries,) = compiled._entries.values()
    compiled(x, y)
    assert not entries[0].program._lent


@pytest.mark.usefixtures("by_xla")
def test_a_number_that_somebody_looked_at_is_not_looked_at_for_ever(monkeypatch):
    """A tensor's array may be a view of memory that only this tensor has."""
    norm, gathered, gather = nn.BatchNorm1d(3), [], Group.gather
    compiled = torch.compile(lambda x: norm(x).sum())
    for _ in range(3):
        compiled(torch.randn(4, 3))
    assert norm.num_batches_tracked.numpy() == 3
    monkeypatch.setattr(Group, "gather", lambda group, *members: (gathered.append(group), gather(group, *members)))
    for _ in range(6):
        compiled(torch.randn(4, 3))
    assert 0 < len(gathered) <= 2 and norm.num_batches_tracked.item() == 9


# -- beside other tools ----------------------------------------------------------------------------------------------


def test_under_a_profiler():
    import cProfile

    double, profile = torch.compile(lambda x: x * 2), cProfile.Profile()
    profile.enable()
    results = [double(torch.ones(1)).item() for _ in range(3)]
    len(results)
    profile.disable()
    assert results == [2.0] * 3
    assert any(getattr(entry.code, "co_name", "") == "__call__" for entry in profile.getstats())
    assert "<built-in method builtins.len>" in [entry.code for entry in profile.getstats()]  # it went on


def test_an_operand_of_a_foreign_type_answers_itself():
    class Twice:
        def __rmul__(self, other):
            return other + other

    twice, double = Twice(), torch.compile(lambda x: x * twice)
    assert [double(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert double.compilations == 1


def test_a_truth_that_the_function_turns():
    """``self.on = not self.on`` makes for two worlds, each with its program, and the attribute follows."""

    class Turning(torch.nn.Module):
        on = False

        def forward(self, x):
            self.on = not self.on
            return x * (2 if self.on else 3)

    model, x = Turning(), torch.ones(2)
    compiled = torch.compile(model, fullgraph=True)
    for i in range(8):
        assert compiled(x).tolist() == ([2, 2] if i % 2 == 0 else [3, 3]) and model.on is (i % 2 == 0)
    assert compiled._compiled.compilations == 2
