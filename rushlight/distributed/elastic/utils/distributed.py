"""Free ports."""

from __future__ import annotations

from .api import get_socket_with_port

__all__ = ["get_free_port", "get_socket_with_port"]


def get_free_port() -> int:
    """A port of this machine that nobody listens at; another may take it before it is used."""
    with get_socket_with_port() as found:
        return found.getsockname()[1]
