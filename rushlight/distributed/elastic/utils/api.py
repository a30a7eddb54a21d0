"""Variables of the environment, sockets, and the one word that is replaced in commands."""

from __future__ import annotations

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """A variable that must be set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket that listens at a free port of this machine; who asked closes it."""
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
        made = socket.socket(family, kind, protocol)
        try:
            made.bind(("localhost", 0))
            made.listen(0)
        except OSError:
            made.close()
            continue
        return made
    raise RuntimeError("Failed to create a socket")


class macros:
    """``${local_rank}`` in the arguments of a command."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list, local_rank: str) -> list[str]:
        """The arguments with this process's number in them."""
        return [Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg for arg in args]
