"""Events as a trace that ``chrome://tracing`` and Perfetto show."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys

__all__ = ["write_trace"]


def write_trace(path: str, events, modules=(), extra=(), metadata: dict | None = None) -> None:
    """Write ``events``, calls of ``modules`` and lines of another profiler as JSON; gzipped if the name ends in .gz."""
    process = os.getpid()
    lines = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": process,
            "tid": 0,
            "args": {"name": os.path.basename(sys.executable)},
        },
        *(_line(event, process, "python_function") for event in modules),
        *(_line(event, process, _category(event)) for event in events),
        *_arrows(events, process),
        *extra,
    ]
    trace = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "host_name": socket.gethostname(),
        "traceName": str(path),
        **(metadata or {}),
        "traceEvents": lines,
    }
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


def _line(event, process: int, category: str) -> dict:
    about: dict = {"External id": event.id}
    if event.input_shapes:
        about["Input Dims"] = event.input_shapes
    if event.sequence_nr >= 0:
        about["Sequence number"] = event.sequence_nr
    if event.kwinputs.get("Module Hierarchy"):
        about["Module Hierarchy"] = event.kwinputs["Module Hierarchy"]
    if event.cpu_memory_usage:
        about["Bytes"] = event.cpu_memory_usage
    if event.stack:
        about["Call stack"] = ";".join(reversed(event.stack))
    return {
        "ph": "X", "cat": category, "name": event.trace_name, "pid": process, "tid": event.thread,
        "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": about,
    }  # fmt: skip


def _category(event) -> str:
    return "user_annotation" if event.is_user_annotation else "kernel" if event.is_on_device else "cpu_op"


def _arrows(events, process: int):
    """From each operator to its gradient rule."""
    forward: dict = {}
    for event in events:
        if event.sequence_nr < 0:
            continue
        if event.name.startswith("aten::"):
            forward[event.sequence_nr] = event
        elif event.sequence_nr in forward:
            begin = forward[event.sequence_nr]
            common = {"id": event.sequence_nr, "pid": process, "cat": "fwdbwd", "name": "fwdbwd"}
            yield {"ph": "s", "tid": begin.thread, "ts": begin.time_range.start, **common}
            yield {"ph": "f", "tid": event.thread, "ts": event.time_range.start, "bp": "e", **common}
