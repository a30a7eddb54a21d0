"""Matrix products: ``matmul`` and its family, ``linear``, and products that add to something."""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant
from ..tensor import Tensor
from .common import bool_dtype, c_name, check_tensor, own, refuse
from .dims import wrap_dim
from .public import public

# -- the primitives --------------------------------------------------------------------------------------------------


def adjoint(xp, x):
    return xp.conj(xp.matrix_transpose(x))


def _rows(xp, x):
    """All leading axes folded into one, so that a sum over the batch is part of one matrix product."""
    return x if x.ndim == 2 else xp.reshape(x, shape=(math.prod(x.shape[:-1]), x.shape[-1]))


def _matmul_w(xp, g, x, w_shape):
    if len(w_shape) == 2:
        x, g = _rows(xp, x), _rows(xp, g)
    return xp.matmul(adjoint(xp, x), g)


@op(node="MmBackward0", x=lambda xp, g, w: xp.matmul(g, adjoint(xp, w)), w=_matmul_w)
def matmul_(xp, x, w):
    """Matrix product over the last two axes, batched over the rest."""
    return xp.matmul(x, w)


def column(xp, x):
    return xp.reshape(x, shape=(*x.shape, 1))


def row(xp, x):
    return xp.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


@op(
    node="MvBackward0",
    x=lambda xp, g, w: xp.multiply(column(xp, g), xp.conj(w)),
    w=lambda xp, g, x: xp.matvec(adjoint(xp, _rows(xp, x)), xp.reshape(g, shape=(-1,))),
)
def matvec(xp, x, w):
    """Matrices times one vector."""
    return xp.matmul(x, w)


@op(
    node="SqueezeBackward4",
    x=lambda xp, g, w: xp.reshape(xp.matmul(xp.conj(w), column(xp, g)), shape=w.shape[:-1]),
    w=lambda xp, g, x: xp.multiply(xp.conj(column(xp, x)), row(xp, g)),
)
def vecmat(xp, x, w):
    """One vector times matrices."""
    return xp.matmul(x, w)


@op(node="DotBackward0", x=lambda xp, g, w: g * xp.conj(w), w=lambda xp, g, x: g * xp.conj(x))
def dot_(xp, x, w):
    return xp.dot(x, w)


@op(node="VdotBackward0", x=lambda xp, g, w: xp.conj(g) * w, w=lambda xp, g, x: g * x)
def vdot_(xp, x, w):
    return xp.dot(xp.conj(x), w)


def _no_truth(x, w, b=None):
    if x.dtype.kind == w.dtype.kind == "b" and x.size and w.size and x.shape[-1:] == w.shape[-1:]:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")


@op(
    node="AddmmBackward0",
    check=_no_truth,
    x=lambda xp, g, w: xp.matmul(g, xp.conj(w)),
    w=lambda xp, g, x: xp.matmul(xp.matrix_transpose(_rows(xp, g)), xp.conj(_rows(xp, x))),
    b=lambda xp, g: xp.sum(_rows(xp, g), axis=0),
)
def linear_(xp, x, w, b):
    """``x @ w.T + b``, b optional."""
    y = xp.matmul(x, xp.matrix_transpose(w))
    return y if b is None else y + b


def _times(g, scale):
    """A gradient through ``scale * x``."""
    return g if scale == 1 else g * scale.conjugate()


@op(
    node="AddmmBackward0",
    x=lambda xp, g, beta: _times(g, beta),
    a=lambda xp, g, b, alpha: _times(xp.matmul(g, adjoint(xp, b)), alpha),
    b=lambda xp, g, a, alpha: _times(xp.matmul(adjoint(xp, a), g), alpha),
)
def add_matmul(xp, x, a, b, *, beta=1, alpha=1):
    return _added(x, _product(xp, a, b, alpha), beta, alpha if a.shape[-1] else 0)


def _product(xp, a, b, alpha):
    """The product; zeros where 0 times it is wanted, as BLAS has it: nan in it does not count then."""
    y = xp.matmul(a, b)
    return y if alpha != 0 else xp.zeros_like(y)


@op(
    node="AddmvBackward0",
    x=lambda xp, g, beta: _times(g, beta),
    a=lambda xp, g, b, alpha: _times(column(xp, g) * xp.conj(b), alpha),
    b=lambda xp, g, a, alpha: _times(xp.matvec(adjoint(xp, a), g), alpha),
)
def add_matvec(xp, x, a, b, *, beta=1, alpha=1):
    return _added(x, _product(xp, a, b, alpha), beta, alpha if a.shape[-1] else 0)


@op(
    node="AddbmmBackward0",
    x=lambda xp, g, beta: _times(g, beta),
    a=lambda xp, g, b, alpha: _times(xp.matmul(g, adjoint(xp, b)), alpha),
    b=lambda xp, g, a, alpha: _times(xp.matmul(adjoint(xp, a), g), alpha),
)
def add_matmul_sum(xp, x, a, b, *, beta=1, alpha=1):
    total = xp.sum(_product(xp, a, b, alpha), axis=0, dtype=a.dtype if a.dtype.kind in "biu" else None)
    return _added(x, total, beta, alpha if a.shape[0] and a.shape[-1] else 0)


@op(
    node="AddrBackward0",
    promote="common",
    x=lambda xp, g, beta: _times(g, beta),
    a=lambda xp, g, b, alpha: _times(xp.matvec(g, xp.conj(b)), alpha),
    b=lambda xp, g, a, alpha: _times(xp.matvec(xp.matrix_transpose(g), xp.conj(a)), alpha),
)
def add_outer(xp, x, a, b, *, beta=1, alpha=1):
    return _added(x, column(xp, a) * b, beta, alpha)


def _added(x, product, beta, alpha):
    """``beta * x + alpha * product``; with beta 0, x is not even looked at (it may hold nan)."""
    if product.dtype.kind in "biu":  # integer tensors keep their dtype whatever number scales them
        whole = bool if product.dtype.kind == "b" else int
        beta, alpha = whole(beta), whole(alpha)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else product + (x if beta == 1 else x * beta)


# PyTorch's graph shows how it folded batches into one product; here these are one node, named as its outermost.
_batched = variant(xp.matmul, "UnsafeViewBackward0")
_batched_clone = variant(xp.matmul, "CloneBackward0")
_bmm = variant(xp.matmul, "BmmBackward0")
_batched_matvec = variant(xp.matvec, "UnsafeViewBackward0")
_batched_vecmat = variant(xp.vecmat, "UnsafeViewBackward0")
_linear_mm = variant(xp.linear, "MmBackward0")
_linear_view = variant(xp.linear, "ViewBackward0")
_linear_unsafe_view = variant(xp.linear, "UnsafeViewBackward0")
_linear_squeeze = variant(xp.linear, "SqueezeBackward4")
_baddbmm = variant(xp.add_matmul, "BaddbmmBackward0")

# -- products --------------------------------------------------------------------------------------------------------


@public
def matmul(input, other):
    """The product of two tensors: dot, matrix-vector or batched matrix product, by their dimensions.

    >>> import rushlight as torch
    >>> torch.matmul(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        check_tensor("matmul", input)
        check_tensor("matmul", other, "other", 2)
    x, w = input._array, other._array
    if x.dtype is not w.dtype or x.dtype.kind == "b":
        input = _of_one_dtype(input, other)
        x = input._array
    m, n = x.ndim, w.ndim
    try:
        if m == 2 and n == 2:
            return xp.matmul(input, other)
        if n == 2 and m > 2:
            return _batched(input, other)
        if m > 1 and n > 1:
            return (_batched_clone if m == 2 and input._node is not None else _batched)(input, other)
        if state.casting is not None:
            input, other = state.casting.lower(input, other)
        if m == 1 and n == 1:
            return xp.dot(input, other)
        if n == 1 and m > 1:
            return (xp.matvec if m == 2 else _batched_matvec)(input, other)
        if m == 1 and n > 1:
            return (xp.vecmat if n == 2 else _batched_vecmat)(input, other)
    except (ValueError, TypeError):
        _explain_matmul(x.shape, w.shape)
        raise
    raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")


@public
def mm(input, mat2):
    """The product of two matrices."""
    if not isinstance(mat2, Tensor):
        raise TypeError(f"mm(): argument 'mat2' (position 2) must be Tensor, not {type(mat2).__name__}")
    _expect_dim(input, 2, "self must be a matrix")
    _expect_dim(mat2, 2, "mat2 must be a matrix")
    return matmul(input, mat2)


@public
def bmm(input, mat2):
    """The products of two batches of matrices, pair by pair."""
    return _bmm(_batches(input, mat2), mat2)


@public
def mv(input, vec):
    """A matrix times a vector."""
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {vec.ndim}, {input.ndim}, {vec.ndim}")
    x, w = input._array, vec._array
    _check_product_dtypes(x, w)
    try:
        return xp.matvec(input, vec)
    except (ValueError, TypeError):
        _explain_matmul(x.shape, w.shape)
        raise


@public
def dot(input, tensor):
    """The sum of the products of two vectors' elements."""
    _check_vectors(input, tensor)
    return xp.dot(input, tensor)


@public
def vdot(input, other):
    """The dot product with the first vector conjugated."""
    _check_vectors(input, other)
    return xp.vdot(input, other)


@public(aliases=("ger",))
def outer(input, vec2):
    """Every product of an element of one vector with one of the other."""
    for name, t in (("self", input), ("vec2", vec2)):
        if t.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {t.ndim}-D")
    return xp.multiply(xp.reshape(input, shape=(input._array.shape[0], 1)), vec2)


@public
def inner(input, other):
    """The sums of products over both last dimensions."""
    if input.ndim == 0 or other.ndim == 0:
        return xp.multiply(input, other)
    a, b = input._array.shape, other._array.shape
    if a[-1] != b[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a)} and {list(b)}"
        )
    _check_same_dtype(input, other)
    return _contract(input, other, (len(a) - 1,), (len(b) - 1,))


def _check_same_dtype(a, b):
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    vectors = a.ndim == b.ndim == 1
    if vectors or (a._array.size and b._array.size):
        refuse("dot" if vectors else "addmm_impl_cpu_", bool_dtype, a)


@public(method=False)
def tensordot(a, b, dims=2):
    """The sums of products over the given dimensions of each tensor."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        over_a, over_b = range(-dims, 0), range(dims)
    else:
        over_a, over_b = ((d,) if isinstance(d, int) else d for d in dims)
    shape_a, shape_b = a._array.shape, b._array.shape
    for i, j in zip(over_a, over_b, strict=True):
        if shape_a[i] != shape_b[j] and 1 not in (shape_a[i], shape_b[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {shape_a[i]} in dim {i} "
                f"and second has size {shape_b[j]} in dim {j}"
            )
    _check_same_dtype(a, b)
    return _contract(a, b, tuple(d % a.ndim for d in over_a), tuple(d % b.ndim for d in over_b))


def _added_up(t, axis):
    """Its sum along ``axis``, in its own dtype."""
    return xp.sum(t, axis=axis, keepdims=True, dtype=t._array.dtype)


def _contract(a, b, over_a, over_b):
    """Sums of products over paired axes, as one matrix product; a contracted axis of size 1 broadcasts."""
    for i, j in zip(over_a, over_b):
        m, n = a._array.shape[i], b._array.shape[j]
        if m != n:
            a, b = (_added_up(a, i), b) if n == 1 else (a, _added_up(b, j))
    free_a = tuple(i for i in range(a.ndim) if i not in over_a)
    free_b = tuple(i for i in range(b.ndim) if i not in over_b)
    kept = tuple(a._array.shape[i] for i in free_a), tuple(b._array.shape[i] for i in free_b)
    inside = _size(a._array.shape[i] for i in over_a)
    a, b = xp.transpose(a, axes=free_a + over_a), xp.transpose(b, axes=over_b + free_b)
    m, n = _size(kept[0]), _size(kept[1])
    if m == n == 1:  # one number: PyTorch takes a dot product, which autocast leaves alone
        product = xp.dot(xp.reshape(a, shape=(inside,)), xp.reshape(b, shape=(inside,)))
    else:
        product = matmul(xp.reshape(a, shape=(m, inside)), xp.reshape(b, shape=(inside, n)))
    return xp.reshape(product, shape=kept[0] + kept[1])


@public
def kron(input, other):
    """The Kronecker product: every block of the result is ``other`` times an element of ``input``."""
    check_tensor("kron", other, "other", 2)
    if not (input.ndim and other.ndim):  # a tensor without dimensions decides the dtype as any other does
        ndim = max(input.ndim, other.ndim)
        input, other = (t if t.ndim else t.reshape((1,) * ndim) for t in (input, other))
    ndim = max(input.ndim, other.ndim)
    a, b = ((1,) * (ndim - t.ndim) + t._array.shape for t in (input, other))
    apart = xp.reshape(input, shape=tuple(n for d in a for n in (d, 1)))
    product = xp.multiply(apart, xp.reshape(other, shape=tuple(n for d in b for n in (1, d))))
    result = own(xp.reshape(product, shape=tuple(m * n for m, n in zip(a, b))))
    if result._node is not None:
        result._node.rename("UnsafeViewBackward0")
    return result


def linear(input, weight, bias=None):
    """``input @ weight.T + bias``: one matrix product however many leading dimensions the input has."""
    try:
        x, w = input._array, weight._array
    except AttributeError as error:
        raise _not_a_tensor(input, weight) or error from None
    if (x.dtype is not w.dtype or (bias is not None and bias._array.dtype is not w.dtype)) and w.ndim <= 2:
        check_linear_dtypes(x, w, bias)
    ndim = x.ndim
    try:
        if w.ndim != 2:
            return _linear_vector(input, weight, bias)
        if ndim == 2:
            return xp.linear(input, weight, bias) if bias is not None else _linear_mm(input, weight, None)
        if bias is not None:
            return _linear_view(input, weight, bias)
        return (_linear_unsafe_view if ndim > 2 else _linear_squeeze)(input, weight, None)
    except (ValueError, TypeError, IndexError):
        _explain_linear(x.shape, w.shape, bias)
        raise


def _not_a_tensor(input, weight):
    try:
        check_tensor("linear", input)
        check_tensor("linear", weight, "weight", 2)
    except TypeError as error:
        return error
    return None


def _linear_vector(input, weight, bias):
    """``linear`` with a weight of one output, given as a vector."""
    if not input.ndim or not weight.ndim:
        _explain_linear(input.shape, weight.shape, bias)
    if bias is not None and input.ndim == 2 and weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    y = matmul(input, weight)
    return y if bias is None else xp.add(y, bias)


# -- products that add to something ----------------------------------------------------------------------------------


@public(inplace=True, old=("beta", "alpha"))
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``."""
    a, b = mat1._array, mat2._array
    if a.ndim != 2 or b.ndim != 2:
        _expect_dim(mat1, 2, f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
        _expect_dim(mat2, 2, f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    check_linear_dtypes(a, b, input)
    (n, k), (k2, m) = a.shape, b.shape
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {k2}x{m})")
    if input._array.shape != (m,):
        _check_expands(input, (n, m))
    return xp.add_matmul(input, mat1, mat2, beta=beta, alpha=alpha)


@public(inplace=True, old=("beta", "alpha"))
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * (batch1 @ batch2)``, matrix by matrix."""
    _check_sizes((batch1, 0), (batch1, 1), (batch2, 2))
    if isinstance(batch1, Tensor) and batch1.ndim == 3:
        _check_expands(input, (*batch1._array.shape[:2], batch2._array.shape[2]))
    if not input.dtype == batch1.dtype == batch2.dtype and not state.casting:
        given = ", batch1: ".join(map(c_name, (input._array, batch1._array)))
        raise RuntimeError(f"Input dtypes must be the same, got: input {given}, batch2: {c_name(batch2._array)}")
    batch1 = _batches(batch1, batch2)
    return _baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)


@public(inplace=True, old=("beta", "alpha"))
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * sum(batch1 @ batch2)`` over the batch."""
    _check_sizes((batch1, 1), (batch2, 2))
    batch1 = _batches(batch1, batch2)
    _check_added(input, batch2, (batch1._array.shape[1], batch2._array.shape[2]))
    return xp.add_matmul_sum(input, batch1, batch2, beta=beta, alpha=alpha)


@public(inplace=True, old=("beta", "alpha"))
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat @ vec)``."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    (n, k), size = mat._array.shape, vec._array.shape[0]
    have = input._array.shape[0] if input.ndim else 1
    if k != size or have not in (1, n):
        raise RuntimeError(f"size mismatch, got input ({have}), mat ({n}x{k}), vec ({size})")
    if not input._array.dtype == mat._array.dtype == vec._array.dtype:
        _raise_addmv_dtypes(input._array, mat._array, vec._array)
    return xp.add_matvec(input, mat, vec, beta=beta, alpha=alpha)


@public(inplace=True, old=("beta", "alpha"))
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """``beta * input + alpha * outer(vec1, vec2)``."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D argument vec{1 if vec1.ndim != 1 else 2}, but got {vec1.ndim}-D")
    for name, number in (("beta", beta), ("alpha", alpha)):
        if number.__class__ is bool and not all(t._array.dtype.kind == "b" for t in (input, vec1, vec2)):
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    _check_expands(input, (vec1._array.shape[0], vec2._array.shape[0]))
    return xp.add_outer(input, vec1, vec2, beta=beta, alpha=alpha)


# -- errors ----------------------------------------------------------------------------------------------------------


def _word(array) -> str:
    return dtypes.of_numpy(array.dtype).char.removesuffix("Tensor")


def _check_sizes(*asked) -> None:
    """Raise PyTorch's error for the first tensor that has not the dimension whose size is asked for."""
    for t, dim in asked:
        if isinstance(t, Tensor) and t.ndim <= dim:
            if not t.ndim:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            wrap_dim(dim, t.ndim)


def _of_one_dtype(input, other):
    """``input``, checked to be of the dtype that its product with ``other`` needs.

    In batches where there is nothing to multiply any will do, and the result has the second's; but one matrix with a
    gradient is multiplied with all of a batch at once.
    """
    x, w = input._array, other._array
    if x.dtype != w.dtype and x.ndim == 2 and w.ndim > 2 and input._node is not None and not state.casting:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(w)} != {c_name(x)}")
    if x.dtype != w.dtype and x.ndim > 1 and w.ndim > 2 and not (x.size and w.size) and not state.casting:
        if w.dtype.kind in "biu" and input._node is not None and state.grad:
            raise RuntimeError(f"Autograd not support dtype: {_word(w)}")
        same = xp.astype(input, dtype=w.dtype)
        same._storage = input._counted()  # what is kept is the input: a write to it is noticed
        return same
    if x.dtype != w.dtype or x.dtype.kind == "b":
        _check_product_dtypes(x, w)
    return input


def _check_product_dtypes(x, w) -> None:
    if state.casting:
        return
    if x.dtype.kind == "b" and (x.dtype == w.dtype or w.ndim > 2):
        _refuse_truth(x, w)
    if x.dtype == w.dtype:
        return
    if x.ndim == 1 and w.ndim == 1:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {_word(x)} and {_word(w)}")
    if x.ndim > 1 and w.ndim == 1:
        _raise_addmv_dtypes(w, x, w)
    if w.ndim > 2:
        raise RuntimeError(f"expected scalar type {_word(x)} but found {_word(w)}")
    raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(x)} != {c_name(w)}")


def _refuse_truth(x, w) -> None:
    """PyTorch has no kernels for products of bools; those without elements need none."""
    if x.ndim and w.ndim:
        _explain_matmul(x.shape, w.shape)
        dot = x.ndim == w.ndim == 1
        if dot or (x.size and w.size):
            kernel = "dot" if dot else "addmv_impl_cpu" if w.ndim == 1 else "addmm_impl_cpu_" if w.ndim == 2 else "bmm"
            raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def _raise_addmv_dtypes(x, a, b) -> None:
    raise RuntimeError(f"addmv input tensors must have the same dtype, but got {_word(x)}, {_word(a)}, and {_word(b)}")


def check_linear_dtypes(x, w, bias) -> None:
    if bias is not None and x.dtype != w.dtype and not state.casting:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {_word(x)} and {_word(w)}")
    if bias is not None and bias._array.dtype != w.dtype and not state.casting:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {_word(bias._array)} and {_word(w)}")
    _check_product_dtypes(x, w)


def _check_added(input, product, shape) -> None:
    if input._array.dtype != product._array.dtype and not state.casting:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {_word(input._array)} and {_word(product._array)}"
        )
    _check_expands(input, shape)


def _check_expands(input, shape) -> None:
    have = input._array.shape
    if len(have) > len(shape):
        raise RuntimeError(
            f"The expanded size of the tensor ({len(shape)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(have)}).  Target sizes: {list(shape)}.  Tensor sizes: {list(have)}"
        )
    for i in range(1, len(have) + 1):
        if have[-i] != shape[-i] and have[-i] != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-i]}) must match the existing size ({have[-i]}) at "
                f"non-singleton dimension {len(shape) - i}.  Target sizes: {list(shape)}.  Tensor sizes: {list(have)}"
            ) from None


def _explain_matmul(x, w) -> None:
    """Raise PyTorch's error if these shapes cannot be multiplied; return if that was not the trouble."""
    if len(x) == 1 and len(w) == 1:
        _check_lengths(x, w)
    elif x[-1] == w[-2 if len(w) > 1 else 0]:
        if len(x) > 2 and len(w) > 2:
            check_batch_shapes(x[:-2], w[:-2])
    elif len(w) == 1:
        rows = _size(x[:-1])
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{x[-1]}), vec ({w[0]})") from None
    elif len(w) == 2:
        raise _no_product(_size(x[:-1]), x[-1], *w) from None
    else:
        check_batch_shapes(x[:-2], w[:-2])
        batch = _size(w[:-2])
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {x[-1]}] "
            f"but got: [{batch}, {w[-2]}]."
        ) from None


def _explain_linear(x, w, bias) -> None:
    if not x or not w:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {len(x)}D and {len(w)}D"
        ) from None
    rows = _size(x[:-1])
    if len(w) == 2 and x and x[-1] != w[1]:
        raise _no_product(rows, x[-1], w[1], w[0]) from None
    if bias is not None and len(w) == 2:
        _check_expands(bias, (rows, w[0]))


def _no_product(rows, inner, other_inner, columns) -> RuntimeError:
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {other_inner}x{columns})")


def check_batch_shapes(a, b) -> None:
    ndim = max(len(a), len(b))
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            raise RuntimeError(
                f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton "
                f"dimension {ndim - i}"
            ) from None


def _batches(batch1, batch2):
    """``batch1``, checked to fit ``batch2``."""
    _expect_dim(batch1, 3, "batch1 must be a 3D tensor")
    _expect_dim(batch2, 3, "batch2 must be a 3D tensor")
    a, b = batch1._array, batch2._array
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] "
            f"but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    return _of_one_dtype(batch1, batch2)


def _check_vectors(input, other) -> None:
    if input.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {other.ndim}D tensors")
    _check_lengths(input._array.shape, other._array.shape)
    _check_product_dtypes(input._array, other._array)


def _check_lengths(x, w) -> None:
    if x != w:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(x)} and src {list(w)} to have the same number of "
            f"elements, but got {x[0]} and {w[0]} elements respectively"
        ) from None


def _expect_dim(t, ndim, message) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(f"expected a Tensor, not {type(t).__name__}")
    if t.ndim != ndim:
        raise RuntimeError(message)


def _size(shape) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


# -- operators -------------------------------------------------------------------------------------------------------


def _matmul_operator(self, other):
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _reflected_matmul_operator(self, other):
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__ = _matmul_operator
Tensor.__rmatmul__ = _reflected_matmul_operator
