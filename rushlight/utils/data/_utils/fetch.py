"""How the samples of one batch are fetched: by index, or as the next ones of a stream."""

from __future__ import annotations

import itertools

from ..dataset import gather
from .collate import default_collate

__all__ = ["IterableFetcher", "MapFetcher"]


class MapFetcher:
    """``fetch(indices)`` from a dataset with ``__getitem__``."""

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn
        self.whole = auto_collation and collate_fn is default_collate and hasattr(dataset, "_gather")

    def fetch(self, indices):
        if self.whole:
            batch = gather(self.dataset, indices)
            if batch is not None:
                return batch
        if not self.auto_collation:
            samples = self.dataset[indices]
        elif getattr(self.dataset, "__getitems__", None):
            samples = self.dataset.__getitems__(indices)
        else:
            samples = [self.dataset[i] for i in indices]
        return self.collate_fn(samples)


class IterableFetcher:
    """``fetch(indices)`` from a dataset with ``__iter__``: only the number of indices counts."""

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool) -> None:
        self.stream, self.ended = iter(dataset), False
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last

    def fetch(self, indices):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.stream))
        samples = list(itertools.islice(self.stream, len(indices)))
        self.ended = len(samples) < len(indices)
        if not samples or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(samples)
