"""nn.init: the same seed gives PyTorch's weights."""

from __future__ import annotations

import convert
import numpy as np
import pytest
import torch

import rushlight

CASES = {
    "uniform_": lambda init, w: init.uniform_(w, -0.3, 0.8),
    "normal_": lambda init, w: init.normal_(w, 1.0, 0.2),
    "trunc_normal_": lambda init, w: init.trunc_normal_(w),
    "trunc_normal_ as transformers use it": lambda init, w: init.trunc_normal_(w, std=0.02),
    "trunc_normal_ of a tail": lambda init, w: init.trunc_normal_(w, 0.0, 1.0, 1.0, 3.0),
    "trunc_normal_ of a narrow part": lambda init, w: init.trunc_normal_(w, 1.0, 2.0, 0.5, 0.9),
    "constant_": lambda init, w: init.constant_(w, 0.3),
    "ones_": lambda init, w: init.ones_(w),
    "zeros_": lambda init, w: init.zeros_(w),
    "xavier_uniform_": lambda init, w: init.xavier_uniform_(w),
    "xavier_normal_": lambda init, w: init.xavier_normal_(w, init.calculate_gain("tanh")),
    "kaiming_uniform_": lambda init, w: init.kaiming_uniform_(w, a=5**0.5),
    "kaiming_normal_": lambda init, w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
    "orthogonal_": lambda init, w: init.orthogonal_(w, 1.5),
}
SHAPES = [(3, 2), (5, 7), (20, 30), (8, 3, 3, 3)]


def same(fill, shape, dtype="float32", rtol=2e-6, atol=1e-6):
    results = []
    for library in (rushlight, torch):
        library.manual_seed(4)
        w = library.zeros(*shape, dtype=getattr(library, dtype), requires_grad=True)
        assert fill(library.nn.init, w) is w
        assert w.requires_grad and w.is_leaf
        results.append(w)
    np.testing.assert_allclose(convert.array_of(results[0]), convert.to_numpy(results[1]), rtol=rtol, atol=atol)
    ours, theirs = (lib.rand(1).item() for lib in (rushlight, torch))  # and stands at the same place of the stream
    assert ours == theirs


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_initializer(case, shape):
    same(CASES[case], shape, atol=1e-5 if case == "orthogonal_" else 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_initializer_in_float64(case):
    same(CASES[case], (6, 9), "float64", rtol=1e-12, atol=1e-12)


def test_eye_dirac_sparse():
    same(lambda init, w: init.eye_(w), (4, 6))
    same(lambda init, w: init.dirac_(w), (6, 4, 3))
    same(lambda init, w: init.dirac_(w, 2), (6, 4, 3, 5))
    same(lambda init, w: init.dirac_(w, 3), (6, 4, 3, 2, 5))
    same(lambda init, w: init.sparse_(w, 0.3, 0.1), (7, 4))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("nonlinearity", ["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "conv2d"])
def test_gains_and_fans(mode, nonlinearity):
    ours, theirs = (lib.nn.init for lib in (rushlight, torch))
    assert ours.calculate_gain(nonlinearity) == theirs.calculate_gain(nonlinearity)
    shape = (3, 4, 5, 6)
    assert ours._calculate_correct_fan(rushlight.zeros(*shape), mode) == theirs._calculate_correct_fan(
        torch.zeros(*shape), mode
    )


def test_a_generator_of_ones_own():
    results = []
    for library in (rushlight, torch):
        w = library.zeros(3, 4)
        library.nn.init.xavier_uniform_(w, generator=library.Generator().manual_seed(5))
        results.append(w.numpy())
    np.testing.assert_array_equal(*results)


BAD = {
    "nonlinearity": lambda lib: lib.nn.init.calculate_gain("nonsense"),
    "slope": lambda lib: lib.nn.init.calculate_gain("leaky_relu", "x"),
    "eye": lambda lib: lib.nn.init.eye_(lib.zeros(3)),
    "dirac": lambda lib: lib.nn.init.dirac_(lib.zeros(3)),
    "groups": lambda lib: lib.nn.init.dirac_(lib.zeros(3, 2, 2), 2),
    "fans": lambda lib: lib.nn.init.xavier_uniform_(lib.zeros(3)),
    "mode": lambda lib: lib.nn.init.kaiming_normal_(lib.zeros(3, 2), mode="sideways"),
    "orthogonal": lambda lib: lib.nn.init.orthogonal_(lib.zeros(3)),
    "sparse": lambda lib: lib.nn.init.sparse_(lib.zeros(3), 0.1),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_raise_as_in_pytorch(case):
    with pytest.raises(ValueError) as theirs:
        BAD[case](torch)
    with pytest.raises(ValueError) as ours:
        BAD[case](rushlight)
    assert str(ours.value) == str(theirs.value)


def test_warnings():
    for library in (rushlight, torch):
        init = library.nn.init
        with pytest.warns(FutureWarning, match="`nn.init.xavier_uniform` is now deprecated in favor of"):
            init.xavier_uniform(library.zeros(2, 2))
        with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
            init.kaiming_uniform_(library.zeros(0, 2))
        with pytest.warns(UserWarning, match="mean is more than 2 std from"):
            init.trunc_normal_(library.zeros(2), 5.0, 1.0)
