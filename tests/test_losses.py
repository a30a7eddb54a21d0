"""Losses, activations, embeddings: derivatives in float64, and what PyTorch's databases do not look at."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn import functional as F


def _values(*shape, seed=0):
    return rushlight.tensor(np.random.default_rng(seed).normal(size=shape))


X, T, C = _values(4, 5), _values(4, 5, seed=1), rushlight.tensor([0, 4, 2, 1])
SIGNS = T.sign()

FUNCTIONS = {
    **{
        name: getattr(F, name)
        for name in (
            "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "hardtanh", "hardswish",
            "hardsigmoid", "hardshrink", "softshrink", "tanhshrink", "softplus", "softsign", "logsigmoid", "rrelu",
        )
    },
    "gelu tanh": lambda x: F.gelu(x, "tanh"),
    "glu": lambda x: F.glu(x[:, :4]),
    "threshold": lambda x: F.threshold(x, 0.1, 3.0),
    "softmin": lambda x: F.softmin(x, 1),
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "normalize": F.normalize,
    "l1": lambda x: F.l1_loss(x, T),
    "mse": lambda x: F.mse_loss(x, T),
    "mse sum": lambda x: F.mse_loss(x, T, reduction="sum"),
    "mse none": lambda x: F.mse_loss(x, T, reduction="none"),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, T, beta=0.7),
    "huber": lambda x: F.huber_loss(x, T, delta=0.7, reduction="sum"),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), T.sigmoid(), T.abs()),
    "bce logits": lambda x: F.binary_cross_entropy_with_logits(x, T.sigmoid(), pos_weight=T[0].abs()),
    "soft_margin": lambda x: F.soft_margin_loss(x, SIGNS),
    "hinge": lambda x: F.hinge_embedding_loss(x, SIGNS),
    "nll": lambda x: F.nll_loss(x, C, ignore_index=2),
    "cross_entropy": lambda x: F.cross_entropy(x, C, weight=T[0].abs(), label_smoothing=0.2),
    "cross_entropy of probabilities": lambda x: F.cross_entropy(x, T.softmax(1)),
    "cross_entropy images": lambda x: F.cross_entropy(x.reshape(2, 5, 2, 1), C.reshape(2, 2, 1)),
    "multi_margin": lambda x: F.multi_margin_loss(x, C, p=2, weight=T[0].abs()),
    "multilabel_margin": lambda x: F.multilabel_margin_loss(x, rushlight.tensor([[1, 3, -1, 0, 0]] * 4)),
    "multilabel_soft_margin": lambda x: F.multilabel_soft_margin_loss(x, T.sigmoid()),
    "kl_div": lambda x: F.kl_div(x, T.softmax(1), reduction="batchmean"),
    "poisson": lambda x: F.poisson_nll_loss(x, T.abs()),
    "gaussian": lambda x: F.gaussian_nll_loss(x, T, T.abs() + 0.1),
    "margin_ranking": lambda x: F.margin_ranking_loss(x, T, SIGNS, margin=0.1),
    "cosine_embedding": lambda x: F.cosine_embedding_loss(x, T, SIGNS[:, 0], margin=0.1),
    "triplet": lambda x: F.triplet_margin_loss(x, T, T.flip(0), swap=True),
    "cosine_similarity": lambda x: F.cosine_similarity(x, T),
    "pairwise_distance": lambda x: F.pairwise_distance(x, T, p=3.0),
    "pdist": F.pdist,
    "rms_norm": lambda x: F.rms_norm(x, (5,), T[0]),
    "local_response_norm": lambda x: F.local_response_norm(x.reshape(2, 5, 2), 3, alpha=1.0),
    "bilinear": lambda x: F.bilinear(x, T, _values(3, 5, 5)),
    "embedding": lambda w: F.embedding(rushlight.tensor([[1, 1], [3, 0]]), w),
    "bag sum": lambda w: F.embedding_bag(rushlight.tensor([1, 1, 3]), w, rushlight.tensor([0, 2]), mode="sum"),
    "bag mean": lambda w: F.embedding_bag(rushlight.tensor([[1, 1], [3, 0]]), w),
    "bag max": lambda w: F.embedding_bag(rushlight.tensor([1, 2, 3]), w, rushlight.tensor([0, 1, 3]), mode="max"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    x = X.clone().requires_grad_()
    assert gradcheck(FUNCTIONS[name], (x,))
    assert gradgradcheck(FUNCTIONS[name], (x,))


def _spelled_by(path, blank=0):
    """What a path of labels spells: repetitions joined, then blanks left out."""
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def test_ctc_is_the_sum_over_all_paths():
    log_probs = _values(4, 3, 3).log_softmax(2)
    targets = [(1, 2), (1, 1), (2,)]
    lengths = [4, 3, 2]
    padded = rushlight.tensor([list(t) + [0] * (2 - len(t)) for t in targets])
    loss = F.ctc_loss(log_probs, padded, rushlight.tensor(lengths), rushlight.tensor([2, 2, 1]), reduction="none")
    for n, (target, steps) in enumerate(zip(targets, lengths)):
        scores = log_probs[:steps, n].numpy()
        total = sum(
            math.exp(sum(scores[t, k] for t, k in enumerate(path)))
            for path in itertools.product(range(3), repeat=steps)
            if _spelled_by(path) == target
        )
        assert loss[n].item() == pytest.approx(-math.log(total))


def test_ctc_gradient_of_the_scores_is_correct():
    lengths, targets = rushlight.tensor([5, 4]), rushlight.tensor([[1, 2, 2], [3, 0, 0]])

    def loss(scores):
        return F.ctc_loss(scores.log_softmax(2), targets, lengths, rushlight.tensor([3, 1]))

    assert gradcheck(loss, (_values(5, 2, 4).requires_grad_(),))


def test_ctc_impossible_targets_and_the_two_ways_to_give_targets():
    log_probs = _values(2, 2, 4).log_softmax(2).requires_grad_()
    arguments = (rushlight.tensor([2, 2]), rushlight.tensor([3, 1]))
    padded, joined = rushlight.tensor([[1, 2, 3], [2, 0, 0]]), rushlight.tensor([1, 2, 3, 2])
    each = F.ctc_loss(log_probs, padded, *arguments, reduction="none")
    assert each[0].item() == math.inf and math.isfinite(each[1].item())
    zeroed = F.ctc_loss(log_probs, joined, *arguments, reduction="none", zero_infinity=True)
    assert zeroed.tolist() == [0.0, each[1].item()]
    zeroed.sum().backward()
    assert bool((log_probs.grad[:, 0] == 0).all()) and bool(rushlight.isfinite(log_probs.grad).all())


def test_ignored_samples_do_not_count():
    scores, classes = X.clone().requires_grad_(), rushlight.tensor([0, -100, 2, -100])
    loss = F.cross_entropy(scores, classes)
    assert loss.item() == pytest.approx(F.cross_entropy(X[[0, 2]], rushlight.tensor([0, 2])).item())
    loss.backward()
    assert bool((scores.grad[1] == 0).all()) and not bool((scores.grad[0] == 0).any())


@pytest.mark.parametrize("create_graph", [False, True])
def test_weights_that_sum_to_zero_have_no_mean(create_graph):
    scores, classes = X.clone().requires_grad_(), rushlight.tensor([0, -100, 2, 1])
    for loss in (F.nll_loss, F.cross_entropy):
        value = loss(scores, classes, weight=rushlight.zeros(X.shape[1]).to(X))
        (g,) = rushlight.autograd.grad(value, scores, create_graph=create_graph)
        assert value.isnan() and g[range(4), [0, 0, 2, 1]].isnan().tolist() == [True, False, True, True]
        assert not g[1].any()


@pytest.mark.parametrize("ignored", [-100, 1, 9])
def test_gradients_of_ignored_samples_can_be_differentiated(ignored):
    scores = X.clone().requires_grad_()
    loss = F.nll_loss(scores, rushlight.tensor([0, ignored, 2, ignored]), ignore_index=ignored)
    (gradient,) = rushlight.autograd.grad(loss, scores, create_graph=True)
    (plain,) = rushlight.autograd.grad(loss, scores)
    for g in (gradient, plain):
        assert g[[0, 2]].tolist() == [[-0.5 if c == k else 0 for c in range(X.shape[1])] for k in (0, 2)]
        assert not bool(g.signbit()[[1, 3]].any()) and not bool(g[[1, 3]].any())


def test_losses_are_one_node_where_pytorch_has_one():
    x = X.clone().requires_grad_()
    assert F.mse_loss(x, T).grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    assert F.cross_entropy(x, C).grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"


def test_embedding_padding_frequency_and_norm():
    w = rushlight.ones(4, 2, requires_grad=True)
    index = rushlight.tensor([1, 1, 2, 0])
    F.embedding(index, w, padding_idx=0, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    table = nn.Embedding.from_pretrained(rushlight.tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    assert not table.weight.requires_grad
    np.testing.assert_allclose(table(rushlight.tensor([0])).tolist(), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(table.weight.tolist(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_an_empty_bag_gives_a_table_with_gaps_no_gradient():
    """Which the kernel of the largest does not read."""
    table = rushlight.ones(8, 600, requires_grad=True)
    found = F.embedding_bag(rushlight.tensor([2]), table[::2], rushlight.tensor([0, 0, 1]), mode="max")
    found.backward(rushlight.tensor([[10.0], [1.0], [100.0]]).expand(3, 600))
    assert table.grad.sum(1).tolist() == [0, 0, 0, 0, 600, 0, 0, 0]


def test_bags_may_be_empty_and_skip_padding():
    w = rushlight.tensor([[1.0], [2.0], [4.0]])
    index, offsets = rushlight.tensor([2, 1, 0]), rushlight.tensor([0, 0, 2])
    for mode, expected in (("sum", [0.0, 6.0, 1.0]), ("mean", [0.0, 3.0, 1.0]), ("max", [0.0, 4.0, 1.0])):
        assert F.embedding_bag(index, w, offsets, mode=mode).flatten().tolist() == expected
    for mode, expected in (("sum", [0.0, 4.0, 1.0]), ("mean", [0.0, 4.0, 1.0]), ("max", [0.0, 4.0, 1.0])):
        assert F.embedding_bag(index, w, offsets, mode=mode, padding_idx=1).flatten().tolist() == expected


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64, rushlight.bfloat16])
@pytest.mark.parametrize("size", [1, 3, 7, 49])
def test_bags_of_one_size_are_those_between_offsets(size, dtype):
    index, w = rushlight.randint(0, 20, (5, size)), rushlight.randn(20, 4).to(dtype)
    found = F.embedding_bag(index, w)
    assert rushlight.equal(found, F.embedding_bag(index.reshape(-1), w, rushlight.arange(0, 5 * size, size)))


def test_adaptive_softmax_agrees_with_its_own_probabilities():
    rushlight.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6], div_value=2.0)
    x, target = rushlight.randn(7, 16), rushlight.tensor([0, 2, 3, 5, 6, 9, 8])
    output, loss = layer(x, target)
    every = layer.log_prob(x)
    np.testing.assert_allclose(every.exp().sum(1).tolist(), [1.0] * 7, rtol=1e-5)
    np.testing.assert_allclose(output.tolist(), every.gather(1, target[:, None])[:, 0].tolist(), rtol=1e-5)
    assert loss.item() == pytest.approx(-output.mean().item())
    assert layer.predict(x).tolist() == every.argmax(1).tolist()


def test_gumbel_softmax_hard_is_one_hot_with_a_gradient():
    rushlight.manual_seed(0)
    logits = rushlight.randn(50, 4, requires_grad=True)
    y = F.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_allclose(y.detach().numpy(), np.eye(4)[y.argmax(1).numpy()], atol=1e-6)
    (y * rushlight.arange(4)).sum().backward()
    assert bool((logits.grad != 0).any())


def test_rrelu_draws_in_training_only():
    rushlight.manual_seed(0)
    x = -rushlight.ones(1000)
    slopes = -F.rrelu(x, 0.1, 0.3, training=True)
    assert slopes.min() >= 0.1 and slopes.max() < 0.3 and slopes.std() > 0.05
    assert F.rrelu(x, 0.1, 0.3)[0].item() == pytest.approx(-0.2)
