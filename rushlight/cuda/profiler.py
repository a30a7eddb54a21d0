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

__all__ = ["init", "profile", "start", "stop"]

_current: list = []


def start() -> None:
    """Begin to record what the device does."""
    trace = DeviceTrace.started()
    if trace is None:
        raise RuntimeError("there is no JAX here, or its profiler is already running")
    _current.append(trace)


def stop() -> None:
    """End; the trace is dropped, see ``torch.profiler`` for one that is kept."""
    if _current:
        _current.pop().stopped()


def init(output_file, flags=None, output_mode="key_value") -> None:
    """CUDA's own profiler is not used here."""
    raise NotImplementedError("torch.cuda.profiler.init is not here: torch.profiler.profile takes traces by JAX")


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

    def __init__(self) -> None:
        self._folder, self._begun = tempfile.mkdtemp(prefix="rushlight-trace-"), time.perf_counter_ns() / 1e3

    @staticmethod
    def started() -> DeviceTrace | None:
        """None where JAX is missing, or is being profiled already."""
        try:
            import jax
        except ImportError:
            return None
        self = DeviceTrace()
        try:
            jax.profiler.start_trace(self._folder)
        except RuntimeError:  # there is one, and only one
            shutil.rmtree(self._folder, ignore_errors=True)
            return None
        return self

    def stopped(self) -> tuple[list[dict], list[tuple[str, float, float]]]:
        """(lines for a Chrome trace, (name, start, duration) of what devices did)."""
        import jax

        try:
            jax.profiler.stop_trace()
            files = glob.glob(os.path.join(self._folder, "**", "*.trace.json.gz"), recursive=True)
            lines: list[dict] = []
            for file in files:
                with gzip.open(file, "rt") as opened:
                    lines += json.load(opened).get("traceEvents", [])
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        return on_our_clock([line for line in lines if line], self._begun)


def on_our_clock(lines: list[dict], begun: float) -> tuple[list[dict], list[tuple[str, float, float]]]:
    """JAX's lines, moved to begin at ``begun``; and what happened on the devices among them."""
    processes = {
        line["pid"]: line["args"]["name"]
        for line in lines
        if line.get("ph") == "M" and line.get("name") == "process_name"
    }
    moved = [{**line, "ts": line["ts"] + begun} if "ts" in line else line for line in lines]
    on_device = [
        (line["name"], line["ts"], line.get("dur", 0.0))
        for line in moved
        if line.get("ph") == "X" and str(processes.get(line.get("pid"), "")).startswith("/device:")
    ]
    return moved, on_device
