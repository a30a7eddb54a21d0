"""Views alias, in-place writes reach every view and their history, on both engines. (Random programs: tests/parity.)"""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.autograd import views
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.tensor import wrap


@pytest.fixture(params=["numpy", "xla"])
def make(request):
    """A float64 tensor counting up from 0, on either engine."""

    def made(*shape):
        array = np.arange(float(np.prod(shape))).reshape(shape)
        if request.param == "xla":
            from rushlight.engine.xla import namespace as xla

            array = xla.asarray(array)
        return wrap(array)

    return made


def values(t):
    return t.detach().cpu().numpy().tolist()


VIEWS = {
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(3, 2),
    "flatten": lambda x: x.flatten(),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0),
    "transpose": lambda x: x.transpose(0, 1),
    "select": lambda x: x.select(1, 2),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "slice": lambda x: x[:, ::2],
    "None": lambda x: x[None, 0],
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "diagonal": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 1, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 3), 1),
    "split": lambda x: x.split(2, 1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "chunk": lambda x: x.chunk(2)[1],
    "tensor_split": lambda x: x.tensor_split(2, 1)[0],
    "movedim": lambda x: x.movedim(0, 1),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "alias": lambda x: x[...],
    "twice": lambda x: x.t()[1:].t(),
    "expand row": lambda x: x.expand(2, 2, 3)[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_values_and_version(make, name):
    x = make(2, 3)
    view = VIEWS[name](x)
    assert view._is_view() and view._base is x
    x.mul_(10)
    assert values(view) == values(VIEWS[name](make(2, 3) * 10))
    view.fill_(-1.0)
    assert (x == -1).sum().item() == view.numel()
    assert values(VIEWS[name](x)) == values(view)
    assert x._version == view._version == 2


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_of_views_and_of_writing_them(name):
    x = (wrap(np.arange(6.0).reshape(2, 3)) / 7).requires_grad_()
    assert gradcheck(VIEWS[name], (x,))
    assert gradgradcheck(VIEWS[name], (x,))
    if name in ("split", "unbind", "chunk"):
        return  # one of several views: may not be written

    def written(x, value):
        y = x * 2.0
        VIEWS[name](y).mul_(value)
        return y * y

    value = rushlight.tensor(3.0, dtype=rushlight.float64, requires_grad=True)
    assert gradcheck(written, (x, value))
    assert gradgradcheck(written, (x, value))


def test_history_of_a_written_view_is_rebased_on_its_base(make):
    x = make(2, 3).requires_grad_()
    y = x * 1.0
    row, column = y[0], y[:, 1]
    row.mul_(5)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert row.grad_fn.name() == column.grad_fn.name() == "AsStridedBackward0"
    column.sum().backward()
    assert values(x.grad) == [[0, 5, 0], [0, 1, 0]]


def test_copies_do_not_alias(make):
    x = make(2, 3)
    for copy in (x.t().reshape(6), x.flip(0), x.rot90(), x.roll(1), x.repeat(1, 1), x[[0, 1]], rushlight.t_copy(x)):
        copy.zero_()
    assert values(x) == values(make(2, 3))


def test_old_values_are_kept_only_for_rules_that_need_them(make):
    """y.mul_(z) needs the old y for z's gradient; y.add_(z) needs nothing."""
    x, z = make(2, 3).requires_grad_(), make(2, 3).requires_grad_()
    y = x + 1.0
    y.mul_(z)
    y.sum().backward()
    assert values(z.grad) == values(make(2, 3) + 1.0)
    w, y = make(6).requires_grad_(), x + 1.0
    views.inplace(y, lambda old: (old.reshape(6) * w).reshape(2, 3))  # saved through a view of what is overwritten
    y.sum().backward()
    assert values(w.grad) == [1, 2, 3, 4, 5, 6]


def test_a_result_saved_by_its_rule_may_not_be_written_again(make):
    y = make(3).requires_grad_() * 1.0
    y.sigmoid_()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_refused_writes(make):
    leaf = make(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        leaf.mul_(2)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf[0].mul_(2)
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being modified inplace"):
        (leaf * 1.0).unbind()[0].mul_(2)
    y = leaf * 1.0
    with rushlight.no_grad():
        view = y[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.mul_(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        make(3).expand(2, 3).mul_(2)
    assert values(leaf) == values(make(2, 3)) and leaf._version == 0


def test_one_of_several_views_cannot_follow_its_base(make):
    y = make(2, 3).requires_grad_() * 1.0
    part = y.unbind()[0]
    y.mul_(2)
    assert values(part) == [0, 2, 4]
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        part * 1.0


def test_shape_changed_in_place_keeps_other_views_right(make):
    y = make(2, 3).requires_grad_() * 1.0
    row = y[0]
    y.t_()
    y[0].mul_(10)  # what was the first column
    assert tuple(y.shape) == (3, 2) and values(row) == [0, 1, 2]
    y.unsqueeze_(0).squeeze_(0)
    y[2].zero_()  # what was the last column
    assert values(row) == [0, 1, 0]


def test_view_as_another_dtype(make):
    x = wrap(np.array([1.0, 2.0], np.float32))
    bits = x.view(rushlight.int32)
    assert bits.tolist() == [1065353216, 1073741824]
    bits[0] = 0
    assert x.tolist() == [0.0, 2.0]
    assert x.view(rushlight.int16).shape == (4,) and x.view(rushlight.float64).shape == (1,)


def test_strides_of_views_on_xla_are_those_of_numpy(make):
    x = make(2, 3, 4)
    for view in (x.permute(2, 0, 1), x[:, ::2], x.transpose(0, 1).unsqueeze(1), x[0].t()):
        same = wrap(np.zeros((2, 3, 4)))
        assert view.is_contiguous() is False and view.contiguous().is_contiguous()
        assert view.contiguous().view(-1).shape == (view.numel(),)
    assert x.permute(2, 0, 1).stride() == same.permute(2, 0, 1).stride() == (1, 12, 4)


def test_joins_promote_and_split_back():
    a, b = rushlight.tensor([1, 2]), rushlight.tensor([0.5])
    assert rushlight.cat([a, b]).dtype is rushlight.float32
    parts = rushlight.arange(7).split([3, 4])
    assert rushlight.cat(parts).tolist() == list(range(7))
    assert [p.tolist() for p in rushlight.arange(5).tensor_split(2)] == [[0, 1, 2], [3, 4]]
    assert rushlight.cat([rushlight.zeros(0), rushlight.ones(2, 2)]).shape == (2, 2)


def test_a_write_that_is_not_recorded_makes_nodes_of_views_anew():
    x = rushlight.ones(2, 1, requires_grad=True)
    row, one = x[None], x.unbind(0)[0]
    with rushlight.no_grad():
        row.mul_(2)
    assert row.grad_fn.name() == "AsStridedBackward0"
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and its base or another view"):
        one.is_leaf  # noqa: B018


def test_a_view_of_a_view_made_without_gradients_is_not_written_with_them():
    x = rushlight.ones(2, requires_grad=True) * 1
    with rushlight.no_grad():
        view = x[None]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view[0] = 0.5


def test_a_view_made_without_gradients_is_compared_after_its_base_was_written():
    x = rushlight.ones(2, requires_grad=True) * 1
    with rushlight.no_grad():
        view = x[None]
    x.mul_(3)
    assert (view != 3).sum() == 0  # nothing is recorded of a comparison
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view + 1


def test_operands_that_share_memory_in_part_are_refused():
    x = rushlight.arange(4.0)
    for write in (
        lambda: x[1:].add_(x[:3]),
        lambda: x[1:].copy_(x[:3]),
        lambda: x.index_add_(0, rushlight.arange(4), x),
    ):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            write()
    assert x.add_(x).tolist() == [0, 2, 4, 6]
    assert x[:2].add_(x[2:]).tolist() == [4, 8]


def test_one_value_may_be_written_into_an_expanded_tensor():
    x = rushlight.arange(3.0)
    wide = x.expand(2, 3)
    wide.masked_fill_(wide > 1, 7)
    assert x.tolist() == [0, 1, 7] and wide.tolist() == [[0, 1, 7]] * 2
    wide.fill_(5)
    assert x.tolist() == [5, 5, 5] and wide._version == 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        wide.add_(1)


def test_a_number_must_fit_where_it_is_written():
    x = rushlight.zeros(2, dtype=rushlight.uint8)
    x[0] = -1  # wraps around once, as in PyTorch
    assert x.tolist() == [255, 0]
    mask, index = rushlight.tensor([True, False]), rushlight.tensor([0])
    for write in (
        lambda: x.masked_fill(mask, 300),
        lambda: x.fill_(-1.0),
        lambda: x.index_fill(0, index, 300),
        lambda: x.scatter(0, index, 300),
        lambda: x.clamp(0, 300),
        lambda: rushlight.where(mask, x, 300),
    ):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            write()


def test_conjugates_and_negatives_are_views():
    x = rushlight.tensor([[1 + 2j, 3 + 4j]])
    y = x.mH
    assert y.is_conj() and y._base is x and y.data_ptr() == x.data_ptr()
    x.mul_(2)
    y[0] += 1j
    assert y.tolist() == [[2 - 3j], [6 - 8j]] and x.tolist() == [[2 + 3j, 6 + 8j]]
    assert y.imag.is_neg() and y.imag.resolve_neg().tolist() == [[-3], [-8]] and not (y + 1).is_conj()
    z = y.conj()
    assert not z.is_conj() and z.data_ptr() == x.data_ptr()
    x.numpy()[0, 0] = 0  # which nobody counts
    assert y[0].item() == 0
    expanded = rushlight.tensor([1j]).expand(3).conj()
    with pytest.raises(RuntimeError, match="more than one element"):
        expanded.add_(1)


def test_a_written_conjugate_leaves_its_history():
    x = rushlight.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    z = x * 1
    z.conj().imag.mul_(rushlight.tensor([2.0, 3.0]))
    (z * rushlight.tensor([1j, 2])).sum().imag.backward()
    assert z.tolist() == [1 + 4j, 3 + 12j] and x.grad.tolist() == [1, 6j]


def test_gradients_of_a_view_made_without_them_get_lost_whatever_is_cut_from_it():
    leaf = rushlight.arange(6.0, requires_grad=True)
    with rushlight.no_grad():
        view = leaf.reshape(-1, 1)[None]
    for part in (view[0], view.as_strided((1,), (1,))):
        assert part.requires_grad
        assert rushlight.autograd.grad(part.sum(), leaf, allow_unused=True) == (None,)


def test_a_refused_write_names_a_wrong_operand_first():
    leaf = rushlight.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match="must be Tensor, not NoneType"):
        leaf.sub_(None, alpha=2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.sub_(1)
    assert leaf.tolist() == [1, 1, 1]
