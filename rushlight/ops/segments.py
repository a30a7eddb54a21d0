"""Reductions that are rarer: over segments of unequal length, by bits, and norms under their old names."""

from __future__ import annotations

import numpy as np

from ..tensor import Tensor, wrap
from .common import check_tensor, complex_dtype, known_values, refuse
from .dims import wrap_dims
from .public import PUBLIC, public

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
_AS_INDEX_REDUCE = {"prod": "prod", "max": "amax", "min": "amin"}


@public(method=False, out=False)
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Segments along ``axis`` reduced to one element each, by "sum", "mean", "max", "min" or "prod".

    >>> rushlight.segment_reduce(rushlight.arange(5.0), "sum", lengths=rushlight.tensor([2, 3]))
    tensor([1., 9.])
    """
    check_tensor("segment_reduce", data, "data")
    if reduce not in _NEUTRAL:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    lengths = offsets.diff(dim=-1) if lengths is None else lengths
    if axis != lengths.ndim - 1 or data.ndim <= axis:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of lengths.")
    _check_lengths(data, lengths, axis, unsafe)
    rows = data.reshape(-1, *data.shape[axis + 1 :])
    flat = lengths.reshape(-1)
    segment = PUBLIC["repeat_interleave"](PUBLIC["arange"](len(flat), device=data.device), flat)
    start = _NEUTRAL[reduce] if initial is None else initial
    result = data.new_full((len(flat), *rows.shape[1:]), start)
    if reduce in _AS_INDEX_REDUCE:
        result = result.index_reduce(0, segment, rows, _AS_INDEX_REDUCE[reduce])
    else:
        result = result.index_add(0, segment, rows)
    if reduce == "mean":
        count = flat.reshape(-1, *[1] * (rows.ndim - 1))
        mean = result / count
        result = mean if initial is None else PUBLIC["where"](count == 0, result, mean)
    return result.reshape(*lengths.shape, *rows.shape[1:])


def _check_lengths(data, lengths, axis, unsafe) -> None:
    values = known_values(lengths)
    if unsafe or values is None:
        return
    if (values < 0).any():
        raise RuntimeError("lengths contains negative value!")
    if (values.sum(-1) != data.shape[axis]).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )


@public
def hash_tensor(input, dim=(), *, keepdim=False, mode=0):
    """The exclusive or of the bits of all elements, or along ``dim``, each taken as a float64 or an int64."""
    check_tensor("hash_tensor", input)
    refuse("xor_sum_cpu", complex_dtype, input)
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not input.numel() and not dims:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    values = known_values(input)
    wide = values.astype(np.int64 if values.dtype.kind in "biu" else np.float64)
    axes = tuple(wrap_dims(dims, input.ndim)) if dims else None
    return wrap(np.asarray(np.bitwise_xor.reduce(wide.view(np.uint64), axis=axes, keepdims=keepdim)))


@public(method=False)
def frobenius_norm(input, dim, keepdim=False):
    """The root of the sum of squares over ``dim``; over everything if that is empty."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return PUBLIC["norm"](input, "fro", dims or None, keepdim)


@public(method=False)
def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values of a matrix, or of the matrices that two dimensions make."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return PUBLIC["norm"](input, "nuc", (-2, -1) if dim is None else dim, keepdim)


@public(method=False, out=False)
def norm_except_dim(v, pow=2, dim=0):
    """The norm over all dimensions but one; that one stays in its place."""
    if dim == -1:
        return PUBLIC["norm"](v, pow)
    others = [d for d in range(v.ndim) if d != dim]
    return PUBLIC["norm"](v, pow, others, True) if others else v.abs()


@public(out=False)
def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """The memory of a slice seen as what it was cut from: ``src`` says shape and strides."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


def _map2_(self, x, y, callable):
    """Replace each element by ``callable(element, element of x, element of y)``: slow, for the CPU only."""
    pairs = PUBLIC["broadcast_to"](x, self.shape), PUBLIC["broadcast_to"](y, self.shape)
    values = [callable(*three) for three in zip(*(t.reshape(-1).tolist() for t in (self, *pairs)))]
    return self.copy_(PUBLIC["tensor"](values, dtype=self.dtype).reshape(self.shape))


_map2_.__name__ = _map2_.__qualname__ = "map2_"
Tensor.map2_ = _map2_  # type: ignore[attr-defined]
