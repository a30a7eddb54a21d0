"""``Join``: processes with fewer batches than others keep taking part until all are through.

While a process still has inputs, each of its steps counts who else does. One that has none left follows the others'
collectives with nothing of its own (``main_hook``), until the count is zero; then all end together (``post_hook``).
"""

from __future__ import annotations

from ...errors import warn_user
from ...ops.public import PUBLIC
from .. import collectives, world

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # steps after which a process is told that it has far fewer inputs than others


def __dir__():
    return __all__


class JoinHook:
    """What a process without inputs does: ``main_hook`` at each step of others, ``post_hook`` at the end."""

    def main_hook(self) -> None:
        """Follow the collectives of one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When all are through."""


class _JoinConfig:
    """Whether a ``Joinable`` is inside a ``Join``, and how."""

    def __init__(self, enable: bool = False, throw_on_early_termination: bool = False, is_first_joinable: bool = False):
        self.enable, self.throw_on_early_termination = enable, throw_on_early_termination
        self.is_first_joinable = is_first_joinable


class Joinable:
    """Something with collectives at each step: it calls ``Join.notify_join_context(self)`` before them."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._join_config = _JoinConfig()

    def join_hook(self, **kwargs) -> JoinHook:
        raise NotImplementedError

    @property
    def join_device(self):
        raise NotImplementedError

    @property
    def join_process_group(self):
        raise NotImplementedError


class Join:
    """``with Join([model]): …`` around a loop over unevenly many batches."""

    def __init__(self, joinables, enable: bool = True, throw_on_early_termination: bool = False, **kwargs):
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)
        groups = {id(joinable.join_process_group): joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group, self._device = next(iter(groups.values())), joinables[0].join_device

    def __enter__(self) -> Join:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if not self._enable or kind is not None:
            return
        last, steps = True, 0
        while self._still_at_work():
            if self._throw:
                self._tell_to_end()
            for hook in self._hooks:
                hook.main_hook()
            last, steps = False, steps + 1
            if steps == _MANY:
                warn_user(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank "
                    f"{world.get_rank(self._group)} has at least {_MANY} fewer inputs than other currently-active "
                    "ranks. This level of skew could lead to performance degradation during training."
                )
        for hook in self._hooks:
            hook.post_hook(last)
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig()

    def _still_at_work(self) -> float:
        count = PUBLIC["zeros"](1, device=self._device)
        collectives.all_reduce(count, group=self._group)
        return count.item()

    def _tell_to_end(self) -> None:
        one = PUBLIC["ones"](1, device=self._device)
        collectives.all_reduce(one, group=self._group)
        raise RuntimeError(f"Rank {world.get_rank(self._group)} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable):
        """Count this process among those that have inputs; the ``Work`` of the count, or None outside a ``Join``."""
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = collectives.all_reduce(PUBLIC["ones"](1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = PUBLIC["zeros"](1, device=device)
            collectives.all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
