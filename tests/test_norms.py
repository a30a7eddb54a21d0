"""Normalization and dropout: fused bodies against the plain rule, derivatives, running statistics, half precision."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.engine.numpy import namespace as engine
from rushlight.nn import functional as F
from rushlight.ops import norm as ops

FORMS = {
    "layer": ((5, 7, 6), lambda x, w, b: ops.layer_norm_stats(x, (7, 6), w, b, 1e-5), (7, 6)),
    "layer, all": ((5, 6), lambda x, w, b: ops.layer_norm_stats(x, (5, 6), w, b, 1e-5), (5, 6)),
    "group": ((4, 6, 3, 2), lambda x, w, b: ops.group_norm_stats(x, 3, w, b, 1e-5), (6,)),
    "group, shown": ((4, 6, 3, 2), lambda x, w, b: ops.group_norm_stats(x, 3, w, b, 1e-5, shown=True), (6,)),
    "instance": ((4, 3, 5), lambda x, w, b: ops.instance_norm_stats(x, w, b, 1e-5), (3,)),
    "batch": ((8, 3, 5), lambda x, w, b: ops.batch_norm_stats(x, w, b, 1e-5), (3,)),
    "batch, flat": ((8, 3), lambda x, w, b: ops.batch_norm_stats(x, w, b, 1e-5), (3,)),
}


def _values(*shape, dtype="float64", shift=0.0):
    return rushlight.tensor(np.random.default_rng(0).normal(shift, 2.0, shape).astype(dtype))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [1 << 15, 8])  # all at once; in several blocks
@pytest.mark.parametrize("wanted", ["x w b", "x", "w", "b", "w b", "x, no w", "x w, no b"])
def test_fused_norms_equal_the_plain_rule(form, block, wanted, monkeypatch):
    shape, function, affine = FORMS[form]
    kernels = engine.norms.parallel
    monkeypatch.setattr(kernels, "BLOCK", block)

    def run():
        x, w, b = _values(*shape, shift=1.0), _values(*affine), _values(*affine)
        tensors = {"x": x, "w": None if "no w" in wanted else w, "b": None if "no " in wanted else b}
        for name in wanted.split(",")[0].split():
            tensors[name].requires_grad_()
        outputs = function(**tensors)
        outputs[0].backward(_values(*shape))
        return [t.detach() for t in outputs] + [t.grad for t in tensors.values() if t is not None]

    fused = run()
    monkeypatch.delitem(engine.BACKWARD, "normalized")
    monkeypatch.setattr(ops.xp.normalized.op, "residuals", False)
    plain = _with_plain_forward(run, monkeypatch)
    for a, b in zip(fused, plain, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_statistics_have_gradients_only_where_they_are_shown(form):
    shape, function, affine = FORMS[form]
    x, w, b = _values(*shape).requires_grad_(), _values(*affine), _values(*affine)
    y, *statistics = function(x, w, b)
    assert y.requires_grad
    assert [t.requires_grad for t in statistics] == [form == "group, shown"] * 3
    found = rushlight.ops.aten.native_layer_norm(x, shape[-1:], None, None, 1e-5)
    assert [t.requires_grad for t in found] == [True, False, False]


def _with_plain_forward(run, monkeypatch):
    """``run`` with the op called again from its declaration, without the engine's body."""
    from rushlight.autograd.call import caller

    monkeypatch.delitem(engine.BODIES, "normalized")
    declared = ops.xp.normalized.op
    for name in ("batch", "layer", "group", "shown_group", "instance"):
        monkeypatch.setattr(ops, f"{name}_normalized", caller(declared))
    return run()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("block", [1 << 15, 8])
@pytest.mark.parametrize("affine", [True, False])
def test_fused_rms_norm_equals_the_plain_rule(dtype, block, affine, monkeypatch):
    monkeypatch.setattr(engine.norms.parallel, "BLOCK", block)
    x, g, w = (_values(*shape, dtype=dtype, shift=1.0).numpy() for shape in ((5, 7, 6), (5, 7, 6), (7, 6)))
    w, static = w if affine else None, {"axes": (1, 2), "eps": 1e-5}
    y, scale = engine.BODIES["rms_normalized"](3, x, w, **static)
    gx, gw = engine.BACKWARD["rms_normalized"](g, (1, 1), {"x": x, "w": w, "aux": scale, **static})
    op = ops.xp.rms_normalized.op
    aux = op.aux(engine, x, *static.values())
    np.testing.assert_allclose(y, op.forward(engine, x, w, aux=aux, **static), rtol=1e-9)
    np.testing.assert_allclose(gx, op.rules["x"].function(engine, g, x, w, (1, 2), aux), rtol=1e-9, atol=1e-12)
    to_w = op.rules["w"].function(engine, g, x, (7, 6), aux)
    np.testing.assert_allclose(gw.reshape(7, 6), to_w, rtol=1e-9, atol=1e-12)


def test_rms_norm_has_correct_derivatives():
    inputs = [_values(*s).requires_grad_() for s in ((4, 3, 5), (3, 5))]
    assert gradcheck(lambda x, w: F.rms_norm(x, (3, 5), w), inputs)
    assert gradgradcheck(lambda x, w: F.rms_norm(x, (3, 5), w), inputs, fast_mode=True)


@pytest.mark.parametrize("form", FORMS)
def test_norms_have_correct_derivatives(form):
    shape, function, affine = FORMS[form]
    inputs = [_values(*s).requires_grad_() for s in (shape, affine, affine)]
    assert gradcheck(lambda *t: function(*t)[0], inputs)
    assert gradgradcheck(lambda *t: function(*t)[0], inputs, fast_mode=True)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_gelu_equals_the_plain_rule(approximate, dtype):
    x = _values(3, 5000, dtype=dtype).requires_grad_()
    y = F.gelu(x, approximate)
    y.backward(_values(3, 5000, dtype=dtype))
    forward, rule = rushlight.ops.activation.gelu.op.forward, rushlight.ops.activation.gelu.op.rules["x"].function
    array, g = x.detach().numpy(), _values(3, 5000, dtype=dtype).numpy()
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(y.detach().numpy(), forward(engine, array, approximate=approximate), **tolerance)
    np.testing.assert_allclose(x.grad.numpy(), rule(engine, g, array, approximate), **tolerance)


def test_running_statistics_follow_the_batches():
    layer = nn.BatchNorm1d(2, momentum=0.5)
    x = rushlight.tensor([[1.0, 10.0], [3.0, 30.0]])
    layer(x)
    assert layer.running_mean.tolist() == [1.0, 10.0]  # half way from 0 to (2, 20)
    assert layer.running_var.tolist() == [1.5, 100.5]  # half way from 1 to (2, 200), the unbiased variances
    assert layer.num_batches_tracked == 1
    layer.eval()
    np.testing.assert_allclose(layer(x)[0].tolist(), [0.0, 0.0], atol=1e-6)
    assert layer.num_batches_tracked == 1


def test_momentum_none_is_the_plain_average():
    layer = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 3.0, 8.0):
        layer(rushlight.tensor([[value], [value]]))
    assert layer.running_mean.item() == pytest.approx(4.0)


def test_without_running_statistics_evaluation_uses_the_batch():
    layer = nn.BatchNorm1d(2, track_running_stats=False).eval()
    y = layer(rushlight.tensor([[0.0, 5.0], [2.0, 7.0]]))
    np.testing.assert_allclose(y.tolist(), [[-1.0, -1.0], [1.0, 1.0]], atol=1e-4)
    assert layer.running_mean is None and "running_mean" not in layer.state_dict()


def test_batch_norm_in_half_precision_keeps_single_statistics():
    x = _values(64, 4, dtype="float32", shift=3.0)
    single, half = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    single(x)
    assert half(x.half()).dtype is rushlight.float16
    assert half.running_mean.dtype is rushlight.float32
    np.testing.assert_allclose(half.running_mean.numpy(), single.running_mean.numpy(), rtol=1e-3)


def test_sync_batch_norm_takes_over_the_state():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(converted[1]) is nn.SyncBatchNorm and converted[1].weight is model[1].weight
    assert not converted[1].training


@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16, rushlight.float64])
@pytest.mark.parametrize(
    "layer, shape",
    [
        (nn.LayerNorm(6), (4, 6)), (nn.RMSNorm(6), (4, 6)), (nn.GroupNorm(2, 6), (4, 6, 3)),
        (nn.BatchNorm1d(6), (4, 6)),
        (nn.InstanceNorm1d(6, affine=True), (4, 6, 3)), (nn.LocalResponseNorm(2), (4, 6, 3)), (nn.GELU(), (4, 6)),
        (nn.PReLU(), (4, 6)), (nn.Dropout(0.5), (4, 6)), (nn.SiLU(), (4, 6)), (nn.Softmax(1), (4, 6)),
    ],
)  # fmt: skip
def test_other_precisions(layer, shape, dtype):
    layer = layer.to(dtype)
    x = rushlight.tensor(np.random.default_rng(0).normal(size=shape)).to(dtype).requires_grad_()
    y = layer(x)
    y.sum().backward()
    assert y.dtype is x.grad.dtype is dtype
    assert bool(rushlight.isfinite(x.grad).all())


def test_dropout_keeps_a_mask_of_bytes_and_scales():
    rushlight.manual_seed(0)
    x = rushlight.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.25)
    (mask,) = [t for t in y.grad_fn.saved_tensors if t is not x]
    assert mask.dtype is rushlight.bool
    assert sorted(set(y.tolist())) == [0.0, pytest.approx(1 / 0.75)]
    assert 0.2 < (y == 0).float().mean().item() < 0.3
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_dropout_of_channels_and_at_the_ends():
    rushlight.manual_seed(0)
    y = F.dropout2d(rushlight.ones(8, 8, 3, 3), 0.5)
    per_channel = y.reshape(64, 9)
    assert bool((per_channel == per_channel[:, :1]).all()) and 0 < (per_channel[:, 0] == 0).sum() < 64
    x = rushlight.ones(4)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0.0] * 4
    z = rushlight.ones(100)
    assert F.dropout(z, 0.5, inplace=True) is z and set(z.tolist()) == {0.0, 2.0}
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1\.5"):
        F.dropout(x, 1.5)


def test_alpha_dropout_keeps_mean_and_variance():
    rushlight.manual_seed(0)
    y = F.alpha_dropout(rushlight.randn(200_000), 0.3, training=True)
    assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "complex64"])
def test_choosing_by_bits_is_where(dtype):
    rng = np.random.default_rng(0)
    condition = rng.random((70, 1000)) < 0.5  # more than one block
    x, w = (rng.normal(size=(70, 1000)).astype(dtype) for _ in range(2))
    if dtype.startswith("float"):
        x[0, :3] = [np.nan, np.inf, -0.0]
    for a, b in ((x, w), (x, 0), (0, w), (x, 2), (x[:, ::-1], w), (x[:1], w), (x, np.float64(1)), (1.0, 0.0)):
        chosen, expected = engine.where(condition, a, b), np.where(condition, a, b)
        assert chosen.dtype == expected.dtype
        np.testing.assert_array_equal(chosen, expected)


def test_rows_add_up():
    rng = np.random.default_rng(0)
    index = np.concatenate([rng.integers(0, 50, 200), np.full(40, 7)])  # row 7 often enough to be summed as a product
    value = rng.normal(size=(240, 2, 3))
    expected = np.zeros((60, 2, 3))
    np.add.at(expected, index, value)
    np.testing.assert_allclose(engine.add_rows(value, index, 60), expected, rtol=1e-12)
    np.testing.assert_allclose(engine.add_rows(value[:, 0, 0], index, 60), expected[:, 0, 0], rtol=1e-12)
    assert engine.add_rows(value[:0], index[:0], 3).shape == (3, 2, 3)


@pytest.mark.parametrize("name", ["layer", "group", "plain"])
def test_the_gradient_of_rows_that_vary_little_is_not_the_rounding_of_their_mean(name):
    x = (rushlight.linspace(-2, 2, 12)[:, None, None] + 0.02 * rushlight.linspace(-1, 1, 8).reshape(4, 2)).float()
    x.requires_grad_()
    y = F.group_norm(x, 1) if name == "group" else F.layer_norm(x, (4, 2))
    (slope,) = rushlight.autograd.grad(y, x, rushlight.ones_like(y), create_graph=name == "plain")
    assert slope.abs().max() < 1e-4  # it is 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.1, 1e4 + 0.3])
@pytest.mark.parametrize("shape", [(4, 6, 20, 20), (3, 6, 700), (500, 6)])
def test_numbers_that_are_all_alike_are_normalized_to_zero(shape, value, dtype):
    """However their sum is rounded: the rounding of a mean would be divided by the root of eps."""
    x = rushlight.full(shape, value, dtype=getattr(rushlight, dtype))
    for y in (F.layer_norm(x, shape[1:]), F.group_norm(x, 3), F.batch_norm(x, None, None, training=True)):
        assert y.abs().max() < 1e-9


@pytest.mark.parametrize("shape", [(6, 5), (8, 3, 6, 5), (64, 3, 40, 40)])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_the_mean_of_numbers_with_an_infinite_one_is_that(shape, value):
    x = rushlight.randn(shape)
    x[0, 1] = value
    layer = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(shape[1])
    layer(x)
    assert layer.running_mean[1] == value and layer.running_var[1].isnan()
    assert layer.running_mean.isfinite().sum() == shape[1] - 1
