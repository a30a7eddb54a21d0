"""Matrix products, linear algebra and Fourier transforms, without PyTorch: identities, NumPy's values, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import fft, linalg
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.autograd.op import differentiable as xp
from rushlight.engine.numpy import namespace as numpy_engine
from rushlight.ops.linalg import linear

F64, C128 = rushlight.float64, rushlight.complex128


def _random(*shape, dtype=F64, grad=False):
    return rushlight.randn(*shape, dtype=dtype).requires_grad_(grad)


def _positive(n, dtype=F64):
    a = _random(2, n, n, dtype=dtype)
    return a @ a.mH + 0.5 * rushlight.eye(n, dtype=dtype)


def _close(actual, expected):
    actual, expected = (np.asarray(t.detach()) if isinstance(t, rushlight.Tensor) else t for t in (actual, expected))
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


# -- products --------------------------------------------------------------------------------------------------------

PAIRS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("dtype", [F64, C128])
def test_matmul_is_numpys(left, right, dtype):
    a, b = _random(*left, dtype=dtype), _random(*right, dtype=dtype)
    _close(a @ b, np.matmul(np.asarray(a), np.asarray(b)))


@pytest.mark.parametrize(("left", "right"), [p for p in PAIRS if 0 not in p[0]])
@pytest.mark.parametrize("dtype", [F64, C128])
def test_gradients_of_matmul(left, right, dtype):
    inputs = (_random(*left, dtype=dtype, grad=True), _random(*right, dtype=dtype, grad=True))
    assert gradcheck(rushlight.matmul, inputs)
    assert gradgradcheck(rushlight.matmul, inputs, fast_mode=True)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("dtype", [F64, C128])
def test_linear_on_numpy_equals_its_rules(shape, with_bias, dtype):
    """The faster body and backward of the NumPy engine against the op's own definition."""
    x, w = _random(*shape, dtype=dtype), _random(4, 3, dtype=dtype)
    b = _random(4, dtype=dtype) if with_bias else None
    op = xp.linear.op
    arrays = [None if t is None else t._array for t in (x, w, b)]
    y = numpy_engine.BODIES["linear"](numpy_engine, *arrays)
    _close(y, op.forward(numpy_engine, *arrays))
    g = np.asarray(_random(*y.shape, dtype=dtype))
    known = {"x": arrays[0], "w": arrays[1]}
    edges = (1, 1, 1 if with_bias else None)
    fast = numpy_engine.BACKWARD["linear"](g, edges, known)
    for name, found in zip(("x", "w", "b") if with_bias else ("x", "w"), fast):
        rule = op.rules[name]
        expected = rule.function(numpy_engine, g, *[known[n] for n in rule.needs])
        assert found.size == expected.size
        _close(found.reshape(expected.shape), expected)


def test_linear_does_not_write_its_arguments():
    x, w, b = _random(2, 3), _random(4, 3), _random(4)
    before = [t.clone() for t in (x, w, b)]
    linear(x, w, b)
    assert all((t == old).all() for t, old in zip((x, w, b), before))


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik",
        "ij,jk",
        "bij,bjk->bik",
        "ii->i",
        "ii",
        "ij->ji",
        "i,j->ij",
        "ij,ij->",
        "...ij,...jk->...ik",
        "ij,k->k",
    ],
)
def test_einsum_is_numpys(equation):
    labels, sizes = equation.split("->")[0].split(","), {"b": 2, "i": 3, "j": 4, "k": 5}
    shapes = [tuple(sizes[c] for c in part.replace("...", "b")) for part in labels]
    operands = [_random(*shape) for shape in shapes]
    _close(rushlight.einsum(equation, *operands), np.einsum(equation, *[np.asarray(t) for t in operands]))


def test_einsum_takes_sublists_and_broadcasts_ones():
    a, b = _random(2, 3), _random(3, 4)
    _close(rushlight.einsum(a, [0, 1], b, [1, 2], [2, 0]), (a @ b).T)
    _close(rushlight.einsum("ij,jk->ik", a, _random(1, 4) * 0 + 1), a.sum(1, keepdim=True).expand(2, 4))
    assert gradcheck(lambda a, b: rushlight.einsum("ij,jk->ki", a, b), (a.requires_grad_(), b.requires_grad_()))


# -- factorizations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (2, 0, 0)])
@pytest.mark.parametrize("dtype", [F64, C128])
def test_factors_multiply_back(shape, dtype):
    a = _random(*shape, dtype=dtype)
    p, lower, upper = linalg.lu(a)
    _close(p @ lower @ upper, a)
    packed, pivots = linalg.lu_factor(a)
    _close(rushlight.lu_unpack(packed, pivots)[0], p)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        _close(q @ r, a)
    u, s, vh = linalg.svd(a, full_matrices=False)
    _close((u * s.unsqueeze(-2)) @ vh, a)
    _close(a @ linalg.pinv(a) @ a, a)


@pytest.mark.parametrize("dtype", [F64, C128])
def test_square_factors_multiply_back(dtype):
    a = _positive(4, dtype)
    for upper in (False, True):
        factor = linalg.cholesky(a, upper=upper)
        _close(factor.mH @ factor if upper else factor @ factor.mH, a)
        b = _random(2, 4, 3, dtype=dtype)
        _close(a @ rushlight.cholesky_solve(b, factor, upper), b)
        _close(a @ rushlight.cholesky_inverse(factor, upper), rushlight.eye(4, dtype=dtype).expand(2, 4, 4))
    values, vectors = linalg.eigh(a)
    _close((vectors * values.unsqueeze(-2)) @ vectors.mH, a)
    values, vectors = linalg.eig(a)
    _close(vectors @ rushlight.diag_embed(values) @ linalg.inv(vectors), a)
    packed, pivots = linalg.ldl_factor(a, hermitian=True)
    _close(a @ linalg.ldl_solve(packed, pivots, b, hermitian=True), b)


def test_ldl_pivots_both_ways():
    """A zero diagonal needs 2×2 pivots, a large off-diagonal element an exchange."""
    a = rushlight.tensor([[0.0, 1, 5, 2], [1, 0, 3, 4], [5, 3, 1e-3, 6], [2, 4, 6, 0]], dtype=F64)
    b = _random(4, 2)
    packed, pivots = linalg.ldl_factor(a)
    assert (pivots < 0).any()
    _close(a @ linalg.ldl_solve(packed, pivots, b), b)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left, adjoint):
    a, b = _random(4, 4, dtype=C128), _random(4, 4, dtype=C128)
    x = linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    a = a.mH if adjoint else a
    _close(a @ x if left else x @ a, b)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular_reads_one_triangle(upper, left, unit):
    a, b = _random(4, 4), _random(4, 4)
    t = rushlight.triu(a) if upper else rushlight.tril(a)
    if unit:
        t = t - rushlight.diag(t.diag()) + rushlight.eye(4, dtype=F64)
    x = linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
    _close(t @ x if left else x @ t, b)


def test_solve_triangular_divides_by_zero_as_pytorch_does():
    a = rushlight.tensor([[0.0, 1.0], [0.0, 2.0]])
    assert linalg.solve_triangular(a, rushlight.ones(2, 1), upper=True).isinf()[0, 0]


GRADIENTS = {
    "cholesky": lambda a: linalg.cholesky(a @ a.mH + rushlight.eye(3, dtype=a.dtype)),
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "solve": lambda a: linalg.solve(a, a[..., :2] * 2 + 1),
    "solve_right": lambda a: linalg.solve(a, a[..., :2, :] * 2 + 1, left=False),
    "solve_triangular": lambda a: linalg.solve_triangular(a, a * 2 + 1, upper=False, left=False),
    "lu": lambda a: linalg.lu(a)[1:],
    "lu_factor": lambda a: linalg.lu_factor(a)[0],
    "lu_solve": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a * 2 + 1),
    "qr": lambda a: linalg.qr(a)[1],
    "eigvalsh": lambda a: linalg.eigvalsh(a + a.mH),
    "svdvals": linalg.svdvals,
    "svd": lambda a: (lambda u, s, vh: (u * s.unsqueeze(-2) ** 2) @ vh)(*linalg.svd(a, full_matrices=False)),
    "pinv": linalg.pinv,
    "matrix_exp": linalg.matrix_exp,
    "matrix_power": lambda a: linalg.matrix_power(a, -2),
    "matrix_norm": lambda a: linalg.matrix_norm(a, "nuc"),
    "cross": lambda a: linalg.cross(a, a.mT * 2),
    "vander": lambda a: linalg.vander(a, 4),
    "fft": lambda a: fft.fft(a, 4),
    "ifft2": lambda a: fft.ifft2(a, norm="ortho"),
    "irfft": lambda a: fft.irfft(a, 5),
    "hfft2": lambda a: fft.hfft2(a),
}


def _well_conditioned(dtype):
    return (_random(3, 3, dtype=dtype) + 3 * rushlight.eye(3, dtype=dtype)).requires_grad_()


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [F64, C128])
def test_gradients(name, dtype):
    a = _well_conditioned(dtype)
    assert gradcheck(GRADIENTS[name], (a,))
    assert gradgradcheck(GRADIENTS[name], (a,), atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("name", ["lu", "lu_factor", "qr", "svdvals", "pinv", "svd"])
def test_gradients_of_rectangles(name, shape):
    a = _random(*shape, grad=True)
    assert gradcheck(GRADIENTS[name], (a,))
    assert gradgradcheck(GRADIENTS[name], (a,), atol=1e-4)


def test_equal_eigenvalues_leave_gradients_finite():
    a = rushlight.eye(3, requires_grad=True)
    linalg.eigvalsh(a).sum().backward()
    _close(a.grad, np.eye(3))
    a.grad = None
    linalg.svdvals(a).sum().backward()
    _close(a.grad, np.eye(3))


def test_determinant_of_a_singular_matrix_has_a_gradient():
    a = rushlight.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=F64, requires_grad=True)
    linalg.det(a).backward()
    _close(a.grad, [[4, -2], [-2, 1]])


# -- Fourier transforms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("n", [None, 3, 4, 9])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_are_numpys(name, n, norm):
    x = _random(2, 6, 3, dtype=F64 if name in ("rfft", "ihfft") else C128)
    _close(getattr(fft, name)(x, n, 1, norm), getattr(np.fft, name)(np.asarray(x), n, 1, norm))


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_frequencies_and_shifts(n):
    _close(fft.fftfreq(n, 0.5, dtype=F64), np.fft.fftfreq(n, 0.5))
    _close(fft.rfftfreq(n, 0.5, dtype=F64), np.fft.rfftfreq(n, 0.5))
    x = _random(n, 3)
    _close(fft.ifftshift(fft.fftshift(x)), x)
    _close(fft.fftshift(x, 0), np.fft.fftshift(np.asarray(x), 0))


def test_float32_stays_single():
    assert fft.fft(rushlight.ones(4)).dtype is rushlight.complex64
    assert fft.irfft(fft.rfft(rushlight.ones(4))).dtype is rushlight.float32


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_istft_undoes_stft(center, normalized):
    x, window = _random(2, 64, grad=True), rushlight.linspace(0.5, 1.0, 12, dtype=F64)
    options = {
        "n_fft": 16,
        "hop_length": 4,
        "win_length": 12,
        "window": window,
        "center": center,
        "normalized": normalized,
    }
    spectrum = rushlight.stft(x, return_complex=True, **options)
    if center:
        _close(rushlight.istft(spectrum, length=64, **options), x)
    assert gradcheck(lambda x: rushlight.stft(x, return_complex=True, **options), (x,))


# -- errors ----------------------------------------------------------------------------------------------------------


def test_singular_and_indefinite_matrices_raise():
    assert issubclass(linalg.LinAlgError, RuntimeError)
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        linalg.inv(rushlight.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]))
    with pytest.raises(linalg.LinAlgError, match="the leading minor of order 2 is not positive-definite"):
        linalg.cholesky(rushlight.tensor([[1.0, 2.0], [2.0, 1.0]]))
    factor, info = linalg.cholesky_ex(rushlight.tensor([[[1.0, 2.0], [2.0, 1.0]], [[4.0, 0.0], [0.0, 4.0]]]))
    assert info.tolist() == [2, 0]
    _close(factor[1], 2 * np.eye(2))


def test_wrong_shapes_name_themselves():
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"):
        rushlight.ones(2, 3) @ rushlight.ones(4, 5)
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: float != double"):
        rushlight.ones(2, 3) @ rushlight.ones(3, 2, dtype=F64)
    with pytest.raises(RuntimeError, match="must match the existing size"):
        linear(rushlight.ones(2, 3), rushlight.ones(4, 3), rushlight.ones(5))


# -- XLA -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lu", "svd", "det", "solve", "irfft"])
def test_xla_agrees_and_compiles(name):
    jax = pytest.importorskip("jax")
    from rushlight.engine.xla import namespace as xla  # noqa: F401  (switches 64-bit numbers on)

    a = _well_conditioned(F64)
    expected = _value_and_gradient(GRADIENTS[name], a._array)
    step = jax.jit(lambda array: _value_and_gradient(GRADIENTS[name], array))
    for found in (_value_and_gradient(GRADIENTS[name], jax.numpy.asarray(a._array)), step(a._array)):
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)


def _value_and_gradient(function, array):
    from rushlight.tensor import wrap

    a = wrap(array).requires_grad_()
    out = function(a)
    total = sum((t.abs() ** 2).sum() for t in (out if isinstance(out, tuple) else (out,)))
    total.backward()
    return total._array, a.grad._array


# -- matrices that are not finite ------------------------------------------------------------------------------------

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64])
def test_singular_values_of_infinite_matrices_are_nan(dtype):
    """LAPACK's iterations need not end on them; the others of a batch are computed."""
    generator = np.random.RandomState(0)
    for size in (2, 3, 8, 40):
        for count in (1, 3, size * size):
            x = generator.randn(2, size, size)
            x[0].flat[generator.choice(size * size, count, replace=False)] = INF
            x = rushlight.tensor(x, dtype=dtype)
            values = rushlight.linalg.svdvals(x)
            assert values[0].isnan().all()
            assert rushlight.equal(values[1], rushlight.linalg.svdvals(x[1]))
            assert rushlight.linalg.pinv(x)[0].isnan().all()
            assert rushlight.linalg.eigvalsh(x + x.mT)[0].isnan().all()
    with pytest.raises(rushlight.linalg.LinAlgError, match="non-finite"):
        rushlight.linalg.svd(rushlight.tensor([[1.0, NAN], [2.0, 3.0]]))
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        rushlight.linalg.eig(rushlight.tensor([[1.0, INF], [2.0, 3.0]]))


def test_matrix_exp_scales_each_matrix_by_itself():
    alone = rushlight.linalg.matrix_exp(rushlight.tensor([[0.1, 0.2], [0.3, 0.4]]))
    for other in (1e30, 1e10, INF, NAN, -1e30):
        batch = rushlight.stack([rushlight.full((2, 2), other), rushlight.tensor([[0.1, 0.2], [0.3, 0.4]])])
        assert rushlight.equal(rushlight.linalg.matrix_exp(batch)[1], alone)


@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_determinant_of_a_singular_matrix_has_a_second_gradient(rank):
    generator = rushlight.Generator().manual_seed(rank)
    left, right = (rushlight.randn(3, rank, generator=generator, dtype=rushlight.float64) for _ in range(2))
    for a in (left @ right.mT, rushlight.complex(left, right) @ rushlight.complex(right, left).mT):
        a.requires_grad_()
        gradgradcheck(linalg.det, (a,))
        gradgradcheck(linalg.det, (rushlight.stack([a.detach(), rushlight.eye(3).to(a)]).requires_grad_(),))


def test_factorizations_lie_by_columns():
    a = rushlight.rand(2, 4, 3)
    assert linalg.svd(a).U.stride() == (16, 1, 4) and linalg.svd(a).Vh.stride() == (9, 1, 3)
    assert (linalg.inv(rushlight.eye(3)) + 1).stride() == (1, 3)
    assert linalg.solve(rushlight.eye(3), rushlight.ones(2, 3), left=False).stride() == (3, 1)


def test_what_has_no_derivative_says_so():
    a = rushlight.eye(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="geqrf"):
        rushlight.geqrf(a).a.sum().backward()
    with pytest.raises(RuntimeError, match="ldl_factor"):
        linalg.ldl_factor(a).LD.sum().backward()
