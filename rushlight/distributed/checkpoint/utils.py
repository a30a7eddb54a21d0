"""What a state dict has under an index of a checkpoint."""

from __future__ import annotations

from ...compat import missing as _missing
from ...tensor import Tensor
from ..tensor.dtensor import DTensor
from .metadata import MetadataIndex

__all__ = ["find_state_dict_object", "find_tensor_shard"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """This process's part of a tensor over a mesh; an ordinary tensor itself, which begins at nothing but 0."""
    if isinstance(tensor, DTensor):
        return tensor.to_local()
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a DTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict: dict, index: MetadataIndex):
    """The object that the index names, of a tensor the part that it names."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a DTensor, can't find by offset: '{index.offset}'")
    return found
