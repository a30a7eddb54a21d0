"""``autograd.profiler``: named ranges, and the older profile; ``rushlight.profiler`` has the one to use."""

from __future__ import annotations

import contextlib
from typing import Any

from ..compat import missing as _missing
from ..errors import warn_user
from .mode import state

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class record_function(contextlib.ContextDecorator):
    """A named range around a block or function, a row of its own in a profile; without one it does nothing.

    >>> with rushlight.autograd.profiler.record_function("forward"):
    ...     pass
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        recorder = self._recorder = state.profile
        self._event = None if recorder is None else recorder.open(self.name, is_user_annotation=True)
        return self

    def __exit__(self, *error) -> None:
        if self._event is not None:
            self._recorder.close(self._event)

    def _recreate_cm(self) -> record_function:
        return record_function(self.name, self.args)


class profile:
    """Takes the times of operators in its block; ``print`` shows the table.

    >>> with rushlight.autograd.profiler.profile() as prof:
    ...     y = rushlight.ones(2) + 1
    >>> [event.name for event in prof.function_events]
    ['aten::ones', 'aten::add']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ):
        from ..profiler import ProfilerActivity
        from ..profiler import profile as whole

        self.enabled = enabled
        activities = {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if use_cuda or use_device else set())
        self._whole = whole(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        self._whole.start()
        return self

    def __exit__(self, *error) -> None:
        if self.enabled:
            self._whole.stop()

    def __repr__(self) -> str:
        return repr(self.function_events) if self._whole._events is not None else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._whole._events is not None else "<unfinished torch.autograd.profile>"

    @property
    def function_events(self):
        """All events, in the order of their beginning."""
        if self._whole._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._whole.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, of all events."""
        return self.function_events.self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events as text, a row each."""
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **options)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ):
        """The events by name."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """All events together."""
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write what was seen as JSON for ``chrome://tracing`` or ui.perfetto.dev."""
        self._whole.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks of calls with their times, for flame graphs."""
        self._whole.export_stacks(path, metric)


class emit_nvtx:
    """Does nothing but say so: there are no NVTX ranges here."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> emit_nvtx | None:
        if not self.enabled:
            return None
        warn_user(
            f"{type(self).__name__} does nothing here: XLA launches the kernels. torch.profiler.profile with "
            "ProfilerActivity.CUDA shows what a device does"
        )
        return self

    def __exit__(self, *error) -> None:
        return None


class emit_itt(emit_nvtx):
    """Does nothing but say so: there are no ITT ranges here."""


def __dir__():
    return __all__


def _later(name: str):
    if name in ("EventList", "FunctionEvent"):
        from ..profiler import events

        return getattr(events, name)
    return None


__getattr__ = _missing(__name__, _later)
