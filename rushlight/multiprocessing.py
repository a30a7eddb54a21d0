"""Python's ``multiprocessing``, with tensors that travel between processes as shared memory instead of copies.

A tensor sent to another process (an argument of a spawned ``Process``, an item of a ``Queue``) is first moved to
shared memory, then only its place there is sent: both sides see each other's writes. After ``share_memory_`` a forked
process sees them too. The memory is an anonymous file; it is gone when the last process lets go of it.
"""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing import *  # noqa: F403
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

from .tensor import Tensor, wrap

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def __dir__():
    return __all__


# -- memory ----------------------------------------------------------------------------------------------------------


class SharedMemory(mmap.mmap):
    """A mapping of an anonymous file, together with the file, so that it can be handed on."""

    file: int

    def __new__(cls, file: int, size: int):
        try:
            made = super().__new__(cls, file, size, **_WHOLE)
        except BaseException:
            os.close(file)
            raise
        made.file = file
        return made

    def __del__(self):
        os.close(self.file)


# Linux can map all pages at once, which is faster than one fault after another.
_WHOLE = {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE} if hasattr(mmap, "MAP_POPULATE") else {}


def shared_copy(array: np.ndarray) -> np.ndarray:
    """A copy of ``array`` in memory that other processes can be given."""
    size = max(array.nbytes, 1)
    made = np.ndarray(array.shape, array.dtype, SharedMemory(anonymous_file(size), size))
    made[...] = array
    return made


def anonymous_file(size: int) -> int:
    """The descriptor of a new file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("rushlight")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, size)
    return file


def _memory_of(array) -> SharedMemory | None:
    """The shared memory that an array lies in."""
    while array is not None and not isinstance(array, SharedMemory):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


# -- how tensors are sent --------------------------------------------------------------------------------------------


def _reduce_tensor(t: Tensor):
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    t._sync()
    if not isinstance(t._array, np.ndarray):
        return t.__reduce_ex__(2)  # on an accelerator: copied
    memory = _memory_of(t._array)
    if memory is None:
        t._array = shared_copy(t._array)
        memory = _memory_of(t._array)
        assert memory is not None
    start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    array = t._array
    layout = (array.shape, array.dtype, array.__array_interface__["data"][0] - start, array.strides)
    return _rebuild_tensor, (type(t), reduction.DupFd(memory.file), len(memory), layout, t.requires_grad)


def _rebuild_tensor(kind, file, size, layout, requires_grad):
    shape, dtype, offset, strides = layout
    t = wrap(np.ndarray(shape, dtype, SharedMemory(file.detach(), size), offset, strides))
    t.__class__ = kind
    return t.requires_grad_(requires_grad)


def _register(kind: type) -> None:
    reduction.ForkingPickler.register(kind, _reduce_tensor)


def _register_all() -> None:
    from .nn.parameter import Parameter

    _register(Tensor)
    _register(Parameter)


_register_all()


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors can be shared."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way in which tensors are shared."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted if it is the only one there is: file descriptors, which leave nothing behind."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"rushlight shares memory by file descriptors only, not by '{new_strategy}'")


# -- starting several processes --------------------------------------------------------------------------------------


class ProcessException(Exception):
    """One of the processes failed: ``error_index`` says which, ``error_pid`` its process id."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended with a Python exception."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


_PATIENCE = 30.0  # seconds for a process that is told to end


class ProcessContext:
    """The running processes of one ``spawn``."""

    def __init__(self, processes, errors):
        self.processes, self._errors = processes, errors
        self._waiting = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end; true when all have. If one failed, end the others and raise what it raised.

        The others may have ``grace_period`` seconds to end by themselves; who does not end when told to is killed.
        """
        if not self._waiting:
            return True
        failed = None
        for sentinel in connection.wait(list(self._waiting), timeout=timeout):
            index = self._waiting.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self._waiting
        self._end(grace_period)
        raise self._failure(failed)

    def _end(self, grace_period: float | None) -> None:
        """End all processes, stopped ones too."""
        self._wait(grace_period or 0)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
                if hasattr(signal, "SIGCONT"):  # a stopped process is told when it goes on
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGCONT)
        self._wait(_PATIENCE)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(end - time.monotonic(), 0))

    def _failure(self, index: int) -> ProcessException:
        process = self.processes[index]
        with contextlib.suppress(EOFError):  # it ended without a word
            text = f"\n\n-- Process {index} terminated with the following error:\n{self._errors[index].recv()}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def spawn(fn, args=(), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` processes; wait for them, or return a ``ProcessContext`` to join later."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def start_processes(fn, args=(), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"):
    """Start ``nprocs`` processes that run ``fn(i, *args)``."""
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    made = ProcessContext(processes, errors)
    if not join:
        return made
    while not made.join():
        pass
    return None


def _run(fn, index: int, args, sender) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        sender.send(traceback.format_exc())
        sys.last_value = error  # as the interpreter has it: who leaves a world at exit looks whether something failed
        raise SystemExit(1) from None
