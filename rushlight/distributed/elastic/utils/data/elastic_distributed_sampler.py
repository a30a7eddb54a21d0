"""``ElasticDistributedSampler``: the rest of an epoch, shared out anew."""

from __future__ import annotations

import math

from .....ops.public import PUBLIC
from .....random import Generator
from .....utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """``DistributedSampler`` of what an epoch has from ``start_index`` on, for processes that begin in its middle."""

    def __init__(self, dataset, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0):
        super().__init__(dataset, num_replicas, rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        order = PUBLIC["randperm"](len(self.dataset) - self.start_index, generator=Generator().manual_seed(self.epoch))
        places = [self.start_index + place for place in order.tolist()]
        padded = (places * self.num_replicas)[: self.total_size]
        return iter(padded[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
