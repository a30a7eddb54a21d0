"""Nested tensors of the strided layout, PyTorch's default: examples that may differ in every dimension.

All elements lie in one plain tensor of one dimension, which is the part of the graph. An example is a shape, strides
and a place in it. What works element by element is called on that tensor; other functions are called on each example.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
import textwrap

from ..autograd import carried
from ..autograd.carried import Carrier
from ..autograd.op import differentiable as xp
from ..autograd.op import variant
from ..autograd.overriding import functions_called
from ..layout import strided
from ..ops.public import PUBLIC
from ..tensor import Tensor
from .operators import _ASKED, _POINTWISE, _own_name
from .tensor import _place

__all__ = ["StridedNestedTensor", "pack"]

TABLE: dict = {}  # name -> function
_LIST = variant(xp.alias, "NestedTensorFromTensorListBackward0")


class StridedNestedTensor(Carrier):
    """Example i is ``_values`` seen by the shape, strides and offset ``_places[i]``."""

    __slots__ = ("_places", "_values")
    _values: Tensor
    _places: tuple

    def __new__(cls, values, places):
        t = object.__new__(cls)
        t._start()
        t._values, t._places = values, tuple(places)
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return call(func, args, kwargs or {})

    is_nested = True
    layout = strided

    @property
    def _array(self):
        self._values._sync()
        return self._values._array

    @property
    def _inside(self):
        return self._values

    def _carrying(self, inside):
        return StridedNestedTensor(inside, self._places)

    @property
    def shape(self):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")

    def size(self, dim=None):
        if dim is None:
            return self.shape
        d = _place(dim, self.ndim)
        found = {len(self._places)} if d == 0 else {shape[d - 1] for shape, _, _ in self._places}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim=None):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    @property
    def ndim(self):
        return len(self._places[0][0]) + 1 if self._places else 1

    def dim(self):
        return self.ndim

    ndimension = dim

    def _nested_tensor_size(self):
        return PUBLIC["tensor"]([list(shape) for shape, _, _ in self._places])

    def is_contiguous(self, *_, **__):
        return self._places == _in_order([shape for shape, _, _ in self._places])

    def __len__(self):
        return len(self._places)

    def __iter__(self):
        return iter(unbind(self))

    def __repr__(self, *, tensor_contents=None):
        return _text(self)

    __str__ = __repr__

    def __format__(self, form):
        return format(repr(self), form)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self._carrying(self._values.__deepcopy__(memo))
        return made

    def __reduce_ex__(self, protocol):
        values = self._values if self._values.is_leaf else self._values.detach()
        return StridedNestedTensor, (values, self._places)


def pack(parts) -> StridedNestedTensor:
    """Tensors of any sizes, one after the other."""
    parts = list(parts)
    for number, t in enumerate(parts):
        if t.dim() != parts[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{t.dim()} for Tensor at index {number} and dimension {parts[0].dim()} for Tensor at index 0."
            )
    values = PUBLIC["cat"]([t.reshape(-1) for t in parts]) if parts else PUBLIC["zeros"](0)
    return StridedNestedTensor(values, _in_order([tuple(t.shape) for t in parts]))


def from_tensors(parts) -> StridedNestedTensor:
    """The same for a list that a user gave."""
    made = pack(parts)
    return made._carrying(_LIST(made._values)) if made.requires_grad else made


def _in_order(shapes) -> tuple:
    """Where examples of these shapes lie, without gaps."""
    starts = itertools.accumulate((math.prod(shape) for shape in shapes), initial=0)
    steps = [tuple(math.prod(shape[i + 1 :]) for i in range(len(shape))) for shape in shapes]
    return tuple(zip(shapes, steps, starts))


def _text(nt: StridedNestedTensor) -> str:
    examples = [t.requires_grad_() if nt.requires_grad else t for t in unbind(nt.detach())]
    lines = ",\n".join(textwrap.indent(repr(t), "  ", lambda line: True) for t in examples)
    notes = ""
    if nt.grad_fn is not None:
        notes = f", grad_fn=<{nt.grad_fn.name()}>"
    elif nt.requires_grad:
        notes = ", requires_grad=True"
    return f"nested_tensor([\n{lines}\n]{notes})"


# -- calls -------------------------------------------------------------------------------------------------------------


def call(func, args, kwargs):
    """What ``func`` gives for these arguments; NotImplementedError if it is nothing for nested tensors."""
    name = _names().get(func)
    if name is None:
        name = func.op.name if hasattr(func, "op") else _own_name(func)
        name = {"subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "equal": "eq"}.get(name, name)
    if name in TABLE:
        return TABLE[name](*args, **kwargs)
    if name in _POINTWISE or (name.endswith("_") and name[:-1] in _POINTWISE):
        return _pointwise(name, func, args, kwargs)
    if name in _ASKED:
        return func(args[0]._values, *args[1:], **kwargs)
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: there is no such function of "
        "nested tensors of the strided layout; unbind() gives the examples, to_padded_tensor() a dense tensor"
    )


@functools.cache
def _names() -> dict:
    names = {*TABLE, *_POINTWISE, *_ASKED, *(n + "_" for n in _POINTWISE)}
    return functions_called(names, "nn.functional")


def entry(*names):
    def put(function):
        for name in names or (function.__name__.strip("_"),):
            TABLE[name] = function
        return function

    return put


def _plain(name: str):
    return getattr(sys.modules[__name__.split(".")[0]].nn.functional, name)


def _pointwise(name, func, args, kwargs):
    nested = [a for a in (*args, *kwargs.values()) if isinstance(a, StridedNestedTensor)]
    shapes = [shape for shape, _, _ in nested[0]._places]
    in_place = name.endswith("_") and not name.startswith("__")
    if any(a._places != nested[0]._places for a in nested):  # laid out otherwise, or of other sizes
        if any([shape for shape, _, _ in a._places] != shapes for a in nested) or in_place:
            raise RuntimeError(f"{name} does not support nested tensors of different sizes, or laid out differently")
        args = [contiguous(a) if isinstance(a, StridedNestedTensor) else a for a in args]
        kwargs = {key: contiguous(a) if isinstance(a, StridedNestedTensor) else a for key, a in kwargs.items()}
        return _pointwise(name, func, args, kwargs)
    plain = [_laid_out(a) for a in args]
    made = func(*plain, **{key: _laid_out(a) for key, a in kwargs.items()})
    if in_place:
        return args[0]
    return nested[0]._carrying(made) if isinstance(made, Tensor) else made


def _laid_out(value):
    if isinstance(value, StridedNestedTensor):
        return value._values
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError("Expected both self and other to be nested, but got a nested self and non-nested other")
    return value


def _each(function, *several) -> StridedNestedTensor:
    return pack(itertools.starmap(function, zip(*map(unbind, several), strict=True)))


def _inner(nt: StridedNestedTensor, dim: int, refused: str) -> int:
    """A dimension of an example."""
    d = _place(dim, nt.ndim)
    if d == 0:
        raise RuntimeError(refused)
    return d - 1


# -- examples ----------------------------------------------------------------------------------------------------------


@entry()
def unbind(nt, dim=0):
    """The examples, as views."""
    if dim != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    found, plain = [], _in_order([shape for shape, _, _ in nt._places])
    for place, (shape, steps, start) in zip(plain, nt._places):
        if steps == place[1]:
            found.append(nt._values.narrow(0, start, math.prod(shape)).view(shape))
        else:
            found.append(nt._values.as_strided(shape, steps, start))
    return tuple(found)


@entry("__getitem__")
def getitem(nt, index):
    first, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(first, int):
        raise NotImplementedError("nested tensors are indexed by the number of an example first: nt[0], nt[0, 1:]")
    return select(nt, 0, first)[tuple(rest)] if rest else select(nt, 0, first)


@entry()
def select(nt, dim, index):
    if _place(dim, nt.ndim):
        return _each(lambda t: t.select(dim - 1 if dim > 0 else dim, index), nt)
    if not -len(nt) <= index < len(nt):
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(nt)}")
    return unbind(nt)[index]


@entry()
def to_padded_tensor(nt, padding, output_size=None, out=None):
    """Dense, with ``padding`` where an example is smaller than the largest, or than ``output_size`` says."""
    shapes = [shape for shape, _, _ in nt._places]
    largest = [max(sizes) for sizes in zip(*shapes)]
    sizes = largest if output_size is None else list(output_size)[1:]
    if any(n < m for n, m in zip(sizes, largest)):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    parts = []
    for t in unbind(nt):
        widths = [w for n, m in zip(reversed(sizes), reversed(t.shape)) for w in (0, n - m)]
        parts.append(_plain("pad")(t, widths, value=padding))
    return PUBLIC["stack"](parts)


@entry()
def contiguous(nt, memory_format=None):
    return nt if nt.is_contiguous() else pack(unbind(nt))


TABLE["values"] = lambda nt: nt._values
TABLE["is_same_size"] = lambda a, b: [p[0] for p in a._places] == [p[0] for p in b._places]
TABLE["backward"], TABLE["grad"] = carried.backward, carried.grad


@entry()
def to(nt, *args, **kwargs):
    return nt._carrying(nt._values.to(*args, **kwargs))


TABLE["cpu"] = lambda nt, *_, **__: to(nt, "cpu")
TABLE["cuda"] = lambda nt, device=None, *_, **__: to(nt, "cuda" if device is None else device)


@entry("copy_")
def copy_(nt, source, non_blocking=False):
    if not isinstance(source, StridedNestedTensor) or source._places != nt._places:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    nt._values.copy_(source._values)
    return nt


@entry("tolist", "numpy", "__array__")
def numpy(nt, *_, **__):
    raise RuntimeError("a nested tensor is no array: unbind() gives its examples, to_padded_tensor() a dense tensor")


# -- shapes ------------------------------------------------------------------------------------------------------------


@entry("transpose", "swapaxes", "swapdims")
def transpose(nt, dim0, dim1):
    a, b = (_inner(nt, d, "Nested tensor dimension 0 cannot be transposed") for d in (dim0, dim1))

    def swapped(sizes):
        sizes = list(sizes)
        sizes[a], sizes[b] = sizes[b], sizes[a]
        return tuple(sizes)

    return StridedNestedTensor(nt._values, [(swapped(n), swapped(s), start) for n, s, start in nt._places])


@entry("view", "reshape")
def reshape(nt, *shape):
    """The number of examples stays. -1 is the size that an example has there, or, behind those, what is left."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not sizes or sizes[0] != len(nt):
        raise RuntimeError("view: For now nested view cannot change or infer the implicit batch dimension")
    return _each(
        lambda t: t.reshape([t.shape[i] if n == -1 and i < t.ndim else n for i, n in enumerate(sizes[1:])]), nt
    )


@entry()
def unsqueeze(nt, dim):
    d = _place(dim, nt.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported")
    return _each(lambda t: t.unsqueeze(d - 1), nt)


@entry()
def squeeze(nt, dim):
    d = _inner(nt, dim, "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment")
    return _each(lambda t: t.squeeze(d), nt)


@entry()
def unflatten(nt, dim, sizes):
    d = _inner(nt, dim, "unflatten: dimension 0 of a nested tensor cannot be unflattened")
    return _each(lambda t: t.unflatten(d, sizes), nt)


@entry()
def flatten(nt, start_dim=0, end_dim=-1):
    a, b = (_inner(nt, d, "flatten: dimension 0 of a nested tensor cannot be flattened") for d in (start_dim, end_dim))
    return _each(lambda t: t.flatten(a, b), nt)


@entry()
def chunk(nt, chunks, dim=0):
    d = _inner(nt, dim, "chunk: dimension 0 of a nested tensor cannot be cut")
    return tuple(pack(parts) for parts in zip(*[t.chunk(chunks, d) for t in unbind(nt)], strict=True))


@entry("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    if dim != 0:
        raise RuntimeError("cat(): nested tensors are joined along dimension 0 only")
    return pack(part for nt in tensors for part in unbind(nt))


# -- sums, products, layers --------------------------------------------------------------------------------------------


@entry("sum")
def sum_(nt, dim=None, keepdim=False, *, dtype=None):
    """Over the last dimension."""
    if dim is None:
        return contiguous(nt)._values.sum(dtype=dtype)
    (d,) = dim if isinstance(dim, (tuple, list)) else (dim,)
    if _place(d, nt.ndim) != nt.ndim - 1:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {d} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(lambda t: t.sum(-1, keepdim=True, dtype=dtype), nt)


def _softmax(name: str):
    def function(input, dim=None, *args, **kwargs):
        d = _inner(input, dim, "Cannot apply softmax across nested dimension 0")
        return _each(lambda t: _plain(name)(t, d, *args, **kwargs), input)

    TABLE[name] = function


for _name in ("softmax", "log_softmax"):
    _softmax(_name)


@entry("matmul", "bmm", "__matmul__")
def matmul(a, b):
    for x, y, names in ((a, b, ("self", "other")), (b, a, ("other", "self"))):
        if not isinstance(y, StridedNestedTensor):
            raise RuntimeError(
                f"Expected both to be nested, but got a nested {names[0]} and non-nested {names[1]}"
                if isinstance(x, StridedNestedTensor)
                else "Expected both to be nested"
            )
    if len(a) != len(b):
        raise RuntimeError(f"matmul: nested tensors of {len(a)} and {len(b)} examples")
    return _each(PUBLIC["matmul"], a, b)


def _by_rows(nt, function) -> StridedNestedTensor:
    """A function of rows, whose number it keeps, on all of them at once."""
    nt = contiguous(nt)
    rows = function(nt._values.view(-1, nt.size(-1)))
    shapes = [(*shape[:-1], rows.shape[-1]) for shape, _, _ in nt._places]
    return StridedNestedTensor(rows.reshape(-1), _in_order(shapes))


@entry()
def linear(input, weight, bias=None):
    return _by_rows(input, lambda rows: _plain("linear")(rows, weight, bias))


@entry()
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if len(shape) == 1:
        return _by_rows(input, lambda rows: _plain("layer_norm")(rows, shape, weight, bias, eps))
    return _each(lambda t: _plain("layer_norm")(t, shape, weight, bias, eps), input)


@entry()
def embedding(input, weight, *args, **kwargs):
    return _each(lambda t: _plain("embedding")(t, weight, *args, **kwargs), input)


@entry()
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
    """Each example's queries look at its own keys."""
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: Nested tensors for query / key / value take no attn_mask")
    attend = functools.partial(
        _plain("scaled_dot_product_attention"), dropout_p=dropout_p, is_causal=is_causal, **options
    )
    return _each(lambda q, k, v: attend(q[None], k[None], v[None])[0], query, key, value)
