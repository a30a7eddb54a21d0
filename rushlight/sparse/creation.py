"""Sparse tensors from places and values."""

from __future__ import annotations

import numpy as np

from ..autograd.op import differentiable, variant
from ..layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..ops.common import known_values
from ..ops.public import PUBLIC
from ..tensor import Size, Tensor
from .tensor import SparseTensor

_MADE = variant(differentiable.alias, "SparseCooTensorWithDimsAndTensorsBackward0")
_MADE_COMPRESSED = variant(differentiable.alias, "SparseCompressedTensorBackward0")
__all__ = ["sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor"]


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A tensor that is ``values[k]`` at ``indices[:, k]`` and zero elsewhere.

    >>> rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        shape = size if indices is None else indices
        return _empty(shape, dtype, device, requires_grad)
    indices, values = _tensor(indices, device), _tensor(values, device, dtype)
    indices = indices.long() if indices.numel() else indices.to(PUBLIC["zeros"](0).long().dtype)
    if values.ndim == 0:
        values = values.expand(indices.shape[1] if indices.ndim == 2 else 1)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    size = _size(indices, values, size)
    values = _MADE(values) if values.requires_grad else values.detach()
    made = SparseTensor(sparse_coo, (indices,), values, size, bool(is_coalesced) or values.shape[0] < 2)
    return _leaf(made, requires_grad)


def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **_
):
    """A matrix by rows: row i has the elements crow_indices[i] … crow_indices[i + 1].

    >>> rushlight.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0]).to_dense()
    tensor([[1., 0., 2.],
            [0., 3., 0.]])
    """
    return _compressed(sparse_csr, crow_indices, col_indices, values, size, dtype, device, requires_grad)


def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **_
):
    """A matrix by columns."""
    return _compressed(sparse_csc, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, requires_grad=False,
    **_,
):  # fmt: skip
    """A matrix by rows or columns, as ``layout`` says."""
    if layout is sparse_bsr or layout is sparse_bsc:
        refuse_blocks()
    if layout is not sparse_csr and layout is not sparse_csc:
        raise RuntimeError(f"sparse_compressed_tensor: layout must be torch.sparse_csr or sparse_csc, got {layout}")
    return _compressed(layout, compressed_indices, plain_indices, values, size, dtype, device, requires_grad)


def refuse_blocks(*_, **__):
    """Block layouts are not here."""
    raise NotImplementedError("block layouts (sparse_bsr, sparse_bsc) are not built here; use sparse_csr_tensor")


def _compressed(form, starts, others, values, size, dtype, device, requires_grad):
    starts, others, values = _tensor(starts, device), _tensor(others, device), _tensor(values, device, dtype)
    if starts.ndim != 1 or others.ndim != 1:
        raise NotImplementedError(f"{form.name}: batches of matrices are not built here; use sparse_coo_tensor")
    known = known_values(others)
    lines = starts.shape[0] - 1
    if size is None:
        other = int(known.max()) + 1 if known is not None and known.size else 0
        size = (lines, other) if form is sparse_csr else (other, lines)
    _check_compressed(form, starts, others, values, size, known)
    values = _MADE_COMPRESSED(values) if values.requires_grad else values.detach()
    return _leaf(SparseTensor(form, (starts, others), values, size), requires_grad)


def _check_compressed(form, starts, others, values, size, known) -> None:
    names = ("crow_indices", "col_indices") if form is sparse_csr else ("ccol_indices", "row_indices")
    lines, width = (size[0], size[1]) if form is sparse_csr else (size[1], size[0])
    if starts.shape[0] != lines + 1:
        raise RuntimeError(f"{names[0]} must have {lines + 1} elements for a size of {tuple(size)}, got {len(starts)}")
    if others.shape[0] != values.shape[0]:
        raise RuntimeError(f"{names[1]} has {others.shape[0]} elements, but values has {values.shape[0]}")
    if known is not None and known.size and not (known.min() >= 0 and known.max() < width):
        raise RuntimeError(f"`0 <= {names[1]} < {width}` is not satisfied.")
    at = known_values(starts)
    if at is not None and (at[0] != 0 or at[-1] != values.shape[0] or (np.diff(at) < 0).any()):
        raise RuntimeError(f"{names[0]} must rise from 0 to the number of values, {values.shape[0]}")


def _tensor(value, device, dtype=None) -> Tensor:
    if isinstance(value, Tensor):
        return value if device is None and dtype is None else value.to(device=device, dtype=dtype)
    return PUBLIC["tensor"](value, dtype=dtype, device=device)


def _size(indices, values, size) -> Size:
    known = known_values(indices)
    dense = tuple(values.shape[1:])
    if known is not None and known.size and known.min() < 0:
        d, k = np.argwhere(known < 0)[0]
        raise RuntimeError(f"found negative index {known[d, k]} for dim {d}")
    if size is None:
        if known is None:
            raise RuntimeError("sparse_coo_tensor: size is needed where the indices are not known yet")
        return Size((*((known.max(axis=1) + 1).tolist() if known.size else (0,) * len(known)), *dense))
    size = Size(size)
    if len(size) != indices.shape[0] + len(dense):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({indices.shape[0]}) + dense_dim ({len(dense)}), but got "
            f"{len(size)}"
        )
    if known is not None and known.size:
        for d in range(len(known)):
            if known[d].max() >= size[d]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index "
                    f"{known[d].max()}"
                )
    return size


def _empty(size, dtype, device, requires_grad) -> SparseTensor:
    if size is None:
        raise TypeError("sparse_coo_tensor() needs indices and values, or a size")
    size = Size(size)
    index = PUBLIC["zeros"]((len(size), 0), device=device).long()
    values = PUBLIC["zeros"](0, dtype=dtype, device=device)
    return _leaf(SparseTensor(sparse_coo, (index,), values, size), requires_grad)


def _leaf(made: SparseTensor, requires_grad: bool) -> SparseTensor:
    return made.requires_grad_() if requires_grad else made
