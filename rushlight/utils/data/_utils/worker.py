"""Worker processes: what runs in them, and how batches come back through shared memory.

Main process and worker hold the two ends of a socket. A request is ``(epoch, number, indices)``; the answer is
``(epoch, number, batch)``, where the bytes of arrays and tensors lie in one anonymous file whose descriptor travels
along. Nothing has a name, so whatever is killed when, the kernel frees it all. A closed socket tells each side that
the other one ended.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing import reduction
from typing import Any

import numpy as np

from ....config import set_num_threads
from ....multiprocessing import SharedMemory, anonymous_file
from ....random import manual_seed
from ....tensor import Tensor, wrap

__all__ = ["ExceptionWrapper", "WorkerInfo", "get_worker_info", "receive", "send", "worker_loop"]

STREAM_ENDED = "stream ended"  # in the place of a batch: the worker's IterableDataset has no more
_INLINE = 4096  # bytes up to which a message goes through the socket as it is
_ALIGNMENT = 64
_GRACE = 5.0  # seconds that a worker may still take for its sample when the main process has let go of it


@dataclass
class WorkerInfo:
    """Who a worker is: its ``id``, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process: who it is. In the main process: None."""
    return _info


# -- in the worker ---------------------------------------------------------------------------------------------------


def worker_loop(connection, others, mask, make_fetcher, dataset, base_seed, worker_id, num_workers, init_fn) -> None:
    """Answer requests until the main process says None or is gone; ``mask`` is that of signals before it started."""
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for other in others:  # ends of sockets that a fork copied: held here they would hide that the main process ended
        other.close()
    requests: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(connection, requests), daemon=True).start()
    try:
        failure = _start(dataset, base_seed, worker_id, num_workers, init_fn)
        epoch, fetcher = None, None
        while (request := requests.get()) is not None:
            if request[0] != epoch:
                epoch, fetcher = request[0], None
            if failure is None:
                answer, fetcher = _answer(request[2], fetcher, make_fetcher, worker_id)
            _send_answer(connection, (*request[:2], answer if failure is None else failure), worker_id)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the main process gets the same interrupt, or is gone


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's generator in a worker."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def _start(dataset, base_seed, worker_id, num_workers, init_fn) -> ExceptionWrapper | None:
    """Seed everything, tell the worker who it is, run the user's ``worker_init_fn``."""
    global _info
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    set_num_threads(1)
    _info = WorkerInfo(worker_id, num_workers, seed, dataset)
    try:
        if init_fn is not None:
            init_fn(worker_id)
    except Exception:
        return ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
    return None


def _answer(indices, fetcher, make_fetcher, worker_id):
    """The batch, or what stands for it, and the fetcher."""
    try:
        if fetcher is None:
            fetcher = make_fetcher()
        return fetcher.fetch(indices), fetcher
    except StopIteration:
        if getattr(fetcher, "stream", None) is not None:
            return STREAM_ENDED, fetcher
        return ExceptionWrapper(where=f"in DataLoader worker process {worker_id}"), fetcher
    except Exception:
        return ExceptionWrapper(where=f"in DataLoader worker process {worker_id}"), fetcher


def _send_answer(connection, answer, worker_id) -> None:
    try:
        send(connection, answer)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # the batch cannot be pickled
        send(connection, (*answer[:2], ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")))


def _read_requests(connection, requests) -> None:
    """Take requests off the socket at once: the main process must never wait for room in it."""
    try:
        while (request := receive(connection)) is not None:
            requests.put(request)
    except (EOFError, OSError):
        pass
    requests.put(None)
    time.sleep(_GRACE)  # this thread ends with the process; if that hangs in a sample, end it
    os._exit(1)


# -- exceptions that cross processes ---------------------------------------------------------------------------------


class KeyErrorMessage(str):
    """A KeyError shows the repr of its message: this one's is the text itself, with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception being handled, to be raised again in another process with the traceback as its message."""

    def __init__(self, exc_info=None, where: str = "in background") -> None:
        self.exc_type: Any
        self.exc_type, value, trace = exc_info or sys.exc_info()
        self.exc_msg = "".join(traceback.format_exception(self.exc_type, value, trace))
        self.where = where

    def reraise(self) -> None:
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:  # its constructor takes other arguments
            exception = RuntimeError(message)
        try:
            raise exception
        finally:
            del exception  # its traceback holds this frame: a cycle would keep the workers alive


# -- messages --------------------------------------------------------------------------------------------------------


def send(connection, message) -> None:
    """Send any object; large ones, and the memory of large arrays in them, as one anonymous file."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, 5, True, buffers.append).dump(message)
    parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    if sum(sizes) <= _INLINE or not hasattr(os, "pwrite"):
        connection.send_bytes(pickle.dumps([bytearray(part) for part in parts]))
        return
    file = anonymous_file(_aligned(sizes))
    try:
        for part, start in zip(parts, _starts(sizes)):
            _write(file, part, start)
        connection.send_bytes(pickle.dumps(tuple(sizes)))
        reduction.send_handle(connection, file, None)
    finally:
        os.close(file)


def receive(connection):
    """The next message. Arrays in it lie in shared memory that is freed with the last of them."""
    head = pickle.loads(connection.recv_bytes())  # noqa: S301 - from a process of our own, here and below
    if isinstance(head, list):
        return pickle.loads(head[0], buffers=head[1:])  # noqa: S301
    file = reduction.recv_handle(connection)
    size = _aligned(head)
    if file > _most_files() // 2:  # many batches are being kept: do not hold a descriptor for each
        with os.fdopen(file, "rb") as source:
            memory = memoryview(bytearray(source.read(size)))
    else:
        memory = memoryview(SharedMemory(file, size))
    stream, *buffers = (memory[start : start + length] for start, length in zip(_starts(head), head))
    return pickle.loads(stream, buffers=buffers)  # noqa: S301


class _Pickler(reduction.ForkingPickler):
    """Pickles tensors by their memory, not by copies of it; and what ``rushlight.multiprocessing`` can send besides."""

    def reducer_override(self, obj):
        if not isinstance(obj, Tensor) or not isinstance(obj._array, np.ndarray):
            return NotImplemented
        if obj.requires_grad and not obj.is_leaf:
            return NotImplemented  # refused, with PyTorch's text
        obj._sync()
        array = np.ascontiguousarray(obj._array) if obj._array.ndim else obj._array.copy()
        buffer = pickle.PickleBuffer(array.reshape(-1).view(np.uint8)) if array.size else None
        return _rebuild, (type(obj), buffer, array.dtype, array.shape, obj.requires_grad)


def _rebuild(kind, buffer, dtype, shape, requires_grad):
    t = wrap(np.ndarray(shape, dtype, buffer))
    if kind is not Tensor:
        t.__class__ = kind
    return t.requires_grad_() if requires_grad else t


def _starts(sizes) -> list[int]:
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return starts


def _aligned(sizes) -> int:
    return sum(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)


def _write(file: int, data: memoryview, start: int) -> None:
    while data.nbytes:
        written = os.pwrite(file, data, start)
        data, start = data[written:], start + written


def _most_files() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
