"""A batch in parts, and parts as a batch."""

from __future__ import annotations

from typing import Any

from ...ops.public import PUBLIC
from ...tensor import Tensor

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Along which dimension an argument is cut."""

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"


def split_args_kwargs_into_chunks(
    args: tuple, kwargs: dict | None, chunks: int, args_chunk_spec=None, kwargs_chunk_spec=None
) -> tuple[list[tuple], list[dict]]:
    """The arguments of each part: tensors are cut along dimension 0, or as is said; all else is everybody's."""
    kwargs = kwargs or {}
    specs = args_chunk_spec or (None,) * len(args)
    cut_args = [_cut(value, spec, chunks) for value, spec in zip(args, specs, strict=True)]
    cut_kwargs = {name: _cut(value, (kwargs_chunk_spec or {}).get(name), chunks) for name, value in kwargs.items()}
    return (
        [tuple(values[i] for values in cut_args) for i in range(chunks)],
        [{name: values[i] for name, values in cut_kwargs.items()} for i in range(chunks)],
    )


def merge_chunks(chunks: list) -> Any:
    """What the parts gave, joined along dimension 0."""
    from ...utils._pytree import tree_flatten, tree_unflatten

    flat = [tree_flatten(chunk) for chunk in chunks]
    joined = [
        PUBLIC["cat"](list(values)) if isinstance(values[0], Tensor) else values[0]
        for values in zip(*[leaves for leaves, _ in flat])
    ]
    return tree_unflatten(joined, flat[0][1])


def _cut(value, spec, chunks: int) -> list:
    from ...utils._pytree import tree_flatten, tree_unflatten

    leaves, shape = tree_flatten(value)
    dim = 0 if spec is None else spec.split_dim
    cut = [_cut_tensor(leaf, dim, chunks) if isinstance(leaf, Tensor) else [leaf] * chunks for leaf in leaves]
    return [tree_unflatten([part[i] for part in cut], shape) for i in range(chunks)]


def _cut_tensor(tensor: Tensor, dim: int, chunks: int) -> list:
    if tensor.shape[dim] < chunks:
        raise AssertionError(f"Tensor size {tensor.shape[dim]} is smaller than num_chunks")
    return list(PUBLIC["tensor_split"](tensor, chunks, dim))
