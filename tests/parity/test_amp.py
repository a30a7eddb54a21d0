"""Mixed precision against PyTorch: which functions CPU autocast casts, nested regions, custom functions, GradScaler."""

from __future__ import annotations

import itertools
import warnings

import convert
import numpy as np
import opdb
import pytest
import torch
from torch.testing._internal.autocast_test_lists import AutocastCPUTestLists

import rushlight

BOTH = (torch, rushlight)


def _has_lstm() -> bool:
    """Can PyTorch compute an LSTM in bfloat16 on this processor? oneDNN's needs AVX-512."""
    try:
        with torch.autocast("cpu"):
            torch.nn.LSTM(3, 4)(torch.zeros(5, 2, 3))
    except RuntimeError:
        return False
    return True


HALVES = (torch.bfloat16, torch.float16)

# Entries of the operator database whose dtypes under autocast differ, and why.
DIFFERENT = {
    "linalg.det": "PyTorch brings the float32 result back to half precision; here it stays float32",
    "linalg.lu_solve": "PyTorch takes half precision here where there is nothing to solve, and refuses it otherwise",
    "linalg.solve_ex": "the same",
    "linalg.pinv": "one op in float32 here; PyTorch multiplies its parts in half precision",
    "linalg.pinv|hermitian": "the same",
    "nn.functional.max_pool3d": "with indices PyTorch leaves the input in half precision, without them it does not",
    "complex": "no half-precision complex numbers",
    "chalf": "no half-precision complex numbers",
    **dict.fromkeys(
        ["native_group_norm", "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit"],
        "the statistics of half-precision input are float32 here, in and out of autocast",
    ),
    "_softmax_backward_data": "the dtype of the original input decides here, in and out of autocast",
    "nn.functional.linear_cross_entropy|chunked": "a loss, so float32; PyTorch leaves its prototype in half precision",
    "nn.functional.linear_cross_entropy|chunked_none": "the same",
    "max_pool2d_with_indices_backward": "only in torch.ops",
}


def dtypes_of(value):
    if hasattr(value, "dtype"):
        return str(value.dtype)
    return tuple(dtypes_of(v) for v in value) if isinstance(value, (list, tuple)) else type(value).__name__


def lowered(value, dtype):
    """Float32 tensors of a sample in another dtype."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype is torch.float32 else value
    if isinstance(value, dict):
        return {k: lowered(v, dtype) for k, v in value.items()}
    return type(value)(lowered(v, dtype) for v in value) if isinstance(value, (list, tuple)) else value


def difference(op, sample, fast, dtype):
    """What the entry gives under autocast on both sides, if PyTorch gives anything and it is not the same."""
    input, args, kwargs = (lowered(v, dtype) for v in (sample.input, sample.args, sample.kwargs))
    with torch.autocast("cpu", dtype=fast):
        try:
            expected = dtypes_of(op(input, *args, **kwargs))
        except Exception:
            return None
    converter = convert.Converter()
    with rushlight.autocast("cpu", dtype=converter(fast)):
        try:
            got = dtypes_of(opdb.counterpart(op)(converter(input), *converter(args), **converter(kwargs)))
        except Exception as error:
            got = repr(error)
    return None if got == expected else f"{dtype} under {fast}: {got} instead of {expected}"


def differences(op) -> list[str]:
    samples = list(itertools.islice(op.sample_inputs("cpu", torch.float32), 40))
    samples = [*samples[:1], *samples[len(samples) // 2 :][:1]]
    combinations = [(fast, dtype) for fast in HALVES for dtype in (torch.float32, fast)]
    found = (difference(op, s, *c) for s in samples for c in combinations)
    return [text for text in found if text is not None]


@pytest.mark.parametrize("group", ["torch", "nn.functional", "linalg", "fft", "special"])
def test_dtypes_of_every_entry_of_the_operator_database(group):
    torch.manual_seed(0)
    wrong, checked = {}, 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, op in opdb.SCORED.items():
            if opdb.group_of(op) != group or torch.float32 not in op.dtypes or name in DIFFERENT:
                continue
            checked += 1
            found = differences(op)
            if found:
                wrong[name] = found
    assert wrong == {}
    assert checked > 10


def cases_of_pytorchs_list():
    lists = AutocastCPUTestLists(torch.device("cpu"))
    private = {"_addmm_activation", "_native_multi_head_attention", "reflection_pad1d", "nll_loss2d"}
    for kind in ("torch_16", "torch_fp32", "nn_16", "nn_fp32", "torch_expect_builtin_promote"):
        for entry in getattr(lists, kind):
            # margin_ranking_loss has shapes there that PyTorch's own Python function refuses.
            if entry[0] not in private | {"margin_ranking_loss"}:
                kwargs = next((e for e in entry[2:] if isinstance(e, dict)), {})
                yield pytest.param(kind, entry[0], entry[1], kwargs, id=f"{kind}-{entry[0]}")


@pytest.mark.parametrize("fast", HALVES)
@pytest.mark.parametrize(("kind", "name", "args", "kwargs"), list(cases_of_pytorchs_list()))
def test_pytorchs_own_list(kind, name, args, kwargs, fast):
    args = args if isinstance(args, tuple) else (args,)
    function = getattr(torch._C._nn if kind.startswith("nn") else torch, name)
    with torch.autocast("cpu", dtype=fast):
        expected = dtypes_of(function(*args, **kwargs))
    converter = convert.Converter()
    function = getattr(rushlight.nn.functional, name, None) if kind.startswith("nn") else getattr(rushlight, name)
    with rushlight.autocast("cpu", dtype=converter(fast)):
        assert dtypes_of(function(*converter(args), **converter(kwargs))) == expected


def on_both(function):
    """``function(framework)`` gives the same on both, with the same warnings."""
    results = []
    for framework in BOTH:
        framework.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function(framework)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
        results.append((result, [str(w.message) for w in caught]))
    assert results[0] == results[1]
    return results[0][0]


EQUATIONS = [
    ("i,i->", (3,), (3,)), ("i,j->ij", (3,), (4,)), ("ij,jk->ik", (3, 4), (4, 5)), ("ij,j->i", (3, 4), (4,)),
    ("ij,ij->", (3, 4), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,ij->ij", (3, 4), (3, 4)),
    ("ij,kj->ikj", (3, 4), (5, 4)), ("ij->j", (3, 4)), ("i,ij,j->", (3,), (3, 4), (4,)),
]  # fmt: skip


def test_products_by_their_shapes():
    def run(f):
        x = f.randn
        with f.autocast("cpu"):
            made = [f.einsum(equation, *map(x, shapes)) for equation, *shapes in EQUATIONS]
            for a, b, dims in [((3,), (3,), 1), ((3, 4), (4, 5), 1), ((3, 4), (3, 4), 2), ((2,), (3,), 0)]:
                made.append(f.tensordot(x(a), x(b), dims))
            for a, b in [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3))]:
                made.append(f.inner(x(a), x(b)))
            for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2))]:
                made.append(x(a) @ x(b))
            made += [f.mv(x(2, 3), x(3)), f.dot(x(3), x(3)), f.addmv(x(2), x(2, 3), x(3)), f.outer(x(3), x(4))]
            made += [f.linalg.multi_dot([x(3), x(3, 4), x(4)]), f.nn.functional.linear(x(3), x(4, 3))]
            return dtypes_of(made)

    on_both(run)


def test_layers():
    has_lstm = _has_lstm()

    def run(f):
        nn, x = f.nn, f.randn
        with f.autocast("cpu"):
            made = [getattr(nn, name)(3, 4)(x(5, 2, 3)) for name in ("GRU", "RNN", *["LSTM"] * has_lstm)]
            made += [getattr(nn, name + "Cell")(3, 4)(x(2, 3)) for name in ("LSTM", "GRU", "RNN")]
            made.append(nn.MultiheadAttention(4, 2)(x(3, 2, 4), x(3, 2, 4), x(3, 2, 4)))
            made.append(nn.TransformerEncoderLayer(4, 2, 8)(x(3, 2, 4)))
            made += [
                nn.ConvTranspose2d(2, 3, 3)(x(1, 2, 5, 5)),
                nn.PReLU()(x(3)),
                nn.Bilinear(2, 3, 4)(x(5, 2), x(5, 3)),
            ]
            for dims in (1, 2, 3):
                for mode in ("reflect", "replicate", "circular", "constant"):
                    made.append(nn.functional.pad(x(2, 3, *[5] * dims).bfloat16(), (1, 1) * dims, mode=mode))
            half, probabilities = x(4, 3).bfloat16(), f.rand(4, 3)
            made.append(nn.functional.binary_cross_entropy(half.sigmoid(), probabilities))
            made.append(nn.functional.cross_entropy(x(4, 3).double(), f.tensor([0, 1, 2, 0])))
            return dtypes_of(made)

    on_both(run)


def test_regions():
    """Nested, switched off, for another device, as decorators; what is left behind."""

    def run(f):
        seen = []

        def note():
            product = f.ones(2, 2) @ f.ones(2, 2)
            flags = f.is_autocast_enabled("cpu"), f.is_autocast_enabled("cuda"), f.get_autocast_dtype("cpu")
            seen.append(dtypes_of(product) + str(flags))

        note()
        with f.autocast("cpu"):
            note()
            with f.autocast("cpu", enabled=False):
                note()
                with f.autocast("cpu", dtype=f.float16):
                    note()
            note()
            with f.autocast("cuda", enabled=False):
                note()
            f.autocast("cpu", enabled=False)(note)()
            f.amp.autocast("cpu", dtype=f.float16)(note)()
        try:
            with f.autocast("cpu"):
                raise KeyError
        except KeyError:
            note()
        region = f.autocast("cpu")
        for _ in range(2):
            with region:  # again and again, but not inside itself: PyTorch's forgets to switch off then
                note()
        note()
        return seen

    on_both(run)


def test_bad_regions():
    def unsupported(f):
        with f.autocast("cpu", dtype=f.float32):
            return dtypes_of(f.ones(2, 2) @ f.ones(2, 2))

    assert on_both(unsupported) == "torch.float32"
    on_both(lambda f: f.autocast(1) and None)
    for framework in BOTH:
        assert framework.amp.is_autocast_available("cpu")
        assert not framework.is_autocast_enabled("cpu")


@pytest.mark.parametrize("cast", [None, "float32", "bfloat16"])
@pytest.mark.parametrize("enabled", [True, False])
def test_custom_functions(cast, enabled):
    def run(f):
        seen = []

        class Product(f.autograd.Function):
            @staticmethod
            @f.amp.custom_fwd(device_type="cpu", cast_inputs=cast and getattr(f, cast))
            def forward(ctx, a, b):
                seen.append((dtypes_of(a), dtypes_of(b), f.is_autocast_enabled("cpu"), dtypes_of(a @ b)))
                ctx.save_for_backward(a, b)
                return a @ b

            @staticmethod
            @f.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                seen.append((dtypes_of(g), f.is_autocast_enabled("cpu"), dtypes_of(f.ones(2, 2) @ f.ones(2, 2))))
                return g @ b.t().to(g.dtype), a.t().to(g.dtype) @ g

        a = f.ones(2, 2, requires_grad=True)
        b = f.ones(2, 2, dtype=f.bfloat16, requires_grad=True)
        b = b if cast or enabled else f.ones(2, 2, requires_grad=True)
        with f.autocast("cpu", enabled=enabled):
            y = Product.apply(a, b)
        y.float().sum().backward()
        return seen, dtypes_of(y), dtypes_of(a.grad), dtypes_of(b.grad), a.grad.tolist()

    on_both(run)


@pytest.mark.parametrize("fast", ["bfloat16", "float16"])
def test_a_training_run_under_autocast(fast):
    """Losses agree within half precision, and gradients arrive in float32."""
    losses = []
    weights = [np.random.RandomState(i).randn(*s).astype(np.float32) / 4 for i, s in enumerate([(16, 8), (4, 16)])]
    x, t = np.random.RandomState(9).randn(32, 8).astype(np.float32), np.random.RandomState(8).randint(0, 4, 32)
    for f in BOTH:
        params = [f.tensor(w).requires_grad_() for w in weights]
        optimizer, scaler = f.optim.SGD(params, lr=0.5), f.amp.GradScaler("cpu", init_scale=128.0, growth_interval=4)
        curve = []
        for _ in range(20):
            optimizer.zero_grad()
            with f.autocast("cpu", dtype=getattr(f, fast)):
                hidden = f.tanh(f.nn.functional.linear(f.tensor(x), params[0]))
                loss = f.nn.functional.cross_entropy(f.nn.functional.linear(hidden, params[1]), f.tensor(t))
            assert dtypes_of((hidden, loss)) == (f"torch.{fast}", "torch.float32")
            scaler.scale(loss).backward()
            assert dtypes_of([p.grad for p in params]) == ("torch.float32",) * 2
            scaler.step(optimizer)
            scaler.update()
            curve.append(loss.item())
        losses.append([*curve, scaler.get_scale()])
    assert losses[0][-1] == losses[1][-1] == 128.0 * 2**5
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.02)
    assert losses[1][-2] < 0.6 * losses[1][0]


# -- GradScaler ------------------------------------------------------------------------------------------------------


def test_a_long_run_of_the_scaler():
    """Growth, backoff, skipped steps, early unscaling, saving and loading into the other framework's format."""

    def run(f):
        rng, rows = np.random.RandomState(0), []
        w = f.ones(3).requires_grad_()
        v = f.ones(2).requires_grad_()
        optimizers = f.optim.SGD([w], lr=0.125), f.optim.Adam([v], lr=0.125)
        scaler = f.amp.GradScaler("cpu", init_scale=4.0, growth_factor=2.0, backoff_factor=0.25, growth_interval=3)
        rows.append((scaler.get_scale(), scaler.state_dict()))
        for i in range(40):
            for optimizer in optimizers:
                optimizer.zero_grad()
            scaler.scale((w * w).sum() + v.sum()).backward()
            rows.append(w.grad.tolist())
            if rng.rand() < 0.2:
                w.grad[1] = float("inf") if rng.rand() < 0.5 else float("nan")
            if i % 3 == 0:
                scaler.unscale_(optimizers[0])
                rows.append(w.grad.tolist()[0])
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update(16.0 if i == 25 else None)
            if i == 20:
                state = scaler.state_dict()
                scaler = f.amp.GradScaler("cpu")
                scaler.load_state_dict(state)
            rows.append((w.tolist(), scaler.get_scale(), scaler.state_dict()))
        scaler.set_growth_factor(3.0), scaler.set_backoff_factor(0.1), scaler.set_growth_interval(7)
        rows.append((scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()))
        return str(rows)

    text = on_both(run)
    assert "inf" not in text and "nan" not in text.replace("nan, ", "")


def with_scaler(f, **options):
    w = f.ones(2).requires_grad_()
    return f.amp.GradScaler("cpu", **options), f.optim.SGD([w], lr=0.1), w


def scaled_backward(scaler, w):
    scaler.scale(w.sum()).backward()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda s, o, w: s.step(o),
        lambda s, o, w: s.update(),
        lambda s, o, w: s.unscale_(o),
        lambda s, o, w: (s.scale(w.sum()), s.step(o)),
        lambda s, o, w: (scaled_backward(s, w), s.update()),
        lambda s, o, w: (scaled_backward(s, w), s.unscale_(o), s.unscale_(o)),
        lambda s, o, w: (scaled_backward(s, w), s.step(o), s.unscale_(o)),
        lambda s, o, w: (scaled_backward(s, w), s.step(o), s.step(o)),
        lambda s, o, w: (scaled_backward(s, w), s.step(o, closure=lambda: 1)),
        lambda s, o, w: s.scale(3.5),
        lambda s, o, w: s.load_state_dict({}),
        lambda s, o, w: str([v.tolist() for v in s.scale([w * 1, (w * 2).sum()])]),
        lambda s, o, w: str([v.tolist() for v in s.scale(v for v in (w * 1, w * 2))]),
        lambda s, o, w: (s.scale(w.double()).dtype.itemsize, s.is_enabled()),
    ],
)
def test_misuse_of_the_scaler(misuse):
    on_both(lambda f: misuse(*with_scaler(f)))


@pytest.mark.parametrize("options", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"enabled": False}])
def test_options_of_the_scaler(options):
    def run(f):
        scaler, optimizer, w = with_scaler(f, **options)
        w.grad = f.full((2,), float("inf")) if options.get("enabled", True) else f.ones(2)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return w.tolist(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled(), scaler.scale(w.sum()).item()

    on_both(run)


def test_scalers_survive_pickle():
    import pickle

    def run(f):
        scaler, optimizer, w = with_scaler(f, init_scale=8.0)
        scaled_backward(scaler, w)
        scaler.step(optimizer)
        scaler.update()
        return pickle.loads(pickle.dumps(scaler)).state_dict()

    on_both(run)


@pytest.mark.parametrize(
    "line",
    [
        "T.amp.GradScaler().is_enabled()",
        "T.amp.GradScaler('cuda').scale(T.tensor(1.0)).item()",
        "T.cuda.amp.GradScaler().get_scale()",
        "T.cuda.amp.GradScaler(enabled=False).get_scale()",
        "T.amp.GradScaler('cpu').get_scale()",
        "T.cpu.amp.GradScaler().get_scale()",
        "T.autocast('cuda')._enabled",
        "T.cuda.amp.autocast()._enabled",
        "T.cuda.amp.autocast(enabled=False)._enabled",
        "T.cpu.amp.autocast().fast_dtype",
        "T.cuda.amp.custom_fwd(len) and 1",
        "T.cuda.amp.custom_bwd(len) and 1",
        "list(T.utils.data.DataLoader([1, 2], pin_memory=True))",
    ],
)
def test_older_names_and_devices_that_are_not_there(line):
    answers = []
    for library in (rushlight, torch):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            answers.append((repr(eval(line, {"T": library})), [(w.category, str(w.message)) for w in told]))
    assert answers[0] == answers[1]
