"""Forward mode and vmap against PyTorch's, on its operator database; see transformdb.py.

``RUSHLIGHT_PARITY=all`` runs every entry; without it, a spread of them.
"""

from __future__ import annotations

import os

import opdb
import pytest
import torch
import transformdb

import rushlight

FULL = os.environ.get("RUSHLIGHT_PARITY") == "all"
KINDS = {"forward": (9, 2), "vmap": (8, 1), "batched": (14, 1)}  # every how many entries, how many samples: a quick run


def _chosen(kind):
    every, samples = (1, 4) if FULL else KINDS[kind]
    return [(kind, name, samples) for name in list(transformdb.entries(kind))[::every]]


@pytest.mark.parametrize(("kind", "name", "samples"), [case for kind in KINDS for case in _chosen(kind)])
def test_entry(kind, name, samples, parity_score, request):
    if (kind, name) in transformdb.MISSING:
        request.applymarker(pytest.mark.xfail(reason=transformdb.MISSING[kind, name], raises=opdb.Mismatch))
    parity_score("transforms", kind, name)
    transformdb.check(kind, opdb.ENTRIES[name], opdb.Options(samples))


@pytest.mark.parametrize("name", ["mul", "matmul", "nn.functional.conv2d", "gather", "where", "cat", "atan2"])
def test_the_tables_say_what_the_rules_say(name):
    assert transformdb.check("forward", opdb.ENTRIES[name], opdb.Options(2), tables=False)


def test_the_harness_notices_a_wrong_tangent(monkeypatch):
    from rushlight.autograd import tangents

    monkeypatch.setattr(tangents, "LINEAR", tangents.LINEAR | {"tanh"})  # which it is not
    with pytest.raises(opdb.Mismatch, match="instead of"):
        transformdb.check("forward", opdb.ENTRIES["tanh"], opdb.Options(2))


def test_the_tangent_of_cholesky_inverse_is_that_of_finite_differences():
    factor = torch.linalg.cholesky(torch.eye(3, dtype=torch.double) + 0.1 * torch.ones(3, 3, dtype=torch.double))
    direction = torch.randn(3, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)).tril()
    step = 1e-6 * direction
    expected = (torch.cholesky_inverse(factor + step) - torch.cholesky_inverse(factor - step)) / 2e-6
    ours = [rushlight.tensor(t.numpy()) for t in (factor, direction)]
    _, found = rushlight.func.jvp(rushlight.cholesky_inverse, (ours[0],), (ours[1],))
    assert torch.allclose(torch.tensor(found.numpy()), expected, atol=1e-8)


def test_index_fill_writes_each_examples_value():
    index, values = rushlight.tensor([[0], [0]]), rushlight.tensor([1.0, 2.0])
    x = rushlight.zeros(2, 2)
    found = rushlight.vmap(lambda i, v: rushlight.index_fill(x, 1, i, v))(index, values)
    assert found.tolist() == [[[1.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [2.0, 0.0]]]


def test_the_harness_notices_a_wrong_batching_rule(monkeypatch):
    from rushlight.engine.batched import namespace, rules

    monkeypatch.setitem(rules.RULES, "cumsum", lambda function, xp, many, x, axis, dtype=None: function(x.whole, 0))
    namespace._function.cache_clear()
    with pytest.raises(opdb.Mismatch, match="instead of"):
        transformdb.check("vmap", opdb.ENTRIES["cumsum"], opdb.Options(2))
    namespace._function.cache_clear()
