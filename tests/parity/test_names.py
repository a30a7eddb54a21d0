"""Names at PyTorch's top level for what lives elsewhere here; windows; ``vmap``."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rushlight

CALLS = [
    "T.abs_(T.tensor([-1.0, 2.0]))",
    "T.nan_to_num_(T.tensor([float('nan'), 2.0]))",
    "T.zeros(3, 3).fill_diagonal_(2.0)",
    "T.zeros(7, 3).fill_diagonal_(2.0)",
    "T.zeros(9, 2).fill_diagonal_(2.0, wrap=True)",
    "T.zeros(2, 5).fill_diagonal_(2.0, wrap=True)",
    "T.zeros(3, 3, 3).fill_diagonal_(1.5)",
    "T.zeros(3).fill_diagonal_(1.5)",
    "T.zeros(2, 3, 3).fill_diagonal_(1.5)",
    "T.get_device(T.zeros(1))",
    "T.is_distributed(T.zeros(1))",
    "T.detach_copy(T.ones(2))",
    "T.view_as_real_copy(T.tensor([1 + 2j]))",
    "T.binary_cross_entropy_with_logits(T.tensor([0.3, -2.0]), T.tensor([1.0, 0.0]))",
    "T.cosine_embedding_loss(T.ones(2, 3), -T.ones(2, 3), T.tensor([1, -1]), 0.1, 2)",
    "T.hinge_embedding_loss(T.tensor([0.3, -2.0]), T.tensor([1.0, -1.0]), 1.0, 0)",
    "T.kl_div(T.tensor([-0.3, -2.0]), T.tensor([0.2, 0.8]))",
    "T.margin_ranking_loss(T.tensor([0.3]), T.tensor([0.1]), T.tensor([-1.0]), 0.5)",
    "T.poisson_nll_loss(T.tensor([0.3, 1.0]), T.tensor([1.0, 3.0]), True, True, 1e-8, 1)",
    "T.triplet_margin_loss(T.ones(2, 3), T.zeros(2, 3), -T.ones(2, 3), reduction=0)",
    "T.ctc_loss(T.full((4, 1, 3), -1.0986), T.tensor([[1, 2]]), T.tensor([4]), T.tensor([2]))",
    "T.hann_window(5)",
    "T.hann_window(4, dtype=T.float16)",
    "T.hann_window(0)",
    "T.hamming_window(6, False)",
    "T.hamming_window(6, True, 0.5, 0.4)",
    "T.blackman_window(5)",
    "T.bartlett_window(5, periodic=False)",
    "T.kaiser_window(5, True, 3.0)",
    "T.hann_window(-1)",
    "T.hann_window(2.0)",
    "T.hann_window(3, requires_grad=True)",
    "T.signal.windows.hann(-1)",
    "T.signal.windows.hann(3, dtype=T.float16)",
    "T.signal.windows.gaussian(3, std=0.0)",
    "T.signal.windows.exponential(4, center=1.0, sym=False)",
    "T.signal.windows.exponential(4, center=1.0)",
    "T.signal.windows.general_cosine(4, a=[])",
    "T.vmap(lambda a: a.sum())(T.arange(6.0).view(2, 3))",
    "T.vmap(lambda a, b: a + b, in_dims=(0, None))(T.ones(2, 3), 1.0)",
    "T.vmap(lambda a: (a, a * 2), in_dims=1, out_dims=(0, 1))(T.arange(6.0).view(2, 3))",
    "T.vmap(lambda d: {'b': d['a'] * 2})({'a': T.ones(2, 3)})",
    "T.vmap(T.func.grad(lambda w: (w * w).sum()))(T.arange(6.0).view(2, 3))",
    "T.vmap(lambda a: a)(1.0)",
    "T.vmap(lambda a: a)()",
    "T.vmap(lambda a: 2.0)(T.ones(2))",
    "T.vmap(lambda a, b: a)(T.ones(2), T.ones(3))",
    "T.vmap(lambda a: a, in_dims=2)(T.ones(2))",
    "T.vmap(lambda a: a, in_dims=None)(T.ones(2))",
]


@pytest.mark.parametrize("call", CALLS)
def test_same_text(call):
    assert outcome(call, rushlight) == outcome(call, torch)


def outcome(call, library):
    try:
        return repr(eval(call, {"T": library}))
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error)


OWN = {"exponential": {"tau": 2.5}, "gaussian": {"std": 0.4}, "general_cosine": {"a": [0.3, 0.2, 0.5]},
       "general_hamming": {"alpha": 0.6}, "kaiser": {"beta": 3.0}}  # fmt: skip


@pytest.mark.parametrize("name", torch.signal.windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_windows(name, sym):
    for length in (0, 1, 2, 3, 8, 100):
        given = {"sym": sym, **OWN.get(name, {})}
        theirs = getattr(torch.signal.windows, name)(length, dtype=torch.float64, **given)
        ours = getattr(rushlight.signal.windows, name)(length, dtype=rushlight.float64, **given)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_settings_are_read_back():
    for library in (rushlight, torch):
        library.set_deterministic_debug_mode("warn")
        assert library.get_deterministic_debug_mode() == 1 and library.is_deterministic_algorithms_warn_only_enabled()
        library.set_deterministic_debug_mode(0)
        assert not library.are_deterministic_algorithms_enabled()
        library.set_default_tensor_type("torch.DoubleTensor")
        assert library.get_default_dtype() is library.float64
        library.set_default_dtype(library.float32)
