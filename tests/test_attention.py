"""Attention: fused bodies against the plain composition, masks, dropout, compile."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.autograd.op import differentiable as xp
from rushlight.nn import functional as F

MASKS = [None, "float", "inf", "bool"]


def inputs(mask, noise, dtype, device, value_width=6):
    def normal(*shape):
        return rushlight.randn(shape, dtype=dtype)

    q, k, v = normal(2, 3, 4, 6), normal(2, 3, 5, 6), normal(2, 3, 5, value_width)
    m = None
    if mask == "float":
        m = normal(3, 4, 5)
    elif mask == "inf":
        m = normal(4, 5)
        m[0] = -math.inf  # a row that may look nowhere
        m[1, 2] = -math.inf
    elif mask == "bool":
        m = normal(2, 1, 4, 5) > 0
        m[0, 0, 1] = False
    n = (normal(2, 3, 4, 5) > 0).to(dtype) * 2 if noise else None
    made = [None if t is None else t.to(device) for t in (q, k, v, m, n)]
    return [t.requires_grad_() if t is not None and t.dtype == dtype and i < 4 else t for i, t in enumerate(made)]


@pytest.mark.parametrize("device", ["cpu", "xla"])
@pytest.mark.parametrize(("mask", "noise", "causal", "double"), [*itertools.product(MASKS, *[(False, True)] * 3)])
def test_fused_attention_equals_the_composition(mask, noise, causal, double, device):
    dtype = rushlight.float64 if double else rushlight.float32
    args = inputs(mask, noise, dtype, device, value_width=7 if double else 6)
    static = {"scale": 0.4, "causal": causal}
    fused, plain = xp.attention(*args, **static), xp.attention.op.forward(xp, *args, **static)
    leaves = [t for t in args if t is not None and t.requires_grad]
    cotangent = rushlight.randn(fused.shape, dtype=dtype).to(device)
    expected = rushlight.autograd.grad(plain, leaves, cotangent)
    recorded = rushlight.autograd.grad(fused, leaves, cotangent, create_graph=True)
    found = rushlight.autograd.grad(fused, leaves, cotangent)
    tolerance = {"rtol": 1e-8, "atol": 1e-10} if double else {"rtol": 1e-4, "atol": 1e-5}
    for a, b in zip([fused, *found, *recorded], [plain, *expected, *expected], strict=True):
        np.testing.assert_allclose(array(a), array(b), **tolerance)


def array(t):
    return t.detach().cpu().numpy()


def test_a_row_that_may_look_nowhere_is_zero():
    q = rushlight.randn(1, 1, 2, 4, requires_grad=True)
    mask = rushlight.tensor([[True, False], [False, False]])
    y = F.scaled_dot_product_attention(q, q, q, mask)
    assert (y[0, 0, 1] == 0).all()
    y.sum().backward()
    assert q.grad.isfinite().all()


def test_many_heads_are_done_in_blocks(monkeypatch):
    from rushlight.engine.numpy.kernels import parallel

    q, k, v = (rushlight.randn(4, 3, 5, 6, requires_grad=True) for _ in range(3))
    mask = rushlight.randn(4, 1, 5, 5)
    results = []
    for size in (1 << 17, 5 * 5 * 2):  # everything at once, and two heads at a time
        monkeypatch.setattr(parallel, "BLOCK", size)
        y = F.scaled_dot_product_attention(q, k, v, mask)
        results.append([y, *rushlight.autograd.grad(y.sum(), [q, k, v])])
    for a, b in zip(*results):
        np.testing.assert_allclose(array(a), array(b), rtol=1e-5, atol=1e-6)


def test_the_weights_are_not_kept():
    q = rushlight.randn(1, 2, 64, 4, requires_grad=True)
    y = F.scaled_dot_product_attention(q, q, q)
    kept = sum(a.nbytes for a in y.grad_fn.details.residuals)
    assert kept < 64 * 64 * 2 * 4


@pytest.mark.parametrize("mask", [None, "float", "bool"])
@pytest.mark.parametrize("causal", [False, True])
def test_two_orders_of_gradients(mask, causal):
    q, k, v, m, _ = inputs(mask, False, rushlight.float64, "cpu")
    leaves = [t[:1, :1].detach().requires_grad_() for t in (q, k, v)]
    if m is not None:
        m = m[:1].detach() if mask == "bool" else m[:1].detach().requires_grad_()
        leaves += [m] if mask == "float" else []

    def run(q, k, v, *rest):
        return xp.attention(q, k, v, rest[0] if rest else m, None, scale=0.5, causal=causal)

    assert gradcheck(run, tuple(leaves))
    assert gradgradcheck(run, tuple(leaves))


def test_grouped_queries():
    q, kv = rushlight.randn(2, 6, 4, 8), rushlight.randn(2, 2, 4, 8)
    got = F.scaled_dot_product_attention(q, kv, kv, enable_gqa=True)
    whole = kv.repeat_interleave(3, 1)
    np.testing.assert_allclose(array(got), array(F.scaled_dot_product_attention(q, whole, whole)), rtol=1e-6)


def test_dropout_keeps_the_mean():
    q, k = rushlight.randn(8, 4, 16, 8), rushlight.randn(8, 4, 16, 8)
    v = rushlight.ones(8, 4, 16, 8)
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    assert abs(y.mean().item() - 1) < 0.05 and y.std().item() > 0.1
    assert (F.scaled_dot_product_attention(q, k, v, dropout_p=1.0) == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("device", ["cpu", "xla"])
def test_other_dtypes(dtype, device):
    dtype = getattr(rushlight, dtype)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(device)
    x = rushlight.randn(2, 4, 8).to(device)
    expected = layer(x)
    y = layer.to(dtype)(x.to(dtype))
    assert y.dtype == dtype
    y.sum().backward()
    assert layer.self_attn.in_proj_weight.grad.dtype == dtype
    np.testing.assert_allclose(y.detach().cpu().float().numpy(), array(expected), atol=0.1)


def test_causal_hint_equals_the_mask():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x, mask = rushlight.randn(2, 5, 8), nn.Transformer.generate_square_subsequent_mask(5)
    with_mask, weights = layer(x, x, x, attn_mask=mask)
    hinted, none = layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
    assert none is None
    assert (weights.triu(1) == 0).all()
    np.testing.assert_allclose(array(hinted), array(with_mask), rtol=1e-5, atol=1e-6)


def test_a_compiled_transformer_step():
    losses = []
    for compiled in (False, True):
        rushlight.manual_seed(0)
        model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        src, tgt = rushlight.randn(2, 4, 8), rushlight.randn(2, 3, 8)
        mask = nn.Transformer.generate_square_subsequent_mask(3)
        optimizer = rushlight.optim.Adam(model.parameters(), lr=1e-2)

        def step(src, tgt, model=model, mask=mask, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (model(src, tgt, tgt_mask=mask, tgt_is_causal=True) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        step = rushlight.compile(step) if compiled else step
        losses.append([step(src, tgt).item() for _ in range(5)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_flexible_attention_compiles_and_has_gradients():
    from rushlight.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (rushlight.randn(2, 4, 24, 8, requires_grad=True) for _ in range(3))
    bias, cotangent = rushlight.zeros(4, 48, requires_grad=True), rushlight.randn(2, 4, 24, 8)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 24, 24, BLOCK_SIZE=8)

    def run(q, k, v):
        return flex_attention(q, k, v, lambda score, b, h, i, j: score + bias[h, i - j + 24], mask)

    compiled = rushlight.compile(run)
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = [plain, *rushlight.autograd.grad(plain, (q, k, v), cotangent)]
    moved = rushlight.autograd.grad(run(q, k, v), bias, cotangent)[0]
    assert moved.abs().sum() > 0
    for function in (run, compiled, compiled, compiled):
        y = function(q, k, v)
        *found, slope = rushlight.autograd.grad(y, (q, k, v, bias), cotangent)
        for a, b in zip([y, *found, slope], [*expected, moved], strict=True):
            np.testing.assert_allclose(array(a), array(b), rtol=1e-4, atol=1e-5)
