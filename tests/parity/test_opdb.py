"""Every scored entry of PyTorch's operator database; what is listed in unsupported.txt must fail, all else must pass.

``RUSHLIGHT_PARITY=all`` runs every sample of each entry, on NumPy and on XLA arrays; without it, a few on NumPy.
"""

from __future__ import annotations

import os

import opdb
import pytest

FULL = os.environ.get("RUSHLIGHT_PARITY") == "all"
KNOWN = opdb.unsupported()
LISTED = {"numpy": KNOWN, "xla": KNOWN | opdb.unsupported(opdb.LISTED_XLA)}
MODES = {"numpy": opdb.Options(samples=0 if FULL else 4)}
if FULL:
    MODES["xla"] = opdb.Options(samples=12, xla=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", opdb.SCORED)
def test_entry(name, mode, request, parity_score):
    if name in LISTED[mode]:
        request.applymarker(pytest.mark.xfail(strict=True, reason=LISTED[mode][name], raises=opdb.Mismatch))
    parity_score("operator database", mode, name)
    opdb.check(opdb.ENTRIES[name], MODES[mode])


@pytest.mark.parametrize("name", opdb.FIRST_ORDER)
def test_second_gradients_that_pytorch_has_not(name):
    with pytest.raises(opdb.Mismatch, match="a gradient where PyTorch has None") as caught:
        opdb.check(opdb.ENTRIES[name], opdb.Options(samples=4, gradgrad=True))
    assert caught.value.stage == "gradgrad"


def test_the_list_names_only_scored_entries():
    assert not set(LISTED["xla"]) - set(opdb.SCORED)


def test_the_harness_notices_a_wrong_number(monkeypatch):
    import rushlight

    exact = rushlight.exp
    monkeypatch.setattr(rushlight, "exp", lambda x: exact(x) * 1.001)
    with pytest.raises(opdb.Mismatch, match="instead of"):
        opdb.check(opdb.ENTRIES["exp"], opdb.Options(samples=2))


def test_the_harness_notices_a_wrong_second_gradient(monkeypatch):
    import rushlight

    exact = rushlight.exp

    class Tricked(rushlight.autograd.Function):  # right values, right first gradient, no second one
        @staticmethod
        def forward(ctx, x):
            y = exact(x)
            ctx.save_for_backward(y.detach())
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    monkeypatch.setattr(rushlight, "exp", Tricked.apply)
    with pytest.raises(opdb.Mismatch) as caught:
        opdb.check(opdb.ENTRIES["exp"], opdb.Options(samples=2))
    assert caught.value.stage == "gradgrad"
