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
        result = result.prod(d, keepdim=keepdim, dtype=dtype)
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
    return _filled(input, mask, _lowest(input, "amax")).amax(_dims(input, dim), keepdim)


def amin(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The smallest; the largest number of the dtype where there is nothing."""
    input = _as(input, dtype)
    return _filled(input, mask, _highest(input, "amin")).amin(_dims(input, dim), keepdim)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """Where the largest is, in the dtype of the input."""
    input = _as(input, dtype)
    return _filled(input, mask, _lowest(input, "argmax")).argmax(dim, keepdim).to(input.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """Where the smallest is, in the dtype of the input."""
    input = _as(input, dtype)
    return _filled(input, mask, _highest(input, "argmin")).argmin(dim, keepdim).to(input.dtype)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The middle one, of an even number the lower; nan where there is nothing."""
    input = _as(input, dtype)
    if input.is_floating_point():
        return _filled(input, mask, math.nan).nanmedian(dim, keepdim).values
    found = _filled(input.to(dtypes.float64), mask, math.nan).nanmedian(dim, keepdim).values
    if found.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(input.dtype)


def logsumexp(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where there is nothing."""
    dtype = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else dtypes.get_default_dtype())
    return _filled(input.to(dtype), mask, -math.inf).logsumexp(_dims(input, dim), keepdim)


def logaddexp(input: Tensor, other: Tensor, *, dtype=None, input_mask=None, other_mask=None) -> Tensor:
    """The logarithm of the sum of two exponentials; what is masked counts as 0."""
    both = _filled(_as(input, dtype), input_mask, -math.inf), _filled(_as(other, dtype), other_mask, -math.inf)
    return PUBLIC["logaddexp"](*both)


def norm(input: Tensor, ord: float = 2.0, dim=None, *, keepdim: bool = False, dtype=None, mask=None) -> Tensor:
    """``linalg.vector_norm``; 0 where there is nothing, inf for the least."""
    from ..linalg import vector_norm

    neutral = math.inf if ord == -math.inf else 0
    return vector_norm(_filled(input, mask, neutral), ord, _dims(input, dim), keepdim, dtype=dtype)


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
    less = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    dtype = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else dtypes.get_default_dtype())
    input = input.to(dtype)
    middle = mean(input, dim, keepdim=True, mask=mask)
    distance = _filled(input - middle, mask, 0)
    squares = (distance * distance.conj()).real if input.is_complex() else distance * distance
    count = _count(input, dim, keepdim, mask)
    return _sum(squares, dim, keepdim, squares.dtype) / (count - less).clamp(min=0)


def std(
    input: Tensor, dim=None, unbiased=None, *, correction=None, keepdim: bool = False, dtype=None, mask=None
) -> Tensor:
    """The square root of ``var``."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Exponentials that add up to 1; 0 where masked, nan where there is nothing."""
    return _filled(_as(input, dtype), mask, -math.inf).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """The logarithm of ``softmax``."""
    return _filled(_as(input, dtype), mask, -math.inf).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """``softmax`` of the negative."""
    return (-_filled(_as(input, dtype), mask, math.inf)).softmax(dim)


def cumsum(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Sums of all up to each; what is masked counts as 0."""
    return _filled(input, mask, 0).cumsum(dim, dtype=_whole(input, dtype))


def cumprod(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Products of all up to each; what is masked counts as 1."""
    return _filled(input, mask, 1).cumprod(dim, dtype=_whole(input, dtype))


# -- helpers ---------------------------------------------------------------------------------------------------------


def _filled(input: Tensor, mask, value) -> Tensor:
    """The input with ``value`` where the mask says no."""
    if mask is None:
        return input
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
    return _sum(mask, dim, bool(kwargs.get("keepdim")), dtypes.int64) > 0


def _input_mask(input: Tensor, *args, mask=None, **kwargs) -> Tensor:
    """A mask as large as the input; without one all elements count."""
    if mask is None:
        return PUBLIC["ones"](input.shape, dtype=dtypes.bool_, device=input.device)
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.to(dtypes.bool_).expand(input.shape)


def _count(input: Tensor, dim, keepdim: bool, mask) -> Tensor:
    return _sum(_input_mask(input, mask=mask), dim, keepdim, dtypes.int64)


def _sum(input: Tensor, dim, keepdim: bool, dtype) -> Tensor:
    dims = _dims(input, dim)
    return input.sum(dims, keepdim=keepdim, dtype=dtype) if dims else input.to(dtype)


def _dims(input: Tensor, dim) -> tuple[int, ...]:
    """The dimensions of a reduction, each once; all for None and ()."""
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    limit = max(input.ndim, 1)
    for d in dims:
        if not -limit <= d < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})"
            )
    found = tuple(d % limit for d in dims)
    if len({*found}) != len(found):
        raise RuntimeError(f"dim={dim}: a dimension appears more than once")
    return found if input.ndim else ()


def _as(input: Tensor, dtype) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _whole(input: Tensor, dtype):
    """The dtype of sums and products: of whole numbers int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else dtypes.int64


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
