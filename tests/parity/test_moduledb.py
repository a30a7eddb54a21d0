"""Every class of PyTorch's module database; what is listed in unsupported_modules.txt must fail, all else must pass.

``RUSHLIGHT_PARITY=all`` runs every sample of each class on NumPy and compiled, and some on XLA arrays; without it, a
few of each class on NumPy and one, of every third class, compiled.
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
MODES = {
    "numpy": opdb.Options(samples=0 if FULL else 10),
    "compiled": opdb.Options(samples=0 if FULL else 1, compiled=True),
}
if FULL:
    MODES["xla"] = opdb.Options(samples=4, xla=True)
CASES = [
    (name, mode) for mode in MODES for i, name in enumerate(moduledb.MODULES) if FULL or mode == "numpy" or i % 3 == 0
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_module(name, mode, request, parity_score):
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[name], raises=opdb.Mismatch))
    parity_score("module database", mode, name)
    assert moduledb.check(moduledb.MODULES[name], MODES[mode])


@pytest.mark.parametrize("name", moduledb.FIRST_ORDER)
def test_second_gradients_that_pytorch_has_not(name):
    """The exception is still one. That ours is right, gradgradcheck says: see test_modules_float64.py."""
    with pytest.raises(opdb.Mismatch, match="a gradient where PyTorch has None") as caught:
        moduledb.check(moduledb.MODULES[name], opdb.Options(samples=40, gradgrad=True))
    assert caught.value.stage == "gradgrad"


def test_the_list_names_only_classes_of_the_database():
    assert not set(KNOWN) - set(moduledb.MODULES)


@pytest.mark.parametrize("name", moduledb.MODULES)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Lazy modules")
def test_initial_weights(name, parity_score):
    """With the same seed, a freshly built layer has PyTorch's parameters and leaves the generator in the same state."""
    parity_score("module database", "initial weights", name)
    info = moduledb.MODULES[name]
    for i, sample in moduledb.samples_of(info, opdb.Options(samples=0 if FULL else 3), training=True):
        given = sample.constructor_input
        torch.manual_seed(i)
        theirs = info.module_cls(*map(_made_again, given.args), **given.kwargs)
        rushlight.manual_seed(i)
        ours = moduledb.build(info, given, convert.Converter())
        if info.is_lazy:
            args = convert.like((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)), torch.detach)
            theirs(*args[0], **args[1])
            args = convert.Converter()(args)
            ours(*args[0], **args[1])
        _same_state(ours, theirs)
        assert rushlight.rand(1).item() == torch.rand(1).item()


def _made_again(value):
    """An encoder layer that a sample brings was made before the seed was set."""
    if not isinstance(value, torch.nn.Module):
        return value
    args, kwargs = value.made_with
    return type(value)(*args, **kwargs)


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


ERRORS = [n for n, info in moduledb.MODULES.items() if info.module_error_inputs_func is not None]


@pytest.mark.parametrize("name", ERRORS)
def test_bad_inputs_raise_pytorchs_errors(name):
    """The database's own error samples: the same exception type and message."""
    info = moduledb.MODULES[name]
    samples = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    assert samples
    for sample in samples:
        theirs, ours = (_outcome(info, sample.module_error_input, package) for package in (torch, rushlight))
        assert theirs == ours


def _outcome(info, given, package):
    to_ours = convert.Converter()
    make = info.module_cls if package is torch else getattr(rushlight.nn, info.module_cls.__name__)
    to_this = (lambda v: v) if package is torch else to_ours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = make(*to_this(given.constructor_input.args), **to_this(given.constructor_input.kwargs))
            if given.forward_input is not None:
                made(*to_this(given.forward_input.args), **to_this(given.forward_input.kwargs))
        except Exception as error:
            return type(error), str(error)
    return None, "no error"
