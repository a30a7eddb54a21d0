"""``PostLocalSGDOptimizer``: steps of one's own, and now and then the mean of all processes' parameters."""

from __future__ import annotations

from ...errors import warn_user
from ...optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """``optim``, followed by ``averager.average_parameters``: see ``PeriodicModelAverager``."""

    def __init__(self, optim: Optimizer, averager):
        self.optim, self.averager = optim, averager
        self.param_groups, self.defaults = optim.param_groups, optim.defaults

    @property
    def state(self):  # type: ignore[override]
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict:
        """The optimizer's, and how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict) -> None:
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warn_user("the state dict has no step counter of an averager; it begins at 0")
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure=None):
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict) -> None:
        self.optim.add_param_group(param_group)
