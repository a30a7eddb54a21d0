"""``CyclingIterator``: epochs, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["CyclingIterator"]


class CyclingIterator(Iterator):
    """What ``generator_fn(epoch)`` gives, for the epochs from ``start_epoch`` to ``n``.

    >>> from rushlight.distributed.elastic.utils.data import CyclingIterator
    >>> list(CyclingIterator(2, lambda epoch: iter([epoch, 7])))
    [0, 7, 1, 7]
    """

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator], start_epoch: int = 0):
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator:
        return self

    def __next__(self):
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
