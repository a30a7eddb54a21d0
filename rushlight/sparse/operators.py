"""What can be done with sparse tensors: one table by PyTorch's names, each entry a composition of plain operators.

A function that meets a sparse tensor, and a method of one, come here by ``__torch_function__``; no operator's rule
knows of them.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

from ..autograd.mode import no_grad
from ..autograd.op import differentiable as xp
from ..autograd.op import variant
from ..autograd.overriding import functions_called
from ..layout import sparse_coo, sparse_csc, sparse_csr, strided
from ..ops.common import known_values
from ..ops.public import PUBLIC
from ..tensor import Size, Tensor, _checked_dim, wrap
from .tensor import SparseTensor, _take, word

__all__ = ["TABLE", "find"]

TABLE: dict = {}  # name -> function
_MM, _SPARSE_MM = variant(xp.sum_rows, "MmBackward0"), variant(xp.sum_rows, "SparseAddmmBackward0")
_VALUES, _TO_SPARSE = variant(xp.alias, "ValuesBackward0"), variant(xp.alias, "ToSparseBackward1")


def find(func, args):
    """The function that answers for ``func``; PyTorch's error if there is none."""
    found = _by_function().get(func)
    if found is None and hasattr(func, "op"):  # an operator that a method of a dense tensor came to
        found = TABLE.get(func.op.name)
    if found is None:
        raise _missing(getattr(func, "__name__", str(func)), args)
    return found


@functools.cache
def _by_function() -> dict:
    called = functions_called(TABLE, "nn.functional", "linalg", "special")
    return {function: TABLE[name] for function, name in called.items()}


def _missing(name: str, args):
    first = next((a for a in args if isinstance(a, SparseTensor)), None)
    back = "SparseCsrCPU" if first is not None and first._form is not sparse_coo else "SparseCPU"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{back}' backend. There is no such operator on sparse "
        "tensors; to_dense() gives a tensor with all elements"
    )


def entry(*names):
    """Put a function into the table, under its own name or these."""

    def put(function):
        for name in names or (function.__name__.strip("_"),):
            TABLE[name] = function
        return function

    return put


# -- places ------------------------------------------------------------------------------------------------------------


def places(s: SparseTensor) -> Tensor:
    """(sparse_dim, nnz): a column of indices for each element."""
    if s._form is sparse_coo:
        return s._index[0]
    starts, other = s._index
    lines = _lines(starts, _nnz(s))
    pair = (lines, other.long()) if s._form is sparse_csr else (other.long(), lines)
    return PUBLIC["stack"](pair)


def _lines(starts: Tensor, count: int) -> Tensor:
    """The line of each element, from where the lines start."""
    return PUBLIC["repeat_interleave"](PUBLIC["arange"](starts.shape[0] - 1), starts.diff(), output_size=count)


def _starts(lines: Tensor, count: int) -> Tensor:
    """Where each of ``count`` lines starts, from the line of each element."""
    counts = PUBLIC["bincount"](lines, minlength=count)
    return PUBLIC["cat"]([PUBLIC["zeros"](1, dtype=counts.dtype, device=counts.device), counts.cumsum(0)])


def _convert_indices_from_coo_to_csr(input, size: int, *, out_int32: bool = False):
    """Where each row starts, from the sorted row of each element."""
    starts = _starts(input, size)
    return starts.int() if out_int32 else starts


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32: bool = False, transpose: bool = False):
    """(2, n): row and column of each element; ``transpose``, column and row."""
    pair = [_lines(crow_indices, col_indices.shape[0]), col_indices.long()]
    made = PUBLIC["stack"](pair[::-1] if transpose else pair)
    return made.int() if out_int32 else made


def _nnz(s: SparseTensor) -> int:
    return s._values_.shape[0]


def _sparse_dim(s: SparseTensor) -> int:
    return s._index[0].shape[0] if s._form is sparse_coo else 2


def _flat(index: Tensor, shape) -> Tensor:
    """The number of each place, counted row by row."""
    flat = PUBLIC["zeros"](index.shape[1], dtype=index.dtype, device=index.device)
    for d in range(index.shape[0]):
        flat = flat * shape[d] + index[d]
    return flat


def _count(shape) -> int:
    return Size(shape).numel()


def coo(index: Tensor, values: Tensor, size, coalesced=False) -> SparseTensor:
    return SparseTensor(sparse_coo, (index,), values, size, coalesced)


def as_coo(s: SparseTensor) -> SparseTensor:
    return s if s._form is sparse_coo else coo(places(s), s._values_, s._size, s._form is sparse_csr)


def _summed(values: Tensor, group: Tensor, size: int, node=xp.sum_rows) -> Tensor:
    """The sums of the rows of ``values`` by ``group``."""
    if values.dtype.is_floating_point or values.dtype.is_complex:
        if values.ndim == 2:
            return node(values, group, size=size)
        lines = values.reshape(values.shape[0], _count(values.shape[1:]))
        return node(lines, group, size=size).reshape((size, *values.shape[1:]))
    zeros = PUBLIC["zeros"]((size, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return zeros.index_add(0, group, values)


@entry()
def coalesce(s):
    """Places in order, each once."""
    _require(s, sparse_coo, "coalesce")
    if s._is_coalesced:
        return s
    index, dims = s._index[0], _sparse_dim(s)
    flat = known_values(_flat(index, s._size))
    if flat is None:
        raise RuntimeError(
            "coalesce: how many places there are is not known while a program is compiled; coalesce before"
        )
    kept, first, group = np.unique(flat, return_index=True, return_inverse=True)
    device = s._values_.device
    columns = _moved(wrap(first), device)
    if len(kept) == len(flat):
        return coo(index[:, columns], s._values_[columns], s._size, True)
    values = _summed(s._values_, _moved(wrap(group.reshape(-1)), device), len(kept))
    return coo(index[:, columns] if dims else index[:, :1], values, s._size, True)


def _moved(t: Tensor, device) -> Tensor:
    return t if device.type == "cpu" else t.to(device)


@entry()
def is_coalesced(s):
    _require(s, sparse_coo, "is_coalesced")
    return s._is_coalesced


@entry("indices")
def indices(s):
    _require(s, sparse_coo, "indices")
    _require_coalesced(s, "indices")
    return s._index[0]


@entry("values")
def values(s):
    if s._form is sparse_coo:
        _require_coalesced(s, "values")
    return _VALUES(s._values_) if s._values_.requires_grad else s._values_


TABLE["sparse_dim"] = _sparse_dim
TABLE["dense_dim"] = lambda s: len(s._size) - _sparse_dim(s)


@entry()
def crow_indices(s):
    _require(s, sparse_csr, "crow_indices", "sparse row compressed tensor")
    return s._index[0]


@entry()
def col_indices(s):
    _require(s, sparse_csr, "col_indices", "sparse row compressed tensor")
    return s._index[1]


@entry()
def ccol_indices(s):
    _require(s, sparse_csc, "ccol_indices", "sparse column compressed tensor")
    return s._index[0]


@entry()
def row_indices(s):
    _require(s, sparse_csc, "row_indices", "sparse column compressed tensor")
    return s._index[1]


def _require(s, form, name: str, wanted="sparse coordinate tensor") -> None:
    if s._form is not form:
        raise RuntimeError(f"{name} expected {wanted} layout but got {word(s)}")


def _require_coalesced(s, what: str) -> None:
    if not s._is_coalesced:
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


# -- to and from dense -------------------------------------------------------------------------------------------------


@entry("to_dense", "dense")
def to_dense(s, dtype=None, *, masked_grad=None):
    """All elements."""
    index, dims = places(s), _sparse_dim(s)
    shape = s._size[:dims]
    lines = _summed(s._values_, _flat(index, shape), _count(shape))
    made = lines.reshape(s._size)
    return made if dtype is None else made.to(dtype)


def from_dense(t: Tensor, dims: int | None = None) -> SparseTensor:
    """The elements that are not zero, or with ``dims`` the parts of them along the first dimensions."""
    dims = t.ndim if dims is None else dims
    if not 1 <= dims <= max(t.ndim, 1):
        raise RuntimeError(
            f"to_sparse: sparse_dim must be in range [1, {t.ndim}], but got {dims}. Leave it out for all dimensions"
        )
    held = known_values(t.detach())
    if held is None:
        raise RuntimeError("to_sparse: which elements are zero is not known while a program is compiled")
    held = held.reshape((*held.shape[:dims], -1)).any(-1) if dims < t.ndim else held != 0
    index = np.stack([np.asarray(i, np.int64) for i in np.nonzero(held)])
    index_t = _moved(wrap(index), t.device)
    return coo(index_t, _TO_SPARSE(t[tuple(index_t)]), t.shape, True)


@entry()
def to_sparse(s, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    if layout is not None and not isinstance(layout, int):
        return convert(s, layout)
    return as_coo(s)


def convert(s, layout):
    """A sparse or dense tensor in another layout."""
    s = from_dense(s) if not isinstance(s, SparseTensor) else s
    if layout is strided:
        return to_dense(s)
    if layout is sparse_coo:
        return as_coo(s)
    if layout is sparse_csr or layout is sparse_csc:
        return compressed(s, layout)
    raise NotImplementedError(f"layout {layout} is not built here; use torch.sparse_coo, sparse_csr or sparse_csc")


@entry()
def to_sparse_csr(s, dense_dim=None):
    return compressed(s, sparse_csr)


@entry()
def to_sparse_csc(s, dense_dim=None):
    return compressed(s, sparse_csc)


def compressed(s: SparseTensor, form) -> SparseTensor:
    """Rows (or columns) one after the other."""
    if s._form is form:
        return s
    if len(s._size) - (len(s._size) - _sparse_dim(s)) != 2:
        raise RuntimeError(f"to_{form.name}: a matrix is needed, but the tensor has {len(s._size)} dimensions")
    s = coalesce(as_coo(s) if s._form is not sparse_csc else coo(places(s), s._values_, s._size, False))
    index, elements = s._index[0], s._values_
    if form is sparse_csc:
        order = PUBLIC["argsort"](_flat(index.flip(0), s._size[::-1]))
        index, elements = index[:, order].flip(0), elements[order]
    lines = s._size[0 if form is sparse_csr else 1]
    return SparseTensor(form, (_starts(index[0], lines), index[1]), elements, s._size)


def refuse_blocks(self, *_, **__):
    raise NotImplementedError("block layouts (sparse_bsr, sparse_bsc) are not built here; use to_sparse_csr()")


TABLE["to_sparse_bsr"] = TABLE["to_sparse_bsc"] = refuse_blocks


@entry()
def sparse_mask(self, mask):
    """The elements of a dense (or sparse) tensor at the places of ``mask``."""
    if isinstance(self, SparseTensor):
        self = to_dense(self)
    index = places(mask)
    return mask._like(self[tuple(index)])


_UNARY = """
    abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv expm1 floor frac log1p
    rad2deg relu round sgn sign sin sinh sqrt square tan tanh trunc fix isnan isinf isposinf isneginf signbit
    nan_to_num positive conj conj_physical
"""  # functions that leave zeros zero
_CASTS = "float double half bfloat16 int long short char byte bool cfloat cdouble"


# -- elements ----------------------------------------------------------------------------------------------------------


def _on_values(name: str, linear: bool):
    method = getattr(Tensor, name)

    def function(s, *args, **kwargs):
        if not linear and s._form is sparse_coo:
            s = coalesce(s)
        return s._like(method(s._values_, *args, **kwargs))

    return function


def _on_values_in_place(name: str, linear: bool):
    function = _on_values(name, linear)

    def changed(s, *args, **kwargs):
        _take(s, function(s, *args, **kwargs))
        return s

    return changed


for _name in _UNARY.split():
    TABLE[_name] = _on_values(_name, False)
    if hasattr(Tensor, _name + "_"):
        TABLE[_name + "_"] = _on_values_in_place(_name, False)
for _name in ("neg", "negative"):
    TABLE[_name], TABLE[_name + "_"] = _on_values(_name, True), _on_values_in_place(_name, True)
for _name in _CASTS.split():
    TABLE[_name] = _on_values(_name, True)


@entry("pow", "__pow__", "float_power")
def power(s, exponent):
    if not isinstance(s, SparseTensor) or isinstance(exponent, Tensor) or exponent <= 0:
        raise NotImplementedError("pow of a sparse tensor takes a number greater than zero: others fill the zeros")
    s = coalesce(as_coo(s)) if s._form is sparse_coo else s
    return s._like(s._values_**exponent)


@entry()
def to(s, *args, **kwargs):
    made = s._values_.to(*args, **kwargs)
    if made is s._values_:
        return s
    index = s._index if made.device == s._values_.device else [i.to(made.device) for i in s._index]
    return SparseTensor(s._form, index, made, s._size, s._is_coalesced)


TABLE["cpu"] = lambda s, *_, **__: to(s, "cpu")
TABLE["cuda"] = lambda s, device=None, *_, **__: to(s, "cuda" if device is None else device)
TABLE["type_as"] = lambda s, other: to(s, other.dtype)
TABLE["pin_memory"] = lambda s, *_: s


@entry("type")
def type_(s, dtype=None, non_blocking=False):
    if dtype is None:
        return f"torch.sparse.{s.dtype.char}"
    return s._like(s._values_.type(dtype))


@entry()
def clone(s, *, memory_format=None):
    return SparseTensor(s._form, [i.clone() for i in s._index], s._values_.clone(), s._size, s._is_coalesced)


@entry()
def contiguous(s, *_, **__):
    return s


TABLE["is_contiguous"] = lambda s, *_, **__: False
TABLE["stride"] = lambda s, dim=None: (0,) * len(s._size) if dim is None else 0
TABLE["is_floating_point"] = lambda s: s.dtype.is_floating_point
TABLE["is_complex"] = lambda s: s.dtype.is_complex
TABLE["is_signed"] = lambda s: s.dtype.is_signed
TABLE["element_size"] = lambda s: s._values_.element_size()
TABLE["numel"] = lambda s: s._size.numel()
TABLE["get_device"] = lambda s: s._values_.get_device()
TABLE["is_same_size"] = lambda a, b: tuple(a.shape) == tuple(b.shape)
TABLE["is_inference"] = lambda s: s._values_.is_inference()
TABLE["detach"] = SparseTensor.detach
TABLE["detach_"] = SparseTensor.detach_
TABLE["is_nonzero"] = lambda s: bool(to_dense(s))


@entry()
def size(s, dim=None):
    return s._size if dim is None else s._size[_checked_dim(dim, len(s._size))]


@entry("itemsize")
def itemsize(s, *_):
    return s._values_.itemsize


@entry("nbytes")
def nbytes(s, *_):
    return s._values_.nbytes + sum(i.nbytes for i in s._index)


@entry()
def numpy(s, *_, **__):
    raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


TABLE["__array__"] = numpy


@entry("tolist", "data_ptr")
def _no_memory(s, *_):
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


@entry("untyped_storage", "storage", "storage_offset")
def _no_storage(s, *_):
    raise NotImplementedError("Cannot access storage of SparseTensorImpl")


@entry()
def item(s):
    return to_dense(s).item()


@entry()
def zeros_like(s, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    from .creation import sparse_coo_tensor

    dtype, device = dtype or s.dtype, device or s.device
    if layout is strided:
        return PUBLIC["zeros"](s._size, dtype=dtype, device=device, requires_grad=requires_grad)
    if s._form is sparse_coo:
        index, values = s._index[0][:, :0].to(device), s._values_.detach()[:0].to(device, dtype)
        made = coo(index, values, s._size, True)
    else:
        made = compressed(sparse_coo_tensor(size=s._size, dtype=dtype, device=device), s._form)
    return made.requires_grad_(requires_grad)


TABLE["empty_like"] = zeros_like
TABLE["any"] = lambda s: s._values_.any()
TABLE["dropout"] = lambda input, p=0.5, training=True, inplace=False: input._like(
    sys.modules[__name__.split(".")[0]].nn.functional.dropout(input._values_, p, training)
)


@entry()
def backward(s, gradient=None, *args, **kwargs):
    g = gradient._values_ if isinstance(gradient, SparseTensor) else gradient
    return s._values_.backward(g, *args, **kwargs)


# -- in place ----------------------------------------------------------------------------------------------------------


@entry("zero_")
def zero(s):
    with no_grad():
        _take(s, zeros_like(s))
    return s


@entry("copy_")
def copy(self, source, non_blocking=False):
    if not isinstance(self, SparseTensor) or not isinstance(source, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{_type(self)} and src type = {_type(source)}"
        )
    _take(self, to(clone(source), self.device, self.dtype))
    return self


def _type(t: Tensor) -> str:
    return f"torch.sparse.{t.dtype.char}" if isinstance(t, SparseTensor) else f"torch.{t.dtype.char}"


@entry("sparse_resize_", "sparse_resize_and_clear_")
def resize(s, size, sparse_dim, dense_dim):
    _take(s, coo(s._index[0], s._values_, size, s._is_coalesced))
    return s


@entry("requires_grad_")
def requires_grad_(s, requires_grad=True):
    return SparseTensor.requires_grad_(s, requires_grad)


# -- arithmetic --------------------------------------------------------------------------------------------------------


@entry("add")
def add(self, other, *, alpha=1):
    """Sparse and sparse is sparse, dense and sparse is dense."""
    if isinstance(self, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _joined(self, other, alpha)
    return PUBLIC["add"](self, to_dense(other), alpha=alpha)


def _joined(a: SparseTensor, b: SparseTensor, alpha) -> SparseTensor:
    if a._size != b._size:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a._size)} != {list(b._size)}"
        )
    form, a, b = a._form, as_coo(a), as_coo(b)
    dtype = PUBLIC["result_type"](a._values_, b._values_)
    second = b._values_.to(dtype) if alpha == 1 else b._values_.to(dtype) * alpha
    both = coo(PUBLIC["cat"]([a._index[0], b._index[0]], 1), PUBLIC["cat"]([a._values_.to(dtype), second]), a._size)
    if form is not sparse_coo:
        return compressed(both, form)
    known = known_values(both._index[0]) is not None
    return coalesce(both) if known and ((a._is_coalesced and b._is_coalesced) or _same_places(a, b)) else both


def _same_places(a, b) -> bool:
    """Are the places the same, in the same order, and each there once?"""
    x, y = known_values(a._index[0]), known_values(b._index[0])
    return x is not None and y is not None and x.shape == y.shape and bool((x == y).all())


TABLE["add_scaled"] = lambda self, other, *, alpha=1: add(self, other, alpha=alpha)


@entry("sub", "subtract")
def sub(self, other, *, alpha=1):
    return add(self, other, alpha=-alpha)


TABLE["rsub"] = lambda self, other, *, alpha=1: sub(other, self, alpha=alpha)


@entry("mul", "multiply")
def mul(self, other):
    """Only places that both have are left."""
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if isinstance(other, SparseTensor):
        return _intersection(self, other)
    if not isinstance(other, Tensor) or other.ndim == 0:
        return self._like(self._values_ * other)
    index, dims = places(self), _sparse_dim(self)
    shape = PUBLIC["broadcast_tensors"](other, PUBLIC["zeros"](()).expand(self._size))[0]
    if tuple(shape.shape) != tuple(self._size):
        raise RuntimeError(f"mul: a dense tensor of shape {list(other.shape)} does not go into one of {self._size}")
    return self._like(self._values_ * shape[tuple(index[d] for d in range(dims))])


def _intersection(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if a._size != b._size:
        raise RuntimeError(f"mul: sizes of sparse tensors must match, but {list(a._size)} != {list(b._size)}")
    form = a._form
    a, b = coalesce(as_coo(a)), coalesce(as_coo(b))
    dims = _sparse_dim(a)
    x = known_values(_flat(a._index[0], a._size[:dims]))
    y = known_values(_flat(b._index[0], b._size[:dims]))
    _, i, j = np.intersect1d(x, y, assume_unique=True, return_indices=True)
    first, second = _moved(wrap(i), a.device), _moved(wrap(j), b.device)
    made = coo(a._index[0][:, first], a._values_[first] * b._values_[second], a._size, True)
    return made if form is sparse_coo else compressed(made, form)


@entry("div", "divide", "true_divide")
def div(self, other, *, rounding_mode=None):
    if not isinstance(self, SparseTensor):
        raise _missing("div.Tensor", (self, other))
    if isinstance(other, Tensor) and other.ndim:
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor "
            f"(got shape {list(other.shape)} for divisor)"
        )
    s = coalesce(self) if rounding_mode and self._form is sparse_coo else self
    return s._like(s._values_.div(other, rounding_mode=rounding_mode))


@entry("floor_divide", "__floordiv__")
def floor_divide(self, other):
    return div(self, other, rounding_mode="floor")


def _in_place(function):
    def changed(self, *args, **kwargs):
        made = function(self, *args, **kwargs)
        if isinstance(self, SparseTensor):
            _take(self, made._like(made._values_.to(self.dtype)))
            return self
        return self.copy_(made)

    return changed


for _name in ["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "pow"]:
    TABLE[_name + "_"] = _in_place(TABLE[_name])


# -- products ----------------------------------------------------------------------------------------------------------


@entry("matmul", "mm", "spmm", "smm", "hspmm", "mv", "bmm", "dsmm")
def matmul(self, other, *, node=_MM):
    """Sparse by dense is dense, sparse by sparse is sparse."""
    a, b = self, other
    if a.ndim == 3 and b.ndim == 3:
        return _batched(a, b)
    if a.ndim not in (1, 2) or b.ndim not in (1, 2):
        raise RuntimeError(f"matmul: sparse tensors have two dimensions here, but got {a.ndim} and {b.ndim}")
    if a.shape[-1] != b.shape[0]:
        if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}: the columns of the "
                "sparse matrix and the rows of the dense one must be as many"
            )
        shapes = "x".join(map(str, a.shape)), "x".join(map(str, b.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes[0]} and {shapes[1]})")
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return _sparse_product(a, b)
    if not isinstance(a, SparseTensor):
        return matmul(transpose(b, 0, 1), a.t() if a.ndim == 2 else a).t()
    if b.ndim == 1:
        return _times_dense(a, b.unsqueeze(1)).squeeze(1)
    return _times_dense(a, b, node)


def sparse_mm(mat1, mat2):
    """``torch.sparse.mm``: the same product, by another name in the graph."""
    return matmul(mat1, mat2, node=_SPARSE_MM)


def mm_reduce(a: SparseTensor, b: Tensor, reduce: str) -> Tensor:
    """Element (i, j) is the mean, or the extreme, of a[i, k] · b[k, j] over the elements of row i; 0 if it has none."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if not isinstance(a, SparseTensor) or a._form is not sparse_csr:
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {word(a)}")
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    row, col = places(a)
    products = a._values_.unsqueeze(1) * xp.embedding(b, col)
    empty = PUBLIC["zeros"](a._size[0], products.shape[1], dtype=products.dtype, device=products.device)
    return empty.scatter_reduce(0, row.unsqueeze(1).expand(products.shape), products, reduce, include_self=False)


def _times_dense(a: SparseTensor, b: Tensor, node=_MM) -> Tensor:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c(a)} != {_c(b)}")
    row, col = places(a)
    return _summed(a._values_.unsqueeze(1) * xp.embedding(b, col), row, a._size[0], node)


def _c(t: Tensor) -> str:
    from ..ops.kinds import _C_NAMES

    return _C_NAMES.get(t.dtype.name, t.dtype.name)


def _sparse_product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Every element of ``a`` meets the row of ``b`` that its column names."""
    form, a, b = a._form, coalesce(as_coo(a)), coalesce(as_coo(b))
    (row, col), (row_b, col_b) = known_values(a._index[0]), known_values(b._index[0])
    starts = np.searchsorted(row_b, np.arange(b._size[0] + 1))
    counts = (starts[1:] - starts[:-1])[col]
    first = np.repeat(np.arange(len(row)), counts)
    second = np.arange(len(first)) + np.repeat(starts[col] - np.cumsum(counts) + counts, counts)
    index = _moved(wrap(np.stack([row[first], col_b[second]])), a.device)
    values = a._values_[_moved(wrap(first), a.device)] * b._values_[_moved(wrap(second), a.device)]
    made = coalesce(coo(index, values, (a._size[0], b._size[1])))
    return made if form is sparse_coo else compressed(made, form)


def _batched(a, b) -> Tensor:
    """Each batch's product: the batches are blocks of one matrix."""
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor):
        raise _missing("bmm", (a, b))
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"bmm: shapes {list(a.shape)} and {list(b.shape)} do not go together")
    batch, row, col = places(a)
    n, rows, columns = a._size
    blocks = PUBLIC["stack"]([batch * rows + row, batch * columns + col])
    flat = coo(blocks, a._values_, (n * rows, n * columns))
    return _times_dense(flat, b.reshape(n * columns, -1)).reshape(n, rows, -1)


@entry("addmm", "sspaddmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    product = matmul(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    scaled = self if beta == 1 else self * beta
    return (
        add(scaled, product)
        if isinstance(product, SparseTensor)
        else product + (to_dense(scaled) if isinstance(scaled, SparseTensor) else scaled)
    )


@entry()
def addmv(self, mat, vec, *, beta=1, alpha=1):
    return beta * self + alpha * matmul(mat, vec)


@entry()
def linear(input, weight, bias=None):
    made = matmul(input, transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.t())
    return made if bias is None else made + bias


# -- reductions --------------------------------------------------------------------------------------------------------


@entry("sum")
def total(s, dim=None, keepdim=False, *, dtype=None):
    if dim is None or dim == ():
        return s._values_.sum(dtype=dtype)
    if s._form is not sparse_coo:
        return total(as_coo(s), dim, keepdim, dtype=dtype)
    dims = {_checked_dim(d, s.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    count = _sparse_dim(s)
    inner = [d - count + 1 for d in dims if d >= count]
    values = s._values_.sum(inner, dtype=dtype) if inner else s._values_
    values = values if dtype is None else values.to(dtype)
    kept = [d for d in range(count) if d not in dims]
    size = [n for d, n in enumerate(s._size) if d not in dims]
    if not kept:
        made = values.sum(0)
    elif len(kept) == count:
        made = coo(s._index[0], values, size, s._is_coalesced)
    else:
        made = coalesce(coo(s._index[0][wrap(np.array(kept))], values, size))
    if not keepdim:
        return made
    for d in sorted(dims):
        made = unsqueeze(made, d) if isinstance(made, SparseTensor) else made.unsqueeze(d)
    return made


@entry("norm", "vector_norm")
def norm(s, p="fro", dim=None, keepdim=False, dtype=None, *, ord=None):
    if dim is not None:
        raise RuntimeError("norm_sparse currently only supports full reductions")
    s = coalesce(s) if s._form is sparse_coo else s
    return s._values_.reshape(-1).norm(2 if p == "fro" else p)


def softmax(s, dim, dtype=None, log=False):
    """Over the places that are there; the others count as minus infinity."""
    if s._form is not sparse_coo:
        raise _missing("_sparse_softmax", (s,))
    dim, s = _checked_dim(dim, s.ndim), coalesce(s)
    count = _sparse_dim(s)
    values = s._values_ if dtype is None else s._values_.to(dtype)
    if dim >= count:
        return s._like((values.log_softmax if log else values.softmax)(dim - count + 1))
    others = [d for d in range(count) if d != dim]
    if others:
        group = _flat(s._index[0][wrap(np.array(others))], [s._size[d] for d in others])
        groups = _count([s._size[d] for d in others])
    else:
        group, groups = s._index[0][0] * 0, 1
    shape = (groups, *values.shape[1:])
    low = PUBLIC["full"](shape, -np.inf, dtype=values.dtype, device=values.device)
    highest = low.index_reduce(0, group, values.detach(), "amax")[group]
    shifted = values - highest
    sums = _summed(shifted.exp(), group, groups)[group]
    return s._like(shifted - sums.log() if log else shifted.exp() / sums)


# -- shapes ------------------------------------------------------------------------------------------------------------


@entry("transpose", "swapaxes", "swapdims")
def transpose(s, dim0, dim1):
    a, b = _checked_dim(dim0, s.ndim), _checked_dim(dim1, s.ndim)
    if s._form is not sparse_coo:
        if a == b:
            return s
        other = sparse_csc if s._form is sparse_csr else sparse_csr
        return SparseTensor(other, s._index, s._values_, s._size[::-1])
    order = list(range(s.ndim))
    order[a], order[b] = b, a
    return permute(s, order)


@entry()
def permute(s, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order, count = [_checked_dim(d, s.ndim) for d in dims], _sparse_dim(s)
    if sorted(order) != list(range(s.ndim)):
        raise RuntimeError(f"permute(sparse_coo): {list(dims)} is no order of {s.ndim} dimensions")
    if any((d < count) != (place < count) for place, d in enumerate(order)):
        raise RuntimeError("permute: dimensions with places and dimensions without cannot change their places")
    if order == list(range(s.ndim)):
        return s
    index = s._index[0][wrap(np.array(order[:count]))]
    values = s._values_.permute(0, *[d - count + 1 for d in order[count:]])
    moved = order[:count] != list(range(count))
    return coo(index, values, [s._size[d] for d in order], s._is_coalesced and not moved)


TABLE["t"] = TABLE["T"] = TABLE["mT"] = lambda s, *_: transpose(s, 0, 1) if s.ndim == 2 else s


@entry()
def unsqueeze(s, dim):
    dim, count = _checked_dim(dim, s.ndim + 1), _sparse_dim(s)
    size = [*s._size[:dim], 1, *s._size[dim:]]
    if dim > count:
        return coo(s._index[0], s._values_.unsqueeze(dim - count + 1), size, s._is_coalesced)
    index, zero = s._index[0], s._index[0][:1] * 0
    return coo(PUBLIC["cat"]([index[:dim], zero, index[dim:]]), s._values_, size, s._is_coalesced)


@entry("reshape", "flatten")
def reshape(s, *_, **__):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@entry("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    tensors = [as_coo(s) for s in tensors]
    first = tensors[0]
    dim, count = _checked_dim(dim, first.ndim), _sparse_dim(first)
    sizes = [s._size[dim] for s in tensors]
    size = [*first._size[:dim], sum(sizes), *first._size[dim + 1 :]]
    if dim >= count:
        return coalesce(_joined_dense(tensors, dim, size))
    index, start = [], 0
    for s in tensors:
        shift = np.zeros((count, 1), np.int64)
        shift[dim] = start
        index.append(s._index[0] + _moved(wrap(shift), s.device))
        start += s._size[dim]
    return coo(PUBLIC["cat"](index, 1), PUBLIC["cat"]([s._values_ for s in tensors]), size)


def _joined_dense(tensors, dim, size) -> SparseTensor:
    """Joined along a dimension without places: every part is filled up with zeros, and they are added."""
    count, start, index, values = _sparse_dim(tensors[0]), 0, [], []
    for s in tensors:
        axis = dim - count + 1
        before, after = list(s._values_.shape), list(s._values_.shape)
        before[axis], after[axis] = start, size[dim] - start - s._size[dim]
        values.append(PUBLIC["cat"]([s._values_.new_zeros(before), s._values_, s._values_.new_zeros(after)], axis))
        index.append(s._index[0])
        start += s._size[dim]
    return coo(PUBLIC["cat"](index, 1), PUBLIC["cat"](values), size)


@entry()
def stack(tensors, dim=0):
    return cat([unsqueeze(s, dim) for s in tensors], dim)


# -- parts -------------------------------------------------------------------------------------------------------------


@entry()
def index_select(s, dim, index):
    """Rows (or any dimension's parts) by number, in the order given."""
    s, dim = coalesce(as_coo(s)), _checked_dim(dim, s.ndim)
    count = _sparse_dim(s)
    size = [*s._size[:dim], index.shape[0], *s._size[dim + 1 :]]
    wanted = known_values(index)
    if wanted.size and (wanted.min() < -s._size[dim] or wanted.max() >= s._size[dim]):
        raise IndexError(f"index_select(): index out of range in dimension {dim} of size {s._size[dim]}")
    wanted = wanted % max(s._size[dim], 1)
    if dim >= count:
        return coo(s._index[0], s._values_.index_select(dim - count + 1, index), size, s._is_coalesced)
    places_ = known_values(s._index[0])
    order = np.argsort(places_[dim], kind="stable")
    starts = np.searchsorted(places_[dim][order], np.arange(s._size[dim] + 1))
    counts = (starts[1:] - starts[:-1])[wanted]
    target = np.repeat(np.arange(len(wanted)), counts)
    source = order[np.arange(len(target)) + np.repeat(starts[wanted] - np.cumsum(counts) + counts, counts)]
    made = places_[:, source].copy()
    made[dim] = target
    kept = coo(_moved(wrap(made), s.device), s._values_[_moved(wrap(source), s.device)], size)
    return coalesce(kept) if dim == 0 else kept


@entry("select")
def select(s, dim, index):
    """One part along a dimension, which is gone then."""
    s, dim = as_coo(s), _checked_dim(dim, s.ndim)
    if not -s._size[dim] <= index < s._size[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(s._size)} at dimension {dim}")
    count, size = _sparse_dim(s), [*s._size[:dim], *s._size[dim + 1 :]]
    if dim >= count:
        return coo(s._index[0], s._values_.select(dim - count + 1, index), size, s._is_coalesced)
    columns = np.flatnonzero(known_values(s._index[0])[dim] == index % s._size[dim])
    picked = _moved(wrap(columns), s.device)
    values = s._values_[picked]
    if count == 1:
        return values.sum(0)
    rest = [d for d in range(count) if d != dim]
    return coo(s._index[0][wrap(np.array(rest))][:, picked], values, size, s._is_coalesced)


@entry("narrow_copy", "narrow")
def narrow(s, dim, start, length):
    """The parts ``start``, … along a dimension."""
    s, dim = as_coo(s), _checked_dim(dim, s.ndim)
    count, size = _sparse_dim(s), [*s._size[:dim], length, *s._size[dim + 1 :]]
    if dim >= count:
        return coo(s._index[0], s._values_.narrow(dim - count + 1, start, length), size, s._is_coalesced)
    along = known_values(s._index[0])[dim]
    picked = _moved(wrap(np.flatnonzero((along >= start) & (along < start + length))), s.device)
    shift = np.zeros((count, 1), np.int64)
    shift[dim] = start
    return coo(s._index[0][:, picked] - _moved(wrap(shift), s.device), s._values_[picked], size, s._is_coalesced)


@entry("__getitem__")
def getitem(s, index):
    """Numbers and slices of step 1, one dimension after the other."""
    dim = 0
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice):
            start, stop, step = part.indices(s.shape[dim])
            if step != 1:
                raise NotImplementedError("slices of a sparse tensor have step 1; use index_select")
            s = s if (start, stop) == (0, s.shape[dim]) else narrow(s, dim, start, max(stop - start, 0))
            dim += 1
        elif isinstance(part, Tensor) and part.ndim == 1 and not part.dtype.is_floating_point:
            s = index_select(s, dim, part if part.dtype.name != "bool" else part.nonzero().squeeze(1))
            dim += 1
        elif part is Ellipsis:
            dim = s.ndim - (len(index) - 1 - index.index(Ellipsis)) if isinstance(index, tuple) else s.ndim
        elif isinstance(part, (int, np.integer)) or (isinstance(part, Tensor) and part.ndim == 0):
            s = select(s, dim, int(part)) if isinstance(s, SparseTensor) else s.select(dim, int(part))
        else:
            raise _missing("index.Tensor", (s,))
    return s


@entry()
def unbind(s, dim=0):
    return tuple(select(s, dim, i) for i in range(s.shape[dim]))
