"""L-BFGS, with an optional line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd.mode import enable_grad, without_grad
from ..autograd.views import put
from ..engine import namespace_of
from ..tensor import Tensor, wrap
from .optimizer import Optimizer
from .options import checked

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """A quasi-Newton method; ``step`` needs a closure that computes the loss and its gradients again.

    Everything is decided by values on the way, so a step cannot be compiled.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        defaults = checked(lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval)
        defaults |= dict(tolerance_grad=tolerance_grad, tolerance_change=tolerance_change)
        defaults |= dict(history_size=history_size, line_search_fn=line_search_fn)
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]  # as PyTorch's
        """Up to ``max_iter`` iterations."""
        return without_grad(self._iterate, closure)

    def _iterate(self, closure):
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        xp = self._xp = namespace_of(self._params[0]._array)
        first_loss = _evaluate(closure)
        loss, gradient = _number(first_loss), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if self._small(gradient):
            return first_loss
        memory = _Memory(state, group["history_size"])
        count, state["n_iter"] = state["n_iter"], 0  # until all is saved: after an interrupted step memory starts anew
        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            count += 1
            direction = memory.direction(xp, gradient, fresh=count == 1)
            memory.previous_gradient, previous_loss = gradient, loss
            t = float(group["lr"])
            if count == 1:
                t = min(1.0, 1.0 / float(xp.sum(xp.abs(gradient)))) * t
            slope = float(xp.dot(gradient, direction))
            memory.t = t
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                left = group["max_eval"] - evaluations
                loss, gradient, t, used = self._search(closure, t, direction, loss, gradient, slope, left)
                memory.t = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != group["max_iter"]:
                    loss, gradient, used = _number(_evaluate(closure)), self._gradient(), 1
            evaluations += used
            state["func_evals"] += used
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or self._small(gradient)
                or float(xp.max(xp.abs(direction * t))) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        memory.save(xp, state, group["lr"])
        state["prev_loss"] = previous_loss
        state["n_iter"] = count
        return first_loss

    def _small(self, gradient) -> bool:
        return float(self._xp.max(self._xp.abs(gradient))) <= self.param_groups[0]["tolerance_grad"]

    def _gradient(self):
        xp = self._xp
        parts = []
        for p in self._params:
            array = xp.zeros_like(p._array) if p._grad is None else p._grad._array
            parts.append(xp.reshape(_real(xp, array), shape=(-1,)))
        return xp.concatenate(parts)

    def _move(self, t, direction) -> None:
        """``params += t · direction``."""
        xp, start = self._xp, 0
        for p in self._params:
            shape = _real(xp, p._array).shape
            size = math.prod(shape)
            change = xp.reshape(direction[start : start + size], shape=shape) * t
            put(p, p._array + (change if shape == p._array.shape else change[..., 0] + 1j * change[..., 1]))
            start += size

    def _search(self, closure, t, direction, loss, gradient, slope, left):
        start = [p._array.copy() for p in self._params]

        def at(t):
            self._move(t, direction)
            value, there = _number(_evaluate(closure)), self._gradient()
            for p, array in zip(self._params, start):
                put(p, array)
            return _Point(t, value, there, float(self._xp.dot(there, direction)))

        origin = _Point(0.0, loss, gradient, slope)
        reach = float(self._xp.max(self._xp.abs(direction)))
        best, used = _strong_wolfe(at, origin, t, reach, limit=min(25, left))
        return best.value, best.gradient, best.t, used


class _Memory:
    """The last steps and changes of the gradient: what approximates the inverse Hessian."""

    def __init__(self, state, size) -> None:
        def arrays(name):
            return [t._array for t in state.get(name) or []]

        def array(name):
            value = state.get(name)
            return getattr(value, "_array", value)

        self.size = size
        self.changes, self.steps, self.inverse = arrays("old_dirs"), arrays("old_stps"), arrays("ro")
        self.scale, self.current = array("H_diag"), array("d")
        self.previous_gradient, self.t = array("prev_flat_grad"), float(state.get("t") or 0)
        self.weights: list | None = None

    def direction(self, xp, gradient, fresh):
        if fresh:
            self.changes, self.steps, self.inverse, self.scale = [], [], [], 1
            self.current = -gradient
            return self.current
        change, step = gradient - self.previous_gradient, self.current * self.t
        agreement = xp.dot(change, step)
        if float(agreement) > 1e-10:
            if len(self.changes) == self.size:
                del self.changes[0], self.steps[0], self.inverse[0]
            self.changes.append(change)
            self.steps.append(step)
            self.inverse.append(xp.asarray(1.0 / agreement))
            self.scale = agreement / xp.dot(change, change)
        self.current = self._two_loops(xp, -gradient)
        return self.current

    def _two_loops(self, xp, q):
        weights = []
        for y, s, r in reversed(list(zip(self.changes, self.steps, self.inverse))):
            weights.insert(0, xp.dot(s, q) * r)
            q = q - weights[0] * y
        q = q * self.scale
        for y, s, r, weight in zip(self.changes, self.steps, self.inverse, weights):
            q = q + s * (weight - xp.dot(y, q) * r)
        self.weights = weights
        return q

    def save(self, xp, state, lr):
        state["d"], state["t"] = wrap(self.current), lr.new_tensor(self.t) if isinstance(lr, Tensor) else self.t
        state["old_dirs"], state["old_stps"] = [wrap(a) for a in self.changes], [wrap(a) for a in self.steps]
        state["ro"] = [wrap(a) for a in self.inverse]
        state["H_diag"] = self.scale if isinstance(self.scale, int) else wrap(self.scale)
        state["prev_flat_grad"] = wrap(self.previous_gradient)
        if self.weights is not None:  # never read again, but PyTorch keeps them from the second iteration on
            state["al"] = [wrap(xp.asarray(w)) for w in self.weights] + [None] * (self.size - len(self.weights))


class _Point:
    """The objective along the search direction, at step ``t``: value, gradient, and slope along the direction."""

    __slots__ = ("gradient", "slope", "t", "value")

    def __init__(self, t, value, gradient, slope) -> None:
        self.t, self.value, self.gradient, self.slope = t, value, gradient, slope


def _strong_wolfe(at, origin, t, reach, decrease=1e-4, curvature=0.9, tolerance=1e-9, *, limit):
    """A step that lowers the objective enough and leaves little slope; returns it and the evaluations made.

    First the step grows until it encloses such a point, then the bracket is narrowed by cubic interpolation.
    """

    def too_high(point):
        return point.value > origin.value + decrease * point.t * origin.slope

    def flat(point):
        return abs(point.slope) <= -curvature * origin.slope

    previous, point, used, turns = origin, at(t), 1, 0
    bracket = None
    while turns < limit:
        if too_high(point) or (turns > 1 and point.value >= previous.value):
            bracket = [previous, point]
            break
        if flat(point):
            return point, used
        if point.slope >= 0:
            bracket = [previous, point]
            break
        low, high = point.t + 0.01 * (point.t - previous.t), point.t * 10
        t = _cubic_minimum(previous, point, low, high)
        previous, point = point, at(t)
        used += 1
        turns += 1
    if bracket is None:
        bracket = [origin, point]

    low = 0 if bracket[0].value <= bracket[1].value else 1
    stuck = False
    while turns < limit and abs(bracket[1].t - bracket[0].t) * reach >= tolerance:
        left, right = sorted((bracket[0].t, bracket[1].t))
        t = _cubic_minimum(bracket[0], bracket[1], left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near an end: allow it once, then step inside
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        used += 1
        turns += 1
        if too_high(point) or point.value >= bracket[low].value:
            bracket[1 - low] = point
            low = 0 if bracket[0].value <= bracket[1].value else 1
        else:
            done = flat(point)
            if not done and point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = point
            if done:
                break
    return bracket[low], used


def _cubic_minimum(a, b, low, high):
    """Where the cubic through two points and slopes is lowest, within [low, high]; the middle if it has no minimum."""
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    inside = d1 * d1 - a.slope * b.slope
    if not inside >= 0:
        return (low + high) / 2
    d2 = math.sqrt(inside)
    if a.t > b.t:
        a, b = b, a
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, low), high)


def _evaluate(closure):
    with enable_grad():
        return closure()


def _number(loss) -> float:
    return float(loss.detach()) if isinstance(loss, Tensor) else float(loss)


def _real(xp, array):
    return xp.stack([xp.real(array), xp.imag(array)], axis=-1) if array.dtype.kind == "c" else array
