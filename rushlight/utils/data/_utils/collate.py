"""How samples become a batch."""

from __future__ import annotations

import collections.abc
import copy
import re

import numpy as np

from .... import dtypes
from ....ops.creation import as_tensor, tensor
from ....ops.join import stack
from ....tensor import Tensor, wrap

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # the dtypes of arrays that no tensor can hold
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_collate(batch):
    """Samples as one batch: tensors stacked, numbers as tensors, and so inside lists, tuples and dicts.

    >>> rushlight.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map=None):
    """``default_collate`` with other functions for some types: ``collate_fn_map`` has a function for each."""
    first = batch[0]
    function = _function_for(type(first), collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        parts = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _like(first, parts)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def default_convert(data):
    """NumPy arrays inside ``data`` as tensors; what is not an array, a number of NumPy or a container stays.

    >>> rushlight.utils.data.default_convert([0, numpy.array([1, 2])])
    [0, tensor([1, 2])]
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(value) for value in data])
    return data


def collate_tensor_fn(batch, *, collate_fn_map=None):
    arrays = _plain_arrays(batch)
    if arrays is None:
        return stack(batch, 0)
    made = np.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
    for i, array in enumerate(arrays):
        made[i] = array
    return wrap(made)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if batch[0].dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map: dict = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _plain_arrays(batch) -> list[np.ndarray] | None:
    """The arrays of tensors of one shape and dtype outside the graph, which need no op to be stacked."""
    shape, dtype = batch[0]._array.shape, batch[0]._array.dtype
    for t in batch:
        if type(t) is not Tensor or t.requires_grad:
            return None
        array = t._array
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            return None
    return [t._array for t in batch]


def _function_for(kind: type, functions):
    if kind in functions:
        return functions[kind]
    return next((function for kinds, function in functions.items() if issubclass(kind, kinds)), None)


def _like(container, parts):
    """``parts`` in a container of the same kind: a copy with new contents, so that what else it carries is kept."""
    kind = type(container)
    if kind is dict or kind is list:
        return parts
    try:
        if not isinstance(container, collections.abc.MutableMapping | collections.abc.MutableSequence):
            return kind(parts)
        made = copy.copy(container)
        for key, value in parts.items() if isinstance(parts, dict) else enumerate(parts):
            made[key] = value
        return made
    except TypeError:  # its constructor or item assignment wants something else
        return parts
