"""Attention in C: equal to the plain rule in double precision, forward and backward, with masks and dropout."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy.kernels import attention as kernels

pytestmark = pytest.mark.skipif(native.library is None, reason=f"the kernels in C are not there: {native.reason}")

# leading dimensions of q, of k and v; queries, keys, size, size of a value
SHAPES = [
    ((2, 3), (2, 3), 20, 20, 8, 8),
    ((2, 3), (2, 3), 7, 65, 33, 5),
    ((2,), (2,), 130, 50, 16, 49),
    ((), (), 5, 9, 4, 4),
    ((2, 1, 3), (2, 2, 3), 12, 12, 6, 6),
    ((1, 2), (1, 2), 300, 700, 20, 20),
    # few queries: keys and values are read where they lie if their rows are whole vectors
    ((2, 3), (2, 3), 1, 150, 64, 32),
    ((3, 1), (3, 2), 4, 600, 48, 16),
    ((2,), (2,), 3, 40, 16, 7),
    ((2, 2), (2, 2), 1, 45, 16, 16),
    ((2, 2), (2, 2), 2, 37, 32, 33),
]
MASKS = ["none", "causal", "float", "bool", "per head", "noise"]


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def plain(q, k, v, mask, noise, scale, causal, g):
    """Value and gradients in double precision, with all weights at once."""
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    p = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = p.sum(-1, keepdims=True)
    p = p / np.where(total == 0, 1, total)
    factor = 1 if noise is None else noise
    dp = g @ v.swapaxes(-1, -2) * factor
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dq, dk, dv = ds @ k * scale, ds.swapaxes(-1, -2) @ q * scale, (p * factor).swapaxes(-1, -2) @ g
    return (p * factor) @ v, dq, dk, dv


def problem(shape, kind, dtype):
    q_lead, k_lead, queries, keys, size, value = shape
    q, k, v = (
        numbers(*q_lead, queries, size),
        numbers(*k_lead, keys, size, seed=1),
        numbers(*k_lead, keys, value, seed=2),
    )
    lead = np.broadcast_shapes(q_lead, k_lead)
    g = numbers(*lead, queries, value, seed=3)
    mask = noise = None
    if kind == "float":
        mask = numbers(queries, keys, seed=4)
        mask[queries // 2, :3] = -np.inf
    elif kind == "bool":
        mask = numbers(queries, keys, seed=4) > -0.5
        mask[-1] = False  # looks nowhere
    elif kind == "per head":
        mask = numbers(*lead, 1, keys, seed=4)
    elif kind == "noise":
        noise = (numbers(*lead, queries, keys, seed=4) > -0.5) / 0.7
    given = [None if a is None else a if a.dtype == bool else a.astype(dtype) for a in (q, k, v, mask, noise, g)]
    return given, kind == "causal"


def both_ways(q, k, v, mask, noise, g, causal, scale=0.3):
    out, aux = kernels._native(7, q, k, v, mask, noise, scale, causal)
    known = dict(q=q, k=k, v=v, mask=mask, noise=noise, scale=scale, causal=causal, aux=aux)
    edges = [0, 0, 0, *[None] * (2 - (mask is None) - (noise is None))]
    return out, *kernels.attention_backward(g, edges, known)[:3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_is_the_plain_rule(shape, kind, dtype):
    (q, k, v, mask, noise, g), causal = problem(shape, kind, dtype)
    found = both_ways(q, k, v, mask, noise, g, causal)
    doubles = [None if a is None else a if a.dtype == bool else a.astype(np.float64) for a in (q, k, v, mask, noise)]
    expected = plain(*doubles, 0.3, causal, g.astype(np.float64))
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    for mine, truth in zip(found, expected):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, truth, rtol=tolerance, atol=tolerance * max(1, np.abs(truth).max()))


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "noise"])
@pytest.mark.parametrize("shape", [*SHAPES[5:7], *SHAPES[9:]], ids=str)
def test_the_number_of_threads_does_not_change_a_bit(shape, kind):
    (*arrays, g), causal = problem(shape, kind, np.float32)
    before, results = rushlight.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            rushlight.set_num_threads(threads)
            results.append(both_ways(*arrays, g, causal))
    finally:
        rushlight.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(mine, same) for mine, same in zip(results[0], other))


def test_a_score_that_is_not_a_number_stays_in_its_row_and_a_masked_one_is_left_out():
    (q, k, v, mask, noise, g), _ = problem(SHAPES[0], "bool", np.float32)
    q[0, 0, 4, 0], k[1, 1, 6] = np.nan, np.inf
    mask[:, 6] = False  # the infinite key is looked at by nobody
    with np.errstate(invalid="ignore"):
        out = both_ways(q, k, v, mask, noise, g, False)[0]
        expected = plain(q, k, v, mask, noise, 0.3, False, g)[0]
    assert np.isnan(out[0, 0, 4]).all() and np.isnan(out).sum() == out.shape[-1]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_one_query_a_key_that_is_not_a_number_spoils_its_own_score(dtype):
    """Scores of several keys are made in one vector: what one of them has must not reach its neighbours'."""
    (q, k, v, mask, noise, g), _ = problem(((2, 2), (2, 2), 1, 45, 16, 16), "bool", dtype)
    mask[...] = True
    mask[0, [3, 20, 44]] = False
    k[0, 0, 3], k[0, 1, 20, 5], k[1, 0, 44], k[1, 1, 17, 0] = np.nan, np.inf, -np.inf, np.nan
    out = both_ways(q, k, v, mask, noise, g, False)[0]
    k[0, 0, 3] = k[0, 1, 20] = k[1, 0, 44] = 0
    expected = plain(q, k, v, mask, noise, 0.3, False, g)[0]
    assert np.isnan(out[1, 1]).all() and np.isnan(out).sum() == out.shape[-1]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_one_query_looks_at_a_cache_that_is_longer_than_what_is_in_it(heads, dtype, causal):
    """(batch, length, heads, size), of which ``filled`` rows are written; several heads of queries may share one."""
    filled, mask = 37, numbers(2, 1, 1, 37, seed=8) > -0.5
    cache = rushlight.full((2, 2, 64, heads, 24), float("nan"), dtype=getattr(rushlight, np.dtype(dtype).name))
    cache[:, :, :filled] = rushlight.tensor(numbers(2, 2, filled, heads, 24, dtype=dtype))
    k, v = (part[:, :filled].transpose(1, 2) for part in cache)
    q = rushlight.tensor(numbers(2, 4, 1, 24, seed=6, dtype=dtype))
    found = rushlight.nn.functional.scaled_dot_product_attention(
        q, k, v, None if causal else rushlight.tensor(mask), is_causal=causal, enable_gqa=True
    )
    keys, values = (np.repeat(t.numpy().astype(np.float64), 4 // heads, 1) for t in (k, v))
    given = numbers(2, 4, 1, 24)
    expected = plain(q.numpy(), keys, values, None if causal else mask, None, 24**-0.5, causal, given)[0]
    tolerance = 2e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("length", [30, 4])
def test_projections_of_one_array_are_read_where_they_lie(length):
    """(batch, length, 3, heads, size), as a layer computes it, split into q, k and v."""
    all_three = rushlight.tensor(numbers(2, length, 3, 4, 16, dtype=np.float32), requires_grad=True)
    q, k, v = (all_three[:, :, i].transpose(1, 2) for i in range(3))
    y = rushlight.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    g = numbers(*y.shape, seed=5)
    y.backward(rushlight.tensor(g.astype(np.float32)))
    doubles = [t.detach().numpy().astype(np.float64) for t in (q, k, v)]
    out, *gradients = plain(*doubles, None, None, 0.25, True, g)
    np.testing.assert_allclose(y.detach().numpy(), out, rtol=1e-4, atol=1e-5)
    found = all_three.grad.numpy()
    for i, truth in enumerate(gradients):
        np.testing.assert_allclose(found[:, :, i].swapaxes(1, 2), truth, rtol=1e-4, atol=2e-5)
