"""Autograd without an oracle: memory, depth, engines, and what only rushlight promises."""

from __future__ import annotations

import copy
import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import rushlight
from rushlight.autograd import Function, grad, gradcheck, gradgradcheck
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils.checkpoint import checkpoint


@pytest.fixture
def without_collector():
    """Whatever dies in the test dies by reference counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return 2 * x * g


class Both(Function):
    @staticmethod
    def forward(ctx, x):
        y, z = x.sin(), x.cos()
        ctx.save_for_backward(y, z)
        return y, z

    @staticmethod
    def backward(ctx, gy, gz):
        y, z = ctx.saved_tensors
        return gy * z - gz * y


def leaf(*shape):
    return rushlight.rand(*(shape or (3,)), dtype=rushlight.float64).requires_grad_()


GRAPHS = {
    "ops": lambda x: (x.exp() * x).sum(),
    "several outputs": lambda x: x.unbind()[0] * x.unbind()[1],
    "views and in-place": lambda x: (x * 2)[1:].mul_(3).sum(),
    "function": lambda x: Square.apply(x).sum(),
    "function with two outputs": lambda x: Both.apply(x)[0].sum(),
    "checkpoint": lambda x: checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum(),
    "reentrant checkpoint": lambda x: checkpoint(lambda x: x.exp().sin(), x, use_reentrant=True).sum(),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_die_by_reference_counting(name, without_collector):
    x = leaf()
    y = GRAPHS[name](x)
    node = weakref.ref(y.grad_fn)
    y.backward(retain_graph=True)
    del y
    assert node() is None


def test_hooks_and_retained_gradients_make_no_cycle(without_collector):
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert node() is None


def test_hooks_stay_while_a_leaf_is_frozen(without_collector):
    x, seen = rushlight.nn.Parameter(rushlight.ones(2)), []
    x.register_hook(lambda g: seen.append("before"))
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append("after"))
    for freeze in (x.requires_grad_, functools.partial(setattr, x, "requires_grad")):
        freeze(False)
        (x * rushlight.ones(2, requires_grad=True)).sum().backward()
        freeze(True)
        assert not seen
        (x * 2).sum().backward()
        assert seen == ["before", "after"]
        seen.clear()
    x.requires_grad_(False)
    handle.remove()
    y = copy.deepcopy(x).requires_grad_()
    (x.requires_grad_() * y).sum().backward()
    assert seen == ["before"]
    gone = weakref.ref(x)
    del x, y, freeze
    assert gone() is None


def test_graph_with_packed_tensors_dies(without_collector):
    x = leaf()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp() * x
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_a_packed_tensor_is_not_kept():
    x = leaf()
    with saved_tensors_hooks(lambda t: t.tolist(), lambda v: rushlight.tensor(v, dtype=rushlight.float64)):
        h = x * 2
        y = h.exp() * h
    alive = weakref.ref(h)
    expected = (h.exp() * (1 + h) * 2).detach()
    del h
    assert alive() is None
    y.sum().backward()
    assert rushlight.allclose(x.grad, expected)


def test_checkpoint_keeps_no_intermediate_value():
    x, seen = leaf(), []

    def block(x):
        h = x.exp()
        seen.append(weakref.ref(h))
        return (h * h).sin()

    y = checkpoint(block, x, use_reentrant=False)
    assert seen[0]() is None
    y.sum().backward()
    e = x.detach().exp()
    assert rushlight.allclose(x.grad, (e * e).cos() * 2 * e * e)


def test_a_chain_of_100_000_ops_and_its_end():
    x = rushlight.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 100_001
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_an_output_that_died_still_counts_in_second_order():
    """The dead output's place is needed when backward itself is differentiated."""
    x = leaf()
    y, _ = Both.apply(x)
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert rushlight.allclose(h, -x.detach().sin())


@pytest.mark.parametrize("fast", [False, True])
def test_function_passes_both_checks(fast):
    assert gradcheck(Square.apply, leaf(), fast_mode=fast)
    assert gradcheck(Both.apply, leaf(), fast_mode=fast)
    assert gradgradcheck(Both.apply, leaf(), fast_mode=fast)


def test_function_works_on_xla_arrays():
    jnp = pytest.importorskip("jax.numpy")
    from rushlight.tensor import wrap

    x = wrap(jnp.arange(3.0)).requires_grad_()
    y = Square.apply(x)
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert np.allclose(np.asarray(g._array), 2 * np.arange(3.0)) and np.allclose(np.asarray(h._array), 2)


def test_threads_add_up_in_one_leaf():
    x = rushlight.ones(1000, requires_grad=True)

    def work():
        for _ in range(20):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (x.grad == 160).all()


def test_modes_belong_to_a_thread():
    seen = {}
    inside, done = threading.Event(), threading.Event()

    def work():
        with rushlight.no_grad(), rushlight.autograd.set_detect_anomaly(True):
            inside.set()
            done.wait(5)
        seen["after"] = rushlight.is_grad_enabled()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(5)
    assert rushlight.is_grad_enabled() and not rushlight.is_anomaly_enabled()
    done.set()
    thread.join()
    assert seen["after"]


def test_a_failed_backward_leaves_the_mode_as_it_was():
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert rushlight.is_grad_enabled() and x.grad is None


def test_gradcheck_finds_a_wrong_gradient_and_says_where():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(2)
    with pytest.raises(
        rushlight.autograd.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False, fast_mode=True)
    before = x.detach().clone()
    gradcheck(Square.apply, x)
    assert (x == before).all() and x._version == 0


def test_the_first_gradient_is_the_users_own():
    """A hook or ``retain_grad`` may write to it; the next backward pass starts from one again."""
    x = rushlight.ones(2, requires_grad=True)
    loss = x.sum()
    loss.register_hook(lambda g: g.mul_(2))
    loss.backward()
    assert x.grad.tolist() == [2, 2]
    loss = x.sum()
    loss.retain_grad()
    loss.backward()
    loss.grad.zero_()
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_second_gradients_of_a_mean():
    """The recorded gradient of a mean is spread out before it is handed over, and the graph knows of it."""
    x, w = rushlight.ones(4, 3, requires_grad=True), rushlight.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = rushlight.autograd.grad((x.mean(0) * w.pow(2)).sum(), x, create_graph=True)
    assert first.is_contiguous() and first[1].tolist() == [0.25, 1.0, 2.25]
    (second,) = rushlight.autograd.grad(first.sum(), w)
    assert second.tolist() == [2.0, 4.0, 6.0]


def test_no_gradient_goes_through_integers():
    """An integer tensor may be written with what requires grad, and says so; backward through it is refused."""
    value = rushlight.tensor(1.0, requires_grad=True)
    for write in (
        lambda t: t.fill_(value),
        lambda t: t.masked_fill_(t == 0, value),
        lambda t: t.__setitem__(0, value),
        lambda t: t.gt_(value),
    ):
        t = rushlight.zeros(2, 2, dtype=rushlight.uint8)
        write(t)
        assert t.requires_grad
        for last in (t, t.float()):
            with pytest.raises(RuntimeError, match="no gradient goes through"):
                last.sum(dtype=rushlight.float32).backward()
    assert value.grad is None


# -- operators of three arrays have a short cut ------------------------------------------------------------------------


def test_three_arrays_know_when_one_was_written():
    x, w, b = (rushlight.ones(2, 2, requires_grad=True) * 2 for _ in range(3))
    y = rushlight.addcmul(x, w, b)
    b.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    before = rushlight.ones(2, 2)
    before.add_(1)  # a write that was before the call is none
    made = rushlight.addcmul(x, w, before)
    made.sum().backward()
    assert made.grad_fn.name() == "AddcmulBackward0"


def test_three_arrays_take_numbers_none_and_what_is_of_another_dtype():
    x = rushlight.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    assert x.clamp(-1, 1).tolist() == [-1.0, 0.5, 1.0] and x.clamp(max=1).tolist() == [-2.0, 0.5, 1.0]
    x.clamp(rushlight.tensor([-1.0, 1.0, 0.0]), None).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]
    assert x.lerp(x + 2, 0.5).tolist() == [-1.0, 1.5, 4.0]
    assert rushlight.addcmul(x, x.double(), x).dtype is rushlight.float64
    with pytest.raises(RuntimeError, match="must match the size"):
        rushlight.addcmul(x, x, rushlight.ones(2))


def test_three_arrays_see_what_a_view_sees_now():
    base = rushlight.zeros(4)
    view = base[:2]
    base.add_(1)
    assert rushlight.addcmul(view, view, view, value=2).tolist() == [3.0, 3.0]


def test_a_counter_that_is_written_leaves_no_graph():
    count, scaled = rushlight.tensor(1), rushlight.ones(2)
    count.add_(1)
    scaled.mul_(rushlight.ones(2, requires_grad=True))  # this one does
    assert count.item() == 2 and count._version == 1 and count.grad_fn is None
    assert scaled.grad_fn is not None
