"""Convolution in C: equal to the bodies on NumPy, forward and both transposes, for any stride, padding and dilation."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy.kernels import conv as kernels

pytestmark = pytest.mark.skipif(native.library is None, reason=f"the kernels in C are not there: {native.reason}")

# images, weights, stride, padding, dilation, groups
CASES = [
    ((2, 3, 9, 10), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 3, 9, 10), (5, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 9, 11), (6, 2, 3, 2), (2, 2), (1, 1), (1, 1), 2),
    ((3, 4, 12, 13), (6, 4, 3, 3), (2, 3), (2, 1), (2, 2), 1),
    ((2, 4, 12, 13), (10, 4, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 12, 13), (10, 4, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((2, 4, 50), (6, 4, 5), (1,), (2,), (1,), 1),
    ((1, 4, 3000), (6, 4, 5), (3,), (2,), (2,), 1),
    ((2, 6, 5000), (6, 1, 5), (1,), (2,), (1,), 6),
    ((2, 3, 6, 7, 8), (4, 3, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((2, 3, 6, 7, 8), (4, 3, 2, 3, 3), (2, 1, 2), (0, 1, 1), (1, 2, 1), 1),
    ((2, 6, 5, 6, 7), (6, 1, 3, 2, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), 6),
    ((2, 6, 9, 10), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((2, 6, 9, 10), (12, 1, 3, 3), (2, 2), (1, 1), (1, 1), 6),
    ((1, 2, 200, 180), (9, 2, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((4, 16, 7, 7), (70, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 3, 5, 5), (4, 3, 5, 5), (1, 1), (4, 4), (1, 1), 1),  # a window may lie outside
    ((2, 3, 9, 9), (4, 3, 2, 2), (4, 4), (0, 0), (1, 1), 1),  # some of the input is met by no tap
    ((2, 3, 9, 9), (4, 3, 2, 2), (4, 4), (1, 1), (2, 2), 1),
    # one matrix product
    ((5, 6, 3, 4), (7, 6, 3, 4), (2, 1), (0, 0), (1, 1), 1),
    # columns of several images at once: a last block that is not full, groups, taps met by nothing, one image in chunks
    ((9, 40, 4, 4), (130, 40, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((70, 24, 5, 4), (48, 12, 3, 3), (2, 2), (1, 1), (1, 1), 2),
    ((5, 400, 3, 3), (130, 400, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((7, 40, 5), (33, 40, 4), (3,), (2,), (2,), 1),
    ((6, 33, 2, 3, 2), (40, 33, 2, 2, 3), (1, 2, 1), (1, 0, 1), (1, 1, 1), 1),
    ((3, 4, 50, 52), (24, 4, 16, 16), (17, 16), (0, 3), (1, 1), 1),
    ((2, 5, 1, 700), (200, 5, 1, 40), (1, 50), (0, 1), (1, 1), 1),
    ((600, 3, 2, 2), (70, 3, 2, 2), (1, 1), (1, 1), (1, 1), 1),
    # a stride, and outputs that fill vectors: patches that do not touch, padding, groups, chunks, one and three dims
    ((3, 3, 70, 65), (48, 3, 16, 16), (16, 16), (0, 0), (1, 1), 1),
    ((2, 10, 23, 22), (64, 5, 3, 3), (2, 2), (1, 1), (1, 1), 2),
    ((1, 24, 90, 91), (31, 24, 5, 4), (3, 2), (2, 1), (1, 2), 1),
    ((2, 40, 3001), (32, 40, 5), (3,), (2,), (1,), 1),
    ((2, 20, 9, 8, 7), (33, 20, 3, 2, 3), (2, 2, 1), (1, 0, 1), (1, 1, 1), 1),
    # one filter for each channel, every other column: odd sizes, taps that none of a row meet, one column, chunks
    ((3, 5, 13, 21), (5, 1, 3, 3), (2, 2), (1, 1), (1, 1), 5),
    ((2, 4, 14, 70), (4, 1, 5, 4), (2, 2), (2, 3), (1, 1), 4),
    ((2, 4, 11, 16), (4, 1, 1, 1), (2, 2), (0, 0), (1, 1), 4),
    ((2, 3, 12, 17), (3, 1, 3, 3), (3, 2), (2, 3), (2, 2), 3),
    ((2, 3, 9, 9), (3, 1, 2, 2), (1, 2), (1, 1), (1, 4), 3),
    ((40, 7, 6, 1), (7, 1, 3, 3), (2, 2), (1, 2), (1, 1), 7),
    ((2, 3, 9001), (3, 1, 7), (2,), (3,), (1,), 3),
    ((2, 3, 6, 7, 18), (3, 1, 3, 2, 3), (1, 2, 2), (1, 0, 1), (1, 1, 1), 3),
    # by Winograd's algorithm: odd sizes, several small images in a piece, rows of tiles in chunks, outputs in blocks,
    # channels in ranges, taps transformed where they are used
    ((3, 16, 9, 10), (17, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((13, 40, 6, 7), (24, 40, 3, 3), (1, 1), (2, 2), (1, 1), 1),
    ((2, 20, 45, 33), (130, 20, 3, 3), (1, 1), (0, 1), (1, 1), 1),
    ((1, 16, 8, 120), (16, 16, 3, 3), (1, 1), (1, 0), (1, 1), 1),
    ((9, 210, 7, 6), (90, 210, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((7, 150, 13, 13), (70, 150, 3, 3), (1, 1), (1, 1), (1, 1), 1),
]
SEVERAL, STRIDED, DEPTHWISE, WINOGRAD = CASES[-27:-19], CASES[-19:-14], CASES[-14:-6], CASES[-6:]


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def all_three(x, w, b, g, stride, padding, dilation, groups):
    static = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    y = kernels.conv(x, w, b, **static)
    g = numbers(*y.shape, dtype=x.dtype, seed=3) if g is None else g
    dx = kernels.conv_input(g, w, size=x.shape[2:], **static)
    return y, dx, kernels.conv_weight(x, g, size=w.shape[2:], **static), g


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(kernels, "_WORTH", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "{}-{} s{} p{} d{} g{}".format(*c).replace(", ", ","))
def test_a_convolution_and_its_transposes(case, dtype, monkeypatch):
    x_shape, w_shape, *static = case
    x, w, b = (numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([x_shape, w_shape, w_shape[:1]]))
    *found, g = all_three(x, w, b, None, *static)
    monkeypatch.setattr(kernels, "library", None)
    *expected, _ = all_three(*[a.astype(np.float64) for a in (x, w, b, g)], *static)
    tolerance = 3e-6 if dtype == np.float32 else 1e-14
    for mine, truth in zip(found, expected):
        assert mine.dtype == dtype and mine.shape == truth.shape
        np.testing.assert_allclose(mine, truth, rtol=0, atol=tolerance * max(1, np.abs(truth).max()))


@pytest.mark.parametrize(
    "case",
    [CASES[0], CASES[3], CASES[13], CASES[14], *SEVERAL, *STRIDED, *DEPTHWISE, *WINOGRAD],
    ids=lambda c: str(c[0]),
)
def test_the_number_of_threads_does_not_change_a_bit(case):
    x, w, b = numbers(*case[0]), numbers(*case[1], seed=1), numbers(case[1][0], seed=2)
    before, results = rushlight.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            rushlight.set_num_threads(threads)
            results.append(all_three(x, w, b, None, *case[2:]))
    finally:
        rushlight.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(mine, same) for mine, same in zip(results[0], other))


@pytest.mark.parametrize(("groups", "channels"), [(1, 4), (4, 4), (1, 16)])
def test_infinities_reach_only_the_windows_they_are_in(groups, channels, monkeypatch):
    """What lies between the rows of an image is computed and dropped: none of it may come into a sum."""
    x, w, b = (
        numbers(2, channels, 9, 11),
        numbers(channels, channels // groups, 3, 3, seed=1),
        numbers(channels, seed=2),
    )
    x[0, 1, 0, 0], x[1, 2, 8, 10], x[1, 3, 0, 10] = np.inf, np.nan, -np.inf
    for padding in ((0, 0), (1, 1)):
        *found, g = all_three(x, w, b, None, (1, 1), padding, (1, 1), groups)
        with monkeypatch.context() as patch, np.errstate(invalid="ignore"):
            patch.setattr(kernels, "library", None)
            patch.setattr(kernels, "_is_depthwise", lambda *_: False)  # it too computes what it then drops
            y, dx, _, _ = all_three(x, w, b, g, (1, 1), padding, (1, 1), groups)
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]]), (3, 3), axis=(2, 3)
        )
        with np.errstate(invalid="ignore"):
            if groups == 4:
                dw = np.einsum("nopq,nopqij->oij", g, windows)[:, None]
            else:
                dw = np.einsum("nopq,ncpqij->ocij", g, windows)
        for mine, truth in zip(found, (y, dx, dw)):
            np.testing.assert_allclose(mine, truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", [*SEVERAL, *STRIDED, *DEPTHWISE], ids=lambda c: str(c[0]))
def test_infinities_of_small_images_and_with_a_stride_reach_only_the_windows_they_are_in(case, monkeypatch):
    x, w, *static = numbers(*case[0]), numbers(*case[1], seed=1), *case[2:]
    *_, g = all_three(x, w, None, None, *static)
    for a, places in ((x, [0, 7, -1]), (g, [1, -3])):
        a.reshape(-1)[places] = [np.inf, np.nan, -np.inf][: len(places)]
    *found, _ = all_three(x, w, None, g, *static)
    monkeypatch.setattr(kernels, "library", None)
    with np.errstate(invalid="ignore"):
        *expected, _ = all_three(x, w, None, g, *static)
    for mine, truth in zip(found, expected):
        assert not np.isfinite(truth).all()
        np.testing.assert_allclose(mine, truth, rtol=1e-4, atol=1e-4)


def test_an_image_of_another_layout_is_read_right():
    x = np.ascontiguousarray(numbers(2, 4, 9, 11).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    w, static = numbers(5, 4, 3, 3, seed=1), dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)
    expected = kernels.conv(np.ascontiguousarray(x), w, **static)
    assert np.array_equal(kernels.conv(x, w, **static), expected)


def test_the_gradient_of_a_layer_has_all_its_parts():
    x, w, b = (rushlight.tensor(numbers(*s), requires_grad=True) for s in ((4, 3, 12, 12), (8, 3, 3, 3), (8,)))
    y = rushlight.nn.functional.conv2d(x, w, b, padding=1)
    g = numbers(*y.shape, seed=4)
    y.backward(rushlight.tensor(g))
    np.testing.assert_allclose(b.grad.numpy(), g.sum((0, 2, 3), dtype=np.float64), rtol=1e-4, atol=1e-4)
    _, dx, dw, _ = all_three(*[t.detach().numpy() for t in (x, w, b)], g, (1, 1), (1, 1), (1, 1), 1)
    assert np.array_equal(x.grad.numpy(), dx) and np.array_equal(w.grad.numpy(), dw)
