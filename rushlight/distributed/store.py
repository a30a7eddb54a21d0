"""Stores: a few small values that all processes see, before and beside the collectives.

One of them brings a world together: process 0 writes there where JAX's coordinator listens. ``HashStore`` is a
dictionary with waiting; ``TCPStore`` is one behind a socket; ``FileStore`` is a file that is only appended to.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import datetime
import operator
import os
import socket
import struct
import threading
import time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from .errors import DistNetworkError, DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_FIVE_MINUTES = datetime.timedelta(seconds=300)
_NO_QUEUES = "queue support is not implemented."  # PyTorch's words for a FileStore


class Store:
    """Keys and values that several processes see. ``get`` waits until a key is there, or the timeout has passed.

    A kind of store writes five things: ``_set``, ``_get`` (waits), ``_change`` (read and write in one go), ``_delete``
    and ``_keys``; one that has queues also ``_push``, ``_pop`` (waits), ``_length``, ``_wait`` and ``_check``.
    """

    def __init__(self, timeout: datetime.timedelta = _FIVE_MINUTES):
        self.timeout = timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self.timeout = timeout

    def set(self, key: str, value) -> None:
        self._set(_name(key), _bytes(value))

    def get(self, key: str) -> bytes:
        return self._get([_name(key)], self._seconds())[0]

    def wait(self, keys: list[str], timeout: datetime.timedelta | None = None) -> None:
        """Until all ``keys`` are there, as values or as queues with something in them."""
        self._wait(_names(keys), self._seconds(timeout))

    def check(self, keys: list[str]) -> bool:
        return self._check(_names(keys))

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which begins at 0; what it is then."""
        return int(self._change("add", _name(key), b"%d" % operator.index(amount), b""))

    def append(self, key: str, value) -> None:
        self._change("append", _name(key), _bytes(value), b"")

    def compare_set(self, key: str, expected_value, desired_value) -> bytes:
        """Write ``desired_value`` if the key has ``expected_value`` (empty: if it is not there); what it has then."""
        return self._change("compare", _name(key), _bytes(expected_value), _bytes(desired_value))

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._get(_names(keys), self._seconds())

    def multi_set(self, keys: list[str], values: list) -> None:
        if len(keys) != len(values):
            raise DistStoreError(f"multi_set: {len(keys)} keys, but {len(values)} values")
        for key, value in zip(keys, values):
            self.set(key, value)

    def delete_key(self, key: str) -> bool:
        return self._delete(_name(key))

    def num_keys(self) -> int:
        return len(self._keys())

    def list_keys(self) -> list[str]:
        return self._keys()

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value) -> None:
        """Put a value at the end of a queue."""
        self._push(_name(key), _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; of an empty one, wait for it, or raise ``QueueEmptyError``."""
        return self._pop(_name(key), self._seconds() if block else None)

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return self._length(_name(key))

    def barrier(self, key: str, world_size: int, timeout: datetime.timedelta | None = None) -> None:
        """Until ``world_size`` processes have called this with the same key."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", b"1")
        self.wait([f"{key}/last_member"], timeout)

    def clone(self) -> Store:
        """The same values through another object, for another thread."""
        return copy.copy(self)

    def _hurry(self, seconds: float) -> None:
        """Wait for an answer to any question only so long."""

    def _seconds(self, timeout=None) -> float:
        if not isinstance(timeout, (datetime.timedelta, type(None))):
            raise TypeError(f"a store's timeout must be a datetime.timedelta, got {timeout!r}")
        return (self.timeout if timeout is None else timeout).total_seconds()

    def _set(self, key: str, value: bytes) -> None:
        raise NotImplementedError

    def _get(self, keys: list[str], seconds: float) -> list[bytes]:
        raise NotImplementedError

    def _wait(self, keys: list[str], seconds: float) -> None:
        self._get(keys, seconds)

    def _check(self, keys: list[str]) -> bool:
        return set(keys) <= set(self._keys())

    def _change(self, how: str, key: str, first: bytes, second: bytes) -> bytes:
        raise NotImplementedError

    def _delete(self, key: str) -> bool:
        raise NotImplementedError

    def _keys(self) -> list[str]:
        raise NotImplementedError

    def _push(self, key: str, value: bytes) -> None:
        raise NotImplementedError(_NO_QUEUES)

    def _pop(self, key: str, seconds: float | None) -> bytes:
        raise NotImplementedError(_NO_QUEUES)

    def _length(self, key: str) -> int:
        raise NotImplementedError(_NO_QUEUES)


class HashStore(Store):
    """A store inside one process, for its threads."""

    def __init__(self):
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, collections.deque[bytes]] = {}  # none is empty
        self._changed = threading.Condition()

    def _check(self, keys):
        with self._changed:
            return all(k in self._values or k in self._queues for k in keys)

    def _come(self, ready, seconds: float) -> None:
        """Wait until ``ready()``."""
        if not self._changed.wait_for(ready, seconds):
            raise DistStoreError("Wait timeout")

    def _wait(self, keys, seconds):
        with self._changed:
            self._come(lambda: self._check(keys), seconds)

    def _push(self, key, value):
        with self._changed:
            self._queues.setdefault(key, collections.deque()).append(value)
            self._changed.notify_all()

    def _pop(self, key, seconds):
        with self._changed:
            if seconds is None and key not in self._queues:
                raise QueueEmptyError("queue is empty")
            self._come(lambda: key in self._queues, seconds or 0.0)
            value = self._queues[key].popleft()
            if not self._queues[key]:
                del self._queues[key]
            return value

    def _length(self, key):
        with self._changed:
            return len(self._queues.get(key, ()))

    def _set(self, key, value):
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def _get(self, keys, seconds):
        with self._changed:
            self._come(lambda: all(k in self._values for k in keys), seconds)
            return [self._values[k] for k in keys]

    def _change(self, how, key, first, second):
        with self._changed:
            answer, new = _changed(how, self._values.get(key), first, second)
            if new is not None:
                self._values[key] = new
                self._changed.notify_all()
            return answer

    def _delete(self, key):
        with self._changed:
            return self._values.pop(key, None) is not None

    def _keys(self):
        with self._changed:
            return list(self._values)


class PrefixStore(Store):
    """Another store, with ``prefix/`` before every key."""

    def __init__(self, prefix: str, store: Store):
        super().__init__(store.timeout)
        self.prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        inner = self._store
        return inner._underlying_non_prefix_store if isinstance(inner, PrefixStore) else inner

    def clone(self):
        made = PrefixStore(self.prefix, self._store.clone())
        made.timeout = self.timeout
        return made

    def has_extended_api(self):
        return self._store.has_extended_api()

    def _check(self, keys):
        return self._store._check([self._full(k) for k in keys])

    def _wait(self, keys, seconds):
        self._store._wait([self._full(k) for k in keys], seconds)

    def _push(self, key, value):
        self._store._push(self._full(key), value)

    def _pop(self, key, seconds):
        return self._store._pop(self._full(key), seconds)

    def _length(self, key):
        return self._store._length(self._full(key))

    def _set(self, key, value):
        self._store._set(self._full(key), value)

    def _get(self, keys, seconds):
        return self._store._get([self._full(k) for k in keys], seconds)

    def _change(self, how, key, first, second):
        return self._store._change(how, self._full(key), first, second)

    def _delete(self, key):
        return self._store._delete(self._full(key))

    def _keys(self):
        return [k.removeprefix(self.prefix + "/") for k in self._store._keys() if k.startswith(self.prefix + "/")]

    def num_keys(self):
        return self._store.num_keys()

    def _hurry(self, seconds):
        self._store._hurry(seconds)

    def _full(self, key: str) -> str:
        return f"{self.prefix}/{key}"


# -- over a socket ---------------------------------------------------------------------------------------------------

_HELLO = b"rushlight-store-2"
_CLIENTS = "init/"  # a counter of who is connected
_WAITS = (b"get", b"wait", b"pop")  # questions with a timeout before the keys


class TCPStore(Store):
    """A store that one process serves at a port (0: one that is free) and the others connect to.

    ``token`` is ours: a server turns away whoever says another one, so that two worlds cannot mix. ``use_libuv``
    changes nothing.
    """

    libuvBackend = True

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = _FIVE_MINUTES,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
        *,
        token: str = "",
    ):
        super().__init__(timeout)
        self._server = None
        if is_master:
            with contextlib.suppress(OSError):  # taken: with multi_tenant another store of this process serves it
                self._server = Server(host_name, port, master_listen_fd, token)
            if self._server is None and not multi_tenant:
                raise DistNetworkError(
                    f"The server socket has failed to listen on any local network address. port: {port}, EADDRINUSE"
                )
        self.host, self.port, self._token = host_name, self._server.port if self._server else port, token
        self._socket = _connected(self.host, self.port, self._seconds(), token)
        self._lock, self._patience = threading.Lock(), 60.0
        if wait_for_workers and world_size is not None and world_size > 0:
            self._wait_for(world_size, is_master)

    def close(self) -> None:
        """Let go of the connection and, where it is served here, of the port."""
        if self._socket is not None:
            self._socket.close()
        if self._server is not None:
            self._server.close()

    def __del__(self):
        if hasattr(self, "_socket"):
            self.close()

    def __repr__(self) -> str:
        served = f"TCPServer(port={self.port})" if self._server else "<nullptr>"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={served})"

    def _wait_for(self, world_size: int, is_master: bool) -> None:
        here = self.add(_CLIENTS, 1)
        end = time.monotonic() + self._seconds()
        while is_master and here < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {int(self._seconds())} seconds waiting for clients. {here}/{world_size} clients "
                    "joined."
                )
            time.sleep(0.01)
            here = self.add(_CLIENTS, 0)

    def _set(self, key, value):
        self._ask(b"set", key.encode(), value)

    def _get(self, keys, seconds):
        return self._wait_at_server(b"get", keys, seconds)

    def _wait(self, keys, seconds):
        self._wait_at_server(b"wait", keys, seconds)

    def _pop(self, key, seconds):
        if seconds is not None:
            return self._wait_at_server(b"pop", [key], seconds)[0]
        answer = self._ask(b"pop now", key.encode())
        if answer[0] == b"empty":
            raise QueueEmptyError("queue is empty")
        return answer[1]

    def _wait_at_server(self, what: bytes, keys: list[str], seconds: float) -> list[bytes]:
        """What the server has for these keys, as soon as all are there."""
        waited = b"%d" % int(seconds * 1000)
        answer = self._ask(what, waited, *[k.encode() for k in keys], wait=seconds)
        if answer[0] == b"late":
            raise DistStoreError(f"wait timeout after {waited.decode()}ms, keys: {', '.join('/' + k for k in keys)}")
        return answer[1:]

    def _check(self, keys):
        return self._ask(b"check", *[k.encode() for k in keys])[1] == b"1"

    def clone(self):
        made = TCPStore(self.host, self.port, timeout=self.timeout, wait_for_workers=False, token=self._token)
        made._patience = self._patience
        return made

    def _push(self, key, value):
        self._ask(b"push", key.encode(), value)

    def _length(self, key):
        return int(self._ask(b"length", key.encode())[1])

    def _change(self, how, key, first, second):
        return self._ask(b"change", how.encode(), key.encode(), first, second)[1]

    def _delete(self, key):
        return self._ask(b"delete", key.encode())[1] == b"1"

    def _keys(self):
        return [k.decode() for k in self._ask(b"keys")[1:]]

    def list_keys(self):
        return [k for k in self._keys() if k != _CLIENTS]

    def _hurry(self, seconds):
        self._patience = seconds

    def _ask(self, *words: bytes, wait: float = 0.0) -> list[bytes]:
        """The server's answer, for which it may wait; beyond that only for as long as this store's patience."""
        wait += min(self._patience, self._seconds())
        if not self._lock.acquire(timeout=wait):
            raise self._silent("another thread waits for it")
        answer = None
        try:
            if self._socket is None:
                self._socket = try_to_connect(self.host, self.port, self._token, wait)
            if self._socket is None:
                raise self._silent("not connected")
            self._socket.settimeout(wait)
            _send(self._socket, words)
            answer = _receive(self._socket)
            return answer
        except OSError as error:
            raise self._silent(error) from None
        finally:
            if answer is None and self._socket is not None:  # one that comes late is no answer to the next question
                self._socket.close()
                self._socket = None
            self._lock.release()

    def _silent(self, why) -> DistNetworkError:
        return DistNetworkError(
            f"the store at {self.host}:{self.port} does not answer ({why}); the process that serves it has "
            "probably ended"
        )

    def __reduce__(self):
        raise TypeError("a TCPStore cannot be pickled: connect to it by its host and port")


class _Served(HashStore):
    """What a server has. Threads wait in it for clients, but not for one that is gone: it would take others' values."""

    def __init__(self):
        super().__init__()
        self.client = threading.local()  # its ``connection``, in each thread

    def _come(self, ready, seconds):
        end = time.monotonic() + seconds
        while not self._changed.wait_for(ready, min(max(end - time.monotonic(), 0), 5)):
            if time.monotonic() >= end:
                raise DistStoreError("Wait timeout")
            self._check_client()
        self._check_client()

    def _check_client(self) -> None:
        connection = self.client.connection
        connection.setblocking(False)
        try:
            if not connection.recv(1, socket.MSG_PEEK):  # it sends nothing while it waits
                raise ConnectionResetError("the client is gone")
        except BlockingIOError:
            pass
        finally:
            connection.setblocking(True)


class Server:
    """Serves a store: a thread that accepts, and one for each who is connected."""

    def __init__(self, host: str, port: int, fd: int | None = None, token: str = ""):
        self._store, self._token = _Served(), token
        local = host in ("localhost", "127.0.0.1")
        if fd is not None:
            self._listening = socket.socket(fileno=fd)
        else:
            self._listening = socket.create_server(("127.0.0.1" if local else "", port), backlog=512)
        self.port = self._listening.getsockname()[1]
        self._open: list = []
        threading.Thread(target=self._accept, name="store", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), name="store", daemon=True).start()

    def _serve(self, connection) -> None:
        self._store.client.connection = connection
        with contextlib.suppress(OSError, ValueError, struct.error), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            hello = _receive(connection)
            welcome = hello == [_HELLO, self._token.encode()]
            _send(connection, [b"welcome" if welcome else b"no"])
            while welcome:
                _send(connection, self._answer(_receive(connection)))
        if connection in self._open:
            self._open.remove(connection)

    def _answer(self, words: list[bytes]) -> list[bytes]:
        try:
            return [b"ok", *self._done(*words)]
        except QueueEmptyError:
            return [b"empty"]
        except DistStoreError:
            return [b"late"]

    def _done(self, what: bytes, *rest: bytes) -> list[bytes]:
        """What is asked for, and what there is to say to it."""
        store, keys = self._store, [word.decode() for word in rest[1:]] if what in _WAITS else []
        if what == b"set":
            store._set(rest[0].decode(), rest[1])
        elif what == b"push":
            store._push(rest[0].decode(), rest[1])
        elif what == b"get":
            return store._get(keys, int(rest[0]) / 1000)
        elif what == b"wait":
            store._wait(keys, int(rest[0]) / 1000)
        elif what == b"pop":
            return [store._pop(keys[0], int(rest[0]) / 1000)]
        elif what == b"pop now":
            return [store._pop(rest[0].decode(), None)]
        elif what == b"length":
            return [b"%d" % store._length(rest[0].decode())]
        elif what == b"check":
            return [b"1" if store._check([word.decode() for word in rest]) else b"0"]
        elif what == b"change":
            return [store._change(rest[0].decode(), rest[1].decode(), rest[2], rest[3])]
        elif what == b"delete":
            return [b"1" if store._delete(rest[0].decode()) else b"0"]
        elif what == b"keys":
            return [k.encode() for k in store._keys()]
        return []


def _connected(host: str, port: int, seconds: float, token: str):
    """A connection to a store's server, which may not be there yet."""
    end, pause = time.monotonic() + seconds, 0.01
    while True:
        made = try_to_connect(host, port, token, max(end - time.monotonic(), 0.05))
        if made is not None:
            return made
        if time.monotonic() > end:
            raise DistNetworkError(
                f"The client socket has timed out after {int(seconds * 1000)}ms while trying to connect to "
                f"({host}, {port})."
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def try_to_connect(host: str, port: int, token: str, seconds: float = 5.0):
    """The connection, or None where no such store answers."""
    made = None
    try:
        made = socket.create_connection((host, port), timeout=min(seconds, 10.0))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _send(made, [_HELLO, token.encode()])
        if _receive(made) == [b"welcome"]:
            return made
    except (OSError, ValueError, struct.error):
        pass
    if made is not None:
        made.close()
    return None


def _send(connection, words) -> None:
    """A message: how many words, and each with its length before it."""
    connection.sendall(b"".join([struct.pack("!I", len(words)), *[struct.pack("!I", len(w)) + w for w in words]]))


def _receive(connection) -> list[bytes]:
    (count,) = struct.unpack("!I", _exactly(connection, 4))
    if count > 1 << 20:
        raise ValueError("not a message of a store")
    return [_exactly(connection, struct.unpack("!I", _exactly(connection, 4))[0]) for _ in range(count)]


def _exactly(connection, n: int) -> bytes:
    parts = []
    while n:
        part = connection.recv(min(n, 1 << 20))
        if not part:
            raise ConnectionResetError("connection closed")
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


# -- in a file -------------------------------------------------------------------------------------------------------


class FileStore(Store):
    """A store in a file that all processes can reach. The last one to ``close`` takes the file away."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path, self._size = file_name, world_size
        open(file_name, "ab").close()

    def has_extended_api(self):
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._size > 0 and self.add("rushlight/left", 1) >= self._size:
                os.remove(self.path)

    def _set(self, key, value):
        with self._locked(fcntl and fcntl.LOCK_EX) as file:
            _append(file, key, value)

    def _get(self, keys, seconds):
        end, pause = time.monotonic() + seconds, 0.001
        while True:
            found = self._all()
            if all(k in found for k in keys):
                return [found[k] for k in keys]
            if time.monotonic() > end:
                raise DistStoreError(f"Timeout waiting for key: {', '.join(keys)} after {int(seconds * 1000)} ms")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)

    def _change(self, how, key, first, second):
        with self._locked(fcntl and fcntl.LOCK_EX) as file:
            answer, new = _changed(how, _records(file).get(key), first, second)
            if new is not None:
                _append(file, key, new)
            return answer

    def _delete(self, key):
        with self._locked(fcntl and fcntl.LOCK_EX) as file:
            there = key in _records(file)
            if there:
                _append(file, key, None)
            return there

    def _keys(self):
        return list(self._all())

    def _all(self) -> dict[str, bytes]:
        with self._locked(fcntl and fcntl.LOCK_SH) as file:
            return _records(file)

    @contextlib.contextmanager
    def _locked(self, how):
        with open(self.path, "a+b") as file:
            if fcntl is not None:
                fcntl.flock(file, how)
            file.seek(0)
            yield file  # closing it lets go of the lock


_GONE = 0xFFFFFFFF  # the length that a deleted key's value has


def _append(file, key: str, value: bytes | None) -> None:
    name = key.encode()
    length = _GONE if value is None else len(value)
    file.write(struct.pack("!II", len(name), length) + name + (value or b""))
    file.flush()


def _records(file) -> dict[str, bytes]:
    data, at, found = file.read(), 0, {}
    while at + 8 <= len(data):
        name, length = struct.unpack_from("!II", data, at)
        key, at = data[at + 8 : at + 8 + name].decode(), at + 8 + name
        if length == _GONE:
            found.pop(key, None)
        else:
            found[key], at = data[at : at + length], at + length
    return found


# -- what they share -------------------------------------------------------------------------------------------------


def _changed(how: str, now: bytes | None, first: bytes, second: bytes) -> tuple[bytes, bytes | None]:
    """(the answer, what is to be written or None) of a change to a key that has the value ``now``."""
    if how == "add":
        new = b"%d" % (int(now or 0) + int(first))
        return new, new
    if how == "append":
        return b"", (now or b"") + first
    if now is None:
        return (second, second) if first == b"" else (first, None)
    return (second, second) if now == first else (now, None)


def _names(keys) -> list[str]:
    if not isinstance(keys, (list, tuple)):
        raise TypeError(f"a store's keys must be a list of str, not {type(keys).__name__}")
    return [_name(key) for key in keys]


def _name(key) -> str:
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"a store's key must be str, not {type(key).__name__}")
    return key if isinstance(key, str) else key.decode()


def _bytes(value) -> bytes:
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"a store's value must be str or bytes, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else bytes(value)
