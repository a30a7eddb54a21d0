"""When parameters are averaged: every so many steps."""

from __future__ import annotations

from ....errors import warn_user
from ... import world
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager:
    """Counts steps in ``step``; a subclass says in ``average_parameters`` what is done at each."""

    def __init__(self, process_group=None):
        self.process_group = world.the(process_group)
        self.step = 0

    def average_parameters(self, params) -> None:
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """The mean of all processes' parameters at every ``period``-th step, once ``warmup_steps`` are over.

    (Lin et al., "Don't use large mini-batches, use local SGD", https://arxiv.org/abs/1808.07217)
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn_user(
                "a period of 1 costs as much as DistributedDataParallel, which averages gradients: use that alone"
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params) -> None:
        """Count a step, and average if it is one of those."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
