"""Lookups in tables: embedding, embedding bags, one-hot vectors."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ...autograd.mode import is_grad_enabled, no_grad
from ...autograd.op import differentiable as xp
from ...errors import warn_user
from ...ops.common import are_below, check_tensor, known_values, refuse_complex_gradient
from ...ops.public import PUBLIC
from ...tensor import Tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` that ``input`` names.

    ``padding_idx``: a row that gets no gradient. ``max_norm``: rows that are longer are first, in place, scaled down.
    ``scale_grad_by_freq``: gradients are divided by how often their row was read.

    >>> F.embedding(rushlight.tensor([2, 0]), rushlight.tensor([[1.0], [2.0], [3.0]]))
    tensor([[3.],
            [1.]])
    """
    check_tensor("embedding", input, "indices", 2)
    shape = weight._array.shape
    if padding_idx is not None:
        assert -shape[0] <= padding_idx < shape[0], "Padding_idx must be within num_embeddings"
        padding_idx %= shape[0]
    if not shape and weight.requires_grad and is_grad_enabled():
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if len(shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices("embedding", input)
    if not shape[0] and input.numel():
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    values = known_values(input, lambda i: (i >= 0) & (i < shape[0]))
    if values is not None and not are_below(values, shape[0]):
        raise IndexError("index out of range in self")
    refuse_complex_gradient("embedding", weight)
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    if sparse:
        return _by_rows("embedding", weight, input, padding_idx, scale_grad_by_freq)
    return xp.embedding(weight, input, padding_idx=padding_idx, by_freq=scale_grad_by_freq)


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or maximum of the rows in each bag, without the table of all rows.

    A bag is a row of a 2-D ``input``, or what lies between two ``offsets`` of a 1-D one.
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn_user(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if isinstance(offsets, Tensor) and offsets.dtype is not input.dtype:
        common = dtypes.promote_types(input.dtype, offsets.dtype)
        input, offsets = input.to(common), offsets.to(common)
    _check_bag_arguments(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights, padding_idx)
    index, bag, bags = _bags(input, offsets, include_last_offset)
    if not bags:
        return weight.narrow(0, 0, 0).clone()
    if max_norm is not None:
        _shorten_rows(weight, index, max_norm, norm_type)
    counts = None
    if padding_idx is not None:
        counts = index != padding_idx % weight.shape[0]
    if mode == "max":
        if counts is not None:
            bag = PUBLIC["where"](counts, bag, bags)
        return xp.bag_max(weight, index, bag, bags=bags)
    size = input.shape[1] if input.ndim == 2 and counts is None else None
    scale = _bag_scale(weight, index, bag, bags, size, counts, mode, per_sample_weights)
    if sparse:
        rows = _by_rows("embedding_bag", weight, index, padding_idx, scale_grad_by_freq)
        return xp.sum_rows(rows * scale.unsqueeze(1), bag, size=bags)
    return xp.bag_sum(weight, index, bag, scale, bags=bags, by_freq=scale_grad_by_freq)


def _bag_scale(weight, index, bag, bags, size, counts, mode, per_sample_weights):
    """What each row is multiplied by before it is added to its bag; ``size`` is that of all bags, if it is known."""
    kept = PUBLIC["ones"](index.shape, dtype=weight.dtype, device=weight.device)
    if counts is not None:
        kept = kept * counts
    if mode == "mean":
        return kept / (size or xp.sum_rows(kept, bag, size=bags).clamp(min=1)[bag])
    return kept if per_sample_weights is None else kept * per_sample_weights.reshape(-1)


def _bags(input, offsets, include_last_offset):
    """(indices in a row, the bag of each, how many bags)."""
    arange = PUBLIC["arange"]
    if input.ndim == 2:
        bags, size = input.shape
        bag = arange(bags, device=input.device).unsqueeze(1).expand(bags, size).reshape(-1)
        return input.reshape(-1), bag, bags
    if include_last_offset:
        if not len(offsets):
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        offsets = offsets[:-1]
    # Position i is in the last bag that begins at or before i.
    places = arange(input.shape[0], device=input.device)
    bag = PUBLIC["searchsorted"](offsets.long(), places, right=True) - 1
    return input, bag, offsets.shape[0]


def _check_bag_arguments(input, weight, offsets, mode, by_freq, sparse, per_sample_weights, padding_idx):
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        if not input.shape[1]:
            raise RuntimeError("step must be nonzero")
    elif input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    _check_indices("embedding_bag", input)
    _check_bag_values(input, weight, offsets, per_sample_weights, padding_idx)


def _check_bag_values(input, weight, offsets, per_sample_weights, padding_idx):
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type torch.{weight.dtype.char} does not equal "
            f"torch.{per_sample_weights.dtype.char} (while checking arguments for embedding_bag)"
        )
    values = known_values(input, lambda i: (i >= 0) & (i < rows))
    if values is not None and not are_below(values, rows):
        wrong = np.flatnonzero((values < 0) | (values >= rows))
        raise RuntimeError(
            f"Index {wrong[0]} of input takes value {values.flat[wrong[0]]} which is not in the valid range [0, {rows})"
        )
    in_order = lambda start: (start[:1] == 0).all() & (start[-1:] <= input.shape[0]).all()
    starts = None if offsets is None else known_values(offsets, in_order)
    if starts is not None and starts.size:
        if starts[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {starts[0]}"
            )
        if starts[-1] > input.shape[0]:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {input.shape[0]} but got "
                f"offsets[-1] of {starts[-1]}"
            )


def one_hot(tensor, num_classes=-1):
    """For each class index a row with a single 1.

    >>> F.one_hot(rushlight.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check_tensor("one_hot", tensor)
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    values = known_values(tensor, lambda i: (i >= 0) & (i < num_classes))
    if num_classes == -1:
        if not tensor.numel():
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(tensor.max()) + 1
    if values is not None and not are_below(values, num_classes):
        if values.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        raise RuntimeError("Class values must be smaller than num_classes.")
    return xp.one_hot(tensor, classes=num_classes)


# -- arguments ---------------------------------------------------------------------------------------------------------


def _shorten_rows(weight, input, max_norm, norm_type):
    """Scale the rows that are read to ``max_norm`` if they are longer, in place."""
    with no_grad():
        length = PUBLIC["norm"](weight, norm_type, 1, True)
        read = xp.bincount(input.reshape(-1), length=weight.shape[0]).unsqueeze(1) > 0
        factor = PUBLIC["where"]((length > max_norm) & read, max_norm / (length + 1e-7), 1.0)
        weight.copy_(weight * factor)


def _by_rows(name, weight, input, padding_idx, by_freq):
    """Rows of a table whose gradient is a sparse tensor."""
    from ... import sparse  # noqa: F401  (the tape learns what such gradients are)

    if by_freq and weight.requires_grad:
        raise RuntimeError(f"{name}_backward: scale_grad_by_freq not supported with sparse gradients")
    return xp.embedding_by_rows(weight, input, padding_idx=padding_idx)


def _check_indices(name, input):
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{input.dtype.char} instead (while checking arguments for {name})"
        )


def _embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` that ``indices`` name."""
    known = padding_idx if padding_idx >= 0 else None
    return embedding(indices, weight, known, None, 2.0, scale_grad_by_freq, sparse)


PUBLIC["embedding"] = _embedding
