"""Convolution and folding: against a plain loop, against each other, and their derivatives."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.engine.numpy.kernels import conv as kernels
from rushlight.engine.numpy.kernels import parallel
from rushlight.tensor import wrap

F = nn.functional
ENGINES = ["numpy", "xla"]


def _tensor(*shape, engine="numpy", requires_grad=True, dtype=np.float64):
    array = np.cos(np.arange(1.0, math.prod(shape) + 1) * 1.7).astype(dtype).reshape(shape)
    if engine == "xla":
        from rushlight.engine.xla import namespace as xla

        array = xla.asarray(array)
    return wrap(array).requires_grad_(requires_grad)


def _by_loops(x, w, stride, padding, dilation, groups):
    """The definition of a convolution, in any number of dimensions."""
    dims = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], dilation, w.shape[2:], stride)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), x.dtype)
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for o, at in itertools.product(range(w.shape[0]), np.ndindex(*sizes)):
        first = o // per_out * per_in
        for k in np.ndindex(*w.shape[2:]):
            place = tuple(at[i] * stride[i] + k[i] * dilation[i] for i in range(dims))
            y[(slice(None), o, *at)] += (
                x[(slice(None), slice(first, first + per_in), *place)] * w[(o, slice(None), *k)]
            ).sum(1)
    return y


CONVOLUTIONS = [
    ((2, 3, 9), (4, 3, 3), {}),
    ((2, 4, 9), (6, 2, 2), {"stride": (2,), "padding": (1,), "dilation": (3,), "groups": 2}),
    ((2, 3, 6, 7), (4, 3, 3, 2), {"padding": (1, 0)}),
    ((3, 3, 14, 13), (4, 3, 3, 3), {"padding": (2, 1)}),  # many positions: another order of columns
    ((2, 4, 7, 6), (4, 2, 3, 3), {"stride": (2, 1), "padding": (2, 1), "dilation": (1, 2), "groups": 2}),
    ((2, 3, 6, 7), (3, 1, 3, 3), {"padding": (1, 1), "groups": 3}),  # depthwise
    ((2, 3, 6, 7), (3, 1, 3, 2), {"stride": (2, 3), "dilation": (2, 1), "groups": 3}),
    ((2, 5, 12, 12), (7, 5, 1, 1), {}),  # pointwise
    ((2, 2, 4, 5, 4), (3, 2, 2, 3, 2), {"stride": (1, 2, 1), "padding": (1, 1, 0)}),
]


def _complete(w_shape, options):
    dims = len(w_shape) - 2
    defaults = {"stride": (1,) * dims, "padding": (0,) * dims, "dilation": (1,) * dims, "groups": 1}
    return {**defaults, **options}


@pytest.mark.parametrize("x_shape, w_shape, options", CONVOLUTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_conv_is_its_definition(x_shape, w_shape, options, engine):
    x, w, b = _tensor(*x_shape, engine=engine), _tensor(*w_shape, engine=engine), _tensor(w_shape[0], engine=engine)
    conv = (F.conv1d, F.conv2d, F.conv3d)[len(x_shape) - 3]
    expected = _by_loops(np.asarray(x._array), np.asarray(w._array), **_complete(w_shape, options))
    bias = np.asarray(b._array).reshape(-1, *[1] * (len(x_shape) - 2))
    np.testing.assert_allclose(np.asarray(conv(x, w, b, **options)._array), expected + bias, 1e-10, 1e-10)


@pytest.mark.parametrize("x_shape, w_shape, options", CONVOLUTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_transposes_of_conv(x_shape, w_shape, options, engine):
    """<conv(x, w), g> is <x, conv_input(g, w)> and <w, conv_weight(x, g)>: so both are its gradients."""
    from rushlight.autograd.op import differentiable as xp

    options = _complete(w_shape, options)
    x, w = _tensor(*x_shape, engine=engine), _tensor(*w_shape, engine=engine)
    y = xp.conv(x, w, **options)
    g = _tensor(*y.shape, engine=engine)
    product = (y * g).sum().item()
    to_x = xp.conv_input(g, w, size=tuple(x_shape[2:]), **options)
    to_w = xp.conv_weight(x, g, size=tuple(w_shape[2:]), **options)
    assert (x * to_x).sum().item() == pytest.approx(product)
    assert (w * to_w).sum().item() == pytest.approx(product)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}, {"padding": "same"}])
def test_conv_derivatives(options):
    x, w, b = _tensor(2, 2, 5, 4), _tensor(4, 2 // options.get("groups", 1), 2, 2), _tensor(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an even kernel and padding="same"
        assert gradcheck(lambda *a: F.conv2d(*a, **options), (x, w, b))
        assert gradgradcheck(lambda *a: F.conv2d(*a, **options), (x, w, b))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "output_padding": 1, "groups": 2}, {"dilation": 3, "output_padding": 2}]
)
def test_conv_transpose_derivatives(options):
    x, w, b = _tensor(2, 2, 3, 2), _tensor(2, 2, 2, 2), _tensor(2 * options.get("groups", 1))
    assert gradcheck(lambda *a: F.conv_transpose2d(*a, **options), (x, w, b))
    assert gradgradcheck(lambda *a: F.conv_transpose2d(*a, **options), (x, w, b))


def test_complex_derivatives():
    x = torch.complex(_tensor(1, 2, 4), _tensor(1, 2, 4).flip(2)).detach().requires_grad_()
    w = torch.complex(_tensor(2, 2, 2), _tensor(2, 2, 2).flip(1)).detach().requires_grad_()
    assert gradcheck(F.conv1d, (x, w))
    assert gradgradcheck(F.conv1d, (x, w))


def test_output_padding_beyond_a_stride():
    """More output padding than a stride needs reaches into what padding cut off."""
    x, w = _tensor(1, 1, 4), _tensor(1, 1, 3)
    long = F.conv_transpose1d(x, w, dilation=3)
    cut = F.conv_transpose1d(x, w, dilation=3, padding=2, output_padding=2)
    np.testing.assert_allclose(cut.detach().numpy(), long.detach().numpy()[..., 2:])


@pytest.mark.parametrize("x_shape, w_shape, options", CONVOLUTIONS)
def test_threads_change_nothing(x_shape, w_shape, options, monkeypatch):
    x, w = np.random.RandomState(0).randn(*x_shape), np.random.RandomState(1).randn(*w_shape)
    options = _complete(w_shape, options)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(parallel, "_threads", lambda threads=threads: threads)
        y = kernels.conv(x, w, **options)
        results.append(
            (
                y,
                kernels.conv_input(y, w, size=x_shape[2:], **options),
                kernels.conv_weight(x, y, size=w_shape[2:], **options),
            )
        )
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)


@pytest.mark.parametrize("size", [5, 12])
@pytest.mark.parametrize("images", [2, 9, 70])
def test_convolutions_on_numpy_do_not_depend_on_threads(images, size, monkeypatch):
    """Products are of the same blocks of images whatever their number."""
    x, g = (np.random.RandomState(i).randn(images, 8, size, size).astype(np.float32) for i in range(2))
    w = np.random.RandomState(2).randn(8, 8, 3, 3).astype(np.float32)
    options = _complete(w.shape, {"padding": (1, 1)})
    monkeypatch.setattr(kernels, "library", None)
    results = []
    for threads in (1, 2, 3, 5):
        monkeypatch.setattr(parallel, "_threads", lambda threads=threads: threads)
        forward, to_x = kernels.conv(x, w, **options), kernels.conv_input(g, w, size=(size, size), **options)
        results.append((forward, to_x, kernels.conv_weight(x, g, size=(3, 3), **options)))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


def test_an_error_in_a_thread_comes_out(monkeypatch):
    monkeypatch.setattr(parallel, "_threads", lambda: 2)

    def work(start, stop):
        if start:
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        parallel.over(4, 1, lambda: work)
    done = []
    parallel.over(4, 1, lambda: lambda start, stop: done.append(start))  # the next loop finds everything in order
    assert sorted(done) == [0, 1, 2, 3]


def test_results_can_be_viewed():
    y = nn.Conv2d(3, 4, 3)(torch.zeros(2, 3, 8, 8))
    assert y.is_contiguous()
    assert y.view(2, -1).shape == (2, 144)
    assert F.max_pool2d(y, 2).view(2, -1).shape == (2, 36)


def test_padding_modes_pad_first():
    x = torch.randn(2, 3, 6, 5)
    for mode in ("reflect", "replicate", "circular"):
        layer = nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode=mode)
        expected = F.conv2d(F.pad(x, (2, 2, 1, 1), mode), layer.weight, layer.bias)
        assert torch.equal(layer(x), expected)


def test_a_lazy_layer_becomes_a_plain_one():
    torch.manual_seed(0)
    lazy = nn.LazyConvTranspose2d(6, 3, groups=2)
    assert lazy.has_uninitialized_params()
    assert lazy(torch.zeros(1, 4, 5, 5)).shape == (1, 6, 7, 7)
    assert type(lazy) is nn.ConvTranspose2d
    assert lazy.in_channels == 4
    assert lazy.weight.shape == (4, 3, 3, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    layer = nn.Conv2d(2, 3, 3, dtype=dtype)
    y = layer(torch.randn(1, 2, 5, 5, dtype=dtype))
    y.sum().backward()
    assert y.dtype is dtype
    assert layer.weight.grad.dtype is dtype


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_unfold_times_weights_is_conv(engine):
    x, w = _tensor(2, 3, 6, 7, engine=engine), _tensor(4, 3, 3, 2, engine=engine)
    options = {"dilation": (1, 2), "padding": (1, 1), "stride": (2, 1)}
    columns = F.unfold(x, (3, 2), **options)
    y = (w.reshape(4, -1) @ columns).reshape(F.conv2d(x, w, **options).shape)
    np.testing.assert_allclose(np.asarray(y._array), np.asarray(F.conv2d(x, w, **options)._array), 1e-10, 1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_fold_counts_overlaps(engine):
    x = _tensor(2, 3, 6, 6, engine=engine)
    ones = torch.ones_like(x)
    there_and_back = F.fold(F.unfold(x, 3, padding=1), (6, 6), 3, padding=1)
    counts = F.fold(F.unfold(ones, 3, padding=1), (6, 6), 3, padding=1)
    np.testing.assert_allclose(np.asarray(there_and_back._array), np.asarray((x * counts)._array), 1e-10)


def test_column_derivatives():
    assert gradcheck(lambda x: F.unfold(x, 2, 2, 1, 2), (_tensor(1, 2, 4, 5),))
    assert gradgradcheck(lambda x: F.fold(x, (4, 5), 2, padding=1), (_tensor(1, 8, 30),))
