"""The kernels in C inside compiled programs: equal to XLA's own operations in double precision, gradients too."""

from __future__ import annotations

import os
import threading

import jax
import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.engine import native as eager
from rushlight.engine.xla.devices import compiling_for, portable
from rushlight.engine.xla.kernels import native
from rushlight.engine.xla.kernels.random import random_words
from rushlight.nn import functional as F

pytestmark = [
    pytest.mark.skipif(eager.library is None, reason=f"the kernels in C are not there: {eager.reason}"),
    pytest.mark.usefixtures("by_xla"),
]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def holes(*shape):
    mask = numbers(*shape, seed=9) > 0
    mask.reshape(-1, shape[-1])[1] = False  # a row that may look nowhere
    return rushlight.tensor(mask)


def attend(**options):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


def recurrent(kind, packed=False, **options):
    """A recurrent layer as a function of its input and parameters; both have gradients to look at."""
    models = {dtype: kind(20, 65, **options, dtype=dtype) for dtype in (rushlight.float32, rushlight.float64)}
    names, shapes = zip(*[(name, p.shape) for name, p in models[rushlight.float32].named_parameters()])

    def run(x, *parameters):
        given = nn.utils.rnn.pack_padded_sequence(x, [12, 8, 3]) if packed else x
        y, state = rushlight.func.functional_call(models[x.dtype], dict(zip(names, parameters)), (given,))
        return y.data if packed else y, *(state if isinstance(state, tuple) else (state,))

    x = numbers(12, 3 if packed else 11, 20, seed=50)
    return run, x, *[0.1 * numbers(*shape, seed=i) for i, shape in enumerate(shapes)]


q, k, v = (numbers(2, 3, 40, 16, seed=i) for i in range(3))
CASES = {
    "matmul": (lambda x, w: x @ w, numbers(70, 33), numbers(33, 65)),
    "matmul of a batch": (lambda x, w: x @ w, numbers(2, 1, 40, 33), numbers(3, 33, 50)),
    "matmul turned": (lambda x, w: x.mT @ w.mT, numbers(33, 70), numbers(65, 33)),
    "linear": (lambda x, w, b: F.linear(x, w, b), numbers(5, 17, 40), numbers(50, 40), numbers(50)),
    "linear without bias": (lambda x, w: F.linear(x, w), numbers(85, 40), numbers(50, 40)),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=2, dilation=2), numbers(4, 5, 40), numbers(7, 5, 5)),
    "conv2d": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=2),
        numbers(3, 8, 13, 12),
        numbers(6, 4, 3, 3),
        numbers(6),
    ),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), numbers(2, 3, 5, 6, 7), numbers(4, 3, 2, 3, 1)),
    "conv2d by channel": (lambda x, w: F.conv2d(x, w, padding=1, groups=8), numbers(3, 8, 13, 12), numbers(8, 1, 3, 3)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), numbers(3, 8, 9, 7), numbers(8, 4, 3, 3)),
    "attention": (attend(), q, k, v),
    "attention, causal": (attend(is_causal=True), q, k, v),
    "attention, a mask": (attend(attn_mask=holes(40, 40)), q, k, v),
    "attention, a mask of keys": (attend(attn_mask=holes(2, 1, 1, 40)), q, k, v),
    "attention, one head": (attend(), q[0, 0], k[0, 0], v[0, 0]),
    "attention, five dimensions": (attend(attn_mask=holes(3, 1, 40)), q[None], k[None], v[None]),
    "attention, few queries": (attend(scale=0.5), q[:, :, :5], k, v),
    "lstm": recurrent(nn.LSTM),
    "lstm, both ways": recurrent(nn.LSTM, bidirectional=True, bias=False),
    "lstm, packed": recurrent(nn.LSTM, packed=True, bidirectional=True),
    "gru": recurrent(nn.GRU),
    "gru, packed": recurrent(nn.GRU, packed=True),
    "rnn": recurrent(nn.RNN),
    "rnn, relu": recurrent(nn.RNN, nonlinearity="relu"),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (65,), w, b), numbers(9, 11, 65) + 5, numbers(65), numbers(65, seed=1)
    ),
    "layer_norm, plain": (lambda x: F.layer_norm(x, (11, 65)), numbers(9, 11, 65)),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        numbers(6, 5, 13, 14) - 3, numbers(5), numbers(5, seed=1),
    ),
    "native_layer_norm": (lambda x: rushlight.native_layer_norm(x, (65,), None, None, 1e-5), numbers(99, 65)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), numbers(4, 6, 17, 13)),
    "max_pool2d, apart": (lambda x: F.max_pool2d(x, 2), numbers(3, 5, 16, 24)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 1, 1), numbers(3, 5, 100)),
    "gelu": (lambda x: F.gelu(x), numbers(70, 65)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), numbers(70, 65)),
}  # fmt: skip
CALLED = {
    "matmul": {"product"}, "linear": {"product"}, "attention": {"attention", "attention_backward"},
    "lstm": {"recurrent", "recurrent_backward"}, "gru": {"recurrent", "recurrent_backward"},
    "rnn": {"recurrent", "recurrent_backward"}, "layer_norm": {"layer_norm", "layer_norm_slope"},
    "batch_norm": {"batch_norm", "batch_norm_slope"}, "max_pool2d": {"max_windows", "max_windows_slope"},
    "conv2d": {"conv", "conv_input", "conv_weight"},
}  # fmt: skip


def outputs_and_gradients(function, values, dtype, compiled=True):
    """What a compiled step gives: outputs, and gradients of a sum of their sines."""

    def step(*inputs):
        inputs = [t.detach().requires_grad_() for t in inputs]
        y = function(*inputs)
        y = y if isinstance(y, tuple) else (y,)
        sum(a.sin().sum() for a in y).backward()
        return [*(a.detach() for a in y), *(t.grad for t in inputs)]

    inputs = [rushlight.tensor(value, dtype=dtype) for value in values]
    if compiled:
        step = rushlight.compile(step)
        step(*inputs)
    return [t.numpy() for t in step(*inputs)]


@pytest.fixture
def called(monkeypatch):
    """The names of the kernels that traces call."""
    names, call = set(), native.call
    monkeypatch.setattr(native, "call", lambda name, *given, **more: names.add(name) or call(name, *given, **more))
    return names


@pytest.mark.parametrize("name", CASES)
def test_compiled_with_kernels_equals_xla(name, called):
    function, *values = CASES[name]
    with portable():
        expected = outputs_and_gradients(function, values, rushlight.float64)
    assert not called
    for dtype, tolerance in ((rushlight.float32, 3e-5), (rushlight.float64, 1e-12)):
        found = outputs_and_gradients(function, values, dtype)
        assert called >= CALLED.get(name.partition(",")[0], set()) and called
        for a, b in zip(found, expected, strict=True):
            scale = np.abs(b).max()
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, scale))


OPTIMIZERS = {
    "sgd_plain": ("SGD", {"lr": 0.1, "weight_decay": 0.01, "maximize": True}),
    "sgd": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "sgd, nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    "adam, decoupled": ("AdamW", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    "rmsprop": ("RMSprop", {"lr": 0.01, "weight_decay": 0.01}),
    "rmsprop, a sum": ("Adagrad", {"lr": 0.01, "lr_decay": 0.1}),
    "adadelta": ("Adadelta", {"lr": 0.5}),
}


def trained(kind, options, dtype, compiled, steps=4, uneven=False):
    """Parameters, large and small, after some steps with a rate that falls; and the state."""
    shapes = ((90, 100), (3, 50, 61), (7, 5))
    parameters = [nn.Parameter(rushlight.tensor(numbers(*s, seed=i), dtype=dtype)) for i, s in enumerate(shapes)]
    optimizer = getattr(rushlight.optim, kind)(parameters, **options)
    factors = [rushlight.tensor(numbers(*s, seed=9 + i), dtype=dtype) for i, s in enumerate(shapes)]

    def step():
        optimizer.zero_grad()
        sum((p * f).sin().sum() for p, f in zip(parameters, factors)).backward()
        optimizer.step()

    if uneven:  # the first parameter is a step ahead
        parameters[0].grad = factors[0]
        optimizer.step()
    run = rushlight.compile(step) if compiled else step
    for i in range(steps):
        optimizer.param_groups[0]["lr"] = options["lr"] / (1 + i)
        run()
    state = [v for p in parameters for v in optimizer.state[p].values() if v is not None]
    return [t.detach().numpy() for t in (*parameters, *state)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_updates_by_kernel_equal_the_rule(name, called):
    kind, options = OPTIMIZERS[name]
    with portable():
        expected = trained(kind, options, rushlight.float64, compiled=True)
    assert not called
    for dtype, tolerance in ((rushlight.float32, 2e-6), (rushlight.float64, 1e-14)):
        found = trained(kind, options, dtype, compiled=True)
        assert called == {name.partition(",")[0]}
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))


def test_parameters_that_are_not_in_step_are_updated_by_the_rule(called):
    arguments = ("Adam", {"lr": 0.01}, rushlight.float64)
    found, expected = (trained(*arguments, compiled, uneven=True) for compiled in (True, False))
    assert not called
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_updates_of_more_arrays_than_a_call_has_room_for(called):
    parameters = [nn.Parameter(rushlight.full((100, 90), float(i))) for i in range(30)]
    optimizer = rushlight.optim.SGD(parameters, lr=0.5)

    def step():
        optimizer.zero_grad()
        sum(p.sum() for p in parameters).backward()
        optimizer.step()

    run = rushlight.compile(step)
    for _ in range(3):
        run()
    assert called == {"sgd_plain"}
    for i, p in enumerate(parameters):
        np.testing.assert_array_equal(p.detach().numpy(), i - 1.5)


MANY_PIECES = {
    "matmul": CASES["matmul"],
    "conv2d": CASES["conv2d"],
    "gelu": (F.gelu, numbers(300, 1000)),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[1:]), numbers(3000, 100)),
    "lstm": recurrent(nn.LSTM),
}


@pytest.mark.parametrize("name", MANY_PIECES)
def test_threads_do_not_matter(name):
    function, *values = MANY_PIECES[name]
    before, found = rushlight.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            rushlight.set_num_threads(threads)
            found.append(outputs_and_gradients(function, values, rushlight.float32))
    finally:
        rushlight.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by Linux's /proc")
def test_a_program_shares_its_loops_with_xlas_threads_and_starts_none():
    x, before = rushlight.tensor(numbers(300, 1000)), rushlight.get_num_threads()
    gelu = rushlight.compile(lambda x: F.gelu(x))
    try:
        rushlight.set_num_threads(1)
        alone = [gelu(x).numpy() for _ in range(3)][-1]
        rushlight.set_num_threads(7)
        threads = set(os.listdir("/proc/self/task"))
        np.testing.assert_array_equal(gelu(x).numpy(), alone)
        assert set(os.listdir("/proc/self/task")) <= threads
    finally:
        rushlight.set_num_threads(before)


def test_programs_run_on_the_thread_that_calls_them():
    seen = []

    @jax.jit
    def note(x):
        return jax.pure_callback(lambda x: seen.append(threading.get_ident()) or x, x, x * x.sum())

    note(np.ones((100, 100), np.float32)).block_until_ready()
    assert seen == [threading.get_ident()]


def test_a_compiled_module_uses_kernels_in_its_backward_too(called):
    model, x = nn.LSTM(20, 33), rushlight.tensor(numbers(6, 11, 20), dtype=rushlight.float32)
    expected = [model(x)[0]]
    expected[0].sin().sum().backward()
    expected += [p.grad for p in model.parameters()]
    compiled, found = rushlight.compile(model), []
    for _ in range(2):
        model.zero_grad()
        found = [compiled(x)[0]]
        found[0].sin().sum().backward()
    assert {"recurrent", "recurrent_backward"} <= called
    for a, b in zip([*found, *(p.grad for p in model.parameters())], expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-4)


def test_gradients_of_gradients_are_the_rules(called):
    """A second derivative of what a kernel computed in a compiled program."""
    x, w = (rushlight.tensor(numbers(70, 40, seed=i)) for i in range(2))

    def penalty(x, w):
        x = x.detach().requires_grad_()
        (slope,) = rushlight.autograd.grad(F.gelu(F.linear(x, w)).sin().sum(), x, create_graph=True)
        (twice,) = rushlight.autograd.grad((slope * slope).sum(), x)
        return twice

    expected, compiled = penalty(x, w), rushlight.compile(penalty)
    compiled(x, w)
    np.testing.assert_allclose(compiled(x, w).numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
    assert called


def test_exported_programs_call_nothing_of_ours(called):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.Flatten(), nn.Linear(8 * 10 * 10, 40))
    x = rushlight.tensor(numbers(4, 3, 12, 12), dtype=rushlight.float32)
    program = rushlight.export.export(model, (x,))
    assert not called and "rushlight" not in program.code.replace("rushlight/", "")
    np.testing.assert_allclose(program(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", [(1, 2, 3, 4), (5, 6, 2**32 - 3, 2**32 - 1), (2**32 - 1,) * 2 + (2**32 - 2,) * 2])
def test_random_words_are_xlas(seed):
    key = jax.random.wrap_key_data(np.array(seed, np.uint32), impl="rbg")
    with compiling_for(rushlight.device("cpu")):
        found = jax.jit(lambda: random_words(key, (3, 1001)))()
    np.testing.assert_array_equal(found, jax.random.bits(key, (3, 1001), np.uint32))


def test_dropout_keeps_as_many_as_it_should():
    x = rushlight.ones(300, 400)
    drop = rushlight.compile(lambda x: F.dropout(x, 0.3))
    drop(x)
    assert abs(float((drop(x) == 0).float().mean()) - 0.3) < 0.01
    for p, left in ((0.0, 1), (1.0, 0)):
        all_or_none = rushlight.compile(lambda x, p=p: F.dropout(x, p))
        all_or_none(x)
        np.testing.assert_array_equal(all_or_none(x).numpy(), left)


def test_a_call_that_does_not_fit_is_refused():
    place = native.Place((3,), np.float32)
    with compiling_for(rushlight.device("cpu")):
        assert native.may_call()
    for arguments in (("no_such_kernel", np.ones(3, np.float32), place), ("gelu", place)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="rushlight: "):
            jax.block_until_ready(native.call(*arguments))
