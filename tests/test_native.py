"""The kernels in C: equal to NumPy's bodies in double precision, for any shape, any number of threads, after a fork.

``CASES`` are run twice: here, by the kernels, and in another process without them (``RUSHLIGHT_KERNELS=0``) in
float64, which gives the truth. For memory and arithmetic under sanitizers, in a checkout:

    python -m rushlight.engine.native.build --sanitize
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
        python -m pytest -s tests/test_native.py
    RUSHLIGHT_KERNELS=0 python -m rushlight.engine.native.build
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy import box_muller
from rushlight.engine.numpy.kernels import losses, slopes, windows
from rushlight.nn import functional as F
from rushlight.ops.pool import offsets_of, taps_of

library = native.library
pytestmark = pytest.mark.skipif(
    os.environ.get("RUSHLIGHT_KERNELS") == "0" or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason=f"the kernels in C are not there: {native.reason}",
)


BEFORE = rushlight.get_num_threads()


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    rushlight.set_num_threads(request.param)
    yield request.param
    rushlight.set_num_threads(BEFORE)


def numbers(*shape, dtype=np.float32, seed=0, special=False, shift=0):
    """Normal values, the same in each dtype; ``special``: zeros, infinities, NaN, large and small ones among them."""
    values = (np.random.default_rng(seed).standard_normal(shape) + shift).astype(np.float32).astype(dtype)
    if special and values.size:
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 100, -100, 20, -20, 1000, -1000], dtype)
        places = values.reshape(-1)[:: max(1, values.size // 37)]
        places[:] = np.resize(odd, len(places))
    return values


# -- what the kernels compute, beside NumPy ---------------------------------------------------------------------------

SHAPES = [(0,), (1,), (7, 5), (3, 0, 2), (2, 3, 333), (65, 1025)]
ROWS = [(0, 4), (1, 1), (5, 7), (700, 10), (33, 128), (2, 3, 1000), (300, 257), (2, 70000)]
IMAGES = [(1, 4, 13), (3, 4, 5, 7), (9, 40, 1, 1), (64, 48), (5, 132), (77, 148), (4, 8, 40, 41), (0, 4, 3)]


def results(function, *arrays):
    """The outputs of a function of tensors, and the gradients of all arrays of floats."""
    tensors = [rushlight.tensor(a) for a in arrays]
    for t in tensors:
        t.requires_grad_(t.is_floating_point())
    out = function(*tensors)
    out.backward(rushlight.tensor(numbers(*out.shape, dtype=out.detach().numpy().dtype, seed=9)))
    return [out.detach().numpy(), *[t.grad.numpy() for t in tensors if t.grad is not None]]


def activation(name, **options):
    def run(dtype):
        for shape in SHAPES:
            yield from results(lambda x: getattr(F, name)(x, **options), numbers(*shape, dtype=dtype, special=True))
        columns = numbers(30, 20, dtype=dtype)
        yield from results(lambda x: getattr(F, name)(x.T, **options), columns)
        yield from results(lambda x: getattr(F, name)(x, **options).sum(), columns)

    return run


def over_rows(function):
    def run(dtype):
        for shape in ROWS:
            yield from results(function, numbers(*shape, dtype=dtype))
            yield from results(function, numbers(*shape, dtype=dtype, shift=1000))
        yield from results(function, numbers(40, 50, dtype=dtype, special=True))
        yield from results(lambda x: function(x.transpose(0, 1)), numbers(40, 50, dtype=dtype))

    return run


def reduction(function):
    """``function(x, axis)`` over the last axis, all, the first, and others that do not lie in order."""

    def run(dtype):
        for shape in ((5, 7), (33, 128), (300, 257), (30, 4, 300), (9, 20001)):
            x = numbers(*shape, dtype=dtype)
            yield from results(lambda x: function(x, -1), x)
            yield from results(lambda x: function(x, 0), x)
            yield from results(lambda x: function(x.transpose(0, 1), 1), x)
            yield from results(lambda x: function(x[..., ::2], -1), x)
        for odd in ([], [np.inf], [-np.inf], [np.inf, np.nan], [-np.inf, np.inf], [np.nan], [0, -0.0]):
            x = numbers(150, 260, dtype=dtype)
            x[7, 3 : 3 + len(odd)] = odd
            x[9, :] = -np.inf
            yield from results(lambda x: function(x, -1), x)

    return run


def over_all(name):
    """Over several axes, and all of them, which is one long row."""

    def run(dtype):
        for shape in ((1, 3), (5, 7, 9), (3, 200, 300), (200, 700)):
            x = numbers(*shape, dtype=dtype)
            yield from results(lambda x: getattr(x, name)((-2, -1), keepdim=True), x)
            yield from results(lambda x: getattr(x.mT, name)((-2, -1)), x)
            yield from results(lambda x: getattr(x, name)(tuple(range(x.ndim))), x)

    return run


def products(dtype):
    """Of powers of 2, which are exact, and cancel each other."""
    for shape in ((1, 2), (3, 2), (40, 34), (5000, 18), (20, 3000), (2, 3, 70000)):
        x = numbers(*shape, dtype=dtype)
        x = np.sign(x) * np.exp2(np.round(x))
        x[..., 1::2] = 1 / x[..., ::2]
        yield from results(lambda x: x.prod(-1), x)
        yield from results(lambda x: x.prod(), x[:7, :34])
    x[0, 1, 5:7], x[0, 2, 100], x[1, 0, 3] = 0, np.nan, np.inf
    yield from results(lambda x: x.prod(-1, keepdim=True), x)
    x[1, 0, 69999] = 0
    yield rushlight.tensor(x).prod(-1).numpy()


def index_select(dtype):
    rng = np.random.default_rng(0)
    for shape, axis, k in (
        ((40, 50), 0, 90), ((40, 50), 1, 7), ((3, 50, 600), 1, 4), ((7000,), 0, 5000), ((2, 2000, 3), 1, 900),
        ((64, 1, 40), 1, 5), ((300, 70), 1, 0), ((1, 40000), 1, 3000), ((1000, 1, 1), 0, 4000),
    ):  # fmt: skip
        x, index = numbers(*shape, dtype=dtype, special=True), rushlight.tensor(rng.integers(0, shape[axis], k))
        yield from results(lambda x, a=axis, i=index: x.index_select(a, i), x)
        yield from results(lambda x, a=axis, i=index: x.mT.contiguous().mT.index_select(a, i) if x.ndim > 1 else x, x)


def norm(make, shapes, parameters):
    """``make(x, w, b)``; parameters for the channels, or for the last axis."""

    def run(dtype):
        for shape in shapes:
            size = shape[parameters]
            w, b = numbers(size, dtype=dtype, seed=1), numbers(size, dtype=dtype, seed=2)
            x = numbers(*shape, dtype=dtype, shift=3)
            if not x.size:
                continue
            yield from results(make, x, w, b)
            yield from results(lambda x, make=make: make(x, None, None), x)
            yield from results(lambda x, w, make=make: make(x, w, None), x, w)

    return run


def running_statistics(dtype):
    for shape in ((7, 5), (3, 4, 5), (2, 65, 3, 7)):
        sizes = shape, shape[1:2], shape[1:2]
        x, mean, variance = [rushlight.tensor(numbers(*n, dtype=dtype, seed=i)) for i, n in enumerate(sizes)]
        F.batch_norm(x, mean, variance, training=True, momentum=0.3)
        yield from (mean.numpy(), variance.numpy())


def of_images(function, dims, *options, special=False, **named):
    """Images of odd sizes, in order and channels last."""

    def run(dtype):
        for shape in ((1, 2, 1, 1, 1), (3, 5, 6, 7, 13), (2, 3, 4, 16, 28), (2, 1, 5, 2, 331)):
            x = numbers(*shape[: 2 + dims - 1], shape[-1], dtype=dtype, special=special)
            yield from results(lambda x: function(x, *options, **named), x)
            yield from results(lambda x: function(x.transpose(1, -1), *options, **named), x)

    return run


def cross_entropy(dtype):
    for rows, count in ((1, 1), (5, 7), (64, 10), (300, 257)):
        x, target = numbers(rows, count, dtype=dtype), np.arange(rows) % count
        weight = np.abs(numbers(count, dtype=dtype, seed=3))
        for reduction in ("mean", "sum", "none"):
            yield from results(lambda x, t=target, r=reduction: F.cross_entropy(x, rushlight.tensor(t), reduction=r), x)
        target = np.where(target == 0, -100, target)
        yield from results(lambda x, w, t=target: F.cross_entropy(x, rushlight.tensor(t), w.detach()), x, weight)
    for shape in ((2, 5, 3), (3, 7, 4, 5), (4, 21, 70, 130)):
        x, target = numbers(*shape, dtype=dtype), np.arange(math.prod(shape) // shape[1]) % shape[1]
        weight, target = np.abs(numbers(shape[1], dtype=dtype, seed=3)), target.reshape(shape[0], *shape[2:])
        for ignored in (-100, 2):
            loss = lambda x, w=None, t=target, i=ignored: F.nll_loss(x, rushlight.tensor(t), w, ignore_index=i)
            yield from results(loss, x)
            yield from results(lambda x, w, loss=loss: loss(x, w.detach()), x, weight)
            yield from results(lambda x, loss=loss: loss(x.transpose(-1, -2).contiguous().transpose(-1, -2)), x)


def grid_sample(mode, dims):
    """Points inside and outside, on pixels, on borders, and nowhere; halves of halves, which no dtype rounds."""

    def run(dtype):
        for shape, out in (
            ((1, 1, 1, 1, 1), (2, 2, 3)),
            ((2, 5, 3, 7, 13), (3, 17, 19)),
            ((3, 34, 2, 4, 5), (1, 3, 2)),
        ):
            x = numbers(*shape[: dims - 3 or None], dtype=dtype)
            grid = np.round(numbers(shape[0], *out[3 - dims :], dims, dtype=dtype, seed=1) * 96) / 128
            grid.reshape(-1)[::7] = np.resize([-1, 1, 0, -1.5, 3.25], len(grid.reshape(-1)[::7]))
            for padding in ("zeros", "border", "reflection"):
                for align in (False, True):
                    options = {"mode": mode, "padding_mode": padding, "align_corners": align}
                    yield from results(lambda x, grid, o=options: F.grid_sample(x, grid, **o), x, grid)
            nowhere = grid.copy()
            nowhere.reshape(-1)[::5] = np.resize([np.nan, np.inf, -np.inf], len(grid.reshape(-1)[::5]))
            yield from results(lambda x, n=nowhere: F.grid_sample(x, rushlight.tensor(n), mode, align_corners=False), x)
            yield from results(
                lambda x, grid: F.grid_sample(x.transpose(-1, -2), grid.flip(1), mode, align_corners=False), x, grid
            )

    return run


def difference(name, reduction, **options):
    def run(dtype):
        for shape in SHAPES:
            x, w = numbers(*shape, dtype=dtype, special=True), numbers(*shape, dtype=dtype, seed=1)
            w.reshape(-1)[::3] = x.reshape(-1)[::3]
            function = lambda x, w: getattr(F, name)(x, w, reduction=reduction, **options)
            yield from results(function, np.nan_to_num(x, posinf=3, neginf=-3), w)
            yield from results(function, x, w)
        yield from results(lambda x, w: function(x.T, w.T), *(numbers(40, 30, dtype=dtype, seed=i) for i in (0, 1)))

    return run


def glu(dtype):
    for shape in ((2,), (3, 8), (4, 6, 10), (70, 1030), (2, 90000), (0, 4)):
        x = numbers(*shape, dtype=dtype, special=True)
        x = np.where(np.isfinite(x), x.clip(-12, 12), x)  # beyond, the sigmoid is 0 or 1 in float32
        for axis in range(len(shape)):
            if shape[axis] % 2 == 0:
                yield from results(lambda x, a=axis: F.glu(x, a), x)
    yield from results(lambda x: F.glu(x.T), numbers(6, 5, dtype=dtype))


def embedding(dtype):
    for rows, width, shape in ((1, 1, (1,)), (7, 5, (3, 4)), (300, 33, (70, 9)), (9, 0, (2,)), (4, 3, (0,))):
        w, index = numbers(rows, width, dtype=dtype), np.random.default_rng(0).integers(0, rows, shape)
        rows_of = lambda w, i=index, **options: F.embedding(rushlight.tensor(i), w, **options)
        yield from results(rows_of, w)
        yield from results(lambda w, f=rows_of: f(w, padding_idx=-1), w)
        yield from results(lambda w, f=rows_of: f(w, scale_grad_by_freq=True), w)
        yield from results(lambda w, f=rows_of: f(w, padding_idx=0).mT, w)


def embedding_bag(mode):
    """Bags of a few rows, of many, of none; with rows left out; weighted."""

    def run(dtype):
        rng = np.random.default_rng(0)
        for rows, width, shape in (
            (1, 1, (1, 1)),
            (7, 5, (3, 4)),
            (300, 33, (70, 9)),
            (50, 3, (4, 400)),
            (9, 4000, (30, 3)),
        ):
            w, index = numbers(rows, width, dtype=dtype, special=mode == "max"), rng.integers(0, rows, shape)
            bags = lambda w, i=index, **options: F.embedding_bag(rushlight.tensor(i), w, mode=mode, **options)
            yield from results(bags, w)
            yield from results(lambda w, bags=bags: bags(w, padding_idx=0), w)
            yield from results(lambda w, bags=bags: bags(w.T.contiguous().T), w)
            starts = rushlight.tensor(np.sort(np.append(0, rng.integers(0, index.size + 1, 5))))
            one = rushlight.tensor(index.reshape(-1))
            yield from results(lambda w, o=one, s=starts: F.embedding_bag(o, w, s, mode=mode), w)
            if mode == "sum":
                each = numbers(*shape, dtype=dtype, seed=2)
                yield from results(lambda w, e, bags=bags: bags(w, per_sample_weights=e), w, each)

    return run


def tiles(dtype):
    """Windows side by side: one in an image, high ones, many."""
    for shape, size in (((3, 5, 7, 7), 7), ((2, 3, 80, 40), (40, 8)), ((2, 1, 5, 35), (5, 7)), ((9, 20, 48, 64), 8)):
        yield from results(lambda x, k=size: F.avg_pool2d(x, k), numbers(*shape, dtype=dtype))
        yield from results(lambda x, k=size: F.avg_pool2d(x.transpose(0, 1), k), numbers(*shape, dtype=dtype))


def padded(dtype):
    all_sides = (1, 1, 2, 0, 0, 0, 3, 1)
    for shape, pad in (((3, 4), (1, 2)), ((2, 3, 5, 7), (1, 0, 0, 2)), ((20, 30, 9, 11), all_sides), ((0, 2), (1, 1))):
        x = numbers(*shape, dtype=dtype)
        yield from results(lambda x, p=pad: F.pad(x, p, value=1.5), x)
        yield from results(lambda x, p=pad: F.pad(x.transpose(0, 1), p), x)


def max_unpool(dtype):
    for shape in ((1, 1, 2, 2), (3, 5, 12, 14), (2, 70, 40, 44)):
        x = numbers(*shape, dtype=dtype)
        y, places = F.max_pool2d(rushlight.tensor(x), 2, return_indices=True)
        yield from results(lambda y, p=places: F.max_unpool2d(y, p, 2), y.numpy())
        yield from results(lambda y, p=places: F.max_unpool2d(y, p * 0 + 1, 2), y.numpy())  # the last one stays
        yield from results(lambda y, p=places: F.max_unpool2d(y.mT, p.mT, 2), y.numpy())


def dropout(dtype):
    rushlight.manual_seed(0)
    for shape in ((2, 3, 4), (16, 33, 40, 41)):
        yield from results(lambda x: F.dropout1d(x.flatten(2), 0.3), numbers(*shape, dtype=dtype, special=True))
    for shape in ((3,), (7, 5), (65, 1025)):
        yield from results(lambda x: F.dropout(x, 0.3), numbers(*shape, dtype=dtype, special=True))
    yield rushlight.rand(1000, dtype=rushlight.float64).numpy().astype(dtype)


def optimizer(name, **options):
    """Ten steps; some parameters small, one empty, one that does not lie in memory in order, one for more threads."""

    def run(dtype):
        shapes = ((3, 2), (), (0, 4), (300, 333), (5,))
        params = [rushlight.tensor(numbers(*shape, dtype=dtype, seed=i)) for i, shape in enumerate(shapes)]
        params += [rushlight.tensor(numbers(4, 6, dtype=dtype)).T, rushlight.tensor(numbers(70, 90, dtype=dtype)).T]
        made = getattr(rushlight.optim, name)([p.requires_grad_() for p in params], **options)
        for step in range(10):
            for i, p in enumerate(params):
                p.grad = rushlight.tensor(numbers(*p.shape, dtype=dtype, seed=100 * step + i))
            made.step()
        yield from (p.detach().numpy() for p in params)

    return run


CASES = {
    "relu": activation("relu"),
    "sigmoid": activation("sigmoid"),
    "tanh": activation("tanh"),
    "silu": activation("silu"),
    "gelu": activation("gelu"),
    "gelu, tanh": activation("gelu", approximate="tanh"),
    "elu": activation("elu", alpha=1.3),
    "selu": activation("selu"),
    "celu": activation("celu", alpha=0.7),
    "softplus": activation("softplus", beta=0.5),
    "logsigmoid": activation("logsigmoid"),
    "mish": activation("mish"),
    "hardtanh": activation("hardtanh", min_val=-0.5, max_val=20.0),
    "hardshrink": activation("hardshrink", lambd=0.7),
    "softshrink": activation("softshrink", lambd=0.7),
    "glu": glu,
    "cumsum": over_rows(lambda x: x.cumsum(-1)),
    "cumsum, first axis": over_rows(lambda x: x.cumsum(0)),
    "cumsum, next axis": over_rows(lambda x: x.cumsum(-2)),
    "softmax": over_rows(lambda x: x.softmax(-1)),
    "log_softmax": over_rows(lambda x: x.log_softmax(-1)),
    "softmax, first axis": over_rows(lambda x: x.softmax(0)),
    "softmax, second axis": over_rows(lambda x: x.unflatten(-1, (-1, 1) if x.shape[-1] % 2 else (-1, 2)).softmax(-2)),
    "log_softmax, first axis": over_rows(lambda x: x.log_softmax(0)),
    "log_softmax, next axis": over_rows(lambda x: x.log_softmax(-2)),
    "logsumexp": reduction(lambda x, axis: x.logsumexp(axis)),
    "logsumexp, all": over_all("logsumexp"),
    "var": reduction(lambda x, axis: x.var(axis)),
    "std": reduction(lambda x, axis: x.std(axis, correction=0, keepdim=True)),
    **{f"{name}, all": over_all(name) for name in ("var", "std")},
    "var_mean": reduction(lambda x, axis: sum(rushlight.var_mean(x, axis))),
    "prod": products,
    "index_select": index_select,
    "cross_entropy": cross_entropy,
    "layer_norm": norm(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), ROWS, -1),
    "rms_norm": norm(lambda x, w, b: F.rms_norm(x, x.shape[-1:], w), ROWS, -1),
    "group_norm": norm(lambda x, w, b: F.group_norm(x, 4, w, b), IMAGES, 1),
    "batch_norm, running": running_statistics,
    "batch_norm": norm(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), IMAGES[1:], 1),
    "batch_norm, eval": norm(
        lambda x, w, b: F.batch_norm(x, *(c + x.new_ones(x.shape[1]) for c in (0, 1)), w, b),
        IMAGES[1:],
        1,
    ),
}
CASES |= {
    "adaptive_avg_pool1d": of_images(F.adaptive_avg_pool1d, 1, 5),
    "adaptive_avg_pool2d": of_images(F.adaptive_avg_pool2d, 2, (3, 4)),
    "adaptive_avg_pool3d": of_images(F.adaptive_avg_pool3d, 3, (5, 2, 3)),
    "adaptive_max_pool1d": of_images(F.adaptive_max_pool1d, 1, 5, special=True),
    "adaptive_max_pool1d, long windows": of_images(F.adaptive_max_pool1d, 1, 2),
    "adaptive_max_pool2d": of_images(F.adaptive_max_pool2d, 2, (3, 4), special=True),
    "adaptive_max_pool3d": of_images(F.adaptive_max_pool3d, 3, (5, 2, 3), special=True),
    "interpolate, linear": of_images(F.interpolate, 1, 37, mode="linear"),
    "interpolate, bicubic": of_images(F.interpolate, 2, (9, 11), mode="bicubic"),
    "interpolate, nearest": of_images(F.interpolate, 3, (5, 12, 40)),
    "pad": of_images(F.pad, 2, (3, 0, 1, 2), mode="replicate"),
    "grid_sample": grid_sample("bilinear", 2),
    "grid_sample, nearest": grid_sample("nearest", 2),
    "grid_sample, bicubic": grid_sample("bicubic", 2),
    "grid_sample, volumes": grid_sample("bilinear", 3),
    "grid_sample, volumes, nearest": grid_sample("nearest", 3),
    "avg_pool2d, side by side": tiles,
    "pad, constant": padded,
    "max_unpool": max_unpool,
    **{f"{name}, {how}": difference(name, how) for name in ("mse_loss", "huber_loss") for how in ("sum", "mean")},
    **{f"smooth_l1_loss, {how}": difference("smooth_l1_loss", how, beta=0.7) for how in ("sum", "mean", "none")},
    "embedding": embedding,
    **{f"embedding_bag, {mode}": embedding_bag(mode) for mode in ("sum", "mean", "max")},
    "dropout": dropout,
    "SGD": optimizer("SGD", lr=0.1),
    "SGD, momentum": optimizer("SGD", lr=0.1, momentum=0.9, weight_decay=0.1),
    "SGD, Nesterov": optimizer("SGD", lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": optimizer("Adam", lr=0.01),
    "Adam, decay": optimizer("Adam", lr=0.01, weight_decay=0.1, maximize=True),
    "AdamW": optimizer("AdamW", lr=0.01),
    "RMSprop": optimizer("RMSprop", lr=0.01, weight_decay=0.1),
    "RMSprop, centered": optimizer("RMSprop", lr=0.01, centered=True, momentum=0.5),
    "Adagrad": optimizer("Adagrad", lr=0.1, lr_decay=0.1),
    "Adadelta": optimizer("Adadelta", lr=1.0, maximize=True),
}
ROUNDING = {np.float32: 2.0**-23, np.float64: 2.0**-52}


@pytest.fixture(scope="session")
def truth(tmp_path_factory):
    """What NumPy's bodies make of the cases, in float64."""
    path = tmp_path_factory.mktemp("native") / "truth.npz"
    paths = os.pathsep.join(filter(None, [str(Path(rushlight.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "RUSHLIGHT_KERNELS": "0", "PYTHONPATH": paths, "LD_PRELOAD": ""}
    subprocess.run([sys.executable, __file__, str(path)], env=environment, check=True)
    return np.load(path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_equal_to_numpy(name, dtype, truth, threads):
    with np.errstate(all="ignore"):
        found = list(CASES[name](dtype))
    assert len(found) == truth[f"{name} count"]
    for i, value in enumerate(found):
        expected = truth[f"{name} {i}"]
        finite = np.abs(expected[np.isfinite(expected)])
        size = max(finite.max(), 1) if finite.size else 1
        assert value.dtype == dtype and value.shape == expected.shape
        np.testing.assert_allclose(
            value, expected, rtol=16 * ROUNDING[dtype], atol=16 * ROUNDING[dtype] * size, err_msg=f"result {i}"
        )


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_changes_no_bit(name):
    runs = []
    for count in (1, 2, 3):
        rushlight.set_num_threads(count)
        with np.errstate(all="ignore"):
            runs.append([a.tobytes() for a in CASES[name](np.float32)])
    rushlight.set_num_threads(BEFORE)
    assert runs[0] == runs[1] == runs[2]


# -- the binding -------------------------------------------------------------------------------------------------------


def test_the_library_is_there():
    """Where there is a compiler: an install builds it, and in a checkout the command that the reason names."""
    assert library is not None, native.reason


def test_show_says_whether_the_kernels_are_there():
    assert library.instructions in rushlight.config.show()


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((np.zeros(3, "f"),), "takes 2 arguments, but got 1"),
        ((np.zeros(3, "f"), np.zeros(3, "f"), 1), "takes 2 arguments, but got 3"),
        ((np.zeros(3, "f"), np.zeros(3, "d")), "argument 2 is not of dtype float32 or float64, or not of the others'"),
        ((np.zeros(3, "i"), np.zeros(3, "i")), "argument 1 is not of dtype"),
        ((np.zeros(6, "f")[::2], np.zeros(3, "f")), "argument 1 is no array in C order"),
        ((np.zeros(3, "f"), np.broadcast_to(np.zeros(1, "f"), (3,))), "argument 2 is no writable array"),
        ((3, np.zeros(3, "f")), "argument 1 is no array"),
    ],
)
def test_a_wrong_argument_is_named(arguments, text):
    with pytest.raises(TypeError, match=text):
        library.relu(*arguments)


def test_set_num_threads_reaches_the_kernels(threads):
    assert library.get_threads() == threads


def test_two_python_threads_may_compute_at_once():
    x = numbers(1 << 20)
    expected, failed = np.maximum(x, 0), []

    def work():
        for _ in range(20):
            y = np.empty_like(x)
            library.relu(x, y)
            if not np.array_equal(y, expected):
                failed.append(y)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed


FORKING = """
import os, sys
import numpy as np
import rushlight
from rushlight.engine.native import library
rushlight.set_num_threads(int(sys.argv[1]))
x = np.random.default_rng(0).standard_normal(1 << 20)
y = np.empty_like(x)
library.relu(x, y)  # now there are threads, which the child does not have
child = os.fork()
if child == 0:
    y[:] = 0
    library.relu(x, y)
    os._exit(0 if np.array_equal(y, np.maximum(x, 0)) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_computes(threads):
    subprocess.run([sys.executable, "-c", FORKING, str(threads)], check=True, timeout=60)


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        made = {name: list(case(np.float64)) for name, case in CASES.items()}
    arrays = {f"{name} {i}": value for name, values in made.items() for i, value in enumerate(values)}
    np.savez(sys.argv[1], **arrays, **{f"{name} count": np.array(len(values)) for name, values in made.items()})


# -- normal numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 16, 48, 16 * 37, 16 * 1000])
@pytest.mark.parametrize("mean, std", [(0.0, 1.0), (0.3, 2.5)])
def test_normal_floats_are_numpys_to_the_last_bit(count, mean, std, threads, monkeypatch):
    u = np.random.default_rng(count).random(count, np.float32)
    u[:40:7] = 0
    u[1:40:7] = 1 - 2**-24
    found, expected = np.empty((2, count), np.float32)
    library.box_muller(u, found, mean, std)
    monkeypatch.setattr(box_muller, "library", None)
    box_muller.normal(u, expected, mean, std)
    np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))


def test_normal_doubles_are_those_of_the_c_library(threads):
    u = np.random.default_rng(0).random((100, 2, 8))
    found = np.empty_like(u)
    library.box_muller(u, found, 0.0, 1.0)
    for block in range(100):
        for i in range(8):
            radius = math.sqrt(-2 * math.log(1 - u[block, 0, i]))
            angle = u[block, 1, i] * (2 * math.pi)
            assert (found[block, 0, i], found[block, 1, i]) == (radius * math.cos(angle), radius * math.sin(angle))


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch, m, n", [((256,), 64, 20), ((3, 700), 5, 64), ((2,), 0, 3), ((2,), 3000, 17)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_columns_times_rows(batch, m, n, dtype, threads):
    x, w = numbers(*batch, m, 1).astype(dtype), numbers(*batch, 1, n, seed=1).astype(dtype)
    np.testing.assert_array_equal((rushlight.tensor(x) @ rushlight.tensor(w)).numpy(), x * w)


# -- how random numbers move with their parameters ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 3e-7), (np.float64, 1e-11)])
@pytest.mark.parametrize("name", ["dirichlet_slope", "gamma_slope"])
def test_slopes_are_those_of_the_plain_series(name, dtype, rtol, threads, monkeypatch):
    draw = np.random.default_rng(0)
    a, b = (draw.gamma(0.7, 30.0, (50, 21)).astype(dtype) + dtype(0.05) for _ in range(2))
    three = draw.beta(a, b).astype(dtype).clip(1e-6, 1 - 1e-6), a, a + b
    arguments = three if name == "dirichlet_slope" else (a, draw.gamma(a).astype(dtype).clip(1e-6))
    if name == "dirichlet_slope":
        three[0][0, :3] = 0.0, 1.0, np.nan
    found = getattr(slopes, name)(*arguments)
    monkeypatch.setattr(slopes, "library", None)
    np.testing.assert_allclose(found, getattr(slopes, name)(*arguments), rtol=rtol, atol=rtol)


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 0, 3), (1, 1, 1), (3, 65, 300), (1, 4000, 7), (2, 129, 256), (0, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_an_axis(shape, dtype, threads):
    x = numbers(*shape, dtype=dtype, special=shape == (2, 129, 256))
    found = np.empty((shape[0], shape[2]), dtype)
    library.axis_sums(x, found, *shape)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64).sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-4)


@pytest.mark.parametrize("rows, n", [(3, 0), (0, 3), (1, 1), (5, 17), (40, 513), (300, 196), (2, 70001), (1, 200000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows_keep_their_digits(rows, n, dtype, threads):
    """They add 32 numbers one by one at most: the error grows with that, not with the length of a row."""
    x, found = numbers(rows, n, dtype=dtype, shift=1), np.empty(rows, dtype)
    library.row_sums(x, None, found, n, 0)
    allowed = 4 * np.finfo(dtype).eps * np.abs(x).sum(1, dtype=np.float64)
    assert (np.abs(found - x.astype(np.float64).sum(1)) <= allowed).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [33, 512, 70001])
def test_sums_do_not_depend_on_threads(n, dtype):
    x = numbers(7, n, 3, dtype=dtype)
    found = {}
    for count in (1, 2, 3):
        rushlight.set_num_threads(count)
        rows, columns = np.empty(7, dtype), np.empty((7, 3), dtype)
        library.row_sums(x, None, rows, 3 * n, 0)
        library.axis_sums(x, columns, *x.shape)
        found[count] = rows.tobytes() + columns.tobytes()
    rushlight.set_num_threads(BEFORE)
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("values", [[np.inf, 1], [np.inf, -np.inf], [np.nan, 1]])
def test_sums_of_rows_that_are_not_finite(values):
    x, found = numbers(3, 1000), np.empty(3, np.float32)
    x[1, 100:900:400] = values
    library.row_sums(x, None, found, 1000, 0)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, x.sum(1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("count, size, width", [(0, 3, 4), (5, 1, 1), (700, 40, 33), (300, 5000, 17), (9, 4, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_added_where_the_index_says(count, size, width, dtype, threads):
    value, index = numbers(count, width, dtype=dtype), np.random.default_rng(1).integers(0, size, count)
    expected = np.zeros((size, width))
    np.add.at(expected, index, value)
    np.testing.assert_allclose(
        losses.add_rows(value, index, size), expected, atol=2e-5 if dtype == np.float32 else 1e-13
    )


@pytest.mark.parametrize("shape, size, width", [((0,), 3, 4), ((5,), 1, 1), ((7, 100), 40, 330), ((9,), 4, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_of_a_table(shape, size, width, dtype, threads):
    table, index = numbers(size, width, dtype=dtype), np.random.default_rng(1).integers(0, size, shape)
    for laid in (table, np.asfortranarray(table)):
        found = F.embedding(rushlight.from_numpy(index), rushlight.from_numpy(laid))
        np.testing.assert_array_equal(found.numpy(), table[index])


@pytest.mark.parametrize("wrong", [-1, 3])
def test_an_index_out_of_bounds_is_refused(wrong):
    index, rows = np.array([0, wrong]), np.zeros((3, 2), np.float32)
    with pytest.raises(IndexError):
        library.add_rows(np.zeros((2, 2), np.float32), index, rows, 3, 2)
    with pytest.raises(IndexError):
        library.take_rows(rows, index, np.zeros((2, 2), np.float32), 3, 2)
    two, three = np.zeros(2, np.float32), np.zeros(3, np.float32)
    with pytest.raises(IndexError):
        library.at_positions(three, index, two, 1)
    with pytest.raises(IndexError):
        library.add_positions(two, index, three, 1)


# -- windows -----------------------------------------------------------------------------------------------------------

# shape; and for each of its trailing dimensions the window, the step, the padding, the dilation
WINDOWS = [
    ((3, 5, 17, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((3, 5, 17, 13), (3, 2), (1, 3), (1, 0), (2, 1)),
    ((2, 8, 16, 24), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((1, 1, 33, 35), (1, 1), (2, 2), (0, 0), (1, 1)),
    ((2, 3, 40, 40), (13, 13), (1, 1), (6, 6), (1, 1)),
    ((4, 7, 401), (3,), (2,), (1,), (1,)),
    ((33, 50), (5,), (1,), (2,), (1,)),
    ((2, 3, 9, 11, 13), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1)),
    ((2, 3, 7, 8, 17), (3, 2, 2), (1, 2, 3), (1, 1, 0), (2, 1, 1)),
]


@pytest.mark.parametrize("shape, kernel, step, padding, dilation", WINDOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
def test_largest_of_windows(shape, kernel, step, padding, dilation, dtype, special, threads, monkeypatch):
    x = numbers(*shape, dtype=dtype, special=special)
    if special:
        x.reshape(-1)[: x.size // 3] = -np.inf
    offsets = offsets_of(kernel, dilation, padding)
    full = shape[len(shape) - len(kernel) :]
    size = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(full, padding, dilation, kernel, step))
    g = numbers(*shape[: len(shape) - len(kernel)], *size, dtype=dtype, seed=1)

    def both():
        found = windows.max_windows(x, offsets=offsets, size=size, step=step)
        saved = {"aux": found, "offsets": offsets, "step": step, "x_shape": shape}
        return *found, *windows.max_windows_backward([g], None, saved)

    assert windows.is_for_kernel(x, offsets)
    found = both()
    monkeypatch.setattr(windows, "library", None)
    for i, (a, b) in enumerate(zip(found, both(), strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-5 if i == 2 else 0, atol=1e-5 if i == 2 else 0)


@pytest.mark.parametrize("shape, kernel, step, padding, dilation", WINDOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
def test_sums_of_windows(shape, kernel, step, padding, dilation, dtype, special, threads, monkeypatch):
    x = numbers(*shape, dtype=dtype, special=special)
    taps, full = taps_of(kernel, dilation, padding), shape[len(shape) - len(kernel) :]
    size = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(full, padding, dilation, kernel, step))
    g = numbers(*shape[: len(shape) - len(kernel)], *size, dtype=dtype, seed=1)

    def both():
        sums = windows.sum_windows(x, taps=taps, size=size, step=step)
        return sums, windows.spread_windows(g, taps=taps, full=full, step=step)

    assert windows._sums_by_kernel(x, taps) == (math.prod(kernel) <= windows._FEW)
    found = both()
    monkeypatch.setattr(windows, "library", None)
    for a, b in zip(found, both(), strict=True):
        tolerance = 64 * np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# -- the largest and smallest ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, axis", [((70, 41), 0), ((3, 50, 600), 1), ((2, 1, 999), 0), ((5, 7, 300), 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
def test_extremes_along_an_outer_axis(shape, axis, dtype, special, threads):
    x = numbers(*shape, dtype=dtype, special=special)
    x = np.round(x) if not special else x  # equal ones
    t = rushlight.tensor(x)
    for keepdim in (False, True):
        for found, place, values in (
            (t.max(axis, keepdim), np.argmax, np.max), (t.min(axis, keepdim), np.argmin, np.min)
        ):  # fmt: skip
            np.testing.assert_array_equal(found.values.numpy(), values(x, axis, keepdims=keepdim))
            np.testing.assert_array_equal(found.indices.numpy(), place(x, axis, keepdims=keepdim))
        np.testing.assert_array_equal(t.argmax(axis, keepdim).numpy(), np.argmax(x, axis, keepdims=keepdim))
        np.testing.assert_array_equal(t.argmin(axis, keepdim).numpy(), np.argmin(x, axis, keepdims=keepdim))


# -- adaptive pooling --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, size", [((13, 13), (2, 2)), ((4, 13), (4, 5)), ((1, 200), (1, 3)), ((40, 6), (3, 6))])
def test_an_infinite_element_reaches_only_the_averages_of_its_windows(shape, size):
    """By a matrix product, as the plain rule has it, 0 times infinity would be NaN in all of them."""
    x = rushlight.zeros(1, 1, *shape)
    x[0, 0, -1, -1] = float("inf")
    y = F.adaptive_avg_pool2d(x, size)[0, 0]
    assert y[-1, -1] == float("inf")
    assert y.flatten()[:-1].abs().sum() == 0
