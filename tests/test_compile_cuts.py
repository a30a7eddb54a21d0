"""``fullgraph=False``: a function that needs values, or acts on the outside, gives what eager code gives."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import CompileError

pytestmark = pytest.mark.usefixtures("either_way")


class Gate(nn.Module):
    """A module with a Python branch between two that have none."""

    def __init__(self):
        super().__init__()
        self.before = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
        self.after = nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2))

    def forward(self, x):
        h = self.before(x)
        h = h * 2 if h.sum() > 0 else h[h[:, 0] < 100]
        return self.after(h)


def training(wrap):
    torch.manual_seed(0)
    model = Gate()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs = [torch.randn(5, 4) for _ in range(4)]

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean() + model.before(x).sum() * 1e-2
        if loss.item() > 1:
            loss = loss / 2
        loss.backward()
        optimizer.step()
        return loss.item()

    compiled = wrap(step)
    losses = [compiled(x) for _ in range(3) for x in inputs]
    return compiled, losses, [t.numpy().copy() for t in model.state_dict().values()]


def test_a_step_that_needs_values_is_cut_and_its_modules_compiled():
    with pytest.warns(UserWarning, match="The function is cut") as told:
        compiled, losses, state = training(torch.compile)
    assert len(told) == 1
    _, expected, expected_state = training(lambda f: f)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for a, b in zip(state, expected_state):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    (gate,) = [part for module, part in compiled._cut._parts.values() if isinstance(module, Gate)]
    assert gate._cut is not None  # the branch is in it
    inner = [part for _, part in gate._cut._parts.values()]
    assert len(inner) == 2 and all(part._cut is None and part.compilations for part in inner)


def test_fullgraph_makes_a_cut_an_error():
    compiled = torch.compile(lambda x: x if x.sum() > 0 else -x, fullgraph=True)
    compiled(torch.ones(2))
    with pytest.raises(CompileError, match="traced value was needed"):
        compiled(torch.ones(2))


scale = torch.ones(1)
LOOKS = {
    "item": lambda x: x * scale.item(),
    "float": lambda x: x * float(scale),
    "branch": lambda x: x if scale > 3 else -x,
    "numpy": lambda x: x * float(scale.numpy()[0]),
    "asarray": lambda x: x * float(np.asarray(scale)[0]),
    "tolist": lambda x: x * scale.tolist()[0],
    "repr": lambda x: x * len(repr(scale)),
    "format": lambda x: x * float(f"{scale[0]:.3f}"),
    "from_numpy": lambda x: x * torch.from_numpy(scale.numpy()),
    "storage": lambda x: x * scale.untyped_storage()[3],
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_tensor_that_is_only_looked_at_is_not_a_constant(name):
    results = []
    for wrap in (torch.compile, lambda f: f):
        scale.fill_(1.0)
        function, found = wrap(LOOKS[name]), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(5):
                found.append(function(torch.ones(2)).tolist())
                scale.mul_(3.0)
        results.append(found)
    assert results[0] == results[1]


generator = np.random.default_rng(0)
OUTSIDE = {
    "random": lambda x: x * random.random(),
    "randint": lambda x: x * random.randint(0, 10**9),
    "gauss": lambda x: x * random.gauss(0, 1),
    "numpy.random": lambda x: x * np.random.rand(),
    "generator": lambda x: x * generator.random(),
    "time": lambda x: x * time.perf_counter(),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_gives_something_else_each_time_does(name):
    function = torch.compile(OUTSIDE[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [function(torch.ones(1, dtype=torch.float64)).item() for _ in range(6)]
    assert len(set(found)) == 6


def test_print_prints_at_every_call(capsys):
    @torch.compile
    def double(x):
        print("here")
        return x * 2

    with pytest.warns(UserWarning, match="It calls print"):
        for _ in range(4):
            double(torch.ones(1))
    assert capsys.readouterr().out == "here\n" * 4


def test_methods_called_through_their_class():
    joined = torch.compile(lambda x: x * len(str.join("-", ["a", "b"])) * list.index([3, 4], 4))
    assert [joined(torch.ones(1)).item() for _ in range(4)] == [3.0] * 4
    assert joined.compilations == 1


def test_what_only_a_trace_refuses_runs_and_what_is_wrong_raises_as_eager_code_does():
    @torch.compile
    def odd(x, fail):
        if torch.compiler.is_compiling():
            raise LookupError("only while tracing")
        if fail:
            raise ArithmeticError("the user's own")
        return x + 1

    odd(torch.ones(1), False)
    with pytest.warns(UserWarning, match="LookupError"):
        assert odd(torch.ones(1), False).item() == 2
    with pytest.raises(ArithmeticError):
        odd(torch.ones(1), True)


def test_a_mistake_in_a_trace_does_not_cut_for_good():
    wrong = []

    @torch.compile
    def function(x):
        if wrong:
            raise ArithmeticError("the user's own")
        return x + 1

    function(torch.ones(1))
    wrong.append(True)
    with pytest.raises(ArithmeticError):
        function(torch.ones(1))
    wrong.clear()
    for _ in range(3):
        assert function(torch.ones(1)).item() == 2
    assert function.compilations == 1 and function._cut is None


# -- keeping code out ------------------------------------------------------------------------------------------------


def test_a_disabled_function_is_called_at_every_call():
    calls = []
    inner = torch.compile(lambda x: x + 1)

    @torch.compiler.disable(reason="it counts")
    def counted(x):
        calls.append(1)
        return inner(x) * 2

    compiled = torch.compile(lambda x: counted(x) + 1)
    with pytest.warns(UserWarning, match="counted is kept out of compiled code .*it counts"):
        assert [compiled(torch.ones(1)).item() for _ in range(4)] == [5.0] * 4
    assert len(calls) == 4 and inner.compilations == 0


def test_a_disabled_module():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh()))
    model[1] = torch.compiler.disable(model[1])
    compiled, x = torch.compile(model), torch.ones(1, 2)
    with pytest.warns(UserWarning, match="kept out"):
        for _ in range(3):
            np.testing.assert_allclose(compiled(x).detach().numpy(), model(x).detach().numpy(), rtol=1e-6)


def test_stances():
    add = torch.compile(lambda x: x + 1)
    with torch.compiler.set_stance("force_eager"):
        for _ in range(3):
            assert add(torch.ones(1)).item() == 2
    assert add.compilations == 0
    for _ in range(3):
        add(torch.ones(1))
    with torch.compiler.set_stance("fail_on_recompile"):
        assert add(torch.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            add(torch.ones(2))
    with torch.compiler.set_stance("eager_on_recompile"):
        for _ in range(3):
            assert add(torch.ones(2)).tolist() == [2, 2]
    assert add.compilations == 1
    with pytest.raises(RuntimeError, match="invalid torch"):
        torch.compiler.set_stance("sometimes")


def test_reasons_can_be_asked_for():
    from rushlight.compiler import dynamo

    told = dynamo.explain(lambda x: x if x.sum() > 0 else -x)(torch.ones(2))
    assert told.graph_break_count == 1 and "traced value was needed" in told.break_reasons[0]
    assert dynamo.explain(lambda x: x + 1)(torch.ones(2)).graph_break_count == 0
    broken = torch.compile(lambda x: (dynamo.graph_break(), x + 1)[1])
    with pytest.warns(UserWarning, match="graph break"):
        assert [broken(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert "graph break" in torch.compiler.explain()


# -- branches: a program for each way ----------------------------------------------------------------------------------


def branching(wrap):
    """A training step that asks for truths: before, between and after the two halves of the work."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    skipped = torch.zeros((), dtype=torch.int64)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        if loss > 0.7:
            loss = loss / 2
        loss.backward()
        if model[0].weight.grad.abs().max() > 0.1:
            optimizer.step()
        else:
            skipped.add_(1)
        return loss

    step, results = wrap(step), []
    for i in range(24):
        results.append(step(torch.randn(5, 3) * (1 + i % 3)).item())
    tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters()), skipped]
    return step, results, [t.detach().numpy().copy() for t in tensors]


def test_a_branch_is_compiled_both_ways():
    step, losses, state = branching(torch.compile)
    _, expected, expected_state = branching(lambda f: f)
    assert step._cut is None and 2 <= step.compilations <= 4
    assert 0 < state[-1] < 24 and len({loss > 0.35 for loss in losses}) == 2  # each way was taken
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    for a, b in zip(state, expected_state):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_loops_and_whole_numbers_are_ways_too():
    def halved(x, count):
        while (x > 1).any():
            x = x / 2
        return x[: int(count)]

    compiled = torch.compile(halved)
    for _ in range(4):
        for size in (1.0, 3.0, 5.0):
            for count in (1, 2):
                given = torch.full((3,), size), torch.tensor(count)
                assert torch.equal(compiled(*given), halved(*given))
    assert compiled._cut is None and compiled.compilations <= 6


def test_a_number_that_is_never_the_same_compiles_one_program_and_cuts():
    scaled = torch.compile(lambda x, n: x * n.item())
    with pytest.warns(UserWarning, match="more than 8 ways") as told:
        for n in range(20):
            assert scaled(torch.ones(1), torch.tensor(n)).item() == n
    assert len(told) == 1 and scaled.compilations == 1


def test_what_an_operator_refuses_on_one_way_is_eagers_error():
    table = torch.ones(3, 2, requires_grad=True)
    optimizer = torch.optim.SGD([table], lr=0.5)

    @torch.compile
    def step(index):
        optimizer.zero_grad()
        rows = nn.functional.embedding(index, table)
        loss = rows.sum() if rows.sum() > 0 else -rows.sum()
        loss.backward()
        optimizer.step()

    for _ in range(5):
        step(torch.tensor([0, 1]))
    before = table.tolist()
    with pytest.raises(IndexError):
        step(torch.tensor([0, 7]))
    assert table.tolist() == before and step._cut is None
    step(torch.tensor([0, 1]))
    assert table.tolist() != before


def test_a_function_that_fails_at_first_is_compiled_all_the_same():
    wrong = [True]

    @torch.compile
    def function(x):
        if wrong[0]:
            raise ArithmeticError("the user's own")
        return x + 1

    with pytest.raises(ArithmeticError):
        function(torch.ones(1))
    wrong[0] = False
    assert [function(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert function._cut is None and function.compilations == 1
