"""``repr`` of tensors: PyTorch's text, to the letter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight

_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip
_SHAPES = [
    (), (1,), (3,), (7,), (0,), (0, 3), (2, 0, 3), (2, 3), (1, 1), (3, 1, 4), (2, 2, 3, 2), (50,), (1001,), (40, 40),
    (10, 3, 50), (2, 1, 1, 600), (11, 11, 11), (1, 30), (5, 25),
]  # fmt: skip
_VALUES = {
    "plain": lambda rng, a: a,
    "scaled": lambda rng, a: a * 10.0 ** rng.integers(-9, 12),
    "whole": lambda rng, a: np.round(a * 10.0 ** rng.integers(0, 10)),
    "mixed": lambda rng, a: a * 10.0 ** rng.integers(-4, 5, size=a.shape),
    "nan": lambda rng, a: np.where(rng.random(a.shape) < 0.3, np.nan, np.round(a * 5)),
    "inf": lambda rng, a: np.where(rng.random(a.shape) < 0.3, -np.inf, a),
    "zero": lambda rng, a: a * 0,
    "sparse": lambda rng, a: np.where(rng.random(a.shape) < 0.5, 0, a * 10.0 ** rng.integers(-6, 9)),
}
_options = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"precision": st.integers(0, 9)}),
    st.fixed_dictionaries({"sci_mode": st.booleans()}),
    st.fixed_dictionaries({"linewidth": st.integers(10, 150)}),
    st.fixed_dictionaries({"threshold": st.integers(1, 50), "edgeitems": st.integers(1, 5)}),
    st.fixed_dictionaries({"profile": st.sampled_from(["default", "short", "full"])}),
)


@pytest.fixture(autouse=True)
def _default_options():
    yield
    _set({})


def _set(options):
    for m in (rushlight, torch):
        m.set_printoptions(profile="default")
        m.set_printoptions(**options)


@settings(deadline=None, max_examples=400)
@given(
    dtype=st.sampled_from(_DTYPES),
    shape=st.sampled_from(_SHAPES),
    values=st.sampled_from(sorted(_VALUES)),
    seed=st.integers(0, 2**32 - 1),
    options=_options,
    requires_grad=st.booleans(),
)
def test_repr(dtype, shape, values, seed, options, requires_grad):
    theirs, ours = _pair(dtype, shape, values, np.random.default_rng(seed))
    if requires_grad and (theirs.is_floating_point() or theirs.is_complex()):
        theirs.requires_grad_()
        ours.requires_grad_()
    _set(options)
    assert repr(ours) == repr(theirs)


def _pair(dtype, shape, values, rng):
    array = np.asarray(_VALUES[values](rng, np.asarray(rng.standard_normal(shape))))
    if dtype.startswith("complex"):
        array = array + 1j * np.asarray(rng.standard_normal(shape)) * 10.0 ** rng.integers(-6, 9)
    elif "float" not in dtype:
        array = np.nan_to_num(array, posinf=0, neginf=0).clip(-1e9, 1e9)
    theirs = torch.from_numpy(np.array(array)).to(getattr(torch, dtype))
    carrier = theirs.float() if dtype == "bfloat16" else theirs
    return theirs, rushlight.from_numpy(np.array(carrier.numpy())).to(getattr(rushlight, dtype))


@pytest.mark.parametrize(
    "source",
    [
        "torch.ones(2, requires_grad=True) * 2",
        "torch.ones(2, 3, requires_grad=True).double()",
        "torch.arange(30.0, requires_grad=True).exp()",
        "torch.ones(3, requires_grad=True).sum()",
        "torch.nn.Parameter(torch.ones(2))",
        "torch.nn.Parameter(torch.ones(2, dtype=torch.float64))",
        "torch.tensor(3.0).half()",
        "torch.empty(0, 2, dtype=torch.int64)",
        "torch.empty(0, requires_grad=True)",
        "str(torch.tensor(True))",
        "torch.zeros(2).shape",
    ],
)
def test_notes(source):
    assert repr(eval(source, {"torch": rushlight})) == repr(eval(source, {"torch": torch}))


def test_default_dtype_is_not_named():
    for m in (rushlight, torch):
        m.set_default_dtype(m.float64)
    try:
        for source in ("torch.ones(2)", "torch.ones(2).float()", "torch.ones(2) * 1j", "torch.empty(0)"):
            assert repr(eval(source, {"torch": rushlight})) == repr(eval(source, {"torch": torch}))
    finally:
        torch.set_default_dtype(torch.float32)
