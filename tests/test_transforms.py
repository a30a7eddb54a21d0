"""Forward mode: dual tensors, ``func.jvp`` and what is made of them."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.autograd import forward_ad as fwAD
from rushlight.autograd.linearity import ADDED, LINEAR, MULTILINEAR, POINTWISE

POINT, WAY = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, -1.0])


def _same(a, b):
    return rushlight.allclose(a, b)


def test_the_tables_name_operators():
    from rushlight.autograd import differentiable

    for name in POINTWISE | LINEAR | set(MULTILINEAR) | set(ADDED):
        assert hasattr(differentiable, name), name
    assert not POINTWISE & LINEAR


def test_a_level_ends_and_tangents_with_it():
    with fwAD.dual_level():
        x = fwAD.make_dual(POINT, WAY)
        y = x * x
        assert fwAD.unpack_dual(y).tangent.tolist() == [2.0, -4.0]
        assert repr(y) == "tensor([1., 4.], tangent=tensor([ 2., -4.]))"
        assert fwAD.unpack_dual(POINT).tangent is None
    assert fwAD.unpack_dual(y).tangent is None
    assert "_tangents" not in y.__dict__
    assert rushlight.autograd.mode.active == 0


def test_levels_are_not_nested():
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
        fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(POINT, WAY)
    with pytest.raises(RuntimeError, match="Dual level must be"):
        fwAD.exit_dual_level()


def test_in_place_writes_and_views_carry_tangents():
    with fwAD.dual_level():
        x = fwAD.make_dual(POINT, WAY.clone())
        y = rushlight.zeros(2, 2)
        y[1] = x
        row = y[1]
        row.mul_(2)
        assert fwAD.unpack_dual(y).tangent.tolist() == [[0.0, 0.0], [2.0, -2.0]]
        y.zero_()
        assert fwAD.unpack_dual(row).tangent.tolist() == [0.0, 0.0]
        assert x.detach().__dict__.get("_tangents") is None


def test_tangents_of_tangents():
    def cube(x):
        return (x**3).sum()

    def first(x):
        return rushlight.func.jvp(cube, (x,), (WAY,))[1]

    value, slope = rushlight.func.jvp(first, (POINT,), (WAY,))
    assert _same(value, (3 * POINT**2 * WAY).sum())
    assert _same(slope, (6 * POINT * WAY**2).sum())


def test_forward_over_reverse_and_reverse_over_forward():
    def f(x):
        return (x.exp() * x.tanh()).sum()  # both keep their outputs

    _, product = rushlight.func.jvp(rushlight.func.grad(f), (POINT,), (WAY,))
    other = rushlight.func.grad(lambda x: rushlight.func.jvp(f, (x,), (WAY,))[1])(POINT)
    hessian = rushlight.autograd.functional.hessian(f, POINT)
    assert _same(product, hessian @ WAY)
    assert _same(other, hessian @ WAY)
    assert _same(rushlight.autograd.functional.hvp(f, POINT, WAY)[1], hessian @ WAY)


def test_a_backward_pass_in_a_level_gives_gradients_tangents():
    p = POINT.clone().requires_grad_()
    with fwAD.dual_level():
        x = fwAD.make_dual(p, WAY)
        (gradient,) = rushlight.autograd.grad((x**3).sum(), p)
        assert _same(fwAD.unpack_dual(gradient).tangent, 6 * POINT * WAY)
        (x**3).sum().backward()
    assert _same(p.grad, 3 * POINT**2)


def test_a_custom_function_says_its_tangent():
    class Scale(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.by = by
            ctx.save_for_forward(x)
            return x * by, x.sum()

        @staticmethod
        def jvp(ctx, t, _):
            assert ctx.saved_tensors[0].shape == t.shape
            return t * ctx.by, t.sum()

    class Silent(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    _, (scaled, total) = rushlight.func.jvp(lambda x: Scale.apply(x, 3), (POINT,), (rushlight.ones(2),))
    assert scaled.tolist() == [3.0, 3.0] and total.item() == 2.0
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        rushlight.func.jvp(Silent.apply, (POINT,), (WAY,))


def test_linearize_calls_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin(), x.sum()

    value, push = rushlight.func.linearize(f, POINT)
    for way in (WAY, 2 * WAY):
        sine, total = push(way)
        assert _same(sine, POINT.cos() * way) and _same(total, way.sum())
    assert _same(value[0], POINT.sin()) and len(calls) == 1


def test_gradcheck_by_forward_mode_finds_a_wrong_tangent():
    class Wrong(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    x = POINT.double().requires_grad_()
    assert rushlight.autograd.gradcheck(lambda x: x.exp() * x, x, check_forward_ad=True)
    assert rushlight.autograd.gradcheck(Wrong.apply, x)
    for fast in (False, True):
        with pytest.raises(RuntimeError, match="forward mode mismatch for output 0 with respect to input 0"):
            rushlight.autograd.gradcheck(Wrong.apply, x, check_forward_ad=True, fast_mode=fast)
    assert rushlight.autograd.gradgradcheck(lambda x: x**3, x, check_fwd_over_rev=True)


def test_forward_mode_on_xla():
    pytest.importorskip("jax")
    x, way = POINT.to("xla"), WAY.to("xla")
    value, tangent = rushlight.func.jvp(lambda x: rushlight.softmax(x, 0) * x, (x,), (way,))
    expected = rushlight.func.jvp(lambda x: rushlight.softmax(x, 0) * x, (POINT,), (WAY,))
    assert tangent.device.type == "xla"
    assert _same(value.cpu(), expected[0]) and _same(tangent.cpu(), expected[1])
    with fwAD.dual_level():
        y = rushlight.zeros(2, 2, device="xla")
        y[1] = fwAD.make_dual(x, way)
        assert fwAD.unpack_dual(y).tangent.tolist() == [[0.0, 0.0], [1.0, -1.0]]


def test_words_of_bad_calls():
    jvp = rushlight.func.jvp
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        jvp(rushlight.sin, POINT, WAY)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(rushlight.sin, (POINT,), (WAY, WAY))
    with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
        jvp(rushlight.sin, (POINT,), (rushlight.ones(3),))
    with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors, got unsupported type"):
        jvp(lambda x: 3, (POINT,), (WAY,))
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: rushlight.ones(1), (POINT,), (WAY,), strict=True)
