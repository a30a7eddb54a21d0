"""Many processes, one runtime: how a process joins JAX's coordination service and leaves it again.

Process 0 serves it at a free port. ``jax.distributed.initialize`` would end a process (by SIGABRT) as soon as another
dies; here the failed collective raises, and the process decides. So service and client are made from JAX's own parts,
and the client is never told that the service is gone (``_Relay``).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Set
from itertools import starmap
from typing import Any

import jax
from jax._src import api, dispatch, distributed, xla_bridge  # no public names: the objects of initialize()
from jax._src.clusters import ClusterEnv
from jax._src.lib import _jax
from jax.extend.backend import clear_backends

from ...errors import DistBackendError
from . import devices  # noqa: F401 - JAX's settings are made there

_quieting = threading.Lock()
lost = threading.Event()  # has a program failed because another process has ended?
_NEVER = 20 * 24 * 3600  # seconds without a sign of life until JAX acts: what waits for others has timeouts of its own


def serve(size: int, host: str) -> str:
    """Start the service in this process, process 0 of ``size``; its address."""
    local = host in ("localhost", "127.0.0.1")
    for last in (False,) * 7 + (True,):
        port = _free_port(local)
        try:
            with quiet(2):
                distributed.global_state.service = _jax.get_distributed_runtime_service(
                    f"127.0.0.1:{port}" if local else f"[::]:{port}",
                    size,
                    heartbeat_timeout=_NEVER,
                    shutdown_timeout=1,
                    recoverable=True,
                )
        except Exception:  # the port was taken between the look and the use
            if last:
                raise
            continue
        break
    return f"{host}:{port}"


def join(address: str, size: int, rank: int, timeout: float, host: str = "127.0.0.1") -> None:
    """Become process ``rank`` of the service at ``address``, which others reach at ``host``.

    Arrays made before keep their values.
    """
    if xla_bridge.backends_are_initialized():
        clear_backends()
    xla_bridge.register_backend_factory("cpu", functools.partial(_cpus, host), priority=0, fail_quietly=False)
    atexit.unregister(_park)
    atexit.register(_park)
    what = f"init_process_group of rank {rank} of {size}"
    _waiting.given_up = _waiting.alone = None
    try:
        relay = _Relay(address, timeout)
        _relays.append(relay)
        client = _jax.get_distributed_runtime_client(
            relay.address,
            rank,
            init_timeout=_NEVER,
            shutdown_timeout=1,
            heartbeat_timeout=_NEVER,
            shutdown_on_destruction=False,
            use_compression=True,
        )
        in_time(what, client.connect, connects=True)
        state = distributed.global_state
        state.client, state.process_id, state.num_processes, state.coordinator_address = client, rank, size, address
        with quiet():
            in_time(what, jax.devices, connects=True)  # all processes describe their devices to each other
    except Exception as error:
        if is_hung():
            abandon()
        if isinstance(error, DistBackendError):
            raise
        raise DistBackendError(f"{what} failed: {cause(error)}") from None


def _cpus(host: str):
    """JAX's CPUs. Their gloo is told where others find this process: a machine's own name often leads to 127.0.0.1.

    ``GLOO_SOCKET_IFNAME`` names an interface, as for PyTorch's; of several the first.
    """
    client, collectives = distributed.global_state.client, None
    if client is not None and jax.config.jax_cpu_collectives_implementation == "gloo":  # type: ignore[attr-defined]
        interface = os.environ.get("GLOO_SOCKET_IFNAME", "").partition(",")[0]
        way = {"interface": interface} if interface else {"hostname": host}
        collectives = _jax.make_gloo_tcp_collectives(client, **way)
    return xla_bridge.make_cpu_client(collectives)


def leave(used_by_others: bool = False) -> None:
    """Forget the world; what comes next is a process of its own, or joins another.

    A service that is shut down says so to those who use it still, and that ends their processes by SIGABRT: then it
    goes with this process, without a word.
    """
    state = distributed.global_state
    client, service = state.client, state.service
    state.client = state.service = state.coordinator_address = None
    state.process_id, state.num_processes = 0, 1
    jax.clear_caches()
    clear_backends()
    if used_by_others:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(service))
    for end in (client, None if used_by_others else service):
        if end is not None:
            with contextlib.suppress(Exception):  # it may be gone already
                end.shutdown()
    while _relays:
        _relays.pop().close()


def abandon(threads: Set[int] = frozenset()) -> None:
    """Leave everything as it is: ``threads``, or those of ``in_time``, hang inside XLA."""
    _waiting.stuck |= threads | _waiting.inside
    atexit.unregister(api.clean_up)
    atexit.unregister(dispatch.wait_for_tokens)
    # Nor may the interpreter take them apart when it ends: they have threads, and C++ aborts where one still runs.
    state = distributed.global_state
    for used in (state.client, state.service, *xla_bridge._backends.values(), *_relays):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(used))


def _park() -> None:
    """When the interpreter ends: have threads that hang inside XLA sleep until the process is gone.

    One that wakes in the midst of that, because another process has ended too, would end this one by SIGABRT: Python
    before 3.14 takes such threads down, through C++ that cannot be unwound.
    """
    stuck = _waiting.stuck & {thread.ident for thread in threading.enumerate()}
    if stuck and sys.platform == "linux":
        libc, number = ctypes.CDLL(None), signal.SIGRTMAX
        libc.signal(int(number), libc.sleep)  # the handler's argument is the signal's number: so many seconds
        for thread in stuck:
            signal.pthread_kill(thread, number)


# -- the way to the service --------------------------------------------------------------------------------------------


class _Relay:
    """Passes bytes between this process's client and the service, and leaves the client's end open when that is gone.

    A client whose connection breaks ends its process: it asks the service for errors all the time, calls back with
    what it finds, and C++ cannot make a Python object of that. A client that gets no answer goes on waiting.
    """

    def __init__(self, address: str, timeout: float):
        host, _, port = address.rpartition(":")
        self._service = host, int(port)
        self._timeout, self._closed = timeout, False
        self._open = [self._reached()]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._start(self._accept)

    def close(self) -> None:
        self._closed = True
        for end in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it
            end.close()

    def _reached(self) -> socket.socket:
        found = socket.create_connection(self._service, self._timeout)
        found.settimeout(None)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def _accept(self) -> None:
        service: socket.socket | None = self._open[0]
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(client)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if service is None:
                with contextlib.suppress(OSError):
                    service = self._reached()
                    self._open.append(service)
            if service is not None:
                self._start(_pass, client, service)
                self._start(self._answer, service, client)
                service = None

    def _answer(self, service: socket.socket, client: socket.socket) -> None:
        _pass(service, client)
        if not self._closed:
            _waiting.alone = time.monotonic()

    def _start(self, work: Callable, *args) -> None:
        threading.Thread(target=work, args=args, name="relay", daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)


_relays: list[_Relay] = []  # of the world that this process is in


# -- waiting for others ------------------------------------------------------------------------------------------------


class _Waiting:
    """How long a program may wait for other processes, and what came of it."""

    seconds: Callable[[], float] | None = None  # the world's timeout; None: for ever
    before: Callable[[], None] | None = None  # waits for what others have under way between the same processes
    given_up: str | None = None  # what was waited for in vain: from then on nobody waits again
    alone: float | None = None  # since when the service is gone: who has not connected by then never will
    inside: set[int] = set()  # threads whose calls XLA is at
    stuck: set[int] = set()  # those of them that were given up


_waiting = _Waiting()


def wait_at_most(seconds: Callable[[], float] | None, before: Callable[[], None] | None = None) -> None:
    """From now on ``in_time`` waits so long, and ``settle`` calls ``before``."""
    _waiting.seconds, _waiting.before = seconds, before


def settle() -> None:
    """Wait for what groups have under way, before a program over processes: XLA would not tell them apart."""
    if _waiting.before is not None:
        _waiting.before()


def is_hung() -> bool:
    """Does a thread still wait inside XLA for a process that was given up?"""
    return _waiting.given_up is not None and bool(_waiting.inside)


def in_time(what: str, call: Callable, connects: bool = False, seconds: float | None = None):
    """``call()``, which waits inside XLA for other processes: see ``Asked``."""
    asked = Asked(what, call, connects, seconds)
    asked.start()
    asked.wait()
    return asked.result()


class Asked:
    """A call that waits inside XLA for other processes: only as long as the world's timeout, or so many seconds.

    Nothing can interrupt a thread that waits there. So a thread beside this one makes the call; when time is up this
    one raises, and the other is left behind. If the call ``connects`` processes, it needs the service: time is up then
    soon after that is gone.
    """

    def __init__(self, what: str, call: Callable, connects: bool = False, seconds: float | None = None):
        self._what, self._call, self._connects, self._seconds = what, call, connects, seconds
        self._end = 0.0
        self._found: Any = None
        self._error: BaseException | None = None
        self._started: list = []
        self._open = threading.Lock()  # held until it is done
        self._open.acquire()

    def start(self) -> None:
        """Have it made, unless a process was given up: then nobody knows which calls the others make."""
        if _waiting.given_up is not None:
            raise DistBackendError(
                f"{self._what}: not started, because {_waiting.given_up} has timed out: processes are no longer at the "
                "same place"
            )
        if _waiting.seconds is None:
            self.make()
            return
        self._seconds = _waiting.seconds() if self._seconds is None else self._seconds
        self._end = time.monotonic() + self._seconds
        # No bytecode in between, so that nothing can interrupt it there: it is under way, and ``wait`` knows.
        self._started.extend(starmap(_beside.queue().put, ((self,),)))

    def wait(self) -> None:
        """Until it is done, or time is up."""
        while self._started and (left := self._left()) >= 0:
            if self._open.acquire(timeout=min(left, 0.5 if self._connects else threading.TIMEOUT_MAX)):
                self._open.release()
                return

    def _left(self) -> float:
        """How many seconds there are to wait; what has connected finds out by itself that a process is gone."""
        now, alone = time.monotonic(), _waiting.alone if self._connects else None
        return self._end - now if alone is None else min(self._end, alone + 2) - now

    def result(self):
        """What the call has returned or raised; an error if it is still under way."""
        if self._open.locked():
            _waiting.given_up = self._what
            lost.set()
            if time.monotonic() < self._end:
                raise DistBackendError(
                    f"{self._what} failed: process 0, which serves where processes find each other, has ended or "
                    "cannot be reached"
                )
            raise DistBackendError(
                f"{self._what}: timed out after {int(self._seconds * 1000)}ms. A process did not take part: it is "
                "stopped, busy with something else, or cannot be reached."
            )
        if self._error is not None:
            raise self._error
        return self._found

    def make(self) -> None:
        _waiting.inside.add(threading.get_ident())
        try:
            self._found = self._call()
        except BaseException as error:
            self._error = error
        finally:
            _waiting.inside.discard(threading.get_ident())
            self._call = None  # type: ignore[assignment]
            self._open.release()


class _Beside(threading.local):
    """The thread that makes this one's calls, in order. It ends with the thread that asks, or with the process."""

    calls: queue.SimpleQueue | None = None

    def queue(self) -> queue.SimpleQueue:
        if self.calls is None:
            calls = queue.SimpleQueue()  # type: ignore[var-annotated]
            threading.Thread(target=_make, args=(calls,), name="programs over processes", daemon=True).start()
            self._end, self.calls = _End(calls), calls
        return self.calls


class _End:
    """Ends the thread beside when the thread it belongs to is gone."""

    def __init__(self, calls: queue.SimpleQueue):
        self._calls = calls

    def __del__(self):
        self._calls.put(None)


def _make(calls: queue.SimpleQueue) -> None:
    while (asked := calls.get()) is not None:
        asked.make()
        asked = None  # a thread that waits must not keep the last one's arrays


_beside = _Beside()


# -- what XLA says -----------------------------------------------------------------------------------------------------


def is_of_other_processes(error: Exception) -> bool:
    """Does XLA say with this that it cannot reach another process?"""
    text = str(error)
    return "gloo" in text.lower() and any(word in text for word in ("onnection", "Read error", "Broken pipe"))


@contextlib.contextmanager
def told(what: str):
    """A process that has ended is PyTorch's error, where XLA raises one of its own."""
    try:
        yield
    except Exception as error:
        if isinstance(error, DistBackendError) or not is_of_other_processes(error):
            raise
        lost.set()
        raise DistBackendError(f"{what} failed: {cause(error)}") from None


def cause(error: Exception) -> str:
    """XLA's words without its own file names."""
    text = str(error)
    if is_of_other_processes(error):
        return f"Connection closed by peer: a process of the group has ended ({text.rpartition('] ')[2] or text})"
    return text


@contextlib.contextmanager
def quiet(stream: int = 1):
    """XLA's gloo tells standard output that it has connected, the service tells standard error what it is: hushed.

    What the program itself prints meanwhile, from another thread, goes through.
    """
    with _quieting:
        (sys.stdout if stream == 1 else sys.stderr).flush()
        try:
            kept = os.dup(stream)
        except OSError:  # closed: nothing to keep clean
            yield
            return
        source, sink = os.pipe()
        os.dup2(sink, stream)
        os.close(sink)
        pump = threading.Thread(target=_pump, args=(source, kept), name="quiet", daemon=True)
        pump.start()
        try:
            yield
        finally:
            os.dup2(kept, stream)
            pump.join(1.0)  # a process that was started meanwhile may hold the pipe: then it pumps on


# What gloo says of each device that has connected, in pieces; those of several threads may come mixed.
_GLOO = re.compile(
    rb"(?:\[Gloo\] Rank |\d+| is connected to | peer ranks\. |Expected number of connected peer ranks is : )*\n?"
)


def _pump(source: int, kept: int) -> None:
    begun = 0  # of gloo's lines, whose ends are still to come
    with open(source, "rb") as lines, open(kept, "wb", buffering=0) as out:
        for line in lines:
            begun += line.count(b"[Gloo] Rank ")
            if line.startswith(b"[Gloo]") or (begun and _GLOO.fullmatch(line)):
                begun = max(begun - 1, 0)
            elif b"recoverable task feature" not in line:
                out.write(line)


def _free_port(local: bool) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1" if local else "", 0))
        return probe.getsockname()[1]


_SCHEDULERS = ("slurm", "ompi", "tpu", "gcetpu", "gketpu")  # by JAX's names


def by_scheduler() -> dict[str, str]:
    """What a launcher would have put into the environment, if SLURM, Open MPI or a TPU pod started this process."""
    found = next((c for c in ClusterEnv._cluster_types if c.name in _SCHEDULERS and c.is_env_present()), None)
    if found is None:
        return {}
    address, port = found.get_coordinator_address(300, os.environ.get("MASTER_PORT")).rsplit(":", 1)
    local = found.get_local_process_id()
    return {
        "RANK": str(found.get_process_id()),
        "WORLD_SIZE": str(found.get_process_count()),
        "LOCAL_RANK": str(local or 0),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
    }
