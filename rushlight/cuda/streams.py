"""Streams and events of a GPU. XLA orders the work of a device itself: there is one stream, and all names mean it."""

from __future__ import annotations

import time

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]


class Stream:
    """The order of a GPU's work. All streams of a device are one: work put on any runs in the order it was started."""

    def __init__(self, device=None, priority: int = 0, **kwargs):
        from .. import cuda
        from ..device import device as Device

        cuda._gpu(device)
        self.device, self.priority = Device("cuda", cuda._index(device)), priority
        self.cuda_stream = self.stream_id = 0

    def synchronize(self) -> None:
        """Wait until everything started on the device is done."""
        from .. import cuda

        cuda.synchronize(self.device)

    def query(self) -> bool:
        """Is everything started on the device done? Waits for it."""
        self.synchronize()
        return True

    def wait_stream(self, stream) -> None:
        """What follows runs after what was started: that is so anyway."""

    def wait_event(self, event) -> None:
        """What follows runs after what was started: that is so anyway."""

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream=0x0>"


class Event:
    """A moment in a GPU's work.

    Differs from PyTorch: ``record`` waits for the device and notes the host's time, so ``elapsed_time`` between two
    events is the time until the work between them was done, waiting included.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **kwargs):
        from .. import cuda

        cuda._gpu()
        self._timed = enable_timing
        self._at: float | None = None

    def record(self, stream=None) -> None:
        (stream or current_stream()).synchronize()
        self._at = time.perf_counter()

    def elapsed_time(self, end_event) -> float:
        """Milliseconds from this event to ``end_event``."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1e3 * (end_event._at - self._at)

    def query(self) -> bool:
        """True: ``record`` waited."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for: ``record`` waited."""

    def wait(self, stream=None) -> None:
        """What follows runs after the event: ``record`` waited."""

    def __repr__(self) -> str:
        return "<torch.cuda.Event>" if self._at is not None else "<torch.cuda.Event uninitialized>"


def current_stream(device=None) -> Stream:
    """The stream that work is put on; there is one per device."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream) -> None:
    """There is one stream; here for programs that call it."""


class StreamContext:
    """``with cuda.stream(s):``. The device of ``s`` is the current one inside."""

    def __init__(self, stream: Stream | None):
        from . import device

        self.stream = stream
        self._device = device(None if stream is None else stream.device)

    def __enter__(self):
        self._device.__enter__()

    def __exit__(self, *_):
        self._device.__exit__()


def stream(stream: Stream | None) -> StreamContext:
    """Work inside belongs to ``stream``; it runs in the order it was started all the same."""
    return StreamContext(stream)
