"""Pooling, padding, resizing and sampling: against plain NumPy, on both engines, and their derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.engine.numpy.kernels import parallel, windows
from rushlight.ops import resize
from rushlight.ops.resize import Map
from rushlight.tensor import wrap

F = nn.functional
ENGINES = ["numpy", "xla"]


def _tensor(data, engine="numpy", requires_grad=True):
    array = np.asarray(data)
    if engine == "xla":
        from rushlight.engine.xla import namespace as xla

        array = xla.asarray(array)
    return wrap(array).requires_grad_(requires_grad and array.dtype.kind == "f")


def _wave(*shape):
    return np.cos(np.arange(1.0, math.prod(shape) + 1) * 1.7).reshape(shape)


def _array(t):
    return np.asarray(t.detach()._array)


# -- the largest -------------------------------------------------------------------------------------------------------


def _max_by_loops(x, kernel, stride, padding, dilation, size):
    values, places = np.empty((*x.shape[:2], *size)), np.empty((*x.shape[:2], *size), int)
    for n, c, i, j in np.ndindex(*values.shape):
        best, place = -np.inf, None
        for a in range(kernel):
            for b in range(kernel):
                y, z = i * stride - padding + a * dilation, j * stride - padding + b * dilation
                if 0 <= y < x.shape[2] and 0 <= z < x.shape[3]:
                    value = x[n, c, y, z]
                    if place is None or value > best or np.isnan(value):
                        best, place = value, y * x.shape[3] + z
        values[n, c, i, j], places[n, c, i, j] = best, place
    return values, places


@pytest.mark.parametrize("kernel, stride, padding, dilation", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), (2, 3, 1, 1)])
@pytest.mark.parametrize("engine", ENGINES)
def test_max_pool_is_its_definition(kernel, stride, padding, dilation, engine):
    data = np.round(_wave(2, 2, 7, 8) * 2)  # many equal elements
    data[0, 0, 2, 3:6], data[1, 1], data[0, 1, 3, 3] = np.nan, -np.inf, np.inf
    x = _tensor(data, engine)
    values, places = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    expected, where = _max_by_loops(data, kernel, stride, padding, dilation, tuple(values.shape[2:]))
    np.testing.assert_array_equal(_array(values), expected)
    np.testing.assert_array_equal(_array(places), where)


def test_the_last_nan_is_the_place():
    data = np.array([[[1.0, np.nan, 2.0, np.nan, 0.0]]])
    assert F.max_pool1d(_tensor(data), 5, return_indices=True)[1].item() == 3
    assert F.adaptive_max_pool1d(_tensor(data), 1, return_indices=True)[1].item() == 3


@pytest.mark.parametrize("stride", [2, 1])
def test_fused_backward_of_max_pool(stride):
    """The engine's own backward against the rule, which is what runs when gradients are recorded."""
    gradients = []
    for create_graph in (False, True):
        x = _tensor(_wave(3, 2, 7, 8))
        y = F.max_pool2d(x, 3, stride, 1)
        gradients.append(torch.autograd.grad((y * y).sum(), x, create_graph=create_graph)[0])
    np.testing.assert_array_equal(_array(gradients[0]), _array(gradients[1]))


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(windows, "_BLOCK", 64)
    x = _wave(9, 2, 6, 6)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(parallel, "_threads", lambda threads=threads: threads)
        t = _tensor(x)
        values, places = F.max_pool2d(t, 3, 2, 1, return_indices=True)
        values.sum().backward()
        results.append([_array(values), _array(places), _array(t.grad)])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_more_than_255_in_a_window():
    data = _wave(1, 1, 20, 20)
    values, places = F.max_pool2d(_tensor(data), 20, return_indices=True)
    assert places.item() == data.argmax()
    assert values.item() == data.max()


@pytest.mark.parametrize("engine", ENGINES)
def test_unpool_puts_back(engine):
    x = _tensor(_wave(2, 3, 6, 6), engine)
    y, places = F.max_pool2d(x, 2, return_indices=True)
    back = _array(F.max_unpool2d(y, places, 2))
    kept = back != 0
    np.testing.assert_array_equal(back[kept], _array(x)[kept])
    assert kept.sum() == y.numel()


@pytest.mark.parametrize("engine", ENGINES)
def test_adaptive_pools_cover_everything(engine):
    data = _wave(2, 3, 7, 5)
    x = _tensor(data, engine)
    values, places = F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
    means = _array(F.adaptive_avg_pool2d(x, (3, 2)))
    for i, j in np.ndindex(3, 2):
        part = data[:, :, i * 7 // 3 : -(-(i + 1) * 7 // 3), j * 5 // 2 : -(-(j + 1) * 5 // 2)]
        np.testing.assert_array_equal(_array(values)[:, :, i, j], part.max((2, 3)))
        np.testing.assert_allclose(means[:, :, i, j], part.mean((2, 3)))
    flat = np.take_along_axis(data.reshape(2, 3, -1), _array(places).reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(flat.reshape(values.shape), _array(values))


def test_fractional_windows_lie_inside():
    torch.manual_seed(0)
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    values, places = F.fractional_max_pool2d(x, 3, output_size=(4, 5), return_indices=True)
    assert values.shape == (1, 1, 4, 5)
    assert torch.equal(values.long(), places)  # every element is its own position
    assert places[0, 0, -1, -1].item() == 63  # the last window ends where the image does


# -- averages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_average_counts(engine):
    x = torch.ones(1, 1, 5, 5) if engine == "numpy" else _tensor(np.ones((1, 1, 5, 5), np.float32), engine)
    inside = _array(F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False))
    np.testing.assert_allclose(inside, 1.0)
    padded = _array(F.avg_pool2d(x, 3, 2, 1))
    np.testing.assert_allclose(padded[0, 0, 0], [4 / 9, 6 / 9, 4 / 9], 1e-6)


DIFFERENTIABLE = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "lp_pool2d": lambda x: F.lp_pool2d(x * x + 1, 3, 2),
    "max_unpool2d": lambda x: F.max_unpool2d(x, torch.arange(60).reshape(1, 2, 5, 6) % 30 * 4, 2),
    "reflect": lambda x: F.pad(x, (2, -1, 1, 2), "reflect"),
    "replicate": lambda x: F.pad(x, (2, -1, 1, 9), "replicate"),
    "circular": lambda x: F.pad(x, (2, 1, 1, 2), "circular"),
    "constant": lambda x: F.pad(x, (2, -1, 1, 2)),
    "nearest": lambda x: F.interpolate(x, size=(7, 3)),
    "bilinear": lambda x: F.interpolate(x, size=(7, 3), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, size=(7, 3), mode="bicubic", align_corners=True),
    "antialias": lambda x: F.interpolate(x, size=(2, 9), mode="bicubic", antialias=True),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[:, :, :4], 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x.repeat(1, 3, 1, 1), 3),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    x = _tensor(_wave(1, 2, 5, 6))
    assert gradcheck(DIFFERENTIABLE[name], (x,))
    assert gradgradcheck(DIFFERENTIABLE[name], (x,))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_xla_agrees(name):
    if name == "max_unpool2d":
        pytest.skip("its indices are on the CPU here; see test_unpool_puts_back")
    results = []
    for engine in ENGINES:
        x = _tensor(_wave(1, 2, 5, 6), engine)
        y = DIFFERENTIABLE[name](x)
        (y * y).sum().backward()
        results.append((_array(y), _array(x.grad)))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)


# -- padding and resizing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode, theirs", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_pad_as_numpy(mode, theirs):
    data = _wave(2, 3, 5, 6)
    ours = F.pad(_tensor(data), (2, 4, 1, 3), mode)
    np.testing.assert_array_equal(_array(ours), np.pad(data, [(0, 0), (0, 0), (1, 3), (2, 4)], theirs))


MAPS = [
    Map("area", 7, 3), Map("area", 3, 7), Map("nearest", 5, 13, (None,)), Map("nearest_exact", 13, 5, (None,)),
    Map("linear", 5, 12, (False, None)), Map("linear", 12, 5, (True, None)), Map("cubic", 4, 9, (False, None)),
    Map("smooth", 17, 5, (False, None, "bilinear")), Map("smooth", 9, 4, (False, None, "lanczos")),
    Map("reflect", 4, 9, (2, 3)), Map("replicate", 3, 9, (5, 1)), Map("circular", 5, 9, (4, 0)),
]  # fmt: skip


@pytest.mark.parametrize("along", MAPS)
def test_a_map_its_matrix_and_its_transpose(along):
    """The terms of a Map and of its transpose describe one matrix."""
    matrix = resize._matrix(along, False)
    assert matrix.shape == (along.out, along.n)
    for transposed in (False, True):
        index, weight = resize._terms(along, transposed)
        built = np.zeros(matrix.T.shape if transposed else matrix.shape)
        rows = np.broadcast_to(np.arange(len(built)), index.shape)
        np.add.at(built, (rows, index), 1.0 if weight is None else weight)
        np.testing.assert_allclose(built, matrix.T if transposed else matrix)
    np.testing.assert_allclose(matrix.sum(1), 1.0)  # a constant image stays what it is


def test_one_bad_pixel_stays_where_it_is():
    x = torch.zeros(1, 1, 32, 32)
    x[0, 0, 5, 5] = float("nan")
    assert F.interpolate(x, scale_factor=2, mode="bilinear").isnan().sum().item() < 20


def test_results_are_not_the_input():
    x = torch.zeros(1, 4, 4, 4)
    results = [
        F.interpolate(x, size=4), F.pad(x, (0, 0)), F.pad(x, (0, 0, 0, 0), "reflect"), F.pixel_shuffle(x, 1),
        F.channel_shuffle(x, 1), F.adaptive_avg_pool2d(x, 4), F.max_pool2d(x, 1), F.avg_pool2d(x, 1),
    ]  # fmt: skip
    for y in results:
        y += 1
    assert x.sum().item() == 0


def test_bytes_are_rounded():
    x = torch.tensor([[[[0, 1], [1, 4]]]], dtype=torch.uint8)
    assert F.interpolate(x, scale_factor=2, mode="bilinear")[0, 0].tolist() == [
        [0, 0, 1, 1], [0, 1, 2, 2], [1, 2, 3, 3], [1, 2, 3, 4],
    ]  # fmt: skip


# -- sampling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_identity_grid(mode, align, engine):
    x = _tensor(_wave(2, 3, 4, 5), engine)
    theta = _tensor(np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2), engine)
    grid = F.affine_grid(theta, x.shape, align_corners=align)
    np.testing.assert_allclose(_array(F.grid_sample(x, grid, mode, "border", align)), _array(x), 1e-9, 1e-9)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_sampling_derivatives(mode, padding):
    x, grid = _tensor(_wave(1, 1, 3, 4)), _tensor(_wave(1, 1, 3, 2) * 1.3)
    assert gradcheck(lambda x, grid: F.grid_sample(x, grid, mode, padding, False), (x, grid))
    assert gradgradcheck(lambda x, grid: F.grid_sample(x, grid, mode, padding, False), (x, grid))


def test_affine_derivatives():
    theta = _tensor(_wave(2, 3, 4))
    assert gradcheck(lambda t: F.affine_grid(t, (2, 1, 2, 3, 2), align_corners=False), (theta,))
    assert gradgradcheck(lambda t: F.affine_grid(t, (2, 1, 2, 3, 2), align_corners=False), (theta,))


def test_points_that_are_no_numbers():
    grid = torch.full((1, 1, 2, 2), float("nan"))
    grid[0, 0, 1] = float("inf")
    assert F.grid_sample(torch.ones(1, 1, 3, 3), grid, align_corners=False).isnan().all()  # as in PyTorch
