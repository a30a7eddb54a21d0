"""Means within small groups of processes often, within large ones seldom."""

from __future__ import annotations

from ....errors import warn_user
from ... import world
from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """At step k, once ``warmup_steps`` are over, the mean over the largest groups whose period divides k.

    ``period_group_size_dict``: how many processes a group has, by its period; both grow, and the last group is all.
    https://arxiv.org/abs/2010.12998
    """

    def __init__(self, period_group_size_dict=None, warmup_steps: int = 0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        sizes, everybody = list(period_group_size_dict.values()), self.process_group.size()
        if sizes[-1] != everybody:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {everybody}."
            )
        if len(sizes) == 1:
            warn_user(
                "one level is what PeriodicModelAverager has: use that, or name smaller groups with shorter periods"
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps, self.period_process_group_dict = warmup_steps, {}
        for period, size in period_group_size_dict.items():
            if size == everybody:
                self.period_process_group_dict[period] = self.process_group
            else:
                self.period_process_group_dict[period], _ = world.new_subgroups(size, group=self.process_group)

    def _find_process_group(self):
        """The group whose turn it is, or None."""
        due = [period for period in self._periods if self.step % period == 0]
        return self.period_process_group_dict[due[-1]] if due else None

    def average_parameters(self, params) -> None:
        """Count a step, and average if it is one of those."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
