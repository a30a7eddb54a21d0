"""Small compiled programs, played: every primitive beside JAX, and what a call leaves behind."""

from __future__ import annotations

import gc
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.engine.native import library, reason

jax = pytest.importorskip("jax")
if library is None:
    pytest.skip(f"there are no kernels: {reason}", allow_module_level=True)

import jax.numpy as jnp  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from scores import check, played, some  # noqa: E402

from rushlight.compiler import score as scores  # noqa: E402
from rushlight.compiler.played import Played  # noqa: E402
from rushlight.compiler.score import Score  # noqa: E402
from rushlight.compiler.steps import RULES  # noqa: E402
from rushlight.compiler.values import NotPlayed, Value  # noqa: E402

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-3, 30.0, -30.0, np.inf, -np.inf, np.nan]


UNARY = {
    "reals": [
        jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.tanh, jax.nn.sigmoid, jnp.sqrt, jax.lax.rsqrt, jnp.floor, jnp.ceil,
        jnp.round, jnp.sin, jnp.cos, jax.lax.erf, jax.lax.erfc, jnp.isfinite,
        lambda x: x**3, lambda x: x**-2, lambda x: 1 / x, lambda x: jnp.abs(x) ** 1.5, lambda x: x.astype(np.int32),
        lambda x: jax.nn.gelu(x, approximate=False), lambda x: jnp.clip(x, -0.5, 0.5),
    ],
    "numbers": [
        jnp.negative, jnp.abs, jnp.sign, jnp.square, lambda x: x.astype(np.float32), lambda x: x.astype(np.float64),
        lambda x: x.astype(np.int64), lambda x: x.astype(bool), lambda x: (x + x, x - 2, x * x),
        lambda x: (x < 1, x <= 0, x > 0, x >= 1, x == 1, x != 1), lambda x: jnp.where(x > 0, x, -x),
        lambda x: (jnp.maximum(x, 1), jnp.minimum(x, 1)),
    ],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", range(len(UNARY["reals"])))
def test_functions_of_reals(place, dtype):
    function = UNARY["reals"][place]
    check(function, some(3, 5, dtype=dtype))
    check(function, np.array(SPECIAL, dtype))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("place", range(len(UNARY["numbers"])))
def test_functions_of_numbers(place, dtype):
    function = UNARY["numbers"][place]
    check(function, some(3, 5, dtype=dtype))
    if np.dtype(dtype).kind == "f":
        check(function, np.array(SPECIAL, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_reals_near_the_ends_of_whole_numbers(dtype):
    ends = np.array([-(2.0**31), 2.0**31, -(2.0**63), 2.0**63])
    check(lambda x: x.astype(dtype), np.concatenate([ends + step for step in (-1, -0.5, 0, 0.5, 1)]))
    check(lambda x: x.astype(dtype), np.nextafter(ends.astype(np.float32), np.float32(0)))


def test_bytes_seen_as_truths_may_be_any():
    a, b = (np.array(v, np.uint8).view(bool) for v in ([0, 1, 2, 255] * 4, [2] * 4 + [0] * 4 + [255] * 4 + [1] * 4))

    def function(a, b):
        kinds = np.float32, np.float64, np.int32, np.int64
        return a & b, a | b, a ^ b, ~a, a == b, a != b, a.all(), b.all(), a.any(), *(a.astype(kind) for kind in kinds)

    truths = a.view(np.uint8) != 0, b.view(np.uint8) != 0
    for found, expected in zip(played(function, a, b), jax.jit(function)(*truths), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_truth():
    a, b = some(4, 3, dtype=bool), some(1, 3, dtype=bool)
    check(lambda a, b: (a & b, a | b, a ^ b, ~a, a == b, a != b, jnp.where(a, b, ~b)), a, b)
    check(lambda a: (a.all(), a.any(), a.all(0), a.any(1), a.astype(np.float32), a.astype(np.int64)), a)
    i = some(4, 3, dtype=np.int64)
    check(lambda i: (i & 3, i | 4, i ^ 5, ~i), i)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("axes", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
def test_reductions(axes, dtype):
    x = some(3, 4, 5, dtype=dtype)
    check(lambda x: (jax.lax.reduce_sum_p.bind(x, axes=_all(axes), out_sharding=None), x.max(axes), x.min(axes)), x)
    check(lambda x: (x[:, ::-1, 1:4].max(axes), x.transpose(2, 0, 1).min(axes)), x)
    if not isinstance(axes, tuple) and axes is not None:
        check(lambda x: (x.argmax(axes), x.argmin(axes)), x)


def _all(axes):
    return (0, 1, 2) if axes is None else axes if isinstance(axes, tuple) else (axes,)


def test_nan_is_the_greatest_and_the_least():
    x = np.array([[1, np.nan, 3], [np.nan, 2, np.nan], [3, 1, 2]], np.float32)
    check(lambda x: (x.max(1), x.min(0), x.argmax(1), x.argmin(0), jnp.maximum(x, 2), jnp.minimum(2, x)), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,kj->ik", [(3, 40), (5, 40)]), ("ji,jk->ik", [(4, 3), (4, 5)]),
        ("ij,kj->ik", [(1, 37), (9, 37)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("i,i->", [(33,), (33,)]),
        ("bij,bkj->bik", [(2, 3, 20), (2, 5, 20)]), ("abc,dbc->ad", [(2, 3, 4), (5, 3, 4)]),
        ("abc,abd->cd", [(2, 3, 4), (2, 3, 5)]), ("abcd,abed->abce", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("i,j->ij", [(3,), (4,)]), ("bhij,bjhd->bhid", [(2, 3, 4, 4), (2, 4, 3, 5)]),
    ],
)  # fmt: skip
def test_products(equation, shapes, dtype):
    a, b = (some(*shape, dtype=dtype) for shape in shapes)
    check(lambda a, b: jnp.einsum(equation, a, b, precision="highest"), a, b)


def test_the_same_memory_seen_in_another_way():
    x = some(4, 6)
    check(lambda x: (x.T + 1, x[::-1] * 2, x[1:, ::2] - 1, x.reshape(2, 12) + x.reshape(-1)[:12]), x)
    check(lambda x: (x[:, None] + x[None], jnp.broadcast_to(x[0], (3, 6)) * 2, x.T.reshape(3, 8)), x)
    check(lambda x: (jnp.concatenate([x, x[:1] + 1], 0), jnp.stack([x, -x], 1), jnp.split(x, 3, 1)[1]), x)
    check(lambda x: jnp.pad(x, ((1, 0), (2, 3)), constant_values=7), x)
    check(lambda x: jax.lax.pad(x, np.float32(0), ((0, 0, 1), (1, 0, 2))), x)
    check(lambda x: (jnp.arange(6) * x, x, x.T), x)


def test_indices():
    x, i = some(5, 3), np.array([[4], [-1], [0], [2], [1]])
    check(lambda x, i: jnp.take_along_axis(x, i, 1), x, i)  # there is no column 4: nan
    check(lambda x, i: (x[i[:, 0]], x[i], x.at[i, 1].get(mode="clip"), jnp.take(x, i, 0, mode="fill")), x, i)
    check(lambda x, i: x.at[i[:, 0]].add(2 * x), x, i)
    check(lambda x, i: x.at[jnp.zeros_like(i[:, 0]), i[:, 0]].add(x[:, 0]), x, i)  # one place many times; 4 is dropped
    check(lambda i: (i[i[:, 0]], i.at[i[:, 0]].add(i)), i)


def test_what_is_added_to_a_constant_is_added_anew_every_time():
    i = np.array([0, 2, 2])
    check(lambda x, i: jnp.zeros((4, 3), np.float32).at[i].add(x), some(3, 3), i)


def test_steps_that_are_known_are_not_made_twice():
    closed = jax.make_jaxpr(lambda x: (jnp.exp(x) + 1) * (jnp.exp(x) + 1) + jnp.exp(jnp.float32(2)))(some(3))
    score = Score(closed, [Value((3,), np.float32, memory=1)], RULES)
    assert sorted(step.kernel[0] for step in score._steps) == [".add", ".add", ".exp", ".exp", ".mul"]


def test_what_is_joined_is_made_in_its_place():
    x, y = some(3, 4), some(2, 4)
    closed = jax.make_jaxpr(lambda x, y: jnp.concatenate([x.reshape(-1) * 2, y.reshape(-1) + 1, x[0]]))(x, y)
    inputs = [Value(a.shape, a.dtype, memory=i) for i, a in enumerate((x, y), 1)]
    score = Score(closed, inputs, RULES)
    (made,) = score._outputs
    joined = score._joined(score._steps, {})
    assert len(made.made) == 3 and [step in made.made for step in joined] == [True, True]  # not the argument's row
    check(lambda x, y: jnp.concatenate([x.reshape(-1) * 2, y.reshape(-1) + 1, x[0]]), x, y)
    check(lambda x, y: (jnp.concatenate([x * 2, y + 1]).sum(0), (x * 2).max(), y + 1), x, y)  # others need them too
    check(lambda x, y: (z := jnp.concatenate([x * 2, y + 1]), jnp.concatenate([z, z, x * 2])), x, y)
    check(lambda x, y: jnp.concatenate([x * 2, y + 1]).at[jnp.array([0, 4, 4])].add(x), x, y)
    check(
        lambda x, y: (jnp.pad(x * 2, ((0, 2), (0, 0))), jnp.stack([y + 1, y * 2], 1), jnp.stack([y + 1, y * 2])), x, y
    )
    check(lambda x, y: jnp.concatenate([x * 2, y + 1], 1 - 1).T @ jnp.concatenate([x * 2, y + 1]), x, y)


def test_a_result_that_is_what_was_asked():
    """Where a program's own check is a result too, it is still looked at."""
    closed = jax.make_jaxpr(lambda x: (x * 2, (x > 0).all(), (x > 0).all()))(some(3))
    targets = [Value((3,), np.float32, memory=2), Value((), bool, memory=3)]
    play = Score(closed, [Value((3,), np.float32, memory=1)], RULES).played(targets, flag=True, fresh=2)
    made, truth = np.zeros(3, np.float32), np.zeros((), bool)
    assert play(np.array([1, -1, 1], np.float32), made, truth) is False and not made.any()
    assert play(np.array([1, 2, 3], np.float32), made, truth) is True and made.tolist() == [2, 4, 6] and truth


def test_what_is_not_played():
    for function, x in (
        (lambda x: jnp.sort(x), some(3)),
        (lambda x: x + 1, some(3).astype(np.float16)),
        (lambda x: x * 2, some(3000, 300)),
        (lambda x: x + 1, some(0)),
    ):
        with pytest.raises(NotPlayed):
            played(function, x)


def test_arrays_that_do_not_fit_are_refused_before_anything_is_written():
    closed = jax.make_jaxpr(lambda x: x + 1)(some(2, 3))
    play = Score(closed, [Value((2, 3), np.float32, 1)], RULES).played([Value((2, 3), np.float32, 2)], False, 2)
    x, made = some(2, 3), np.zeros((2, 3), np.float32)
    fixed = made.copy()
    fixed.flags.writeable = False
    for arguments in ((x, made[:1]), (x.T, made), (x, fixed), (x,), (x, made, made), (x, None)):
        with pytest.raises(TypeError):
            play(*arguments)
    assert not made.any()


# -- whole programs ----------------------------------------------------------------------------------------------------


def training(optimizer, loss, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3))
    made = optimizer(model.parameters(), lr=0.01, **options)

    def step(x, y):
        made.zero_grad()
        error = loss(model(x), y)
        error.backward()
        made.step()
        return error

    return model, step


def program(compiled):
    """The one program of a compiled function."""
    ((entry,),) = compiled._entries.values()
    return entry.program


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax"])
@pytest.mark.parametrize("loss", ["cross_entropy", "mse_loss", "smooth_l1_loss"])
def test_training_is_as_in_eager_code(name, loss):
    losses = []
    for wrap in (lambda f: f, torch.compile):
        model, step = training(getattr(torch.optim, name), getattr(nn.functional, loss))
        step = wrap(step)
        torch.manual_seed(1)
        x = torch.randn(5, 4)
        y = torch.tensor([0, 2, 1, 0, 2]) if loss == "cross_entropy" else torch.randn(5, 3)
        losses.append([step(x, y).item() for _ in range(8)])
        losses[-1].append([p.grad.sum().item() for p in model.parameters()])
    assert isinstance(program(step), Played)
    assert np.allclose(losses[0][:-1], losses[1][:-1], rtol=2e-5)
    assert np.allclose(losses[0][-1], losses[1][-1], rtol=1e-3, atol=1e-5)


def test_gradients_are_written_over_unless_somebody_has_them():
    model, step = training(torch.optim.SGD, nn.functional.mse_loss)
    step = torch.compile(step)
    x, y, weight = torch.randn(5, 4), torch.randn(5, 3), model[0].weight
    for _ in range(4):
        step(x, y)
    first = id(weight.grad)
    step(x, y)
    assert id(weight.grad) == first
    kept = weight.grad
    values = kept.tolist()
    step(x + 1, y)
    assert weight.grad is not kept and kept.tolist() == values
    seen = weight.grad.numpy()
    values = seen.tolist()
    step(x - 1, y)
    assert seen.tolist() == values
    part, values = weight.grad[0], weight.grad[0].tolist()
    step(x, y)
    assert part.tolist() == values


def test_a_refused_value_changes_nothing():
    model, step = training(torch.optim.Adam, nn.functional.cross_entropy)
    step = torch.compile(step)
    x, y = torch.randn(5, 4), torch.tensor([0, 2, 1, 0, 2])
    for _ in range(3):
        step(x, y)
    assert isinstance(program(step), Played)
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    with pytest.raises(IndexError):
        step(x, y + 5)
    assert before == {name: value.tolist() for name, value in model.state_dict().items()}
    step(x, y)


def test_versions_and_memory_are_the_tensors_own():
    model, step = training(torch.optim.SGD, nn.functional.mse_loss)
    step = torch.compile(step)
    x, y, weight = torch.randn(5, 4), torch.randn(5, 3), model[0].weight
    for _ in range(3):
        step(x, y)
    memory, version = weight.detach().numpy(), weight._version
    step(x, y)
    assert weight._version == version + 1
    assert np.shares_memory(memory, weight.detach().numpy()) and memory.tolist() == weight.tolist()


def test_state_that_another_program_has():
    """A program of XLA's and one that is played take turns with the same weights.

    In double precision: sums over 16,000 rows are off by 1e-4 in XLA's and BLAS's single precision.
    """
    torch.manual_seed(0)
    results = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = nn.Linear(3, 2, dtype=torch.float64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @wrap
        def small(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        @wrap
        def large(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x.repeat(4000, 1)).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        x = torch.ones(4, 3, dtype=torch.float64)
        results.append([f(x).item() for f in (small, large) * 5])
    assert isinstance(program(small), Played) and not isinstance(program(large), Played)
    assert np.allclose(*results, rtol=1e-10)


def test_arguments_that_lie_anyhow():
    double = torch.compile(lambda x: x * 2 + 1)
    x = torch.randn(6, 4)
    for given in (x, x.t().contiguous().t(), x[:, [0, 1, 2, 3]], x.clone()) * 2:
        assert double(given).tolist() == (given * 2 + 1).tolist()
    for given in (x.t(), x[::2], torch.ones(1).expand(6, 4)) * 3:
        assert double(given).tolist() == (given * 2 + 1).tolist()


def test_a_compiled_forward_is_differentiated():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), torch.randn(3, 4, requires_grad=True)
    compiled = torch.compile(model)
    for _ in range(3):
        found = torch.autograd.grad(compiled(x).square().sum(), [x, *model.parameters()])
    expected = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
    assert isinstance(program(compiled._compiled), Played)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected))


@pytest.mark.usefixtures("either_way")
def test_results_that_are_views_are_differentiated():
    x = torch.randn(2, 3, requires_grad=True)
    for function in (lambda x: x.t(), lambda x: x.expand(4, 2, 3), lambda x: x.chunk(2)[1], lambda x: (x * 2).T):
        compiled = torch.compile(function)
        for _ in range(4):
            (found,) = torch.autograd.grad(compiled(x).square().sum(), x)
            (expected,) = torch.autograd.grad(function(x).square().sum(), x)
            assert torch.allclose(found, expected)


@pytest.mark.usefixtures("either_way")
def test_results_keep_their_names():
    compiled = torch.compile(lambda x: x.max(1))
    for _ in range(4):
        found = compiled(torch.tensor([[1.0, 3.0], [4.0, 2.0]]))
        assert type(found) is torch.return_types.max
        assert found.values.tolist() == [3, 4] and found.indices.tolist() == [1, 0]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 3)])
def test_a_layer_norm_of_a_whole_tensor(shape):
    x, w, b = (torch.randn(shape, requires_grad=True) for _ in range(3))
    norm = lambda x, w, b: nn.functional.layer_norm(x, shape, w, b)
    compiled = torch.compile(norm)
    for _ in range(4):
        found = torch.autograd.grad(compiled(x, w, b).square().sum(), (x, w, b))
        expected = torch.autograd.grad(norm(x, w, b).square().sum(), (x, w, b))
        assert all(torch.allclose(p, q, atol=1e-4) for p, q in zip(found, expected))


def test_programs_are_freed():
    made = []
    for _ in range(3):
        function = torch.compile(lambda x: x + 1)
        for _ in range(3):
            function(torch.ones(3))
        made.append(program(function).play)
        del function
    gc.collect()
    assert len(set(map(id, made))) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del made
        gc.collect()


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_keys_are_folded_as_by_jax():
    rng, made = np.random.default_rng(0), np.empty(4, np.uint32)
    for number in (0, 1, 2, 77, 2**31 - 1):
        key = rng.integers(0, 2**32, 4, dtype=np.uint32)
        library.fold_in(key, made, number)
        folded = jax.random.fold_in(jax.random.wrap_key_data(key, impl="rbg"), number)
        np.testing.assert_array_equal(made, jax.random.key_data(folded))


@pytest.mark.parametrize("width", [3, 70])  # few words are JAX's, many the kernel's
def test_dropout_is_the_same_whoever_computes(width, monkeypatch):
    def trained():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.3), nn.ReLU(), nn.Linear(width, 2), nn.Dropout(0.5))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        @torch.compile
        def step(x):
            optimizer.zero_grad()
            y = model(x)
            y.square().sum().backward()
            optimizer.step()
            return y

        x = torch.randn(32, width)
        return step, [step(x).detach().numpy().copy() for _ in range(5)]

    step, found = trained()
    assert isinstance(program(step), Played)
    assert not np.array_equal(found[-1] == 0, found[-2] == 0)
    monkeypatch.setattr(scores, "MOST", 0)
    step, expected = trained()
    assert not isinstance(program(step), Played)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a == 0, b == 0)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_dropout_of_a_compiled_forward_is_differentiated():
    forward = torch.compile(lambda x: nn.functional.dropout(x, 0.25) * 2)
    x = torch.ones(40, 50, requires_grad=True)
    seen = set()
    for _ in range(4):
        x.grad = None
        y = forward(x)
        y.sum().backward()
        assert torch.equal(x.grad, y.detach())
        assert 0.6 < (y > 0).float().mean().item() < 0.9
        seen.add(y.detach().numpy().tobytes())
    assert isinstance(program(forward), Played) and len(seen) == 4


def test_numbers_are_drawn_as_by_xla(monkeypatch):
    def drawn():
        torch.manual_seed(0)
        function = torch.compile(lambda x: (torch.rand_like(x), torch.randn_like(x), torch.empty(7).uniform_(-2, 3)))
        made = [function(torch.zeros(30, 5)) for _ in range(3)]
        return function, [t.numpy() for t in made[-1]]

    function, found = drawn()
    assert isinstance(program(function), Played)
    monkeypatch.setattr(scores, "MOST", 0)
    function, expected = drawn()
    assert not isinstance(program(function), Played)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_has_no_step_of_words_is_xlas():
    function = torch.compile(lambda x: x + torch.randint(0, 9, (7,)))
    for _ in range(3):
        assert 0 <= function(torch.zeros(7)).min().item() < 9
    assert not isinstance(program(function), Played)


def test_the_inverse_error_function():
    x = np.array([*np.linspace(-1, 1, 501), 0.0, -0.0, 1.5, np.nan, 0.99999994, -0.99999994, 1e-30], np.float32)
    check(jax.lax.erf_inv, x)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (1, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2, 3)])
def test_sums_of_large_arrays(axes):
    x = some(6, 20, 30, 25, dtype=np.float32)
    (found,) = played(lambda x: x.sum(axes), x)
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axes), rtol=1e-5, atol=1e-4)


# -- programs with kernels ---------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": dict(lr=0.05),
    "SGD, momentum": dict(lr=0.05, momentum=0.9, weight_decay=0.01),
    "Adam": dict(lr=1e-3),
    "AdamW": dict(lr=1e-3),
    "RMSprop": dict(lr=1e-3),
    "Adadelta": dict(lr=0.5),
}


def classifier(name, more=lambda model, loss: None):
    """(model, optimizer, a training step) of a network whose products, updates and norm are kernels'."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(96, 160), nn.LayerNorm(160), nn.GELU(), nn.Linear(160, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    optimizer = getattr(torch.optim, name.partition(",")[0])(model.parameters(), **OPTIMIZERS[name])

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss, more(model, loss)

    return model, optimizer, step


def batch():
    torch.manual_seed(1)
    return torch.randn(32, 96), torch.randint(0, 10, (32,))


def assert_equal_state(a, b):
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-4, atol=1e-6)
        assert torch.allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_kernels_are_played(name):
    (eager, first, step), (model, second, traced) = classifier(name), classifier(name)
    compiled = torch.compile(traced)
    x, y = batch()
    for i in range(6):
        if i == 4:
            for group in (*first.param_groups, *second.param_groups):
                group["lr"] *= 0.5
        assert torch.allclose(step(x, y)[0], compiled(x, y)[0], rtol=1e-5)
    assert isinstance(program(compiled), Played)
    assert_equal_state(eager, model)
    assert {step.kernel[0] for step in kernels_of(traced, x, y)} >= {"product", "layer_norm", "gelu_slope"}


def kernels_of(function, *arrays):
    """The steps of a function's trace that are calls of kernels: found by playing it once more."""
    seen = []
    call = Score.call
    try:
        Score.call = lambda self, *args: (call(self, *args), seen.append(self._steps[-1]))[0]
        again = torch.compile(function)
        for _ in range(3):
            again(*arrays)
    finally:
        Score.call = call
    return seen


def test_weights_are_updated_where_they_are():
    model, _, step = classifier("Adam")
    compiled, (x, y) = torch.compile(step), batch()
    for _ in range(3):
        compiled(x, y)
    memory = model[0].weight.detach().numpy()
    before, version = memory.copy(), model[0].weight._version
    compiled(x, y)
    assert np.shares_memory(memory, model[0].weight.detach().numpy())
    assert not np.array_equal(before, memory) and model[0].weight._version == version + 1


def test_gradients_that_somebody_has_are_not_written_over():
    model, _, step = classifier("SGD")
    compiled, (x, y) = torch.compile(step), batch()
    for _ in range(3):
        compiled(x, y)
    mine = model[0].weight.grad
    kept = mine.clone()
    compiled(x, y)
    assert torch.equal(mine, kept) and not torch.equal(mine, model[0].weight.grad)


def test_a_refused_target_changes_nothing():
    """The check comes after what could be computed before it, and before anything is written."""
    model, _, step = classifier("Adam")
    compiled, (x, y) = torch.compile(step), batch()
    for _ in range(4):
        compiled(x, y)
    assert isinstance(program(compiled), Played)
    weights = [p.clone() for p in model.parameters()]
    with pytest.raises(IndexError):
        compiled(x, y + 100)
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights))
    loss = compiled(x, y)[0]
    assert torch.isfinite(loss)


def test_gradients_of_before_stay_where_a_step_is_refused():
    model, optimizer, _ = classifier("SGD")

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)  # refuses before gradients are reset
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    compiled, (x, y) = torch.compile(step), batch()
    for _ in range(4):
        compiled(x, y)
    assert isinstance(program(compiled), Played)
    before = [p.grad.clone() for p in model.parameters()]
    with pytest.raises(IndexError):
        compiled(x, y + 100)
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before))


def test_new_weights_that_are_read_again():
    """An average of new weights: the kernel's results are not only where they belong."""
    results = []
    for wrap in (lambda f: f, torch.compile):
        average = torch.zeros(160, 96)

        def follow(model, loss, average=average):
            with torch.no_grad():
                average.mul_(0.9).add_(model[0].weight, alpha=0.1)
            return model[0].weight.sum()

        model, _, step = classifier("SGD, momentum", follow)
        step, (x, y) = wrap(step), batch()
        totals = [step(x, y)[1].item() for _ in range(6)]
        results.append((model, average, totals))
    (eager, first, sums), (model, second, found) = results
    assert_equal_state(eager, model)
    assert torch.allclose(first, second, rtol=1e-4, atol=1e-6) and np.allclose(sums, found, rtol=1e-3)


def test_gradients_that_add_up():
    results = []
    for wrap in (lambda f: f, torch.compile):
        model, optimizer, _ = classifier("SGD")

        def step(x, y, model=model):
            nn.functional.cross_entropy(model(x), y).backward()

        step, (x, y) = wrap(step), batch()
        for i in range(9):
            step(x, y)
            if i % 3 == 2:
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
        step(x, y)
        results.append(model)
    assert_equal_state(*results)


def test_places_are_shared_one_after_the_other():
    closed = jax.make_jaxpr(lambda x: jnp.exp(jnp.tanh(jnp.exp(jnp.tanh(x)))).sum())(some(64, 64))
    score = Score(closed, [Value((64, 64), np.float32, memory=1)], RULES)
    play = score.played([Value((), np.float32, 2)], False, 2)
    made = np.empty((), np.float32)
    x = some(64, 64)
    assert play(x, made)
    np.testing.assert_allclose(made, np.exp(np.tanh(np.exp(np.tanh(x)))).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "function", [lambda x: (x / 2 + 1)[:1], lambda x: (x / 2 + 1)[1:], lambda x: (x.exp() @ x.exp().T)[:2]]
)
def test_a_part_of_what_is_computed_is_written_nowhere_else(function, monkeypatch):
    """The whole has no room in the memory of a result that is a part of it, and must not be computed there."""
    behind = []

    def empty(shape, dtype):
        memory = np.full(math.prod(shape) + 64, 7, dtype)
        behind.append(memory[math.prod(shape) :])
        return memory[: math.prod(shape)].reshape(shape)

    monkeypatch.setattr("rushlight.compiler.played._empty", empty)
    compiled, x = torch.compile(function), torch.arange(12.0).reshape(4, 3)
    for _ in range(3):
        assert torch.allclose(compiled(x), function(x))
    assert isinstance(program(compiled), Played) and behind and all((memory == 7).all() for memory in behind)
