"""``torch.masked``: reductions and normalizations of the elements that a mask says yes to, and tensors with a mask.

Each puts what leaves its result unchanged in the place of the others (0 into a sum, 1 into a product) and calls the
function of that name. A mask may be smaller than the input where it broadcasts to it; without one all elements count.

    >>> x = rushlight.tensor([1.0, 2.0, 3.0])
    >>> rushlight.masked.mean(x, mask=rushlight.tensor([True, False, True]))
    tensor(2.)
"""

from __future__ import annotations

import math

from .. import dtypes
from ..compat import missing as _missing
from ..ops.public import PUBLIC
from ..tensor import Tensor
from .maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip


def __dir__():
    return __all__


def sum(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The sum; 0 where there is nothing."""
    return _sum(_filled(input, mask, 0), dim, keepdim, _whole(input, dtype))


def prod(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The product; 1 where there is nothing."""
    result = _filled(input, mask, 1)
    if dtype is None and not input.dtype.is_floating_point:
        dtype = _whole(input, dtype)
    for d in sorted(_dims(input, dim), reverse=True):
        result = result.prod(d, keepdim=bool(keepdim), dtype=dtype)
    return result if dtype is None else result.to(dtype)


def mean(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The mean; nan where there is nothing."""
    dtype = input.dtype if dtype is None else dtype
    _check_float("mean", dtype)
    total = _sum(_filled(input, mask, 0), dim, keepdim, dtype)
    return total / _count(input, dim, keepdim, mask)


def amax(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The largest; the smallest number of the dtype where there is nothing."""
    input = _as(input, dtype)
    return _filled(input, mask, _lowest, "amax").amax(_dims(input, dim), bool(keepdim))


def amin(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The smallest; the largest number of the dtype where there is nothing."""
    input = _as(input, dtype)
    return _filled(input, mask, _highest, "amin").amin(_dims(input, dim), bool(keepdim))


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """Where the largest is, in the dtype of the input."""
    input = _as(input, dtype)
    return _filled(input, mask, _lowest, "argmax").argmax(dim, bool(keepdim)).to(input.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """Where the smallest is, in the dtype of the input."""
    input = _as(input, dtype)
    return _filled(input, mask, _highest, "argmin").argmin(dim, bool(keepdim)).to(input.dtype)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The middle one, of an even number the lower; nan where there is nothing."""
    input = _as(input, dtype)
    dim, keepdim = _one_dim(input, dim), bool(keepdim)
    if input.is_floating_point():
        return _filled(input, mask, math.nan).nanmedian(dim, keepdim).values
    found = _filled(input.to(dtypes.float64), mask, math.nan).nanmedian(dim, keepdim).values
    if found.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(input.dtype)


def logsumexp(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where there is nothing."""
    dtype = dtype or input.dtype
    wide = dtype if dtype.is_floating_point or dtype.is_complex else dtypes.get_default_dtype()
    return _filled(input.to(wide), mask, -math.inf).logsumexp(_dims(input, dim), keepdim).to(dtype)


def logaddexp(input: Tensor, other: Tensor, *, dtype=None, input_mask=None, other_mask=None) -> Tensor:
    """The logarithm of the sum of two exponentials, in the dtype of the first; what is masked counts as 0."""
    input, other = _as(input, dtype), _as(other, dtype)
    both = (_filled(t, mask, _lowest, "logaddexp") for t, mask in ((input, input_mask), (other, other_mask)))
    return PUBLIC["logaddexp"](*both).to(input.dtype)


def norm(input: Tensor, ord: float = 2.0, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """``linalg.vector_norm``; 0 where there is nothing, inf for the least."""
    from ..linalg import vector_norm

    neutral = math.inf if ord == -math.inf else 0
    return vector_norm(_filled(input, mask, neutral), ord, _dims(input, dim), bool(keepdim), dtype=dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask=None) -> Tensor:
    """Divided by the norm along ``dim``, or by ``eps`` where that is larger; 0 where masked."""
    input = _as(input, dtype)
    length = norm(input, ord, dim, keepdim=True, mask=mask)
    return _filled(input, mask, 0) / length.clamp(min=eps)


def var(
    input: Tensor, dim=None, unbiased=None, *, correction=None, keepdim: bool = False, dtype=None, mask=None
) -> Tensor:
    """The mean squared distance from the mean; nan where there is nothing."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    less = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    less = int(less) if isinstance(less, bool) else less
    if input.dtype is dtypes.bool_ and dtype is None:
        PUBLIC["sub"](input, input)  # has the error
    dtype = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else dtypes.get_default_dtype())
    input = input.to(dtype)
    middle = mean(input, dim, keepdim=True, mask=mask)
    distance = _filled(input - middle, mask, 0)
    squares = distance * distance.conj()
    count = _count(input, dim, keepdim, mask)
    return _sum(squares, dim, keepdim, squares.dtype) / (count - less).clamp(min=0)


def std(
    input: Tensor, dim=None, unbiased=None, *, correction=None, keepdim: bool = False, dtype=None, mask=None
) -> Tensor:
    """The square root of ``var``."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Exponentials that add up to 1; 0 where masked, nan where there is nothing."""
    return _filled(_as(input, dtype), mask, _lowest, "softmax").softmax(_one_dim(input, dim))


def log_softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """The logarithm of ``softmax``."""
    return _filled(_as(input, dtype), mask, _lowest, "log_softmax").log_softmax(_one_dim(input, dim))


def softmin(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """``softmax`` of the negative."""
    return (-_filled(_as(input, dtype), mask, _highest, "softmin")).softmax(_one_dim(input, dim))


def cumsum(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Sums of all up to each; what is masked counts as 0."""
    return _filled(input, mask, 0).cumsum(_one_dim(input, dim), dtype=_running("cumsum", input, dtype))


def cumprod(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Products of all up to each; what is masked counts as 1."""
    return _filled(input, mask, 1).cumprod(_one_dim(input, dim), dtype=_running("cumprod", input, dtype))


# -- helpers ---------------------------------------------------------------------------------------------------------


def _filled(input: Tensor, mask, value, name: str = "") -> Tensor:
    """The input with ``value`` where the mask says no: a number, or a function of the input and ``name``."""
    if mask is None:
        return input
    value = value(input, name) if callable(value) else value
    return PUBLIC["where"](
        _input_mask(input, mask=mask), input, PUBLIC["full"]((), value, dtype=input.dtype, device=input.device)
    )


def _output_mask(op, input: Tensor, *args, **kwargs) -> Tensor:
    """Which elements of ``op``'s result some element of the input stands behind; PyTorch's tests ask for it."""
    name = op.__name__
    if name == "logaddexp":
        masks = kwargs.get("input_mask"), kwargs.get("other_mask")
        return PUBLIC["logical_or"](*(_input_mask(input, mask=one) for one in masks))
    mask = _input_mask(input, mask=kwargs.get("mask"))
    if name in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return mask
    rest = args[1:] if name == "norm" else args
    dim = rest[0] if rest else kwargs.get("dim", -1 if name == "median" else None)
    return _sum(mask, dim, kwargs.get("keepdim"), dtypes.int64) > 0


def _input_mask(input: Tensor, *args, mask=None, **kwargs) -> Tensor:
    """A mask as large as the input; without one all elements count."""
    if mask is None:
        return PUBLIC["ones"](input.shape, dtype=dtypes.bool_, device=input.device)
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.to(dtypes.bool_).expand(input.shape)


def _count(input: Tensor, dim, keepdim, mask) -> Tensor:
    return _sum(_input_mask(input, mask=mask), dim, keepdim, dtypes.int64)


def _sum(input: Tensor, dim, keepdim, dtype) -> Tensor:
    dims = _dims(input, dim)
    return input.sum(dims, keepdim=bool(keepdim), dtype=dtype) if dims else input.to(dtype)


def _one_dim(input: Tensor, dim) -> int:
    """The dimension of what goes along one; of several the first, as in PyTorch."""
    return min(_dims(input, dim), default=dim)


def _dims(input: Tensor, dim) -> tuple[int, ...]:
    """The dimensions of a reduction; all for None and ()."""
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    limit = max(input.ndim, 1)
    found: list[int] = []
    for d in dims:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -limit <= d < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})"
            )
        found.append(d % limit)
    return tuple(found) if input.ndim else ()


def _as(input: Tensor, dtype) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _whole(input: Tensor, dtype):
    """The dtype of sums and products: of whole numbers int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else dtypes.int64


def _running(name: str, input: Tensor, dtype):
    """The dtype of running sums and products: that of the input."""
    if dtype is None and input.dtype is dtypes.bool_:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    return dtype or input.dtype


def _check_float(name: str, dtype) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"{name}(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )


def _lowest(input: Tensor, name: str):
    if input.dtype is dtypes.bool_ or input.is_complex():
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    return -math.inf if input.is_floating_point() else dtypes.iinfo(input.dtype).min


def _highest(input: Tensor, name: str):
    if input.dtype is dtypes.bool_ or input.is_complex():
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    return math.inf if input.is_floating_point() else dtypes.iinfo(input.dtype).max


__getattr__ = _missing(__name__)
