"""Distances and similarities between vectors, and scaling vectors to length 1."""

from __future__ import annotations

from ... import dtypes
from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...ops.common import check_tensor, refuse
from ...ops.public import PUBLIC, write_out

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]

_norm = variant(xp.vector_norm, "NormBackward1")


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> F.pairwise_distance(rushlight.tensor([[3.0, 0.0]]), rushlight.tensor([[0.0, 4.0]]))
    tensor([5.])
    """
    check_tensor("pairwise_distance", x1, "x1")
    difference = x1 - x2 + eps
    if not difference.ndim:
        return _norm(difference.reshape(1), ord=p, axis=(0,), keepdims=False)
    return _norm(difference, ord=p, axis=(difference.ndim - 1,), keepdims=keepdim)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 · x2 / (|x1| |x2|) along ``dim``; lengths below ``eps`` count as ``eps``."""
    check_tensor("cosine_similarity", x1, "x1")
    check_tensor("cosine_similarity", x2, "x2", 2)
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    eps = float(eps)
    common = dtypes.promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        word = common.char.removesuffix("Tensor")
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {word}")
    x1, x2 = PUBLIC["broadcast_tensors"](x1.to(common), x2.to(common))
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x, dim, eps):
    length = PUBLIC["norm"](x, 2, dim, True)
    # The length is kept from below eps as a constant would: the gradient there is that of the length itself.
    missing = (eps - length.detach()).clamp_min(0)
    return x / (length + missing)


def cosine_similarity_rows(x1, x2):
    """The cosines that ``cosine_embedding_loss`` compares, of the last dimension."""
    epsilon = 1e-12
    product = (x1 * x2).sum(-1)
    return product / (((x1 * x1).sum(-1) + epsilon) * ((x2 * x2).sum(-1) + epsilon)).sqrt()


def pdist(input, p=2.0):
    """The p-norm distances between all pairs of rows."""
    check_tensor("pdist", input)
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if len(input) > 1:
        refuse("pdist", lambda d: d.itemsize < 4, input)
    first, second = PUBLIC["triu_indices"](len(input), len(input), 1, device=input.device)
    return xp.pdist(input, first, second, p=float(p))


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """x divided by its p-norm along ``dim``, or by ``eps`` if that is larger.

    >>> F.normalize(rushlight.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    unit = input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)
    return unit if out is None else write_out(out, unit, "div")


for _function in (cosine_similarity, pairwise_distance, pdist):
    PUBLIC[_function.__name__] = _function
