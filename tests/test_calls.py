"""Common calls of operators in C do what those in Python do, and leave to them what is not common."""

import gc
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import shortcuts
from rushlight.autograd.call import caller
from rushlight.autograd.registry import differentiable as xp
from rushlight.engine.native import library
from rushlight.engine.numpy import layouts
from rushlight.nn import functional as F
from rushlight.ops.shape import view_as_shape

pytestmark = pytest.mark.skipif(library is None, reason="there are no kernels")


@pytest.fixture
def both(monkeypatch):
    """``both(op)``: the op called in C, the op called in Python, and a list of how the first one's calls went."""
    in_c = shortcuts._in_c

    def make(op):
        went = []

        def noted(*args, **options):
            short = in_c(*args, **options)

            def call(*args):
                t = short(*args)
                went.append("Python" if t is None else "C")
                return t

            return call

        monkeypatch.setattr(shortcuts, "_in_c", noted)
        here = caller(op.op)
        monkeypatch.setattr(shortcuts, "_in_c", lambda *args, **options: None)
        return here, caller(op.op), went

    return make


def values(dtype=torch.float32):
    torch.manual_seed(0)
    x, w = (torch.randn(3, 4, dtype=dtype).requires_grad_() for _ in range(2))
    return x, w, torch.randn(3, dtype=dtype).requires_grad_()


def same(a, b):
    """Two results of one call are the same, and so is what is known of them and what their nodes keep."""
    assert a.__class__ is b.__class__ and a.dtype is b.dtype and a.shape == b.shape
    assert a._array.tobytes() == b._array.tobytes() and a._array.strides == b._array.strides
    assert a._grad is None and a._storage is b._storage and a._view.__class__ is b._view.__class__
    if a._view is not None:
        assert a._view.base is b._view.base and a._view.node is b._view.node
        for name in ("path", "seen", "recorded"):
            assert getattr(a._view, name) == getattr(b._view, name), name
    assert a._node.__class__ is b._node.__class__
    if a._node is None or not hasattr(a._node, "plan"):
        return
    for name in ("shape", "dtype", "xp", "hooks", "guard"):
        assert getattr(a._node, name) == getattr(b._node, name), name
    assert [*filter(None, a._node.versions)] == [*filter(None, b._node.versions)]
    assert a._node.details is None and (b._node.details is None or b._node.details.compute == a._node.dtype)
    assert {**a._node.op.static, **(a._node.static or {})} == {**b._node.op.static, **(b._node.static or {})}
    assert a._node.plan.op is b._node.plan.op and a._node.plan.needs == b._node.plan.needs
    assert [id(edge) for edge in a._node.edges] == [id(edge) for edge in b._node.edges]
    for mine, other in zip(a._node.saved, b._node.saved, strict=True):
        assert mine is other or np.array_equal(mine, other)


COMMON = {
    "two": (xp.add, lambda x, w, b: (x, w)),
    "two, saved": (xp.multiply, lambda x, w, b: (x, w)),
    "two that broadcast": (xp.multiply, lambda x, w, b: (x, b[:, None])),
    "one of them needs no gradient": (xp.multiply, lambda x, w, b: (x, w.detach())),
    "none needs one": (xp.multiply, lambda x, w, b: (x.detach(), w.detach())),
    "a number": (xp.multiply, lambda x, w, b: (x, 2)),
    "a comparison": (xp.less, lambda x, w, b: (x, w)),
    "what was written before": (xp.multiply, lambda x, w, b: ((x + 0).mul_(2), w)),
    "one": (xp.tanh, lambda x, w, b: (x,)),
    "a shape is kept": (xp.sum, lambda x, w, b: (x,), {"axis": 1, "keepdims": False}),
    "another dtype": (xp.astype, lambda x, w, b: (x,), {"dtype": np.dtype(np.int64)}),
    "a view": (view_as_shape, lambda x, w, b: (x,), {"shape": (4, 3)}),
    "a view of a view": (view_as_shape, lambda x, w, b: (x[1:],), {"shape": (8,)}),
    "a view that turns": (xp.matrix_transpose, lambda x, w, b: (x,)),
    "three": (xp.linear, lambda x, w, b: (x, w, b)),
    "three, one of them None": (xp.linear, lambda x, w, b: (x, w, None)),
    "a mask first": (xp.where, lambda x, w, b: (w > 0, x, w)),
    "a mask and a number": (xp.masked_fill, lambda x, w, b: (x, w > 0, 2.0)),
    "places, and something static": (xp.gather, lambda x, w, b: (x, torch.tensor([[0, 2], [1, 1]])), {"axis": 1}),
    "two, and something static": (xp.add_scaled, lambda x, w, b: (x, w), {"alpha": 0.5}),
    "any number": (xp.cat, lambda x, w, b: (x, w, x), {"axis": 1}),
    "any number of places": (
        xp.index_at,
        lambda x, w, b: (x, torch.tensor([0, 2]), torch.tensor([1, 1])),
        {"dims": None},
    ),
    "whole numbers": (xp.multiply, lambda x, w, b: (torch.arange(6), torch.arange(6))),
    "whole numbers, and one of Python's": (xp.add, lambda x, w, b: (torch.arange(6), -3)),
    "whole numbers that are summed up": (xp.sum, lambda x, w, b: (torch.arange(6),), {"axis": 0, "keepdims": True}),
    "truth values": (xp.any, lambda x, w, b: (w > 0,), {"axis": 1, "keepdims": False}),
}


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", COMMON)
def test_common_calls(both, monkeypatch, case, dtype, watched):
    monkeypatch.setattr(layouts, "watched", watched)
    op, arguments, *static = COMMON[case]
    static = static[0] if static else {}
    here, there, went = both(op)
    given = arguments(*values(dtype))
    same(here(*given, **static), there(*given, **static))
    with torch.no_grad():
        same(here(*given, **static), there(*given, **static))
    same(here(*given, **static), there(*given, **static))  # what was viewed before has a storage by now
    assert went == ["C", "C", "C"]


@pytest.mark.parametrize("case", COMMON)
def test_gradients(both, case):
    op, arguments, *static = COMMON[case]
    static = static[0] if static else {}
    found = []
    for function in both(op)[:2]:
        leaves = values()
        y = function(*arguments(*leaves), **static)
        if y.requires_grad:
            (y * y).sum().backward()
        found.append([None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves])
    assert found[0] == found[1]


def a_view_of_what_was_written(x, w, b):
    whole = x + 0
    part = whole[1:]
    whole.mul_(2)
    return part, w[1:]


class Sub(torch.Tensor):
    pass


UNCOMMON = {
    "truth values": lambda x, w, b: (w > 0, x > 0),
    "whole numbers of two kinds": lambda x, w, b: (torch.arange(3), torch.arange(3).int()),
    "whole numbers and another": lambda x, w, b: (torch.arange(3), 0.5),
    "whole numbers and a truth": lambda x, w, b: (torch.arange(3), True),
    "two dtypes": lambda x, w, b: (x, w.double()),
    "half precision": lambda x, w, b: (x.half(), w.half()),
    "a number first": lambda x, w, b: (2.0, w),
    "a truth": lambda x, w, b: (x, True),
    "a view of what was written since": a_view_of_what_was_written,
    "made in inference mode": lambda x, w, b: (torch.inference_mode()(lambda: torch.ones(3, 4))(), w.detach()),
    "a subclass": lambda x, w, b: (x.detach().as_subclass(Sub), w),
}


@pytest.mark.parametrize("case", UNCOMMON)
def test_uncommon_calls(both, case):
    here, there, went = both(xp.multiply)
    given = UNCOMMON[case](*values())
    a, b = here(*given), there(*given)
    assert torch.equal(a, b) and a.grad_fn.__class__ is b.grad_fn.__class__ and a.__class__ is b.__class__
    assert set(went) == {"Python"}


def test_several_outputs(both, monkeypatch):
    here, there, went = both(xp.topk)
    x = values()[0]
    for watched, given, way in [
        (False, x.detach(), "C"), (False, x, "Python"), (False, x.detach()[0], "C"), (True, x.detach(), "C"),
        (True, x.detach().t(), "Python"),
    ]:  # fmt: skip
        monkeypatch.setattr(layouts, "watched", watched)
        found, expected = here(given, k=2, axis=0), there(given, k=2, axis=0)
        assert found.__class__ is expected.__class__ is tuple
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(a, b) and a.stride() == b.stride() and a.grad_fn.__class__ is b.grad_fn.__class__
        assert went.pop() == way and not went


def test_what_is_written_over_whole_numbers_is_refused_in_python(both):
    """A float with a gradient beside places: it is not the places that are computed with."""
    g = torch.tensor(1.0, requires_grad=True)
    for function in both(xp.masked_fill)[:2]:
        with pytest.raises(RuntimeError, match="Autograd not support dtype: Long"):
            function(torch.arange(3), torch.arange(3) > 1, g)


def test_whole_numbers_that_do_not_fit(both):
    here, there, _ = both(xp.add)
    for function in (here, there):
        with pytest.raises((RuntimeError, OverflowError, TypeError)):
            function(torch.arange(3), 1 << 70)


def test_nothing_that_was_given_comes_out(both):
    x = torch.arange(6)
    here, there, _ = both(xp.floor)
    for function in (here, there):
        assert function(x)._array is not x._array


@pytest.mark.parametrize("given", [
    lambda x, w, b: (x, b), lambda x, w, b: (x, "w"), lambda x, w, b: (x, None), lambda x, w, b: (None, x),
])  # fmt: skip
def test_errors_are_pythons(both, given):
    here, there, _ = both(xp.multiply)
    given, said = given(*values()), []
    for function in (here, there):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            function(*given)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


def test_inference_mode_and_hooks_are_pythons(both):
    here, _, went = both(xp.multiply)
    x, w, _ = values()
    with torch.inference_mode():
        assert here(x, w).is_inference()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 2):
        y = here(x, w)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, 2 * w.detach())
    assert went == ["Python", "Python"]


def test_interrupted_calls_go_up(both, monkeypatch):
    """What an operator raises that is no complaint about its arguments is not tried again."""
    calls = []

    def forward(_, x):
        calls.append(x)
        raise KeyboardInterrupt

    monkeypatch.setitem(shortcuts.numpy_engine.BODIES, "tanh", forward)
    here, _, _ = both(xp.tanh)
    with pytest.raises(KeyboardInterrupt):
        here(values()[0])
    assert len(calls) == 1


def test_operands_may_change_meanwhile(both, monkeypatch):
    """The gradient goes where it went when the call began, whatever other threads do while it computes."""
    x, _, _ = values(torch.float64)
    y = x * 2

    def forward(_, array):
        y.detach_()
        return np.tanh(array)

    monkeypatch.setitem(shortcuts.numpy_engine.BODIES, "tanh", forward)
    here, _, went = both(xp.tanh)
    z = here(y)
    z.backward(torch.ones_like(z))
    np.testing.assert_allclose(x.grad, 2 * (1 - np.tanh(2 * x.detach().numpy()) ** 2), rtol=1e-12)
    assert went == ["C"]


def test_nothing_is_kept(both):
    """Of calls that are done, and of those that were left to Python, no reference stays behind."""
    here, _, _ = both(xp.multiply)
    x, w, b = values()
    counted = [x, w, b, x._array, w._array, x._node, xp.multiply.op]

    def count():
        gc.collect()
        return [sys.getrefcount(o) for o in counted]

    def calls(times):
        for _ in range(times):
            here(x, w), here(x, 2.0), F.linear(x, w, b), x.T, x.sum(1)
            with pytest.raises(RuntimeError):
                here(x, b)

    calls(2)
    before = count()
    calls(50)
    assert count() == before
