"""The deferred engine: eager code on an accelerator, recorded and run as whole programs, equal to NumPy's."""

import contextlib
import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

pytest.importorskip("jax")

from rushlight.autograd import mode
from rushlight.engine.deferred import kinds, namespace, recording, report
from rushlight.engine.deferred.array import Deferred


def compiled_by(function) -> int:
    before = len(report.compilations)
    function()
    recording.landed()
    return len(report.compilations) - before


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 16),
        nn.GELU(),
        nn.Linear(16, 3),
    )


OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "centered": True},
    "Adagrad": {"lr": 0.1},
    "Adadelta": {},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "ASGD": {},
    "Rprop": {},
    "Adafactor": {},
    "LBFGS": {"lr": 0.1, "max_iter": 4, "history_size": 3},  # each length of the history is a program
}


def train(device, name="Adam", steps=5, schedule=None, clip=None):
    """Losses, parameters and state after some steps."""
    model = network().double().to(device)  # so that rounding is not what is compared
    optimizer = getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name])
    torch.manual_seed(1)
    x, y = torch.randn(6, 1, 8, 8).double().to(device), torch.randint(0, 3, (6,)).to(device)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        return loss

    for i in range(steps):
        if schedule:
            for group in optimizer.param_groups:
                group["lr"] = schedule(i)
        losses.append(optimizer.step(closure).item())
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return losses, [np.asarray(t.detach().cpu()) for t in (*model.state_dict().values(), *state)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_numpys(name):
    losses, values = train("cpu", name)
    other_losses, other_values = train("xla", name)
    np.testing.assert_allclose(other_losses, losses, 1e-7, 1e-9)
    assert len(values) == len(other_values)
    for a, b in zip(values, other_values):
        np.testing.assert_allclose(b, a, 1e-6, 1e-8)


# -- how much is compiled ----------------------------------------------------------------------------------------------


def test_a_loop_compiles_a_bounded_number_of_programs():
    """A schedule, clipping, logging now and then, accumulation, a smaller last batch, evaluation in between."""
    model = network().to("xla")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    data = [(torch.randn(n, 1, 8, 8), torch.randint(0, 3, (n,))) for n in (6, 6, 6, 6, 2)]

    def epoch(number):
        model.train()
        for i, (x, y) in enumerate(data):
            loss = nn.functional.cross_entropy(model(x.to("xla")), y.to("xla")) / 2
            loss.backward()
            if i % 2 or i == 4:
                optimizer.param_groups[0]["lr"] = 0.1 / (1 + number + i)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            if i % 3 == 0:
                loss.item()
        model.eval()
        with torch.no_grad():
            total = sum((model(x.to("xla")).argmax(1) == y.to("xla")).sum() for x, y in data)
        return total.item()

    epoch(0), epoch(1), epoch(2)
    assert compiled_by(lambda: [epoch(n) for n in range(3, 6)]) == 0


def test_numbers_that_change_become_inputs():
    x = torch.arange(4.0, device="xla")
    (x * 1.5).tolist(), (x * 2.5).tolist()
    assert compiled_by(lambda: [(x * (3 + 0.5 * i)).tolist() for i in range(5)]) == 0
    assert (x * 7.25).tolist() == [0, 7.25, 14.5, 21.75]
    assert (x * float("inf")).tolist()[1:] == [float("inf")] * 3
    assert str((x[1] * -0.0).item()) == "-0.0" and str((x[1] * 0.0).item()) == "0.0"


def test_integers_and_places_that_change_become_inputs():
    def turns(device, compiled=None):
        x = torch.arange(12.0, device=device).requires_grad_()
        count = torch.zeros((), dtype=torch.long, device=device)
        rows = x.detach().clone().reshape(4, 3)

        def turn(i):
            part = rows[:, i % 3 : i % 3 + 1] + rows[i % 4] + x[i : i + 8 : 4].sum()
            (x * i + part.sum()).sum().backward()
            count.add_(i).mul_(1)
            rows[i % 4] = 0.5
            return part.tolist(), x.grad.tolist(), count.item()

        known = [turn(i) for i in (1, 2, 3)]
        before = len(report.compilations)
        known += [turn(i) for i in (0, 1, 2, 3)]
        return known, len(report.compilations) - before

    there, compiled = turns("xla")
    assert there == turns("cpu")[0]
    assert compiled <= 1


def test_a_loop_in_one_recording_has_constants():
    x, before = torch.arange(5.0, device="xla"), len(kinds.by_id)

    def loop():
        return sum(x[i] * (i + 1) for i in range(5)).item()

    assert loop() == 40 and compiled_by(loop) == 0
    assert len(kinds.by_id) > before and not any(kind.numbers for kind in kinds.by_id[before:])


def test_a_number_that_decides_what_is_computed_stays_a_constant():
    x = torch.tensor([1.0, 4.0, 9.0], device="xla")
    for p, expected in ((0.5, [1, 2, 3]), (2.0, [1, 16, 81]), (1.0, [1, 4, 9]), (0.0, [1, 1, 1])):
        np.testing.assert_allclose((x**p).tolist(), expected, 1e-6)
    for p in (1.0, 2.0, 3.0, float("inf")):
        np.testing.assert_allclose(x.norm(p).item(), x.cpu().norm(p).item(), 1e-6)


def test_what_nobody_holds_is_neither_computed_nor_kept():
    gc.collect()
    x = torch.ones(64, 64, device="xla")
    y = (x @ x).exp()  # too large to be true: dropped before anyone looks
    del y
    assert compiled_by(recording.settle) <= 1  # the ones
    model = network().to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(6, 1, 8, 8, device="xla"), torch.randint(0, 3, (6,), device="xla")

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    import jax

    counts = []
    for _ in range(10):
        step()
        recording.landed()
        recording._spent.clear()
        counts.append(len(jax.live_arrays()))  # of the whole process: what other tests left may go meanwhile
    assert min(counts[2:6]) == min(counts[6:]), counts


def test_a_new_precision_is_a_new_program():
    x = torch.full((64, 64), 1.0001, device="xla")
    (x @ x).tolist()
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert compiled_by(lambda: (x @ x).tolist()) == 1
    finally:
        torch.set_float32_matmul_precision(before)
    assert compiled_by(lambda: (x @ x).tolist()) == 1  # again from the start: nothing was kept


def test_the_report_says_what_was_compiled():
    x = torch.ones(3, 5, 7, 2, device="xla")
    (x + 1).sum().item()
    text = torch.compiler.explain()
    assert "programs compiled" in text and "test_deferred.py" in text


# -- what eager code can do --------------------------------------------------------------------------------------------


def test_errors_are_raised_at_their_line():
    a, b = torch.ones(2, 3, device="xla"), torch.ones(4, 5, device="xla")
    with pytest.raises(RuntimeError, match="must match the size"):
        a + b
    with pytest.raises(RuntimeError):
        a @ b
    with pytest.raises(RuntimeError, match="same device"):
        a + torch.ones(2, 3)
    assert (a + 1).sum().item() == 12


def test_in_place_views_and_hooks():
    def run(device):
        out = []
        x = torch.arange(12.0, device=device).reshape(3, 4).requires_grad_()
        y = x * 2
        y[1] = 5.0
        y[:, 0] += x[:, 1]
        v = y.t()
        v.mul_(2)
        y.register_hook(lambda g: out.append(g.tolist()))
        (y.sin() * v.t()).sum().backward()
        out.append(x.grad.tolist())
        z = torch.zeros(4, device=device)
        z[1:3].add_(1)
        z[torch.tensor([0, 3], device=device)] = 7.0
        out.append(z.tolist())
        return out

    for a, b in zip(run("cpu"), run("xla")):
        np.testing.assert_allclose(b, a, 1e-5, 1e-5)


def test_double_backward_functions_checkpoints_and_saved_hooks():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    def run(device):
        x = torch.linspace(0.1, 1, 5, device=device).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = Cube.apply(x).sin()
        y = torch.utils.checkpoint.checkpoint(lambda t: t.exp() * t, y, use_reentrant=False).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        return y.item(), g.tolist(), h.tolist()

    for a, b in zip(run("cpu"), run("xla")):
        np.testing.assert_allclose(b, a, 1e-4, 1e-4)


def _autocast_run(one_by_one: bool):
    """All that one sees of products and a convolution under autocast: values, gradients of two orders, the graph."""
    torch.manual_seed(0)
    linear, conv = nn.Linear(6, 5).to("xla"), nn.Conv2d(2, 3, 3).to("xla")
    x = torch.randn(4, 6, device="xla", requires_grad=True)
    image = torch.randn(2, 2, 5, 5, device="xla", requires_grad=True)
    seen = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with hooks if one_by_one else contextlib.nullcontext(), torch.autocast("xla", dtype=torch.bfloat16):
        y, z = linear(x), conv(image)
        product = x.t() @ y
    seen += [y, z, product, y.grad_fn._saved_mat1 if not one_by_one else x.bfloat16()]
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.extend(inputs))
    inputs = (x, image, *linear.parameters(), *conv.parameters())
    total = (product.float() ** 2).sum() + (z.float() ** 3).sum()
    first = torch.autograd.grad(total, inputs, create_graph=True)
    handle.remove()
    seen += first
    seen += torch.autograd.grad(sum((g**2).sum() for g in first), inputs, allow_unused=True)

    def names(node, depth=4):
        return node and (node.name(), depth and [names(f, depth - 1) for f, _ in node.next_functions])

    return [t if t is None else (t.dtype, t.float().tolist()) for t in seen], names(product.grad_fn), names(z.grad_fn)


def test_casts_of_autocast_are_part_of_the_call():
    values, *graphs = _autocast_run(one_by_one=False)
    expected, *shown = _autocast_run(one_by_one=True)
    assert graphs == shown
    for i, (ours, theirs) in enumerate(zip(values, expected, strict=True)):
        assert (ours is None) == (theirs is None)
        if ours is not None:  # second derivatives meet before or after a cast, and are rounded there
            assert ours[0] is theirs[0]
            ours, theirs, second = np.array(ours[1]), np.array(theirs[1]), i >= len(values) - 6
            assert np.abs(ours - theirs).max() <= (2**-8 if second else 1e-6) * np.abs(theirs).max()


def test_casts_of_autocast_keep_what_they_saw():
    """A weight written between forward and backward: the gradient is that of the weight as it was, without an error."""
    w = torch.full((3, 3), 2.0, device="xla", requires_grad=True)
    x = torch.ones(3, 3, device="xla", requires_grad=True)
    with torch.autocast("xla", dtype=torch.bfloat16):
        y = x @ w
    with torch.no_grad():
        w.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [[6.0] * 3] * 3
    calls = []
    with torch.autocast("xla", dtype=torch.bfloat16):
        y = torch.mm(x, w)
        calls += [kind.name for kind, *_ in recording.recording_on(y._array.place).log]
    assert calls.count("astype") == 0 and calls.count("matmul") == 1


def test_autocast_and_scaler():
    model = nn.Linear(4, 4).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("xla", init_scale=8.0)
    x = torch.randn(3, 4, device="xla")
    with torch.autocast("xla", dtype=torch.bfloat16):
        y = model(x)
        assert y.dtype is torch.bfloat16
        loss = y.float().pow(2).mean()
    scaler.scale(loss).backward()
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight) and torch.isfinite(model.weight).all()


def test_random_numbers_follow_the_seed_wherever_programs_end():
    torch.manual_seed(3)
    a = [torch.rand(3, device="xla").tolist() for _ in range(3)]
    torch.manual_seed(3)
    drawn = [torch.rand(3, device="xla") for _ in range(3)]
    assert [t.tolist() for t in drawn] == a and a[0] != a[1]
    x = nn.functional.dropout(torch.ones(1000, device="xla"), 0.25)
    assert 600 < (x != 0).sum().item() < 900


def test_shapes_that_depend_on_values():
    x = torch.tensor([3.0, 1.0, 2.0, 3.0], device="xla")
    assert (x[x > 1.5] * 2).tolist() == [6, 4, 6] and x.unique().tolist() == [1, 2, 3]
    assert (x > 2).nonzero().flatten().tolist() == [0, 3] and bool((x > 0).all())


def test_copies_pickles_files_and_numpy():
    model = network().to("xla")
    x = torch.randn(2, 1, 8, 8, device="xla")
    out = model.eval()(x)
    twin = copy.deepcopy(model)
    np.testing.assert_array_equal(twin(x).detach().cpu().numpy(), out.detach().cpu().numpy())
    again = pickle.loads(pickle.dumps(x * 2))
    assert again.device.type == "xla" and torch.equal(again, x * 2)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file)
    assert all(torch.equal(v.cpu(), loaded[k].cpu()) for k, v in model.state_dict().items())
    assert isinstance((x + 1)._array, Deferred) and (x + 1).cpu().numpy().shape == x.shape


def test_threads_record_on_their_own():
    expected = [train("xla", "SGD", steps=3)[0]]
    results = [None] * 4

    def work(i):
        results[i] = [torch.full((4, 4), float(i), device="xla").matmul(torch.ones(4, 4, device="xla")).sum().item()]
        shared = (weights * i).sum()
        results[i].append(shared.item())

    weights = torch.ones(5, device="xla") * 2  # promised here, asked for there
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == [[64.0 * i, 10.0 * i] for i in range(4)]
    assert train("xla", "SGD", steps=3)[0] == expected[0]


def test_an_interrupt_leaves_everything_usable():
    """KeyboardInterrupt at random instructions of a loop: afterwards it goes on to where it would have come anyway."""
    rng = np.random.RandomState(0)
    model = nn.Linear(4, 1).to("xla")
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(8, 4, device="xla")

    def step():
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    step(), step()
    before = mode.snapshot()
    for _ in range(60):
        left = int(rng.randint(1, 1500))

        def tick(frame, event, arg):
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return tick

        sys.settrace(tick)
        try:
            step()
        except KeyboardInterrupt:
            mode.restore(before)  # a trace function can raise where no signal comes: in a ``finally``
        finally:
            sys.settrace(None)
        assert all(torch.isfinite(p).all().item() for p in model.parameters())
    torch.save(model.state_dict(), io.BytesIO())
    assert step() > step()


def test_a_failure_names_itself_and_leaves_tensors_usable(monkeypatch):
    x = torch.ones(3, device="xla")
    x.sum().item()
    y = x * 2 + 1
    original = recording.Program.__call__

    def fails(self, *args):
        raise RuntimeError("no memory")

    monkeypatch.setattr(recording.Program, "__call__", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        y.tolist()
    monkeypatch.setattr(recording.Program, "__call__", original)
    assert x.tolist() == [1, 1, 1] and (x * 3).tolist() == [3, 3, 3]


def test_one_by_one_on_request():
    program = (
        "import jax, rushlight as torch; x = torch.ones(2, device='xla'); "
        "assert isinstance((x + 1)._array, jax.Array); print((x + 1).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "RUSHLIGHT_EAGER": "1"}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[2.0, 2.0]", done.stderr


def test_a_line_that_compiles_at_every_turn_is_told():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(40, 60):
            torch.ones(n, 3, device="xla").sum().item()
    told = [str(w.message) for w in caught if "programs were compiled" in str(w.message)]
    assert len(told) == 1 and "test_deferred.py" in told[0]


@pytest.mark.skipif(recording.library is None, reason="the kernels are not built")
def test_scanning_and_promising_in_c_is_as_in_python():
    x = torch.ones(2, 3, device="xla")
    a, b = x._array, (x + 1)._array
    from rushlight.engine import Number

    cases = [
        (), [a, (b, 1, True, None, "s")], {"x": a, "y": {"z": [b]}}, 1.5, 0.0, -0.0, float("nan"), 2j,
        slice(1, None, 2), np.dtype("float32"), Number(3), (a, {"p": (1, 2.5)}, [[], ()]), np.float32(2), np.ones(2),
        torch.device("cpu"),
    ]  # fmt: skip
    for case in cases:
        found = []
        for scan in (kinds.plain_scan, recording.library.scan):
            arrays, key = [], []
            scan(case, arrays, key)
            found.append((["a" if v is a else "b" if v is b else v.aval for v in arrays], key))
        assert found[0] == found[1], case
    with pytest.raises(RecursionError):
        nested: list = []
        for _ in range(50_000):
            nested = [nested]
        recording.library.scan(nested, [], [])

    here = b.recording
    outputs = (a.aval, b.aval)
    plain, in_c = (f(here, a.place, [a, b], outputs, 7 << 16) for f in (recording.plain_promise, recording.promise))
    assert plain[0] == in_c[0]
    for p, q in zip(plain[1], in_c[1]):
        for name in ("aval", "shape", "dtype", "place", "value", "recording", "slot", "flight", "owned"):
            assert getattr(p, name) is getattr(q, name) or getattr(p, name) == getattr(q, name)


@pytest.mark.skipif(recording.library is None, reason="no kernels here")
def test_a_call_recorded_in_c_is_as_in_python(monkeypatch):
    """The same calls from the same places, in both ways."""
    model, x = network().to("xla"), torch.randn(2, 1, 8, 8, device="xla", requires_grad=True)

    def calls():
        recording.landed()
        loss = model(x).square().sum() * 3.0
        loss.backward()
        here = loss._array.recording
        return [(kind.id, refs, [o.aval for o in made], [o.slot for o in made], numbers, key)
                for kind, refs, made, numbers, key in here.log]  # fmt: skip

    calls()
    by_c = calls()
    monkeypatch.setattr(namespace, "_known", None)
    assert by_c == calls() and len(by_c) > 10


def test_what_is_foreseen_is_what_comes(monkeypatch):
    """Shapes told without a trace are those of the traced rule, and what is wrong is said in the same words."""
    from rushlight.autograd import call
    from rushlight.nn import functional as F

    torch.manual_seed(0)
    x, w, b, q = (torch.randn(*shape).to("xla") for shape in ((2, 5, 8), (6, 8), (6,), (2, 3, 5, 4)))
    index = torch.tensor([[1, 2], [0, 5]]).to("xla")
    calls = [
        lambda: F.linear(x, w, b), lambda: F.linear(x[0, 0], w), lambda: F.linear(x.bfloat16(), w.bfloat16()),
        lambda: F.layer_norm(x, (5, 8)), lambda: F.layer_norm(x, (8,), w[0], w[1]), lambda: F.group_norm(x, 5),
        lambda: F.gelu(x), lambda: F.silu(x), lambda: F.relu(x), lambda: F.softmax(x, 1), lambda: F.log_softmax(x, 1),
        lambda: F.scaled_dot_product_attention(q, q, q), lambda: F.embedding(index, w), lambda: x + 1, lambda: 2 - x,
        lambda: x * w[0], lambda: w[0] * x, lambda: x + x.double(), lambda: x + index[0, 0], lambda: index * 2,
        lambda: x.reshape(10, 8), lambda: x.transpose(0, 2), lambda: x.transpose(1, 2).reshape(2, 40),
        lambda: x.split([3, 5], 2), lambda: x[:, 1:3], lambda: x[:, 2], lambda: x[..., ::2],
        lambda: torch.cat([x, x], 1),
        lambda: torch.cat([x, x.double()]), lambda: x.clone(), lambda: index.clone(), lambda: F.linear(x, b),
        lambda: F.linear(x, w[:, :7]), lambda: torch.cat([x, w]), lambda: x + w, lambda: x.view(3, 3),
        lambda: F.embedding(x, w), lambda: F.linear(index.float(), w),
    ]  # fmt: skip

    def seen():
        kinds.forget()
        found = []
        for function in calls:
            with torch.no_grad():
                try:
                    result = function()
                    found.append([(t.shape, t.dtype) for t in (result if isinstance(result, tuple) else (result,))])
                except Exception as error:
                    found.append((type(error), str(error)))
        return found

    foreseen = seen()
    monkeypatch.setattr(call.evaluate, "foreseen", None)
    assert foreseen == seen() and sum(isinstance(f, tuple) for f in foreseen) == 7


_COLD = """
import rushlight as torch
from rushlight.engine.cold import interpreter
from rushlight.engine.deferred import report
nn = torch.nn
runs = []
run = interpreter.Interpreter.run
interpreter.Interpreter.run = lambda *args: (run(*args), runs.append(1))[0]
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
model = nn.Sequential(nn.Embedding(12, 8), layer, nn.Linear(8, 12)).eval()
with torch.no_grad():
    for length in (3, 4):
        text = (torch.arange(length) * 5 % 12)[None]
        expected = model.to("cpu")(text)
        text, model = text.to("xla"), model.to("xla")
        for turn in range(26):  # 24 times interpreted, then compiled
            found = torch.softmax(model(text), -1).cpu()
            assert torch.allclose(found, torch.softmax(expected, -1), atol=1e-6), (length, turn)
            assert torch.multinomial(found[0], 1).shape == (length, 1)
print(len(runs), len(report.compilations))
x = torch.ones(3, device="xla", requires_grad=True)
(x * 2).sum().backward()
print(x.grad.tolist(), len(runs))
print(torch.nonzero(torch.tensor([0, 1, 1], device="xla")).tolist())
"""


def test_cold_recordings_are_interpreted():
    options = {"env": {**os.environ, "RUSHLIGHT_COLD": "1"}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", _COLD], check=False, **options)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["48 2", "[2.0, 2.0, 2.0] 48", "[[1], [2]]"], done.stdout


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, target, number: nn.functional.multi_margin_loss(x, target, margin=number),
        lambda x, target, number: nn.functional.scaled_dot_product_attention(x, x, x, scale=number).sum(),
        lambda x, target, number: torch.cdist(x, x[:2], p=1 + number).sum(),
    ],
    ids=["multi_margin_loss", "attention", "cdist"],
)
def test_gradients_derived_from_a_rule_with_a_number_that_changes(loss):
    numbers, found = [1.0, 0.5, 0.3, 0.7], {}
    for device in ("cpu", "xla"):
        x = torch.linspace(-1, 1, 12).reshape(4, 3).sin().to(device).requires_grad_()
        target = torch.tensor([0, 1, 2, 1], device=device)
        found[device] = [torch.autograd.grad(loss(x, target, number), x)[0].cpu() for number in numbers]
    for expected, gradient in zip(found["cpu"], found["xla"]):
        assert torch.allclose(gradient, expected, atol=1e-6)


_ENDING = """
import time
import rushlight as torch
from rushlight.engine.deferred import recording

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(2)

y = x = torch.ones(64, 64, device="xla")
for i in range(100):
    y = (y @ x + i).sin()
recording.settle()
slow = Slow()
print("end")
"""


def test_a_program_that_is_being_compiled_when_python_ends():
    """It is waited for: its thread would come back to an interpreter that is gone, and end the process by SIGABRT."""
    done = subprocess.run([sys.executable, "-c", _ENDING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
