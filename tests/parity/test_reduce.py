"""Reductions, scans and sorting said the same way in both libraries: results, node names, errors, edge cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from convert import Converter

import rushlight

_NAN, _INF = float("nan"), float("inf")


def _inputs() -> dict:
    """Fresh PyTorch tensors that the expressions name."""
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape, **kwargs):
        return torch.rand(*shape, generator=generator, **kwargs)

    return {
        "x": uniform(3, 4, dtype=torch.float64).requires_grad_(),
        "v": uniform(6).requires_grad_(),
        "z": uniform(3, 4, dtype=torch.complex64).requires_grad_(),
        "zero": torch.tensor([[0.0, 2, 0], [3, 0, 1], [1, 2, 3]], dtype=torch.float64, requires_grad=True),
        "ties": torch.tensor([2.0, 1, 2, 1, 1, 3, 3], requires_grad=True),
        "holes": torch.tensor([[1.0, _NAN, 3], [_NAN, _NAN, _NAN], [5, 2, 2]], requires_grad=True),
        "inf": torch.tensor([[-_INF, 1.0], [_INF, 2], [-_INF, -_INF]]),
        "h": uniform(3, 4).to(torch.float16),
        "i": torch.tensor([[3, 1, 2], [1, 1, 5]]),
        "u": torch.tensor([200, 100, 1], dtype=torch.uint8),
        "b": torch.tensor([True, False, True]),
        "e": torch.zeros(0),
        "e3": torch.zeros(0, 3),
        "s": torch.tensor(1.5, requires_grad=True),
    }


def _evaluate(expression, library, values):
    """("raises", type, text) or ("returns", what came, printed)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "returns", eval(expression, {"torch": library, **values})
        except Exception as error:
            return "raises", (type(error).__name__, str(error).split("\n")[0])


def _flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _describe(t):
    """What must agree exactly: dtype, shape, node name."""
    return str(t.dtype), tuple(t.shape), t.grad_fn.name() if t.grad_fn is not None else None


VALUES = """
x.sum() | x.sum(0) | x.sum((0, 1), keepdim=True) | x.sum(()) | x.sum(dtype=torch.float32) | torch.sum(x, axis=-1)
u.sum() | b.sum() | i.sum(1, keepdim=True) | h.sum() | e.sum() | e3.sum(0) | s.sum(0) | z.sum(-1)
i.sum(dtype=torch.int32) | x.mean() | x.mean(0) | x.mean((0, 1)) | h.mean(1) | e.mean() | z.mean()
i.mean(dtype=torch.float32) | s.mean(-1) | x.prod() | x.prod(0) | zero.prod() | zero.prod(1)
zero.prod(0, keepdim=True) | e.prod() | b.prod() | z.prod(1) | s.prod() | x.amax() | x.amax(0) | x.amax((0, 1))
ties.amax() | ties.amin() | x.amin(1, keepdim=True) | h.amax(0) | holes.amax(1) | x.max() | ties.max() | ties.max(0)
x.max(0) | x.max(-1, keepdim=True) | b.max() | b.max(0) | i.max(1) | holes.max(1) | s.max(0) | x.min() | ties.min(0)
x.min(1, True) | i.min() | holes.min(0) | holes.min() | e3.max(1) | torch.max(x, dim=1).indices | x.max(x + 1)
torch.min(x, other=1 - x) | x.aminmax() | x.aminmax(dim=0) | ties.aminmax() | x.argmax() | x.argmin(0, True)
ties.argmax() | ties.argmin() | holes.argmax(1) | torch.argmax(x, axis=1) | h.argmax() | s.argmax() | s.argmax(0)
x.all() | x.any(0) | u.all() | b.any(0) | i.all((0, 1)) | e.all() | e.any() | z.any() | torch.all(x, dim=())
holes.any(1) | torch.count_nonzero(zero) | torch.count_nonzero(zero, 0) | torch.count_nonzero(b)
zero.count_nonzero((0, 1)) | x.std() | x.std(0) | x.std(unbiased=False) | x.std(0, False, True)
x.var((0, 1), correction=0) | x.var(False) | z.var() | z.std(0) | torch.var_mean(x) | torch.std_mean(x, 0)
torch.var_mean(z, 1) | s.var(correction=0) | e.std() | v.std(correction=9) | h.std() | x.logsumexp(0)
x.logsumexp((0, 1), True) | i.logsumexp(1) | e.logsumexp(0) | inf.logsumexp(1) | z.logsumexp(0) | s.logsumexp(0)
x.softmax(0) | x.log_softmax(-1) | torch.softmax(x, 0, dtype=torch.float32) | h.softmax(1) | s.softmax(0)
e3.softmax(0) | torch.softmax(i, 1, dtype=torch.float64) | torch.log_softmax(inf, 1)
torch.nn.functional.softmax(x, dim=1) | x.cumsum(0) | x.cumsum(-1) | x.cumprod(1) | zero.cumprod(0) | zero.cumprod(1)
b.cumsum(0) | u.cumprod(0) | s.cumsum(0) | e.cumsum(0) | x.cummax(0) | ties.cummax(0) | ties.cummin(0)
holes.cummax(1) | holes.cummin(1) | b.cummax(0) | e.cummax(0) | x.logcumsumexp(0) | z.logcumsumexp(1)
inf.logcumsumexp(1) | x.sort() | x.sort(0, True) | ties.sort() | ties.sort(descending=True) | x.sort(stable=True)
holes.sort() | holes.sort(descending=True) | b.sort() | i.sort(dim=0) | s.sort() | e.sort() | h.sort(1)
ties.argsort() | ties.argsort(descending=True, stable=True) | torch.msort(x) | x.topk(2) | x.topk(2, 0, largest=False)
s.topk(1) | v.topk(0) | x.kthvalue(2) | x.kthvalue(2, 0, True) | s.kthvalue(1) | x.median() | x.median(0)
ties.median() | holes.median() | holes.median(1) | holes.nanmedian() | holes.nanmedian(1) | i.median() | i.median(1)
e.median() | s.median(0) | x.mode() | ties.mode() | i.mode() | i.mode(0, True) | x.nanmean() | holes.nanmean(0)
holes.nansum() | holes.nansum(1) | i.nansum() | x.quantile(0.5, 0) | holes.quantile(0.3, 1)
holes.nanquantile(0.3, 1) | torch.quantile(x, torch.tensor([.1, .7]).double(), 1, True)
x.quantile(.4, interpolation="nearest") | x.quantile(.4, 1, interpolation="midpoint") | v.quantile(1.0)
v.quantile(.3, keepdim=True) | x.norm() | x.norm(1) | x.norm(2, 0) | x.norm(p=float("inf")) | x.norm(0)
x.norm(3, 1, True) | z.norm() | zero.norm(2, 1) | x.norm(-1) | torch.norm(x, dim=(0, 1)) | torch.norm(zero, p=.5)
torch.dist(x, x + 1) | torch.dist(x, x + 2, 3) | x.renorm(2, 0, .5) | x.sum_to_size(1, 4) | x.sum_to_size((4,))
x.sum_to_size(3, 1) | ties.unique() | i.unique(dim=1) | holes.unique()
ties.unique(return_inverse=True, return_counts=True) | torch.unique_consecutive(ties.detach(), return_counts=True)
b.unique() | x.cov() | v.cov() | x.corrcoef() | v.corrcoef() | i.cov() | z.cov() | torch.cov(x, correction=0)
torch.diff(b) | torch.diff(x, n=2, dim=0) | torch.diff(x, n=0) | torch.trapezoid(x) | torch.trapezoid(v, dx=2.)
torch.trapezoid(v, v) | torch.cumulative_trapezoid(x, dim=0) | torch.gradient(v)
torch.gradient(x, spacing=2., edge_order=2) | torch.gradient(x, dim=1) | torch.isin(i, torch.tensor([1, 5]))
torch.bincount(torch.tensor([1, 2, 2])) | torch.bincount(torch.tensor([1, 2, 2]), minlength=5)
torch.histc(v.detach(), 4) | torch.histc(v.detach(), 4, 0.2, 0.7) | torch.histogram(v.detach(), 3)
torch.bucketize(v, torch.tensor([.2, .5]))
torch.searchsorted(torch.tensor([1., 2, 2, 3]), ties.detach(), right=True)
torch.bucketize(.3, torch.tensor([.2, .5]))
"""

ERRORS = """
e.max() | e3.max(0) | e3.amax(0) | e.amin() | e.argmax() | e3.argmin(0) | e3.median(0) | e.mode() | e.kthvalue(1)
e.aminmax() | e3.aminmax(dim=0) | e.topk(1) | e.quantile(.5) | v.sum(1) | v.sum(-2) | v.sum((0, 0)) | v.max(2)
v.softmax(3) | v.cumsum(4) | i.mean() | b.mean(0) | i.mean(dtype=torch.int32) | i.std() | i.var(0) | i.norm()
i.quantile(.5) | i.logcumsumexp(0) | i.softmax(1) | i.softmax(0) | i.log_softmax(1) | b.argmax() | z.max() | z.max(0)
z.amax(0) | z.sort() | z.argmax() | z.median() | z.topk(1) | z.cummax(0) | b.median() | b.topk(1) | b.kthvalue(1)
v.topk(9) | v.topk(-1) | v.kthvalue(9) | v.kthvalue(0) | v.quantile(2.) | torch.sum([1, 2])
v.quantile(torch.tensor([.5]).double()) | v.quantile(.5, interpolation="none") | v.renorm(2, 0, 1) | torch.diff(s)
i.nanmean() | torch.norm(x, dtype=torch.float32) | torch.bincount(torch.tensor([-1])) | torch.bincount(v)
torch.histc(i) | torch.mean(3) | x.sum_to_size(2, 4) | x.unsqueeze(0).cov() | torch.var_mean(i) | torch.cumprod(x, 2)
z.nansum() | torch.searchsorted(torch.ones(2, 3), torch.ones(3, 3)) | torch.bucketize(v, torch.ones(2, 2))
v.diff(n=-1)
"""


def _listed(text):
    return [e.strip() for line in text.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.parametrize("expression", _listed(VALUES))
def test_same_values_nodes_and_gradients(expression):
    theirs_in = _inputs()
    ours_in = Converter()(theirs_in)
    kind, theirs = _evaluate(expression, torch, theirs_in)
    assert kind == "returns", theirs
    kind, ours = _evaluate(expression, rushlight, ours_in)
    assert kind == "returns", ours
    assert type(ours).__name__ == type(theirs).__name__
    for a, b in zip(_flat(ours), _flat(theirs), strict=True):
        assert _describe(a)[:2] == _describe(b)[:2]
        if not expression.startswith(_OTHER_NODES):
            assert _describe(a)[2] == _describe(b)[2]
        exact = 2e-3 if b.dtype is torch.float16 else 2e-6
        np.testing.assert_allclose(a.detach().numpy(), b.detach().resolve_conj().numpy(), exact, exact)
    roots = [(a, b) for a, b in zip(_flat(ours), _flat(theirs)) if b.grad_fn is not None]
    if roots and ".unique(" not in expression:
        _compare_gradients(roots, ours_in, theirs_in)


# Composites whose last step PyTorch happens to do by another op.
_OTHER_NODES = (
    "x.quantile",
    "v.quantile",
    "holes.quantile",
    "holes.nanquantile",
    "torch.quantile",
    "torch.trapezoid",
    "torch.diff",
    "x.sum_to_size((4,",
    "ties.unique",
    "holes.unique",
    "s.",
)


def _compare_gradients(roots, ours_in, theirs_in):
    for a, b in roots:
        weight = torch.linspace(0.5, 1.5, b.numel(), dtype=b.dtype).reshape(b.shape)
        b.backward(weight, retain_graph=True)
        a.backward(Converter()(weight), retain_graph=True)
    for name, t in theirs_in.items():
        if t.grad is not None:
            np.testing.assert_allclose(
                ours_in[name].grad.numpy(), t.grad.resolve_conj().numpy(), 1e-5, 1e-5, err_msg=name
            )


@pytest.mark.parametrize("expression", _listed(ERRORS))
def test_same_errors(expression):
    theirs_in = _inputs()
    kind, theirs = _evaluate(expression, torch, theirs_in)
    assert kind == "raises", theirs
    kind, ours = _evaluate(expression, rushlight, Converter()(theirs_in))
    assert kind == "raises", ours
    assert ours[0] == theirs[0]
    assert ours[1].rstrip(".") == theirs[1].rstrip(".")


def test_results_print_as_pytorchs():
    data = [[1.0, 5.0], [7.0, 2.0]]
    assert repr(rushlight.tensor(data).max(1)) == repr(torch.tensor(data).max(1))
    assert repr(rushlight.tensor(data).aminmax()) == repr(torch.tensor(data).aminmax())


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.histc(lib.tensor([1.0, NAN, 2]), 3),
        lambda lib: lib.histc(lib.tensor([1.0, INF, 2]), 3),
        lambda lib: lib.histc(lib.tensor([1.0, NAN, 2]), 3, 0, 3),
        lambda lib: lib.histc(lib.tensor([1.0, INF, 2]), 3, 0, 3),
        lambda lib: lib.histc(lib.tensor([1.0, 2]), 3, NAN, 3),
        lambda lib: lib.histc(lib.tensor([1.0, 2]), -3),
        lambda lib: lib.histc(lib.tensor([1.0, 2]), 3, 5, 1),
        lambda lib: lib.histogram(lib.tensor([1.0, NAN, 2]), 3)[0],
        lambda lib: lib.histogram(lib.tensor([1.0, NAN, 2]), 3, range=(0.0, 3.0))[0],
    ],
)
def test_histograms_of_what_is_not_finite(call):
    outcomes = []
    for lib in (rushlight, torch):
        try:
            outcomes.append(call(lib).tolist())
        except RuntimeError as error:
            outcomes.append(str(error).replace("-nan", "nan"))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_at_points_that_are_not_finite(mode, padding):
    points = [[[[NAN, 0.0], [0.0, NAN], [INF, 0.0], [-INF, -INF], [1e30, 0.3], [0.0, 0.0]]]]
    for align in (False, True):
        ours, theirs = (
            lib.nn.functional.grid_sample(lib.arange(9.0).view(1, 1, 3, 3), lib.tensor(points), mode, padding, align)
            for lib in (rushlight, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    points = [[[[[NAN, 0.0, 0.0], [0.0, NAN, 0.0], [INF, 0.0, 0.0]]]]]
    if mode != "bicubic":
        ours, theirs = (
            lib.nn.functional.grid_sample(lib.arange(8.0).view(1, 1, 2, 2, 2), lib.tensor(points), mode, padding, False)
            for lib in (rushlight, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
