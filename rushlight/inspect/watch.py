"""``watch``: record what goes on inside a model while it trains, and write it as one HTML page.

Hooks see each module's output and its gradient, and each parameter's gradient. A tensor is reduced to a few numbers and
a histogram at once and not kept. Recording thins itself out: when a series is full, every other point is dropped and
points are taken half as often, so a long run needs no more memory or page than a short one.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np

from ..compiler import is_compiling
from ..compiler.tree import flatten
from ..io.atomic import replacing
from ..io.zipformat import write_all
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..tensor import Tensor

__all__ = ["Watch", "watch"]

_POINTS = 400  # of a series, at most
_HISTOGRAMS = 24  # of a module, at most
_BINS = 40


def watch(model, path="rushlight-watch.html", *, every: int = 1) -> Watch:
    """Record ``model`` inside a ``with`` block and write a page about it to ``path`` at the end.

    Call ``step(loss)`` on what the block gets, once per training step. ``every`` says how often numbers are taken; the
    search for the module that made the first NaN looks at every step.

    >>> model = nn.Linear(2, 1)
    >>> with rushlight.inspect.watch(model, path=None) as w:
    ...     for _ in range(3):
    ...         loss = model(rushlight.ones(4, 2)).square().mean()
    ...         loss.backward()
    ...         w.step(loss)
    >>> w.steps
    [0, 1, 2]
    """
    if not isinstance(model, Module):
        raise TypeError(f"watch(): argument 'model' must be a Module, not {type(model).__name__}")
    return Watch(model, path, every)


class Watch:
    """What ``watch`` makes: ``steps``, ``losses``, ``records`` by module, ``first_nan``; ``save`` writes the page."""

    def __init__(self, model: Module, path, every: int = 1):
        self.model, self.path = model, path
        self.step_count, self.every, self.histogram_every = 0, every, every
        self.steps: list[int] = []
        self.histogram_steps: list[int] = []
        self.losses: list[float | None] = []
        self.metrics: dict[str, list] = {}
        self.records = {name: Record(m) for name, m in model.named_modules()}
        self.first_nan: dict | None = None
        self._names = {id(m): name for name, m in model.named_modules()}
        self._handles: list = []
        self._inside = False  # hooks do nothing outside the block, should one be left
        self._started = time.time()

    def __enter__(self) -> Watch:
        try:
            self._inside = True
            for module in list(self.model.modules()):
                self._handles.append(module.register_forward_hook(self._after_forward, with_kwargs=True))
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad and not is_lazy(parameter):
                    self._handles.append(parameter.register_post_accumulate_grad_hook(self._gradient_taker(name)))
        except BaseException:  # Ctrl-C comes here too
            self._leave()
            raise
        return self

    def __exit__(self, *_) -> None:
        try:
            self._leave()
        except BaseException:
            self._leave()
            raise
        if self.path is not None and self.steps:
            self.save(self.path)

    def step(self, loss=None, **metrics) -> None:
        """One training step is over: ``loss`` and other numbers to plot belong to it."""
        if self._recording:
            self.steps.append(self.step_count)
            self.losses.append(_number(loss))
            for name in {*self.metrics, *metrics}:
                series = self.metrics.setdefault(name, [None] * (len(self.steps) - 1))
                series.append(_number(metrics.get(name)))
            if self._recording_histograms:
                self.histogram_steps.append(self.step_count)
            for record in self.records.values():
                record.end_step(self._recording_histograms)
            self._thin_out()
        self.step_count += 1

    def save(self, path) -> None:
        """Write the page: one file that needs nothing else."""
        template = (Path(__file__).parent / "page" / "watch.html").read_text(encoding="utf-8")
        data = json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)
        data = data.replace("<", "\\u003c")  # a name may have "<!--" or "</script>" in it
        with replacing(path) as file:
            write_all(file, template.replace("{{DATA}}", data).encode())

    def to_dict(self) -> dict:
        """Everything recorded, as plain values; numbers that are not finite are None."""
        return {
            "model": self.model._get_name(),
            "seconds": round(time.time() - self._started, 1),
            "step_count": self.step_count,
            "steps": self.steps,
            "histogram_steps": self.histogram_steps,
            "loss": [_short(v) for v in self.losses],
            "metrics": {name: [_short(v) for v in series] for name, series in self.metrics.items()},
            "first_nan": self.first_nan,
            "modules": [{"path": name, **record.to_dict()} for name, record in self.records.items()],
        }

    def _leave(self) -> None:
        self._inside = False
        for handle in self._handles:
            handle.remove()  # a second time does nothing
        self._handles.clear()

    # -- while it runs -------------------------------------------------------------------------------------------------

    @property
    def _recording(self) -> bool:
        return self.step_count % self.every == 0

    @property
    def _recording_histograms(self) -> bool:
        return self.step_count % self.histogram_every == 0

    def _after_forward(self, module, args, kwargs, output) -> None:
        if not self._inside or is_compiling():
            return
        found: list[Tensor] = []
        flatten(output, found)
        tensor = next((t for t in found if t.is_floating_point()), None)
        if tensor is None:
            return
        name = self._names[id(module)]
        values = _values(tensor)
        if self.first_nan is None and not _finite(values):
            self._blame(name, module, (args, kwargs))
        record = self.records[name].activation
        if self._recording and (
            tensor.requires_grad or record.now is None
        ):  # training counts, not an evaluation after it
            record.take(values, self._recording_histograms, units=True)
        if tensor.requires_grad:
            tensor.register_hook(lambda g: self._after_backward(name, g))

    def _after_backward(self, name: str, gradient: Tensor) -> None:
        if is_compiling():
            return
        values = _values(gradient)
        if self.first_nan is None and not _finite(values):
            self.first_nan = {
                "step": self.step_count,
                "module": name,
                "where": "backward",
                "why": "the gradient of its output",
            }
        if self._recording:
            self.records[name].gradient.take(values, self._recording_histograms)

    def _gradient_taker(self, name: str):
        owner, _, own = name.rpartition(".")
        record = self.records[owner]

        def take(parameter):
            if self._inside and self._recording and not is_compiling():
                record.parameters[own].now = _norm(_values(parameter._grad)), _norm(_values(parameter))

        return take

    def _blame(self, name: str, module, given) -> None:
        """This output is the first with a NaN or infinity. Came it in, is it in the weights, or was it made here?"""
        inputs: list[Tensor] = []
        flatten(given, inputs)
        why = "its output, from finite inputs"
        if not all(_finite(_values(t)) for t in inputs if t.is_floating_point()):
            why = "its input, which already had it"
        elif not all(_finite(_values(p)) for p in module._parameters.values() if p is not None and not is_lazy(p)):
            why = "its parameters, which an update has made so"
        self.first_nan = {"step": self.step_count, "module": name, "where": "forward", "why": why}

    def _thin_out(self) -> None:
        if len(self.steps) >= _POINTS:
            self.every *= 2
            self.histogram_every = max(self.histogram_every, self.every)
            keep = [i for i, step in enumerate(self.steps) if step % self.every == 0]
            self.steps, self.losses = _picked(self.steps, keep), _picked(self.losses, keep)
            self.metrics = {name: _picked(series, keep) for name, series in self.metrics.items()}
            for record in self.records.values():
                record.keep(keep)
        if len(self.histogram_steps) >= _HISTOGRAMS:
            self.histogram_every *= 2
            keep = [i for i, step in enumerate(self.histogram_steps) if step % self.histogram_every == 0]
            self.histogram_steps = _picked(self.histogram_steps, keep)
            for record in self.records.values():
                record.keep_histograms(keep)


class Record:
    """What is known of one module: its output, the gradient of that, and its own parameters."""

    def __init__(self, module: Module):
        self.kind, self.options = module._get_name(), module.extra_repr()
        own = {n: p for n, p in module._parameters.items() if p is not None and not is_lazy(p)}
        self.count = sum(p.numel() for p in module.parameters() if not is_lazy(p))
        self.activation, self.gradient = Series(), Series()
        self.parameters = {name: Norms() for name in own}

    def _parts(self) -> list:
        return [self.activation, self.gradient, *self.parameters.values()]

    def end_step(self, histograms: bool) -> None:
        for part in self._parts():
            part.end_step(histograms)

    def keep(self, places: list[int]) -> None:
        for part in self._parts():
            part.points = _picked(part.points, places)

    def keep_histograms(self, places: list[int]) -> None:
        for series in (self.activation, self.gradient):
            series.histograms = _picked(series.histograms, places)

    def to_dict(self) -> dict:
        return {
            "kind": self.kind,
            "options": self.options,
            "count": self.count,
            "activation": self.activation.to_dict(),
            "gradient": self.gradient.to_dict(),
            "parameters": {
                name: {"gradient": _column(norms.points, 0), "weight": _column(norms.points, 1)}
                for name, norms in self.parameters.items()
            },
        }


class Norms:
    """(norm of the gradient, norm of the weights) of a parameter, step by step."""

    def __init__(self):
        self.points: list = []
        self.now = None

    def end_step(self, histograms: bool) -> None:
        self.points.append(self.now)
        self.now = None


class Series:
    """Statistics of one kind of tensor, step by step; of several calls in a step, the last one's."""

    NAMES = ("rms", "mean", "std", "min", "max", "dead")

    def __init__(self):
        self.points: list = []
        self.histograms: list = []
        self.now = self._histogram = None

    def take(self, values: np.ndarray, histogram: bool, units: bool = False) -> None:
        finite = values if _finite(values) else values[np.isfinite(values)]
        if not finite.size:
            return
        mean = float(finite.mean(dtype=np.float64))
        spread, low, high = float(finite.std(dtype=np.float64)), float(finite.min()), float(finite.max())
        self.now = math.hypot(mean, spread), mean, spread, low, high, _dead(values) if units else None
        if histogram:
            # A few outliers would leave everything else in one bin: they are counted in the first or last one.
            low, high = max(low, mean - 4 * spread), min(high, mean + 4 * spread)
            if not low < high:
                low, high = low - 0.5, low + 0.5
            counts, _ = np.histogram(np.clip(finite, low, high), _BINS, (low, high))
            self._histogram = [_short(low), _short(high), counts.tolist()]

    def end_step(self, histograms: bool) -> None:
        self.points.append(self.now)
        if histograms:
            self.histograms.append(self._histogram)
        self.now = self._histogram = None

    def to_dict(self) -> dict:
        columns = {name: _column(self.points, i) for i, name in enumerate(self.NAMES)}
        return {**columns, "histograms": self.histograms}


def _values(t: Tensor) -> np.ndarray:
    t._sync()
    array = np.asarray(t._array)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def _finite(values: np.ndarray) -> bool:
    # A sum of squares is one fast pass, and finite only if everything is; it may also overflow, so ask again.
    flat = values.reshape(-1)
    return math.isfinite(np.dot(flat, flat)) or bool(np.isfinite(values).all())


def _norm(values: np.ndarray) -> float:
    return math.sqrt(float(np.sum(np.square(values, dtype=np.float64))))


def _dead(values: np.ndarray) -> float | None:
    """The share of units (channels, features) that are zero everywhere in the batch."""
    if values.ndim < 2:
        return None
    unit_axis = 1 if values.ndim in (2, 4, 5) else values.ndim - 1
    others = tuple(a for a in range(values.ndim) if a != unit_axis)
    return float(1 - (values != 0).any(axis=others).mean()) if values.size else None


def _number(value) -> float | None:
    return None if value is None else float(value.detach().item() if isinstance(value, Tensor) else value)


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def _column(points: list, i: int) -> list:
    return [None if p is None else _short(p[i]) for p in points]


def _picked(values: list, places: list[int]) -> list:
    return [values[i] for i in places if i < len(values)]
