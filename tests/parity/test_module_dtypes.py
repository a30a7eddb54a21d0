"""Every class of PyTorch's module database in the other dtypes.

float64: our own gradcheck and gradgradcheck, of all parameters and inputs. float16, bfloat16 and float64: outputs,
buffers and first gradients against PyTorch's, with the tolerances of ``opdb.TOLERANCE``. ``RUSHLIGHT_PARITY=all`` takes
every sample, and checks the small ones entry by entry; without it, a few, by a random projection.
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

# What inputs go through before the class gets them, where the samples themselves have no finite differences: roots and
# logarithms of negative numbers are nan; ctc_loss has the gradient of the scores that log_softmax was given.
BEFORE = {
    **dict.fromkeys(["LPPool1d", "LPPool2d", "LPPool3d"], lambda x: (x.abs(),)),
    "KLDivLoss": lambda x, target: (x.nan_to_num(-0.5), target.nan_to_num(-0.5).abs()),
    "CTCLoss": lambda x, *rest: (x.log_softmax(2), *rest),
}
NO_SECOND = {"CTCLoss": "no second derivative, as in PyTorch"}


@pytest.mark.parametrize("name", moduledb.MODULES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=lambda d: str(d)[6:])
def test_dtype(name, dtype, parity_score):
    parity_score("module database", str(dtype).removeprefix("torch."), name)
    second = None if dtype is torch.float64 else False
    options = opdb.Options(samples=0 if FULL else 2, dtype=dtype, gradgrad=second)
    assert moduledb.check(moduledb.MODULES[name], options)


@pytest.mark.parametrize("name", moduledb.MODULES)
def test_gradcheck(name, parity_score):
    parity_score("module database", "gradcheck", name)
    assert check_differences(name, rushlight.autograd.gradcheck)


@pytest.mark.parametrize("name", [n for n in moduledb.MODULES if n not in NO_SECOND])
def test_gradgradcheck(name, parity_score):
    parity_score("module database", "gradgradcheck", name)
    assert check_differences(name, rushlight.autograd.gradgradcheck)


@pytest.mark.parametrize("name", NO_SECOND)
def test_no_second_gradient(name):
    with pytest.raises(NotImplementedError, match="is not implemented"):
        check_differences(name, rushlight.autograd.gradgradcheck)


def check_differences(name, checker):
    """Run ``checker`` over the samples of a class, in training and evaluation mode; the number of samples."""
    info, count = moduledb.MODULES[name], 0
    options = opdb.Options(samples=0 if FULL else 2, dtype=torch.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for training in (True, False):
            for _, sample in moduledb.samples_of(info, options, training):
                function, leaves = as_function(info, sample, training)
                small = FULL and count < 6 and sum(t.numel() for t in leaves) <= 40
                if len(leaves) > 3 and checker is rushlight.autograd.gradgradcheck:
                    function, leaves = as_one(function, leaves)
                results = function(*leaves)
                if any(t.isnan().any() for t in results):
                    continue  # cross_entropy of nothing but ignored targets
                if leaves and any(t.requires_grad for t in results):
                    checker(function, leaves, fast_mode=not small, nondet_tol=info.gradcheck_nondet_tol)
                count += 1
    return count


def as_function(info, sample, training):
    """A sample as a function of the parameters and inputs that want a gradient, and those."""
    to_ours = convert.Converter()
    module = moduledb.build(info, sample.constructor_input, to_ours).train(training).double()
    moduledb._quiet(module)
    given = to_ours((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)))
    if info.is_lazy:
        module(*given[0], **given[1])
    inputs = [t.detach().requires_grad_() for t in convert.tensors(given) if t.requires_grad]
    places = [id(t) for t in convert.tensors(given) if t.requires_grad]
    parameters = dict(module.named_parameters())

    def function(*leaves):
        rushlight.manual_seed(0)  # RReLU draws
        now = dict(zip(places, leaves[len(parameters) :]))
        args, kwargs = convert.like(given, lambda t: now[id(t)].clone() if id(t) in now else t)
        if info.module_cls.__name__ in BEFORE:
            args = BEFORE[info.module_cls.__name__](*args)
        result = rushlight.func.functional_call(module, dict(zip(parameters, leaves)), args, kwargs)
        return tuple(t for t in convert.tensors(result) if t.is_floating_point())

    return function, (*parameters.values(), *inputs)


def as_one(function, leaves):
    """The same function of one long vector, to one long vector: the second order costs inputs times outputs."""
    sizes = [t.numel() for t in leaves]

    def long(vector):
        parts = [p.reshape(t.shape) for p, t in zip(vector.split(sizes), leaves)]
        return (rushlight.cat([t.reshape(-1) for t in function(*parts)]),)

    return long, (rushlight.cat([t.detach().reshape(-1) for t in leaves]).requires_grad_(),)
