"""How tensors print, without PyTorch at hand."""

from __future__ import annotations

import pytest

import rushlight
from rushlight._printing import get_printoptions, printoptions


def test_numbers():
    assert repr(rushlight.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(rushlight.tensor([1, 20])) == "tensor([ 1, 20])"
    assert repr(rushlight.tensor([1e-6, 1.0])) == "tensor([1.0000e-06, 1.0000e+00])"
    assert repr(rushlight.tensor([1 + 2j, -1j])) == "tensor([1.+2.j, -0.-1.j])"


def test_notes():
    x = rushlight.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"
    assert repr(x.detach().half()) == "tensor([1.], dtype=torch.float16)"
    assert repr(rushlight.empty(0, 3)) == "tensor([], size=(0, 3))"


def test_large_tensors_are_cut():
    assert repr(rushlight.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"


def test_options_are_put_back():
    before = get_printoptions()
    with printoptions(precision=1, sci_mode=True):
        assert repr(rushlight.tensor(12.345)) == "tensor(1.2e+01)"
    assert get_printoptions() == before


def test_device_is_named_unless_default():
    pytest.importorskip("jax")
    t = rushlight.ones(1, device="xla")
    assert repr(t) == "tensor([1.], device='xla:0')"
    with rushlight.device("xla"):
        assert repr(t) == "tensor([1.])"
        assert repr(t.cpu()) == "tensor([1.], device='cpu')"
