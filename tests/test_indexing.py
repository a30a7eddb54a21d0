"""``x[index]``, assignment, gather and scatter, without PyTorch. (Random indices against PyTorch: tests/parity.)"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import rushlight
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.tensor import wrap


def x34():
    return wrap(np.arange(12.0).reshape(3, 4))


def test_dimensions_of_advanced_indices_go_where_pytorch_puts_them():
    x = rushlight.zeros(2, 3, 4, 5)
    i = rushlight.tensor([0, 1])
    assert x[:, i].shape == (2, 2, 4, 5)
    assert x[i, :, i].shape == (2, 3, 5)  # apart: in front
    assert x[:, i, i].shape == (2, 2, 5)  # side by side: in place
    assert x[0, :, i].shape == (3, 2, 5)  # NumPy would give (2, 3, 5): an integer is no index tensor here
    assert x[..., i, None].shape == (2, 3, 4, 2, 1)
    assert x[i[:, None], i].shape == (2, 2, 4, 5)
    assert x[True].shape == (1, 2, 3, 4, 5) and x[False].shape == (0, 2, 3, 4, 5)


def test_basic_indices_are_views_and_advanced_ones_copies():
    x = x34()
    x[1:, ::2].zero_()
    x[[0]].zero_()
    assert x.tolist() == [[0, 1, 2, 3], [0, 5, 0, 7], [0, 9, 0, 11]]


def test_assignment_broadcasts_and_casts():
    x = rushlight.zeros(2, 3, dtype=rushlight.int64)
    x[0] = rushlight.tensor([1.9, -1.9, 2.5])
    x[:, 1] = True
    x[1, [0, 2]] = rushlight.tensor([7, 8])
    assert x.tolist() == [[1, 1, 2], [7, 1, 8]]
    x[x > 6] = 0
    assert x.tolist() == [[1, 1, 2], [0, 1, 0]]


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (5, 1.0),
        ((0, 9), 1.0),
        ([0, 9], 1.0),
        (0, rushlight.zeros(3)),
        ([0, 1], rushlight.zeros(3)),
        (slice(None, None, -1), 1.0),
    ],
)
def test_a_failed_assignment_changes_nothing(index, value):
    x = x34().to(rushlight.float32)
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        x[index] = value
    assert x.tolist() == x34().tolist() and x._version == 0


def test_gradients_of_assignment():
    x, value = (x34() / 5).requires_grad_(), wrap(np.array([1.0, 2.0])).requires_grad_()
    index = rushlight.tensor([2, 0])

    def assigned(x, value):
        y = x * 1.0
        y[1:, 1] = value
        y[0, index] = value * value
        y[y < 0.5] = value[0]
        return y * y

    assert gradcheck(assigned, (x, value))
    assert gradgradcheck(assigned, (x, value))


INDEX, SMALL = np.array([[0, 2, 1, 1], [2, 2, 0, 0]]), np.array([2, 0, 2])
DIFFERENTIABLE = {
    "index": lambda x: x[rushlight.tensor(SMALL), 1:],
    "gather": lambda x: x.gather(0, wrap(INDEX)),
    "scatter_add": lambda x: x.scatter_add(0, wrap(INDEX), x[:2] * 2.0),
    "index_select": lambda x: x.index_select(1, wrap(SMALL)),
    "scatter": lambda x: x.scatter(1, wrap(INDEX[:, :1]), x[:2, :1] * 3.0),
    "take": lambda x: x.take(wrap(INDEX)),
    "prod": lambda x: x.scatter_reduce(0, wrap(INDEX), x[:2], "prod"),
    "mean": lambda x: x.scatter_reduce(0, wrap(INDEX), x[:2], "mean", include_self=False),
    "amax": lambda x: x.scatter_reduce(0, wrap(INDEX), x[:2] + 0.1, "amax"),
    "index_add": lambda x: x.index_add(0, wrap(SMALL), x * 2.0, alpha=0.5),
    "put": lambda x: x.put(wrap(SMALL[:2]), x[0, :2] * 2.0),
    "index_fill": lambda x: x.index_fill(0, wrap(SMALL[:1]), x[0, 0]),
    "index_copy": lambda x: x.index_copy(1, wrap(SMALL[:2]), x[:, :2]),
    "masked_select": lambda x: x.masked_select(x.detach() > 1),
    "masked_scatter": lambda x: x.masked_scatter(x.detach() > 1, x * 2.0),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(wrap(SMALL), 0),
    "index_put": lambda x: x.index_put((wrap(SMALL),), x[0] * 2.0, accumulate=True),
    "pad": lambda x: rushlight.constant_pad_nd(x, (1, -1, 2, 0), 3.0),
    "block_diag": lambda x: rushlight.block_diag(x, x[0]),
    "as_strided": lambda x: x.as_strided((3, 3), (1, 2), 1),
    "triu": lambda x: x.triu(1),
    "diag_embed": lambda x: rushlight.diag_embed(x, 1),
    "repeat": lambda x: x.repeat(2, 1, 2),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    x = (x34() / 5 + 0.3).requires_grad_()
    assert gradcheck(DIFFERENTIABLE[name], (x,))
    assert gradgradcheck(DIFFERENTIABLE[name], (x,))


def test_indices_may_be_computed_in_compiled_code():
    import jax

    importlib.import_module("rushlight.engine.xla.namespace")  # sets how wide JAX's numbers are, before it traces

    def picked(array, index):
        x = wrap(array) * 1.0
        x[wrap(index)] = 7.0
        x[x > 10] = -1.0
        return x[wrap(index) - 1]._array, x.gather(0, wrap(index)[None, :, None].squeeze(0) * 0)._array

    index = np.array([1, 2])
    plain, compiled = (
        picked(np.arange(12.0).reshape(3, 4), index),
        jax.jit(picked)(np.arange(12.0).reshape(3, 4), index),
    )
    for a, b in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(a, b)


def test_shapes_that_depend_on_values_are_refused_in_compiled_code():
    import jax

    x = np.arange(3.0)
    for function in (lambda a: wrap(a)[wrap(a) > 1]._array, lambda a: wrap(a).nonzero()._array):
        with pytest.raises(RuntimeError, match="compiled code cannot have"):
            jax.jit(function)(x)


def test_xla_keeps_indices_out_of_range_silently_inside():
    """Differs from PyTorch: XLA cannot look at the values of indices."""
    from rushlight.engine.xla import namespace as xla

    x = wrap(xla.asarray(np.arange(3.0)))
    assert x[rushlight.tensor([0, 9])].shape == (2,)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        x[9]


def test_what_is_picked_by_arrays_lies_in_order():
    """``view`` needs it; NumPy lays the dimensions of the index outermost."""
    x, i = rushlight.arange(60.0).view(3, 4, 5), rushlight.tensor([2, 0])
    b = rushlight.tensor([True, False, False, True])
    for picked in (x.index_select(1, i), x[:, i], x[:, :, i], x[:, i, i], x[:, b], x[:, i[:, None]]):
        assert picked.is_contiguous() and picked.view(-1).tolist() == picked.flatten().tolist()
    assert rushlight.equal(x.index_select(2, i), rushlight.stack([x[:, :, 2], x[:, :, 0]], 2))
    assert rushlight.permute_copy(x, (2, 0, 1)).is_contiguous()


def test_an_assignment_reads_its_index_before_it_writes():
    x = rushlight.tensor([1, 2, 3, 0])
    x[x] = rushlight.tensor([5, 6, 7, 8])
    assert x.tolist() == [8, 5, 6, 7] and x._version == 1
    y = rushlight.zeros(3, dtype=rushlight.float64)
    y[y.view(rushlight.int64)] = rushlight.tensor([1.0, 2.0, 3.0], dtype=rushlight.float64)
    assert y.tolist() == [3, 0, 0] and y._version == 1


def test_what_may_not_be_assigned_to():
    i = rushlight.tensor([0, 2])
    with rushlight.inference_mode():
        x = rushlight.zeros(3)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        x[i] = 1.0
    leaf = rushlight.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf[i] = 1.0
    y, w = rushlight.zeros(3), rushlight.ones(2, requires_grad=True)
    y[i] = w
    y.sum().backward()
    assert w.grad.tolist() == [1, 1] and y._version == 1
