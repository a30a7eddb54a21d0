"""``GradScaler``: multiply the loss so that half-precision gradients do not vanish, and divide them again."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

from ..autograd.mode import no_grad
from ..autograd.views import put
from ..engine import namespace_of
from ..errors import warn_user
from ..ops import PUBLIC
from ..tensor import Tensor
from .autocast_mode import _gpu_is_there

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What was done with an optimizer's gradients since the last update."""

    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    """Scale the loss, skip steps whose gradients overflowed, and adapt the scale.

    >>> scaler = rushlight.amp.GradScaler("cpu")
    >>> w = rushlight.ones(1, requires_grad=True)
    >>> optimizer = rushlight.optim.SGD([w], lr=0.1)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device == "cuda" and not _gpu_is_there():
            warn_user("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        self._device, self._enabled = device, enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None  # a float from the first ``scale()`` on
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._optimizers: dict[int, _PerOptimizer] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = float(self._init_scale)
        if isinstance(outputs, Tensor):
            return outputs * PUBLIC["tensor"](self._scale, device=outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the scale now, before they are clipped or looked at."""
        if not self._enabled:
            return
        self._check("unscale_")
        per = self._per(optimizer)
        if per.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        if per.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        with no_grad():
            found = [self._divide(p._grad) for g in optimizer.param_groups for p in g["params"] if p._grad is not None]
        per.stage, per.found_inf = OptState.UNSCALED, any(found) if found else None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()``, unless a gradient is inf or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        per = self._per(optimizer)
        if per.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if per.stage is OptState.READY:
            self.unscale_(optimizer)
        if per.found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if per.found_inf else optimizer.step(*args, **kwargs)
        per.stage = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale after an overflow, let it grow after enough steps without one, or set it."""
        if not self._enabled:
            return
        self._check("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            found = [per.found_inf for per in self._optimizers.values() if per.found_inf is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(found))
        self._optimizers = {}

    def _adapt(self, overflowed: bool) -> None:
        if overflowed:
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale, self._growth_tracker = grown if math.isfinite(grown) else self._scale, 0

    def _divide(self, g: Tensor) -> bool:
        """Unscale one gradient in place; True if it has an inf or nan."""
        g._sync()
        xp = namespace_of(g._array)
        put(g, g._array * xp.astype(1.0 / self._scale, dtype=g._array.dtype))
        return not bool(xp.all(xp.isfinite(g._array)))

    def _per(self, optimizer):
        return self._optimizers.setdefault(id(optimizer), _PerOptimizer())

    def _check(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )

    # -- the scale's parameters --------------------------------------------------------------------------------------

    def get_scale(self) -> float:
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict:
        """The scale and its parameters; empty for a disabled scaler."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict) -> None:
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = float(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]


class _PerOptimizer:
    """What happened to one optimizer since the last update."""

    __slots__ = ("found_inf", "stage")

    def __init__(self) -> None:
        self.stage, self.found_inf = OptState.READY, None
