"""What a profile is made of: events, lists of them, and their averages by name."""

from __future__ import annotations

import enum
from typing import Any

from .table import build_table, microseconds

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class DeviceType(enum.Enum):
    """Where an event happened."""

    CPU = 0
    CUDA = 1
    XLA = 9


class Interval:
    """From ``start`` to ``end``, in microseconds."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


class _Times:
    """What events and their averages have in common: times per call, and times as text."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    device_memory_usage: int
    self_device_memory_usage: int

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: microseconds(self.cpu_time))
    cpu_time_total_str = property(lambda self: microseconds(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: microseconds(self.self_cpu_time_total))
    device_time_str = property(lambda self: microseconds(self.device_time))
    device_time_total_str = property(lambda self: microseconds(self.device_time_total))
    self_device_time_total_str = property(lambda self: microseconds(self.self_device_time_total))
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)


class FunctionEvent(_Times):
    """One call of an operator, a gradient rule, a compiled program, or one range of the user's."""

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        input_shapes=None,
        stack=None,
        cpu_memory_usage=0,
        sequence_nr=-1,
        device_type=DeviceType.CPU,
        is_user_annotation=False,
        trace_name=None,
        use_device=None,
        scope=0,
    ):
        self.id, self.name, self.thread, self.scope = id, name, thread, scope
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = [] if input_shapes is None else input_shapes
        self.stack: list[str] = [] if stack is None else stack
        self.cpu_memory_usage, self.device_memory_usage, self.self_device_memory_usage = cpu_memory_usage, 0, 0
        self.sequence_nr, self.device_type, self.use_device = sequence_nr, device_type, use_device
        self.is_user_annotation = is_user_annotation
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.count, self.node_id, self.fwd_thread, self.flops, self.kernels = 1, -1, None, None, []
        self.is_async = self.is_remote = self.is_legacy = False
        self.device_index, self.overload_name = 0, ""
        self.concrete_inputs: list = []
        self.kwinputs: dict = {}

    @property
    def key(self) -> str:
        return self.name

    @property
    def is_on_device(self) -> bool:
        return self.device_type is not DeviceType.CPU

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return 0 if self.is_on_device else self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us() if self.is_on_device else 0

    self_device_time_total = device_time_total  # type: ignore[assignment]

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """``child`` ran inside this event."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """This event ran inside ``parent``."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {self.use_device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(_Times):
    """The sum of all events of one name."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.scope = self.flops = 0
        self.node_id, self.is_async, self.is_remote, self.is_legacy = -1, False, False, False
        self.use_device: str | None = None
        self.device_type = DeviceType.CPU
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.device_time_total = self.self_device_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] = []
        self.cpu_children: list | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.is_user_annotation = False

    def add(self, other) -> FunctionEventAvg:
        """Add an event, or another average of the same name."""
        if self.key is None:
            for name in (
                "key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "device_type",
                "input_shapes", "stack", "scope", "is_legacy", "is_user_annotation", "use_device",
            ):  # fmt: skip
                setattr(self, name, getattr(other, name))
        for name in (
            "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total",
            "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops = (self.flops or 0) + (other.flops or 0)
        return self

    def __iadd__(self, other) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """Events in the order of their beginning, or averages of them; ``print`` shows the table."""

    def __init__(self, *args, use_device=None, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, a row each, ``sort_by`` one of their numbers: ``"cpu_time_total"``, ``"count"``, …"""
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_source=max_src_column_width,
            max_name=max_name_column_width,
            max_shapes=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            use_device=self._use_device,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events of a name together; of a name and the shapes, or the innermost lines of code, if asked for."""
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key: tuple = (event.key, event.device_type, event.is_user_annotation)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            groups.setdefault(key, FunctionEventAvg()).add(event)
        made = EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for average in made:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return made

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON that ``chrome://tracing`` and Perfetto show."""
        from .trace import write_trace

        write_trace(path, self)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What ``export_stacks`` can count."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line per stack of calls and its time, as flame graph tools read them."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        spaces = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric.replace("cuda", "device"), 0))
                if event.stack and value > 0:
                    line = ";".join(entry.translate(spaces) for entry in reversed(event.stack))
                    file.write(f"{line} {value}\n")
