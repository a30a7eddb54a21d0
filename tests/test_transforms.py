"""Forward mode: dual tensors, ``func.jvp``; ``vmap``; and what is made of them."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.autograd import forward_ad as fwAD
from rushlight.autograd.linearity import ADDED, LINEAR, MULTILINEAR, POINTWISE
from rushlight.nn import functional as F

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


@pytest.mark.parametrize("device", ["cpu", "xla"])
@pytest.mark.parametrize("f, expected", [
    (lambda x: x + 1, [1.0, -1.0]),
    (lambda x: x.reshape(2, 1) + rushlight.zeros(2, 1, device=x.device), [[1.0], [-1.0]]),
    (lambda x: rushlight.zeros(2, device=x.device).copy_(x), [1.0, -1.0]),
    (lambda x: rushlight.zeros(2, device=x.device).add_(x), [1.0, -1.0]),
    (lambda x: rushlight.zeros(2, 2, device=x.device) + x, [[1.0, -1.0]] * 2),
    (lambda x: rushlight.zeros(2, 2, device=x.device) + x[0], [[1.0, 1.0]] * 2),
    (lambda x: rushlight.zeros(2, 2, device=x.device).fill_(x[0]), [[1.0, 1.0]] * 2),
    (lambda x: F.pad(x, (0, 0)), [1.0, -1.0]),
])  # fmt: skip
def test_no_other_tangent_is_written(f, expected, device):
    """A tangent may be what another was, or numbers repeated: a write to its tensor in place is that tensor's alone."""
    if device == "xla":
        pytest.importorskip("jax")
    with fwAD.dual_level():
        x = fwAD.make_dual(POINT.to(device), WAY.to(device))
        y = f(x)
        assert fwAD.unpack_dual(y).tangent.tolist() == expected
        y.mul_(3)
        y[0] = 5.0
        tangent = fwAD.unpack_dual(y).tangent
        assert tangent[0].tolist() == (rushlight.tensor(expected)[0] * 0).tolist()
        assert tangent[1].tolist() == (rushlight.tensor(expected)[1] * 3).tolist()
        assert fwAD.unpack_dual(x).tangent.tolist() == [1.0, -1.0]


def test_the_tangent_of_what_is_filled():
    value, tangent = rushlight.func.jvp(lambda x: rushlight.zeros(2, 3).fill_(x[1]), (POINT,), (WAY,))
    assert value.tolist() == [[POINT[1].item()] * 3] * 2 and tangent.tolist() == [[-1.0] * 3] * 2


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
        def forward(x, by):
            return x * by, x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.by = inputs[1]
            ctx.save_for_forward(inputs[0])

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
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"), fwAD.dual_level():
        Silent.apply(fwAD.make_dual(POINT, WAY))


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


# -- vmap --------------------------------------------------------------------------------------------------------------

ROWS = rushlight.arange(6.0).view(2, 3)


def _mlp():
    rushlight.manual_seed(0)
    return rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.Tanh(), rushlight.nn.Linear(4, 2))


def _net():
    nn = rushlight.nn
    rushlight.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def _per_example(device="cpu"):
    """The gradients of each example, together and one by one."""
    net = _net()
    images, labels = rushlight.randn(6, 1, 8, 8), rushlight.randint(0, 5, (6,))
    parameters = {name: p.detach().to(device) for name, p in net.named_parameters()}

    def loss(parameters, image, label):
        out = rushlight.func.functional_call(net, parameters, (image.unsqueeze(0),))
        return rushlight.nn.functional.cross_entropy(out, label.unsqueeze(0))

    gradient = rushlight.func.grad(loss)
    together = rushlight.vmap(gradient, (None, 0, 0))(parameters, images.to(device), labels.to(device))
    alone = [gradient(parameters, i, t) for i, t in zip(images.to(device), labels.to(device))]
    return together, alone


def test_gradients_of_each_example():
    before = rushlight.func.sliced()
    together, alone = _per_example()
    for i, one in enumerate(alone):
        for name in one:
            assert rushlight.allclose(together[name][i], one[name], atol=1e-6), name
    assert rushlight.func.sliced() == before  # every operator ran on all of them at once


def test_gradients_of_each_example_on_xla():
    pytest.importorskip("jax")
    together, _ = _per_example("xla")
    expected, _ = _per_example()
    for name in expected:
        assert together[name].device.type == "xla"
        assert rushlight.allclose(together[name].cpu(), expected[name], atol=1e-5), name


def test_jacobians_agree():
    def f(x):
        return rushlight.softmax(x, 0) * x.sum(), x.norm()

    rows = rushlight.func.jacrev(f)(POINT)
    columns = rushlight.func.jacfwd(f)(POINT)
    slow = rushlight.autograd.functional.jacobian(f, POINT)
    batch = rushlight.autograd.functional.jacobian(f, POINT, vectorize=True)
    forward = rushlight.autograd.functional.jacobian(f, POINT, vectorize=True, strategy="forward-mode")
    for a, b, c, d, e in zip(rows, columns, slow, batch, forward):
        assert _same(a, b) and _same(a, c) and _same(a, d) and _same(a, e)


def test_hessians_of_each_example():
    net = _mlp()

    def f(x):
        return net(x).square().sum()

    expected = rushlight.stack([rushlight.autograd.functional.hessian(f, x) for x in ROWS])
    for transform in (
        rushlight.func.hessian(f),
        rushlight.func.jacrev(rushlight.func.jacrev(f)),
        rushlight.func.jacfwd(rushlight.func.jacfwd(f)),
        rushlight.func.jacrev(rushlight.func.jacfwd(f)),
    ):
        assert rushlight.allclose(rushlight.vmap(transform)(ROWS), expected, atol=1e-5)


def test_gradients_flow_through_vmap():
    w = rushlight.ones(3, requires_grad=True)
    x = ROWS.clone().requires_grad_()
    y = rushlight.vmap(lambda row: (row * w).exp().sum())(x)
    y.sum().backward()
    expected = (ROWS * rushlight.ones(3)).exp()
    assert _same(w.grad, (expected * ROWS).sum(0)) and _same(x.grad, expected)
    (first,) = rushlight.autograd.grad(
        rushlight.vmap(lambda row: (row * w).exp().sum())(ROWS).sum(), w, create_graph=True
    )
    (second,) = rushlight.autograd.grad(first.sum(), w)
    assert _same(second, (expected * ROWS**2).sum(0))


def test_an_ensemble():
    nets = [_mlp() for _ in range(3)]
    for i, net in enumerate(nets):
        for p in net.parameters():
            p.data.mul_(1 + i)
    parameters, buffers = rushlight.func.stack_module_state(nets)

    def call(parameters, buffers, x):
        return rushlight.func.functional_call(nets[0], (parameters, buffers), (x,))

    together = rushlight.vmap(call, in_dims=(0, 0, None))(parameters, buffers, ROWS)
    assert rushlight.allclose(together, rushlight.stack([net(ROWS) for net in nets]), atol=1e-6)
    together.sum().backward()
    nets[1](ROWS).sum().backward()
    assert rushlight.allclose(parameters["0.weight"].grad[1], nets[1][0].weight.grad, atol=1e-6)


def test_dimensions_in_and_out():
    x = rushlight.arange(24.0).view(2, 3, 4)
    double = rushlight.vmap(lambda a: a * 2, in_dims=1, out_dims=-1)(x)
    assert double.shape == (2, 4, 3) and _same(double, (2 * x).movedim(1, -1))
    tree = rushlight.vmap(lambda d, k: {"y": d["x"] * k}, in_dims=({"x": -1}, None), out_dims={"y": 1})({"x": x}, 3.0)
    assert _same(tree["y"], (3 * x).movedim(2, 1))
    nested = rushlight.vmap(rushlight.vmap(lambda a, b: a + b, (0, None)), (None, 0))(x[0], x[0])
    assert nested.shape == (3, 3, 4) and _same(nested[1, 2], x[0, 2] + x[0, 1])
    assert _same(rushlight.vmap(lambda a: a.sum(), chunk_size=2)(x[0]), x[0].sum(1))


def test_a_function_without_a_rule_runs_slice_by_slice():
    before = rushlight.func.sliced().get("isin", 0)
    found = rushlight.vmap(lambda a, b: rushlight.isin(a, b))(ROWS, rushlight.tensor([[1.0], [5.0]]))
    assert found.tolist() == [[False, True, False], [False, False, True]]
    assert rushlight.func.sliced()["isin"] == before + 1


def test_random_numbers_in_vmap():
    def noisy(x):
        return x + rushlight.randn(2)

    zeros = rushlight.zeros(3, 2)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        rushlight.vmap(noisy)(zeros)
    same = rushlight.vmap(noisy, randomness="same")(zeros)
    assert (same == same[0]).all()
    rushlight.manual_seed(0)
    different = rushlight.vmap(noisy, randomness="different")(zeros)
    rushlight.manual_seed(0)
    assert _same(different, rushlight.randn(3, 2))
    dropped = rushlight.vmap(lambda x: rushlight.nn.functional.dropout(x, 0.5), randomness="different")
    assert len({tuple(row) for row in dropped(rushlight.ones(8, 16)).tolist()}) > 1


def test_writes_in_vmap():
    def filled(row):
        out = rushlight.zeros_like(row)
        out[1:] = row[:-1]
        return out.add_(row)

    assert rushlight.vmap(filled)(ROWS).tolist() == [[0.0, 1.0, 3.0], [3.0, 7.0, 9.0]]
    x = ROWS.clone()
    rushlight.vmap(lambda row: row.mul_(2))(x)
    assert _same(x, 2 * ROWS)
    outside = rushlight.zeros(3)
    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        rushlight.vmap(outside.add_)(ROWS)
    assert outside.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.sum().item(), "calling .item\\(\\) on a Tensor"),
        (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
        (lambda x: x[x > 0], "indexing with a boolean mask"),
        (lambda x: x.nonzero(), "output dynamic shape. Attempted to vmap over aten::nonzero"),
    ],
)
def test_what_vmap_refuses(function, words):
    with pytest.raises(RuntimeError, match=words):
        rushlight.vmap(function)(ROWS)
    assert rushlight.autograd.mode.active == 0


def test_a_batch_of_gradients_is_one_backward_pass():
    x = POINT.clone().requires_grad_()
    (rows,) = rushlight.autograd.grad(x.sin(), x, rushlight.eye(2), is_grads_batched=True)
    assert _same(rows, rushlight.diag(POINT.cos()))
    point = POINT.double().requires_grad_()
    assert rushlight.autograd.gradcheck(
        lambda x: x.tanh(), point, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True
    )


def test_compiled_vmap_knows_what_it_captures():
    weight, places = rushlight.randn(4, requires_grad=True), rushlight.tensor([1, 2])
    x = rushlight.randn(2, requires_grad=True)

    def mapped(x):
        return rushlight.vmap(lambda a, i: a * weight[i].exp() + (weight * a).sum())(x, places)

    compiled = rushlight.compile(mapped)
    for _ in range(3):
        expected = rushlight.autograd.grad(mapped(x).sum(), (x, weight))
        found = rushlight.autograd.grad(compiled(x).sum(), (x, weight))
        for a, b in zip(found, expected, strict=True):
            assert _same(a, b)
        with rushlight.no_grad():
            weight.mul_(0.5)


# -- custom Functions and printing in a vmap ---------------------------------------------------------------------------


class Product(rushlight.autograd.Function):
    """x · y + k, with a rule of its own for many examples."""

    told: list = []

    @staticmethod
    def forward(x, y, k):
        return x * y + k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x, None

    @staticmethod
    def vmap(info, in_dims, x, y, k):
        Product.told.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), tuple(y.shape)))
        return Product.apply(x, y, k), 0


def test_a_functions_own_vmap():
    x, y = rushlight.arange(6.0).reshape(2, 3), rushlight.arange(3.0)
    Product.told.clear()
    made = rushlight.vmap(Product.apply, in_dims=(0, None, None))(x, y, 3)
    assert made.equal(x * y + 3)
    assert Product.told == [(2, "error", (0, None, None), (2, 3), (3,))]
    grads = rushlight.func.vmap(rushlight.func.grad(lambda a, b: Product.apply(a, b, 1).sum()))(x, x + 1)
    assert grads.equal(x + 1) and len(Product.told) == 2
    leaf = x.clone().requires_grad_()
    rushlight.vmap(Product.apply, in_dims=(0, 0, None))(leaf, x, 3).sum().backward()
    assert leaf.grad.equal(x)
    twice = rushlight.vmap(rushlight.vmap(Product.apply, in_dims=(0, 0, None)), in_dims=(0, 0, None))(x, x, 1)
    assert twice.equal(x * x + 1) and Product.told[-1][3] == (2, 3)

    class Both(Product):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap"):
        rushlight.vmap(Both.apply)(x, x, x)


def test_mapped_tensors_print():
    texts = []

    def inside(v):
        texts.append(repr(v))
        return v

    rushlight.vmap(inside)(rushlight.arange(4.0).reshape(2, 2))
    rushlight.vmap(rushlight.vmap(inside))(rushlight.arange(2).reshape(1, 2))
    assert texts == [  # PyTorch's
        "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 1.],\n            [2., 3.]])\n)",
        "BatchedTensor(lvl=2, bdim=0, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n"
        "        tensor([[0, 1]])\n    )\n)",
    ]


def test_tensors_inside_transforms_print_as_wrapped():
    func, texts = rushlight.func, []

    def inside(v):
        texts.append(repr(v))
        return v.sum()

    rows = rushlight.arange(6.0).reshape(2, 3)
    func.vmap(inside, in_dims=1)(rows)
    func.grad(lambda v: inside(v * 2))(POINT)
    func.vmap(func.grad(inside))(rows[:, :1])
    func.hessian(inside)(POINT)
    plain = "tensor([1., 2.])"
    assert texts == [  # PyTorch's
        "BatchedTensor(lvl=1, bdim=1, value=\n    tensor([[0., 1., 2.],\n            [3., 4., 5.]])\n)",
        "GradTrackingTensor(lvl=1, value=\n    tensor([2., 4.])\n)",
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n"
        "        tensor([[0.],\n                [3.]])\n    )\n)",
        f"GradTrackingTensor(lvl=3, value=\n    GradTrackingTensor(lvl=2, value=\n        {plain}\n    )\n)",
    ]


def test_a_function_says_what_a_transform_lacks():
    class Square(rushlight.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    class Mapped(Square):
        generate_vmap_rule = True

    class Old(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

    func = rushlight.func
    assert func.jacrev(Square.apply)(POINT).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert func.vmap(func.grad(Mapped.apply))(POINT).tolist() == [2.0, 4.0]
    for transform in (func.vmap(Square.apply), func.vmap(func.grad(Square.apply))):
        with pytest.raises(RuntimeError, match="You tried to vmap over Square, but it does not have vmap support"):
            transform(POINT)
    for transform in (func.vmap(Old.apply), func.grad(Old.apply), func.jacrev(Old.apply)):
        with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
            transform(POINT)
    assert Old.apply(POINT).tolist() == [1.0, 4.0]


def test_what_does_not_depend_on_the_point_has_a_jacobian_of_zeros():
    func = rushlight.func
    first, second = func.jacrev(lambda x: (rushlight.ones(1), x * 2))(POINT)
    assert first.tolist() == [[0.0, 0.0]] and second.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert func.vjp(lambda x: rushlight.ones(2), POINT)[1](POINT)[0].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        func.jacfwd(lambda x: x.sum())(rushlight.arange(3))


def test_vmap_over_the_ends_of_a_line():
    line = rushlight.vmap(lambda a: rushlight.linspace(a, 4, 3))(POINT)
    assert line.tolist() == [[1.0, 2.5, 4.0], [2.0, 3.0, 4.0]]
    powers = rushlight.vmap(lambda a, b: rushlight.logspace(a, b, 2, base=2, dtype=rushlight.int64))(POINT, POINT + 1)
    assert powers.tolist() == [[2, 4], [4, 8]]


def test_vmap_of_what_counts():
    found = rushlight.vmap(lambda x: rushlight.nonzero_static(x, size=2, fill_value=7))(rushlight.eye(2))
    assert found.tolist() == [[[0], [7]], [[1], [7]]]
    counts = rushlight.tensor([[1, 2], [2, 1]])
    assert rushlight.vmap(rushlight.repeat_interleave)(counts).tolist() == [[0, 1, 1], [0, 0, 1]]
    with pytest.raises(RuntimeError, match=r"got \[3\] at entry 0 and \[2\] at entry 1"):
        rushlight.vmap(rushlight.repeat_interleave)(rushlight.tensor([[1, 2], [1, 1]]))


def test_vmap_of_a_batch_norm_that_keeps_statistics():
    rows = rushlight.arange(12.0).reshape(2, 2, 3)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean"):
        rushlight.vmap(rushlight.nn.BatchNorm1d(3))(rows)
    alone = rushlight.nn.BatchNorm1d(3, track_running_stats=False)
    assert _same(rushlight.vmap(alone)(rows), rushlight.stack([alone(r) for r in rows]))
