"""``cuda.profiler``: JAX's profiler, which sees what programs do on a device."""

from __future__ import annotations

import contextlib
import glob
import gzip
import json
import os
import shutil
import tempfile
import time

from ..engine import landed as _landed
from ..errors import warn_user

__all__ = ["profile", "start", "stop"]

_current: list = []
_MARK, _MARKS = "rushlight: clock", 5  # moments that both clocks know
_NO_PROCESS = 1 << 22  # added to the numbers of JAX's processes, which are small: no process of Linux has a larger one


def __dir__():
    return __all__


def start() -> None:
    """Begin to record what the device does."""
    trace = DeviceTrace.started()
    if trace is None:
        raise RuntimeError("there is no JAX here, or its profiler is already running: see the warning")
    _current.append(trace)


def stop() -> None:
    """End; the trace is dropped, see ``torch.profiler`` for one that is kept."""
    if _current:
        _current.pop().stopped()


@contextlib.contextmanager
def profile():
    """A block between ``start`` and ``stop``."""
    start()
    try:
        yield
    finally:
        stop()


class DeviceTrace:
    """A trace of JAX's profiler, from ``started`` to ``stopped``, on the clock of ours."""

    def __init__(self, device: str) -> None:
        self.device = device  # what columns of a table call it: "cuda", or "xla" for what else XLA serves
        self._folder = tempfile.mkdtemp(prefix="rushlight-trace-")
        self._marks: list[tuple[float, float]] = []  # our time before and after each mark in JAX's trace

    @staticmethod
    def started() -> DeviceTrace | None:
        """None, with a warning that says why, where JAX is missing or cannot be profiled."""
        try:
            import jax
        except ImportError:
            warn_user("CUDA is not available, disabling CUDA profiling")
            return None
        self = DeviceTrace("cuda" if jax.default_backend() == "gpu" else "xla")
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # a line per Python call would hide the rest, and costs more than it
        try:
            jax.profiler.start_trace(self._folder, profiler_options=options)
        except Exception as error:  # one runs already, or this platform has none: a profile of the CPU is left
            self._drop()
            warn_user(f"JAX's profiler did not start, devices are not traced: {error}")
            return None
        for number in range(_MARKS):
            before = _now()
            with jax.profiler.TraceAnnotation(f"{_MARK} {number}"):
                pass
            self._marks.append((before, _now()))
        return self

    def stopped(self) -> tuple[list[dict], list[tuple[str, float, float]]]:
        """(lines for a Chrome trace, (name, start, duration) of what devices did)."""
        import jax

        try:
            _landed()  # what is only recorded, or still runs, belongs to the trace
            for array in jax.live_arrays():
                if not array.is_deleted():
                    array.block_until_ready()
            jax.profiler.stop_trace()
            lines = [line for line in self._read() if line]
        except Exception as error:  # somebody else has stopped it, or the disk is full
            warn_user(f"JAX's profiler did not write its trace: {error}")
            lines = []
        finally:
            self._drop()
        return on_our_clock(lines, self._marks)

    def _read(self) -> list[dict]:
        lines: list[dict] = []
        for file in glob.glob(os.path.join(self._folder, "**", "*.trace.json.gz"), recursive=True):
            with gzip.open(file, "rt") as opened:
                lines += json.load(opened).get("traceEvents", [])
        return lines

    def _drop(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def on_our_clock(
    lines: list[dict], marks: list[tuple[float, float]]
) -> tuple[list[dict], list[tuple[str, float, float]]]:
    """JAX's lines, moved so that each mark is between its two times; and what happened on the devices among them."""
    begun, moved = _begun(lines, marks), []
    for line in lines:
        if not str(line.get("name")).startswith(_MARK):
            line = {**line, "pid": line["pid"] + _NO_PROCESS} if "pid" in line else {**line}
            if "ts" in line:
                line["ts"] += begun
            moved.append(line)
    return moved, [(line["name"], line["ts"], line.get("dur", 0.0)) for line in _done_by_devices(moved)]


def _begun(lines: list[dict], marks: list[tuple[float, float]]) -> float:
    """When JAX's clock was at zero, by the mark whose two times are nearest to each other: nothing came between."""
    found = {line.get("name"): line["ts"] for line in lines if "ts" in line}
    nearest = min(range(len(marks)), key=lambda i: marks[i][1] - marks[i][0])
    return sum(marks[nearest]) / 2 - found.get(f"{_MARK} {nearest}", 0.0)


def _now() -> float:
    return time.perf_counter_ns() / 1e3


def _done_by_devices(lines: list[dict]) -> list[dict]:
    """The operations of devices, each once; a CPU that XLA computes with is one too."""
    names = {
        (line["name"], line["pid"], line.get("tid") if line["name"] == "thread_name" else None): line["args"]["name"]
        for line in lines
        if line.get("ph") == "M" and line.get("name") in ("process_name", "thread_name")
    }
    whole = [line for line in lines if line.get("ph") == "X"]
    on_device = [x for x in whole if names.get(("process_name", x.get("pid"), None), "").startswith("/device:")]
    if not on_device:
        return [line for line in whole if "hlo_op" in line.get("args", ())]
    # A device has a row per stream, and others that sum these up by operation, module and step.
    for row in ("Stream", "XLA Ops"):
        found = [x for x in on_device if names.get(("thread_name", x["pid"], x.get("tid")), "").startswith(row)]
        if found:
            return found
    return on_device
