"""``profile``, its schedule, and where its traces go."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import warn_user
from .events import DeviceType, EventList, FunctionEvent
from .recorder import Recorder
from .trace import write_trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """What a schedule says of a step: do nothing, make ready, record, or record and hand the trace over."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What to record: our operators (``CPU``), and what JAX's profiler sees of devices (all others mean that)."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_NO_TIMELINE = "there is no memory timeline here: profile_memory=True gives the table's columns of memory"


def supported_activities() -> set[ProfilerActivity]:
    """What can be asked for here: the CPU, and what JAX sees of a GPU if there is one."""
    from .. import cuda

    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if cuda.is_available() else {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do in each step: skip some, then wait, warm up and record, ``repeat`` times (0: for ever).

    >>> plan = rushlight.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warn_user("Profiler won't be using warmup, this can skew profiler results")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, step = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < wait + warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
):
    """An ``on_trace_ready`` that writes each trace into a folder, under names that TensorBoard looks for."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".gz" if use_gzip else ""
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{ending}"))

    return handler


class profile:
    """Takes the times of operators, gradient rules, compiled programs and named ranges in its block.

    >>> from rushlight.profiler import profile, record_function
    >>> layer = nn.Linear(3, 4)
    >>> with profile(record_shapes=True) as prof:
    ...     with record_function("forward"):
    ...         y = layer(rushlight.ones(2, 3))
    >>> [event.name for event in prof.events()]
    ['forward', 'aten::ones', 'aten::linear', 'aten::addmm']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ):
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if use_cuda:
            self.activities.add(ProfilerActivity.CUDA)
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.schedule, self.on_trace_ready = schedule or _always, on_trace_ready
        self.record_steps = schedule is not None
        self.step_num, self.current_action = 0, self.schedule(0)
        self._trace_id_callback, self._trace_id = custom_trace_id_callback, ""
        self._metadata: dict = {}
        self._recorder: Recorder | None = None
        self._events: EventList | None = None
        self._calls: list[FunctionEvent] = []
        self._device: Any = None
        self._device_name: str | None = None
        self._device_lines: list = []
        self._step: FunctionEvent | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error) -> None:
        self.stop()

    # -- beginning, steps, end ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, with what the schedule says of the first step."""
        self._turn(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def step(self) -> None:
        """The next step of the program begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._turn(before, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End; a trace that was begun is handed over."""
        self._end_step()
        if self._recorder is not None:
            self.stop_trace()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def _turn(self, before: ProfilerAction, now: ProfilerAction) -> None:
        if self._recorder is not None and (before is ProfilerAction.RECORD_AND_SAVE or now not in _RECORDING):
            self.stop_trace()
            if before is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if self._recorder is None and now in _RECORDING:
            self.start_trace()

    def _begin_step(self) -> None:
        if self.record_steps and self._recorder is not None:
            name = f"ProfilerStep#{self.step_num}"
            self._step = self._recorder.open("ProfilerStep*", trace_name=name, is_user_annotation=True)

    def _end_step(self) -> None:
        if self._step is not None and self._recorder is not None:
            self._recorder.close(self._step)
        self._step = None

    def prepare_trace(self) -> None:
        """Nothing has to be prepared here."""

    def start_trace(self) -> None:
        """Begin to record, whatever the schedule says."""
        self._trace_id = self._trace_id_callback() if self._trace_id_callback else uuid.uuid4().hex.upper()
        modules = self.with_modules or self.with_stack
        recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack, modules, self.with_flops)
        if self.activities - {ProfilerActivity.CPU}:
            from ..cuda.profiler import DeviceTrace

            self._device = DeviceTrace.started()
            self._device_name = self._device.device if self._device is not None else None
        recorder.start()
        self._recorder = recorder

    def stop_trace(self) -> None:
        """Record no more; ``events()`` are what was seen."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.stop()
        found, self._calls = recorder.events, recorder.calls
        before = self._device_lines if self.acc_events else []
        if self._device is not None:
            lines, on_device = self._device.stopped()
            self._device, self._device_lines = None, before + lines
            found = [*found, *(self._device_event(i, *line) for i, line in enumerate(on_device, len(found) + 1))]
        if self.acc_events and self._events is not None:
            found = [*self._events, *found]
        self._events = EventList(
            found, use_device=self._device_name, profile_memory=self.profile_memory, with_flops=self.with_flops
        )

    def _device_event(self, id: int, name: str, start: float, duration: float) -> FunctionEvent:
        kind = DeviceType.CUDA if self._device_name == "cuda" else DeviceType.XLA
        return FunctionEvent(id, name, 0, start, start + duration, device_type=kind, use_device=self._device_name)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop watching for a while, or go on."""
        recorder = self._recorder
        if recorder is None or ProfilerActivity.CPU not in set(activities) or enable is recorder.is_on:
            return
        recorder.hang() if enable else recorder.unhang()

    # -- what was seen -----------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """All events, in the order of their beginning."""
        if self._events is None:
            raise AssertionError("Profiler must be initialized before getting events")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events by name (and shapes, and innermost lines of code); its ``table()`` is what people print."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write what was seen as JSON for ``chrome://tracing`` or ui.perfetto.dev; ``.gz`` is compressed."""
        about = {
            "trace_id": self._trace_id,
            "record_shapes": int(self.record_shapes),
            "with_stack": int(self.with_stack),
            "with_modules": int(self.with_modules),
            "profile_memory": int(self.profile_memory),
        }
        ours = [event for event in self.events() if not event.is_on_device]  # JAX's lines have the others
        write_trace(path, ours, self._calls, self._device_lines, {**about, **self._metadata})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks of calls with their times, for flame graphs; needs ``with_stack=True``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not here: see the columns of memory."""
        raise NotImplementedError(_NO_TIMELINE)

    def add_metadata(self, key: str, value: str) -> None:
        """A word about the run, written into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same, of a value in JSON."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str | None:
        """The id of the trace that is being made, or was made last."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """``callback()`` gives the next traces their ids."""
        self._trace_id_callback = callback


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD
