"""Datasets: what can be indexed, what can only be iterated, and ways to combine and split them.

Besides PyTorch's ``__getitem__`` and ``__getitems__``, a dataset whose samples lie in tensors may have
``_gather(indices)``: the collated batch by one indexing operation, or None where it cannot say. ``DataLoader`` uses it
with the default ``collate_fn``; the batch must equal the collated samples.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import warn_user
from ...ops.random import randperm
from ...random import Generator, default_generator
from ...tensor import Tensor, wrap

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Samples by index: subclasses write ``__getitem__``, and usually ``__len__``.

    >>> class Squares(rushlight.utils.data.Dataset):
    ...     def __len__(self): return 3
    ...     def __getitem__(self, i): return i * i
    >>> (Squares() + Squares())[4]
    1
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples as a stream: subclasses write ``__iter__``. Each worker of a DataLoader iterates its own copy."""

    def __add__(self, other: Dataset[T_co]):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length; a sample is a tuple of their rows.

    >>> rushlight.utils.data.TensorDataset(rushlight.arange(3), rushlight.ones(3))[2]
    (tensor(2), tensor(1.))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _gather(self, indices: Sequence[int]):
        rows = row_indices(indices)
        return None if rows is None else rows_of(self.tensors, rows)


class StackDataset(Dataset):
    """Datasets side by side: a sample is the tuple (or, for keywords, the dict) of theirs.

    >>> rushlight.utils.data.StackDataset(a=[1, 2], b=[3, 4])[1]
    {'a': 2, 'b': 4}
    """

    datasets: tuple | dict

    def __init__(self, *args, **kwargs) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        self._length = len(self._parts()[0])
        if any(len(part) != self._length for part in self._parts()):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index):
        return self._packed([part[index] for part in self._parts()])

    def __getitems__(self, indices: list):
        columns = [_samples(part, indices) for part in self._parts()]
        return [self._packed(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length

    def _gather(self, indices):
        columns = [gather(part, indices) for part in self._parts()]
        if any(column is None for column in columns):
            return None
        return dict(zip(self.datasets, columns)) if isinstance(self.datasets, dict) else columns

    def _parts(self) -> list:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _packed(self, values):
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.

    >>> rushlight.utils.data.ConcatDataset([[1, 2], [3]])[-1]
    3
    """

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence) -> list[int]:
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    @property
    def cummulative_sizes(self):
        warn_user("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for part in self._streams():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._streams())

    def _streams(self) -> Iterator:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part


class Subset(Dataset[T_co]):
    """The samples of a dataset at the given indices.

    >>> list(rushlight.utils.data.Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)

    def _gather(self, indices):
        if not hasattr(self.dataset, "_gather"):
            return None
        return gather(self.dataset, [self.indices[i] for i in indices])


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[T]]:
    """Subsets of the given lengths (or fractions that sum to 1), drawn without overlap.

    >>> [len(part) for part in rushlight.utils.data.random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(len(dataset), lengths)  # type: ignore[arg-type]
    if sum(lengths) != len(dataset):  # type: ignore[arg-type]
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(int(sum(lengths)), generator=generator, device="cpu").tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def _lengths_of_fractions(total: int, fractions) -> list[int]:
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(total * fraction))
    for i in range(total - sum(lengths)):  # what rounding left over, one each from the front
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warn_user(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return lengths


# -- whole batches ---------------------------------------------------------------------------------------------------


def gather(dataset, indices):
    """The collated batch of samples, if the dataset can make it in one go and no subclass changed its samples."""
    method = getattr(type(dataset), "_gather", None)
    if method is None or not _is_own(type(dataset), "__getitem__", "_gather"):
        return None
    return dataset._gather(indices)


def row_indices(indices: Sequence[int]) -> np.ndarray | None:
    """Indices as an array to index rows by; None for anything but plain numbers."""
    rows = np.asarray(indices)
    return rows if rows.ndim == 1 and rows.dtype.kind in "iu" and rows.size else None


def rows_of(tensors: Sequence[Tensor], rows: np.ndarray) -> list[Tensor] | None:
    """Those rows of each tensor; None where stacking single rows would do something else (the graph, an error)."""
    if any(type(t) is not Tensor or t.requires_grad for t in tensors):
        return None
    try:
        return [_rows_of(t, rows) for t in tensors]
    except IndexError:  # the sample's own error says it better
        return None


def _rows_of(t: Tensor, rows: np.ndarray) -> Tensor:
    t._sync()
    array = t._array
    if not isinstance(array, np.ndarray):
        return t[wrap(rows)]
    if array.flags.c_contiguous:
        return wrap(array.take(rows, axis=0))
    return wrap(np.ascontiguousarray(array[rows]))  # take() would copy all of it first


def _is_own(kind: type, method: str, partner: str) -> bool:
    """Do both methods come from the same class? A subclass that overrides only ``method`` has other samples."""
    for base in kind.__mro__:
        if method in base.__dict__ or partner in base.__dict__:
            return method in base.__dict__ and partner in base.__dict__
    return False


def _samples(dataset, indices: list) -> list:
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[i] for i in indices]
    samples = many(indices)
    if len(samples) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}")
    return samples
