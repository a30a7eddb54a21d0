"""The sampler that gives each process of a group its own part of a dataset."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sized

from ...ops.random import randperm
from ...random import Generator
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index, starting at ``rank``; call ``set_epoch`` before each epoch to shuffle anew.

    >>> list(rushlight.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            group = _process_group()
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed, self.drop_last = 0, shuffle, seed, drop_last
        total = len(dataset)
        self.num_samples = total // num_replicas if drop_last else math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:  # the same order in all processes
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(n, generator=generator, device="cpu").tolist()
        if not self.drop_last and order:  # the first ones again, until all have equally many
            order = order * math.ceil(self.total_size / n)
        order = order[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Have the next iteration shuffle by ``seed + epoch``."""
        self.epoch = epoch


def _process_group():
    try:
        distributed = importlib.import_module("rushlight.distributed")
    except ImportError:
        distributed = None
    if distributed is None or not distributed.is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return distributed
