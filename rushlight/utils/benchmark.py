"""``utils.benchmark``: measure a statement, and lay measurements side by side.

A statement runs in blocks of so many runs that the clock does not matter; the median of the blocks is what counts.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
import time
import timeit
from collections.abc import Callable

from .. import config

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]

_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1.0)}
_CLOCK = 25e-9  # a time is not known better than this


def __dir__():
    return __all__


def timer() -> float:
    """Now, in seconds; work that was given to a GPU is done."""
    if "jax" in sys.modules:
        from .. import cuda

        if cuda.is_available():
            cuda.synchronize()
    return time.perf_counter()


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{_indented(self.stmt)}"

    def setup_str(self) -> str:
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{_indented(self.setup)}\n" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, one under the other."""
        return "\n".join(part for part in (self.title, self.description, self.setup_str()) if part)


class Timer:
    """Measures ``stmt``, with one thread unless more are asked for.

    >>> m = rushlight.utils.benchmark.Timer("x + 1", globals={"x": rushlight.ones(2)}).timeit(10)
    >>> m.number_per_run, m.median > 0
    (10, True)
    """

    def __init__(
        self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None,
        description=None, env=None, num_threads=1, language="python",
    ):  # fmt: skip
        if str(language).lower() not in ("python", "py", "language.python"):
            raise NotImplementedError("Timer(): argument 'language' must be 'python'; nothing is compiled in C++ here")
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of ``number`` runs, after a few that do not count."""
        with _threads(self._task_spec.num_threads):
            self._timer.timeit(max(number // 100, 2))
            return Measurement(number, [self._timer.timeit(number)], self._task_spec)

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks of runs, until ``min_run_time`` seconds are spent in all."""
        with _threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            return Measurement(number, self._blocks(number, min_run_time, lambda _: True, callback), self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback=None
    ) -> Measurement:
        """Blocks of runs, until their spread is ``threshold`` of the median, or ``max_run_time`` is over."""
        with _threads(self._task_spec.num_threads):
            number, start = self._block(0.05), time.perf_counter()

            def is_enough(times: list[float]) -> bool:
                known = Measurement(number, times, self._task_spec)
                return known.meets_confidence(threshold) or time.perf_counter() - start > max_run_time

            times = self._blocks(number, max(min_run_time, 0.01), is_enough, callback)
            return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args, **kwargs):
        """Not here: PyTorch counts instructions with valgrind."""
        raise NotImplementedError("Timer.collect_callgrind(): instructions are not counted here; use timeit()")

    def _block(self, seconds: float) -> int:
        """How many runs take a thousandth of the time, and are long beside the clock's own cost."""
        number = 1
        while (taken := self._timer.timeit(number)) < min(seconds / 100, 0.01) and number < 10**8:
            number *= 10 if taken < 1e-4 else 2
        return number

    def _blocks(self, number: int, seconds: float, is_enough, callback) -> list[float]:
        times: list[float] = []
        while sum(times) < seconds or not is_enough(times):
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return times


@dataclasses.dataclass(repr=False)
class Measurement:
    """``raw_times`` of blocks of ``number_per_run`` runs each; ``times``, ``median``, ``mean``, ``iqr`` are per run."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = None

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the middle half of the times vouches for."""
        times, count = sorted(self.times), len(self.raw_times)
        middle = times[count // 4 : math.ceil(3 * count / 4)]
        doubt = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _CLOCK)
        return min(max(int(math.log10(self.median / doubt)), 1), 4) if self.median > doubt else 1

    @property
    def has_warnings(self) -> bool:
        return self.iqr / self.median > 0.1

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        return len(self.raw_times) >= 4 and self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @property
    def num_threads(self) -> int:
        return self.task_spec.num_threads

    @property
    def description(self) -> str | None:
        return self.task_spec.description

    @staticmethod
    def merge(measurements) -> list[Measurement]:
        """Measurements of the same thing become one."""
        groups: dict = {}
        for m in measurements:
            groups.setdefault((m.number_per_run, m.task_spec), []).extend(m.raw_times)
        return [Measurement(number, times, spec) for (number, spec), times in groups.items()]

    def _quartiles(self) -> tuple[float, float]:
        times = sorted(self.times)

        def at(share: float) -> float:
            place = share * (len(times) - 1)
            low = int(place)
            return times[low] + (place - low) * (times[min(low + 1, len(times) - 1)] - times[low])

        return at(0.25), at(0.75)

    def __repr__(self) -> str:
        unit, size = select_unit(self.median)
        several = len(self.raw_times) > 1
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if several else ''}{self.median / size:.2f} {unit}")
        if len(self.raw_times) > 3:
            low, high = self._quartiles()
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit} ({low / size:.2f} to {high / size:.2f})")
        lines.append(
            f"  {len(self.raw_times)} measurement{'s' * several}, {self.number_per_run} runs "
            f"{'per measurement' * several}, {self.num_threads} thread{'s' * (self.num_threads > 1)}"
        )
        if self.has_warnings:
            share = self.iqr / self.median
            lines.append(f"  WARNING: Interquartile range is {share:.1%} of the median measurement.")
            suspected = "suggests significant environmental influence" if share > 0.25 else None
            lines.append(f"           This {suspected or 'could indicate system fluctuation'}.")
        return "\n".join(lines)


class Compare:
    """A table of measurements: rows by ``sub_label``, columns by ``description``, parts by threads."""

    def __init__(self, results):
        self._results: list[Measurement] = []
        self._trimmed = False
        self.extend_results(results)

    def extend_results(self, results) -> None:
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        self._trimmed = True

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted; the table is in one colour."""

    def highlight_warnings(self) -> None:
        """Accepted; the table is in one colour."""

    def print(self) -> None:
        print(self)

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = dict.fromkeys(m.task_spec.label for m in merged)
        return "\n".join(self._table([m for m in merged if m.task_spec.label == label]) for label in labels)

    def _table(self, measurements: list[Measurement]) -> str:
        unit, size = select_unit(min(m.median for m in measurements))
        rows = list(dict.fromkeys((m.num_threads, m.as_row_name) for m in measurements))
        columns = list(dict.fromkeys(m.description or "" for m in measurements))
        shown = {(m.num_threads, m.as_row_name, m.description or ""): self._number(m, size) for m in measurements}
        names = max(len(name) for _, name in rows) + 8
        for column in columns:
            wide = max(len(text) for (*_, c), text in shown.items() if c == column)
            for row in rows:
                shown[(*row, column)] = shown.get((*row, column), "").rjust(wide).center(max(wide, len(column)))
        head = [c.rjust(len(shown[(*rows[0], c)])) for c in columns]
        lines = [" " * names + "|  " + "  |  ".join(head)]
        for threads in dict.fromkeys(t for t, _ in rows):
            lines.append(f"{threads} threads: ".ljust(len(lines[0]), "-"))
            for row in (r for r in rows if r[0] == threads):
                parts = [shown[(*row, c)] for c in columns]
                lines.append(f"      {row[1]}".ljust(names) + "|  " + "  |  ".join(parts))
        title = f" {measurements[0].task_spec.label or measurements[0].title} ".center(len(lines[0]) - 2, "-")
        return "\n".join([f"[{title}]", *lines, "", f"Times are in {_UNITS[unit][0]}s ({unit}).", ""])

    def _number(self, measurement: Measurement, size: float) -> str:
        value = measurement.median / size
        if not self._trimmed:
            return f"{value:.1f}"
        figures = measurement.significant_figures
        return f"{trim_sigfig(value, figures):.{max(figures - 1 - math.floor(math.log10(value)), 0)}f}"


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which ``t`` seconds are a number from 1 to 1000, and its length."""
    unit = next((u for u in ("s", "ms", "us") if t >= _UNITS[u][1]), "ns")
    return unit, _UNITS[unit][1]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` rounded to ``n`` significant figures."""
    return x if x == 0 else float(f"{x:.{n - 1}e}")


class _threads:
    """Inside, operators have so many threads."""

    def __init__(self, count: int):
        self.count = count

    def __enter__(self):
        self.before = config.get_num_threads()
        config.set_num_threads(self.count)

    def __exit__(self, *error):
        config.set_num_threads(self.before)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
