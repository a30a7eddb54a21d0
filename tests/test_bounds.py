"""Sizes, strides, offsets and states that callers give: none of them reaches memory outside the tensor."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.tensor import wrap


@pytest.mark.parametrize(
    ("size", "stride", "offset", "match"),
    [
        ((10,), (1,), -1, "invalid storage offset -1"),
        ((0,), (1,), -1, "invalid storage offset -1"),
        ((10,), (1,), 1, "out of bounds for storage of size 40"),
        ((2, 2), (9, 1), 0, "out of bounds"),
        ((-1,), (1,), 0, "overflowed"),
        ((2,), (-1,), 1, "Negative strides"),
        ((1 << 62, 1 << 62), (0, 0), 0, "overflow"),
        ((1 << 62, 1 << 62), (1, 1), 0, "overflow"),
        ((2,), (1,), 1 << 63, "overflow"),
        ((2, 2), (1,), 0, "mismatch in length"),
    ],
)
def test_as_strided_stays_inside(size, stride, offset, match):
    with pytest.raises(RuntimeError, match=match):
        torch.ones(10).as_strided(size, stride, offset)


def test_as_strided_of_a_part_reaches_its_whole_storage_and_no_further():
    base = torch.arange(10.0)
    part = base[4:6]
    assert part.as_strided((10,), (1,), 0).tolist() == base.tolist()
    assert part.as_strided((2,), (3,)).tolist() == [4, 7]
    part.as_strided((2,), (1,), 0).fill_(7)
    assert base[:2].tolist() == [7, 7]
    assert part.as_strided((0,), (1,), 1000).shape == (0,)
    for offset in (-1, 10):
        with pytest.raises(RuntimeError):
            part.as_strided((1,), (1,), offset)


def test_random_strides_are_inside_or_refused():
    chance = random.Random(0)
    guarded = np.full(64, 99.0, np.float32)
    inside = torch.from_numpy(guarded[16:48])
    accepted = 0
    for _ in range(2000):
        dims = chance.randint(0, 3)
        size, stride = ([chance.randint(-1, 6) for _ in range(dims)] for _ in range(2))
        try:
            view = inside.as_strided(size, stride, chance.randint(-20, 40))
        except RuntimeError:
            continue
        view._array[...] = 1
        accepted += 1
    assert accepted > 100
    assert (guarded[:16] == 99).all()
    assert (guarded[48:] == 99).all()


def test_set_grows_or_refuses():
    x, whole = torch.ones(10), torch.arange(10.0)
    assert x.set_(whole, 5, (20,)).shape == (20,)
    assert x[:5].tolist() == [5, 6, 7, 8, 9]
    assert x.set_(whole.untyped_storage(), 1, (3,), (2,)).tolist() == [1, 3, 5]
    for arguments in ((-1, (3,)), (1, (-3,)), (1, (2,), (-1,)), (1, (2,), (1, 1)), (0, (1 << 62, 8))):
        before = x.tolist()
        with pytest.raises(RuntimeError):
            x.set_(whole, *arguments)
        assert x.tolist() == before


def test_resize_refuses_what_overflows():
    for shape in ((1 << 40, 1 << 40), (1 << 62,), (-3,)):
        x = torch.ones(3)
        with pytest.raises(RuntimeError, match="overflow"):
            x.resize_(*shape)
        assert x.tolist() == [1, 1, 1]


def test_shapes_that_overflow_are_refused():
    for make in (torch.empty, torch.zeros, torch.ones, torch.rand):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            make(1 << 62, 1 << 62)


def test_view_as_a_wider_dtype_begins_at_a_whole_element():
    with pytest.raises(RuntimeError, match=r"storage_offset.. must be divisible by 4 to view Byte as Float"):
        torch.ones(8, dtype=torch.uint8)[1:5].view(torch.float32)
    assert torch.ones(8, dtype=torch.uint8)[4:8].view(torch.float32).shape == (1,)


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(5, dtype=np.float32).tofile(path)
    private = torch.from_file(str(path), size=5)
    private[0] = 9
    assert np.fromfile(path, np.float32)[0] == 0
    shared = torch.from_file(str(path), shared=True, size=7)
    shared[6] = 3
    assert np.fromfile(path, np.float32).tolist() == [0, 1, 2, 3, 4, 0, 3]
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <400>"):
        torch.from_file(str(path), size=100)
    with pytest.raises(RuntimeError, match="size must be"):
        torch.from_file(str(path), size=-1)
    assert torch.from_file(str(path)).shape == (0,)


@pytest.mark.parametrize("shape", [(190, 190), (1000, 1000), (90000,)])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "momentum_buffer"),
        (lambda p: torch.optim.Adam(p, lr=0.1), "exp_avg"),
        (lambda p: torch.optim.AdamW(p, lr=0.1), "exp_avg_sq"),
        (lambda p: torch.optim.RMSprop(p, lr=0.1), "square_avg"),
    ],
)
def test_optimizer_state_of_another_shape(make, name, shape):
    p = torch.nn.Parameter(torch.zeros(300, 300))
    optimizer = make([p])
    p.grad = torch.ones(300, 300)
    optimizer.step()
    optimizer.state[p][name] = torch.full(shape, 5.0)
    before = p.clone()
    with pytest.raises(RuntimeError, match="was the state made for another model"):
        optimizer.step()
    assert torch.equal(p, before)
    assert (optimizer.state[p][name] == 5).all()


def test_gradient_of_another_shape():
    p = torch.nn.Parameter(torch.zeros(300, 300))
    p.grad = torch.ones(300, 300)
    p.grad.data = torch.ones(200, 200)
    with pytest.raises(RuntimeError, match=r"gradient of shape \[200, 200\]"):
        torch.optim.SGD([p], lr=0.1).step()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(0, 2),
        lambda x: torch.amax(x, dim=0, keepdim=7),
        lambda x: torch.topk(x, 1, 0, -2),
        lambda x: torch.sort(x, descending=None),
        lambda x: torch.linalg.cholesky(x, upper=1),
        lambda x: x.softmax(True),
        lambda x: x.to(torch.float64, memory_format=3),
        lambda x: torch.ones(2, requires_grad=7),
        lambda x: x.as_strided((1,), (1,), True),
        lambda x: torch.real(2),
        lambda x: torch.conj(True),
        lambda x: torch.resolve_neg("x"),
        lambda x: torch.linalg.lstsq(x, x, driver=7),
        lambda x: torch.signal.windows.hann(4, requires_grad=7),
    ],
)
def test_numbers_are_no_flags_and_flags_no_numbers(call):
    with pytest.raises(TypeError, match="must be"):
        call(torch.eye(2))


def test_results_that_no_machine_holds_are_refused_before_work_begins():
    for call in (
        lambda x: torch.nn.functional.interpolate(x, (1 << 31, 1 << 31)),
        lambda x: torch.nn.functional.pad(x, (1 << 31, 1 << 31, 1 << 20, 0), "replicate"),
    ):
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            call(torch.ones(1, 1, 4, 4))


def test_polynomials_of_any_order_end():
    for name in ("t", "u", "v", "w"):
        function = getattr(torch.special, f"chebyshev_polynomial_{name}")
        values = function(torch.tensor([0.3, -0.5, 1.5, float("nan")]), 1 << 40)
        assert values[:2].isfinite().all() and not values[2:].isfinite().any()
        near = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64)
        last, item = function(near, 19), function(near, 20)
        torch.testing.assert_close(function(near, 21), 2 * near * item - last)


def test_second_derivatives_of_strided_parts():
    """A gradient lies in memory of its own: what a view reads around its base is not there."""
    leaf = wrap(np.arange(10.0)[4:6]).requires_grad_()
    y = leaf.as_strided((3,), (1,), 3)
    (first,) = torch.autograd.grad((y**3).sum(), leaf, create_graph=True)
    assert first.tolist() == [3 * 4.0**2, 3 * 5.0**2]
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert second.tolist() == [6 * 4.0, 6 * 5.0]


def test_sizes_that_no_machine_holds_are_refused_at_once():
    """In a process with little memory and time: where a check is missing, the call takes all there is."""
    command = [sys.executable, Path(__file__).parent / "too_large.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("offset", [-(1 << 62), -(1 << 31), 1 << 31, 1 << 62])
def test_diagonals_beyond_the_corners_are_empty(offset):
    """NumPy reads outside the array for an offset of -2**31."""
    x = torch.ones(3, 4)
    assert x.diagonal(offset).shape == (0,)
    assert torch.diagonal_copy(x, offset).shape == (0,)
    assert torch.linalg.diagonal(torch.ones(2, 3, 4), offset=offset).shape == (2, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.flip(x, 0),
        lambda x: torch.tile(x, 2),
        lambda x: torch.permute(x, 0, 1),
        lambda x: torch.broadcast_to(x, 2),
        lambda x: x.reshape((True, 4)),
        lambda x: x.as_strided((1,), 7),
        lambda x: torch.roll(x, True),
        lambda x: x.chunk(True),
        lambda x: x.squeeze(None),
        lambda x: torch.median(x, dim=None),
        lambda x: torch.mul(None, x),
        lambda x: torch.isin(x, "x"),
        lambda x: x.to(torch.float64, 1),
        lambda x: torch.native_batch_norm(x, None, None, None, None, 7, 0.1, 1e-5),
        lambda x: torch.nn.functional.layer_norm(x, (2,), eps=None),
        lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1]), ignore_index=0.5),
    ],
)
def test_arguments_of_another_kind(call):
    with pytest.raises(TypeError):
        call(torch.eye(2))


def test_a_truth_value_counts_as_a_size_after_the_first():
    assert torch.zeros((2, True)).shape == (2, 1)
    with pytest.raises(TypeError):
        torch.zeros((True, 2))


def test_a_long_chain_of_views_keeps_no_list_of_its_steps():
    """Each view knows its last step and the view before: a list in each would make the chain quadratic."""
    views = [torch.zeros(300)]
    for _ in range(200):
        views.append(views[-1][1:])
    assert all(len(v._view._way[1]) == 1 for v in views[1:])
    views[-1][0] = 1.0  # the whole way is put together when it is needed
    assert views[0].nonzero().tolist() == [[200]] and views[-1]._base is views[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.linalg.ldl_solve(x.bool(), torch.tensor([1, 2], dtype=torch.int32), x),
        lambda x: torch.lu_unpack(x, torch.tensor([1, 2, 3], dtype=torch.int32)),
        lambda x: torch.ormqr(x, torch.ones(3), x),
        lambda x: torch.cholesky_solve(x, torch.ones(2, 3)),
        lambda x: torch.linalg.tensorsolve(torch.ones(2, 3, 6), torch.ones(2, 3), dims=(0, 0)),
        lambda x: torch.add(x, x, alpha=True),
        lambda x: torch.repeat_interleave(x, 2, 0, output_size=3),
        lambda x: torch.renorm(x, float("nan"), 0, 1),
        lambda x: torch.nn.functional.huber_loss(x, x, delta=float("nan")),
        lambda x: torch.nn.functional.soft_margin_loss(x.long(), x),
        lambda x: torch.nn.functional.max_pool2d(x[None], 2, 1 << 62),
        lambda x: torch.grid_sampler_2d(x[None, None], torch.zeros(1, 1, 1, 2), 0, -1, True),
        lambda x: torch.stft(torch.ones(64), 16, hop_length=-1, window=torch.ones(16), return_complex=True),
    ],
)
def test_arguments_that_do_not_go_together(call):
    with pytest.raises(RuntimeError) as refused:
        call(torch.eye(2))
    assert refused.value.__cause__ is None
