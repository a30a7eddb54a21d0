"""How processes that know little of each other find one store: by the environment, an address or a file."""

from __future__ import annotations

import datetime
import os
import urllib.parse
import zlib
from collections.abc import Callable, Iterator

from .errors import DistNetworkError
from .store import FileStore, PrefixStore, Store, TCPStore, try_to_connect

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Callable] = {}
_TRIES = 16  # ports that process 0 tries in turn where the launcher holds the one that was agreed on


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options) -> Iterator[tuple[Store, int, int]]:
    """What a URL leads to: pairs of a store and this process's place, one for each time the world is formed."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    scheme = urllib.parse.urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(url).query))
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    return _handlers[scheme](url, rank, world_size, **options)


def register_rendezvous_handler(scheme: str, handler: Callable) -> None:
    """Have ``rendezvous`` call ``handler`` for the URLs of a scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def _by_environment(url, rank, world_size, timeout=datetime.timedelta(minutes=30), **_):
    env, given = os.environ, {"RANK": rank, "WORLD_SIZE": world_size}
    if "RANK" not in env and rank < 0:
        env = {**by_scheduler(), **env}

    def value(name: str) -> str:
        if given.get(name, -1) >= 0:
            return str(given[name])
        if name not in env:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set"
            )
        return env[name]

    rank, world_size = int(value("RANK")), int(value("WORLD_SIZE"))
    host, port = value("MASTER_ADDR"), int(value("MASTER_PORT"))
    attempt = f"attempt_{env.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    served, _, turn = env.get("RUSHLIGHT_STORE", "").partition("/")
    if env.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        store: Store = TCPStore(host, port, world_size, rank == 0, timeout)
    elif served == f"{host}:{port}":  # our own launcher serves one
        store = PrefixStore(f"worker/round_{turn}", TCPStore(host, port, timeout=timeout))
    else:
        token = f"{env.get('TORCHELASTIC_RUN_ID', '')}/{attempt}/{port}"
        store = _beside(host, port, rank == 0, world_size, token, timeout)
    yield store, rank, world_size


def by_scheduler() -> dict[str, str]:
    """What a launcher would have put into the environment, if SLURM, Open MPI or a TPU pod started this process."""
    try:
        from ..engine.xla.world import by_scheduler
    except ImportError:
        return {}
    return by_scheduler()


def _beside(host: str, port: int, is_master: bool, world_size: int, token: str, timeout) -> Store:
    """PyTorch's launcher listens at the agreed port itself, in words of its own: the store is at one near it."""
    start = zlib.crc32(token.encode())
    ports = [1024 + (port + start + 7 * i) % 64000 for i in range(_TRIES)]
    if is_master:
        for tried in ports:
            try:
                return TCPStore(host, tried, None, True, timeout, token=token)
            except DistNetworkError:
                continue
        raise DistNetworkError(f"none of {_TRIES} ports is free for the store: {ports}")
    end = datetime.datetime.now() + timeout
    while datetime.datetime.now() < end:
        for tried in ports:
            found = try_to_connect(host, tried, token)
            if found is not None:
                found.close()
                return TCPStore(host, tried, None, False, timeout, token=token)
    raise DistNetworkError(f"no store of process 0 was found at {host} within {timeout}")


def _by_address(url, rank, world_size, timeout=datetime.timedelta(minutes=30), **_):
    parsed = urllib.parse.urlparse(url)
    if parsed.port is None:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    if rank < 0:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: rank parameter missing")
    if world_size < 0:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: world size parameter missing")
    yield TCPStore(str(parsed.hostname), parsed.port, world_size, rank == 0, timeout), rank, world_size


def _by_file(url, rank, world_size, **_):
    path = urllib.parse.urlparse(url).path
    if not path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    if rank < 0:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: rank parameter missing")
    if world_size < 0:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: world size parameter missing")
    yield FileStore(path, world_size), rank, world_size


_handlers.update({"env": _by_environment, "tcp": _by_address, "file": _by_file})
