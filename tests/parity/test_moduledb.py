"""Every class of PyTorch's module database; what is listed in unsupported_modules.txt must fail, all else must pass.

``RUSHLIGHT_PARITY=all`` runs every sample of each class, on NumPy, on XLA arrays and compiled; without it, a few on
NumPy.
"""

from __future__ import annotations

import os
import warnings

import convert
import moduledb
import numpy as np
import opdb
import pytest
import torch

import rushlight

FULL = os.environ.get("RUSHLIGHT_PARITY") == "all"
KNOWN = opdb.unsupported(moduledb.LISTED)
MODES = {"numpy": opdb.Options(samples=0 if FULL else 4)}
if FULL:
    MODES["xla"] = opdb.Options(samples=4, xla=True)
    MODES["compiled"] = opdb.Options(samples=2, compiled=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", moduledb.MODULES)
def test_module(name, mode, request):
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[name], raises=opdb.Mismatch))
    assert moduledb.check(moduledb.MODULES[name], MODES[mode])


def test_the_list_names_only_classes_of_the_database():
    assert not set(KNOWN) - set(moduledb.MODULES)


@pytest.mark.parametrize("name", [n for n in moduledb.MODULES if n not in KNOWN])
def test_initial_weights(name):
    """With the same seed, a freshly built layer has PyTorch's parameters and leaves the generator in the same state."""
    info = moduledb.MODULES[name]
    for i, sample in moduledb.samples_of(info, opdb.Options(samples=3), training=True):
        given = sample.constructor_input
        torch.manual_seed(i)
        theirs = info.module_cls(*given.args, **given.kwargs)
        rushlight.manual_seed(i)
        ours = moduledb.build(info, given, convert.Converter())
        if info.is_lazy:
            args = convert.like((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)), torch.detach)
            theirs(*args[0], **args[1])
            args = convert.Converter()(args)
            ours(*args[0], **args[1])
        _same_state(ours, theirs)
        assert rushlight.rand(1).item() == torch.rand(1).item()


def _same_state(ours, theirs):
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    for name in a:
        x, y = convert.array_of(a[name]), convert.to_numpy(b[name])
        assert x.dtype == y.dtype
        # Orthogonal and normal draws may differ in the last bit.
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("wrong", ["value", "grad", "keys"])
def test_the_harness_notices(wrong, monkeypatch):
    exact = rushlight.nn.Linear

    class Wrong(exact):
        def forward(self, input):
            y = super().forward(input)
            return y * 1.001 if wrong == "value" else y + (y.mean() - y.mean().detach()) if wrong == "grad" else y

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            if wrong == "keys":
                self.register_buffer("extra", rushlight.zeros(1))

    Wrong.__name__ = "Linear"
    monkeypatch.setattr(rushlight.nn, "Linear", Wrong)
    with pytest.raises(opdb.Mismatch) as caught:
        moduledb.check(moduledb.MODULES["Linear"], opdb.Options(samples=2))
    assert caught.value.stage == wrong


def test_bad_inputs_raise_pytorchs_errors():
    """The database's own error samples: the same exception type and message."""
    checked = 0
    for info in moduledb.MODULES.values():
        if info.module_error_inputs_func is None or info.module_cls.__name__ in KNOWN:
            continue
        samples = info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
        )
        for sample in samples:
            outcomes = [_outcome(info, sample.module_error_input, package) for package in (torch, rushlight)]
            assert outcomes[0][0] is outcomes[1][0], (info.name, outcomes)
            if "Expected" not in outcomes[0][1]:  # some of PyTorch's print C++ types and places
                assert outcomes[0] == outcomes[1], info.name
            checked += 1
    assert checked >= 10


def _outcome(info, given, package):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if package is torch:
                made = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
                made(*given.forward_input.args, **given.forward_input.kwargs)
            else:
                to_ours = convert.Converter()
                made = moduledb.build(info, given.constructor_input, to_ours)
                made(*to_ours(given.forward_input.args), **to_ours(given.forward_input.kwargs))
        except Exception as error:
            return type(error), str(error)
    return None, "no error"
