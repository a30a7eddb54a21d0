"""Forward mode against PyTorch's, on its operator database; see transformdb.py.

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
KINDS = {"forward": (5, 2)}  # every so many entries, with so many samples, in a quick run


def _chosen(kind):
    every, samples = (1, 4) if FULL else KINDS[kind]
    return [(kind, name, samples) for name in list(transformdb.entries(kind))[::every]]


@pytest.mark.parametrize(("kind", "name", "samples"), [case for kind in KINDS for case in _chosen(kind)])
def test_entry(kind, name, samples, parity_score):
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
